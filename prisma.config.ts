// Read only by the Prisma command line (`prisma generate`, and `prisma migrate` on a machine that can
// fetch its engine). The product itself applies migrations with src/db/migrate.ts, offline.
import { defineConfig } from "prisma/config";

export default defineConfig({
  schema: "prisma/schema.prisma",
  migrations: { path: "prisma/migrations" },
  datasource: { url: process.env["DATABASE_URL"] ?? "postgresql://127.0.0.1:5432/countersign" },
});
