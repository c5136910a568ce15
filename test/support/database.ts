/**
 * A database of its own for a test file: copied from the migrated template (tens of milliseconds), emptied between tests
 * (a few), dropped at the end, with a check that the tests left nothing behind.
 */
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject } from "vitest";
import { type OpenDb, openDb } from "../../src/db/connect.js";
import { withDatabaseName } from "./global-setup.js";
import { waitFor } from "./wait.js";

export interface DatabaseOptions {
  /** Empty all tables before each test (default), or leave that to the file. */
  readonly reset?: "each" | "never";
  readonly poolSize?: number;
}

export interface TestDatabase {
  /** The file's own pool. Valid inside tests and hooks. */
  readonly db: OpenDb;
  /** For processes and pools that a test starts itself; they must be closed by the end of the file. */
  readonly url: string;
  /** Another pool on the same database, as a second process would have; closed at the end of the test at the latest. */
  openAnother(name?: string): OpenDb;
  /** Empties every table and puts the rows of the migrations back. */
  reset(): Promise<void>;
}

const LEAK_PATIENCE_MS = 10_000;
let counter = 0;

/** Call at the top of a test file (or of a describe). */
export function withDatabase(options: DatabaseOptions = {}): TestDatabase {
  const server = inject("server");
  counter += 1;
  const name = `${server.prefix}_${process.pid}_${counter}`;
  const url = withDatabaseName(server.adminUrl, name);
  const others: OpenDb[] = [];
  let db: OpenDb | undefined;
  let resetSql = "";
  let failed = false;

  const opened = (): OpenDb => {
    if (db === undefined) throw new Error("withDatabase(): the database exists only inside tests and hooks");
    return db;
  };
  const reset = async (): Promise<void> => {
    if (resetSql === "") resetSql = await buildReset(opened());
    await opened().pool.query(resetSql);
  };

  beforeAll(async () => {
    await createFromTemplate(server.adminUrl, name, server.template);
    db = openDb({ url, applicationName: "test", poolSize: options.poolSize ?? 10 });
  });

  beforeEach(async () => {
    if (options.reset !== "never") await reset();
  });

  afterEach(async (context) => {
    if (context.task.result?.state === "fail") failed = true;
    await Promise.all(others.splice(0).map((other) => other.close()));
    const { pool } = opened();
    const busy = () => pool.totalCount - pool.idleCount;
    await settle(() => busy() === 0 && pool.waitingCount === 0);
    expect(busy(), "connections still checked out after the test").toBe(0);
    const open = await sessions(server.adminUrl, name, "state LIKE 'idle in transaction%'");
    expect(open, "transactions left open by the test").toEqual([]);
  });

  afterAll(async () => {
    await db?.close();
    if (failed && server.keep) {
      process.stderr.write(`KEEP_DB: ${expect.getState().testPath ?? "?"} left ${url}\n`);
      return;
    }
    const left = await leftSessions(server.adminUrl, name);
    await execute(server.adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    expect(left, "sessions left open by the file").toEqual([]);
  });

  return {
    get db() {
      return opened();
    },
    url,
    openAnother: (applicationName = "test-other") => {
      const other = openDb({ url, applicationName, poolSize: 5 });
      others.push(other);
      return other;
    },
    reset,
  };
}

/** Copies files rather than writing pages through the WAL, where the server knows how (PostgreSQL 15 and newer). */
async function createFromTemplate(adminUrl: string, name: string, template: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    const { rows } = await client.query("SHOW server_version_num");
    const version = Number((rows[0] as { server_version_num: string }).server_version_num);
    const strategy = version >= 150_000 ? " STRATEGY file_copy" : "";
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${template}${strategy}`);
  } finally {
    await client.end();
  }
}

/**
 * One round trip: triggers are off (append-only tables would refuse), every table is emptied, seed rows return, sequences begin anew.
 */
async function buildReset(db: OpenDb): Promise<string> {
  const tables = await db.sql<{ name: string }>(
    undefined,
    `SELECT format('%I', tablename) AS name FROM pg_tables
     WHERE schemaname = 'public' AND tablename <> '_prisma_migrations' ORDER BY 1`,
  );
  const seeded = await db.sql<{ name: string }>(
    undefined,
    "SELECT format('%I', tablename) AS name FROM pg_tables WHERE schemaname = 'test_seed' ORDER BY 1",
  );
  const sequences = await db.sql<{ name: string }>(
    undefined,
    "SELECT format('%I', sequencename) AS name FROM pg_sequences WHERE schemaname = 'public' ORDER BY 1",
  );
  return [
    "BEGIN",
    "SET LOCAL session_replication_role = replica",
    ...tables.map(({ name }) => `DELETE FROM public.${name}`),
    ...seeded.map(
      ({ name }) => `INSERT INTO public.${name} OVERRIDING SYSTEM VALUE SELECT * FROM test_seed.${name}`,
    ),
    ...sequences.map(({ name }) => `ALTER SEQUENCE public.${name} RESTART`),
    "COMMIT",
  ].join(";\n");
}

async function leftSessions(adminUrl: string, name: string): Promise<readonly string[]> {
  let left: readonly string[] = [];
  await settle(async () => {
    left = await sessions(adminUrl, name, "true");
    return left.length === 0;
  });
  return left;
}

async function sessions(adminUrl: string, database: string, condition: string): Promise<readonly string[]> {
  const rows = await execute(
    adminUrl,
    `SELECT application_name || ': ' || left(query, 200) AS what FROM pg_stat_activity
     WHERE datname = '${database}' AND backend_type = 'client backend' AND ${condition}`,
  );
  return rows.map((row) => String(row["what"]));
}

/** Waits for the condition, and gives up quietly: the caller then asserts, with a better message. */
async function settle(condition: () => boolean | Promise<boolean>): Promise<void> {
  await waitFor(condition, { timeoutMs: LEAK_PATIENCE_MS, what: "" }).catch(() => {});
}

async function execute(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(statement)).rows as Record<string, unknown>[];
  } finally {
    await client.end();
  }
}
