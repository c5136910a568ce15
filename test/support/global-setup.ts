/**
 * One private PostgreSQL for a run of the tests (or the server of DATABASE_URL), with one migrated template database that every
 * test file copies. Everything that a run makes carries its id, so that runs on a shared server do not meet.
 */
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { type EmbeddedPostgres, startEmbedded } from "../../src/db/embedded.js";
import { applyMigrations } from "../../src/db/migrate.js";

export interface TestServer {
  /** A database of the server to connect to for CREATE and DROP DATABASE. */
  readonly adminUrl: string;
  readonly template: string;
  /** Prefix of the names of all databases of this run. */
  readonly prefix: string;
  readonly redisUrl: string | undefined;
  /** Databases of files with a failed test stay when KEEP_DB is set. */
  readonly keep: boolean;
}

declare module "vitest" {
  export interface ProvidedContext {
    server: TestServer;
  }
}

interface Started {
  readonly server: TestServer;
  stop(): Promise<void>;
}

const RUN = Symbol.for("countersign.tests.server");
/** Each project has a setup, and a module, of its own in one process; they share one server. */
const everybody = globalThis as { [RUN]?: { started: Promise<Started>; users: number } };

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  everybody[RUN] ??= { started: start(), users: 0 };
  const run = everybody[RUN];
  run.users += 1;
  const { server, stop } = await run.started;
  project.provide("server", server);
  return async () => {
    run.users -= 1;
    if (run.users > 0) return;
    delete everybody[RUN];
    await stop();
  };
}

async function start(): Promise<Started> {
  const keep = (process.env["KEEP_DB"] ?? "") !== "";
  const external = process.env["DATABASE_URL"] || undefined;
  const redisUrl = process.env["REDIS_URL"] || undefined;

  let embedded: EmbeddedPostgres | undefined;
  let home: string | undefined;
  if (external === undefined) {
    home = mkdtempSync(join(tmpdir(), "countersign-test-"));
    chmodSync(home, 0o755); // started by root, the server runs as another user
    embedded = await startEmbedded({
      dataDir: join(home, "postgres"),
      auth: "trust",
      unsafeFast: true,
      maxConnections: 300,
      database: "admin",
    });
  }
  const adminUrl = external ?? embedded?.url() ?? "";
  const prefix = `cs_${randomBytes(4).toString("hex")}`;
  const template = `${prefix}_template`;

  await admin(adminUrl, `CREATE DATABASE ${template}`);
  const templateUrl = withDatabaseName(adminUrl, template);
  await applyMigrations(templateUrl);
  await rememberSeedRows(templateUrl);

  const server: TestServer = { adminUrl, template, prefix, redisUrl, keep };
  const stop = async (): Promise<void> => {
    if (embedded !== undefined) {
      await embedded.stop();
      if (keep) process.stderr.write(`KEEP_DB: data directory kept at ${embedded.dataDir}\n`);
      else if (home !== undefined) rmSync(home, { recursive: true, force: true });
      return;
    }
    await admin(adminUrl, `DROP DATABASE IF EXISTS ${template} WITH (FORCE)`);
  };
  return { server, stop };
}

/** `url` with another database name. */
export function withDatabaseName(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.toString();
}

async function admin(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Rows that the migrations themselves insert are copied aside, so that a reset can put them back. */
async function rememberSeedRows(url: string): Promise<void> {
  await admin(
    url,
    `DO $$
     DECLARE name text; filled boolean;
     BEGIN
       CREATE SCHEMA test_seed;
       FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> '_prisma_migrations' LOOP
         EXECUTE format('SELECT EXISTS (SELECT 1 FROM public.%I)', name) INTO filled;
         IF filled THEN EXECUTE format('CREATE TABLE test_seed.%I AS TABLE public.%I', name, name); END IF;
       END LOOP;
     END $$`,
  );
}
