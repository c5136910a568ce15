import pg from "pg";
import { inject } from "vitest";
import { withDatabaseName } from "../../support/global-setup.js";

/** Runs it while Postgres is away for the database of `url`: no new connections, the open ones cut. */
export async function withoutDatabase<T>(url: string, run: () => Promise<T>): Promise<T> {
  const { adminUrl } = inject("server");
  const name = new URL(url).pathname.slice(1);
  const admin = new pg.Client({ connectionString: withDatabaseName(adminUrl, "postgres") });
  await admin.connect();
  try {
    await admin.query(`ALTER DATABASE ${name} WITH ALLOW_CONNECTIONS false`);
    await admin.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [name]);
    return await run();
  } finally {
    await admin.query(`ALTER DATABASE ${name} WITH ALLOW_CONNECTIONS true`);
    await admin.end();
  }
}
