/**
 * Applies prisma/migrations without the engine download of the Prisma command line: the same engine, compiled to
 * WebAssembly, comes from the registry as a package. It keeps the genuine `_prisma_migrations` table, so
 * `prisma migrate deploy` from a machine that can fetch its engine agrees with it.
 *
 * Invariants
 *  1. Two starters do not race: an advisory lock of the database is held while migrations are applied.
 *  2. A migration that was edited after it was applied, or failed half-way, stops the start with its name.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type {
  DiffTarget,
  MigrationList,
  SchemaEngine,
  SchemaFilter,
} from "@prisma/schema-engine-wasm/schema_engine_bg";
import pg from "pg";
import { withEngine } from "./schema-engine.js";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const SCHEMA_FILE = join(ROOT, "prisma", "schema.prisma");
const MIGRATIONS_DIR = join(ROOT, "prisma", "migrations");

/** Any fixed number: the key under which starters queue. Not the one Prisma's own command line uses (72707369), which it takes inside. */
const ADVISORY_KEY = 4_177_380_521;
/** A starter that waits longer than this for another one's migrations gives up and says so. */
const LOCK_WAIT_MS = 120_000;

/**
 * Texts that were replaced after databases had applied them, by the digest of what they applied. The new text leaves the same behind
 * wherever the old one was right, so such a database goes on.
 */
const REPLACED: readonly { readonly name: string; readonly sha256: string }[] = [
  {
    // Read the time more than once for one event, so that events which began a chain here did not recompute.
    name: "0004_audited_subjects",
    sha256: "b0a9e1dd1f4a81a0a6cab869a15c2938e7374e60c6b161246d6ae95a3c3c6bba",
  },
];

const NO_FILTER: SchemaFilter = { externalTables: [], externalEnums: [] };

/** The schema could not be brought up to date; the message says what to do. */
export class MigrationError extends Error {
  readonly code = "migration_failed";
  readonly retry = "never";
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "MigrationError";
  }
}

export interface MigrateOptions {
  /** Where the migrations are. Default: prisma/migrations of the product. */
  readonly folder?: string;
}

/**
 * Applies what is missing; returns the names of the migrations that were applied now (none when up to date). A database that is
 * ahead of this program (the newer half of a rolling deploy has migrated it) is left as it is.
 *
 * @throws MigrationError that names the migration and says what to do
 */
export async function applyMigrations(url: string, options: MigrateOptions = {}): Promise<readonly string[]> {
  return withAdvisoryLock(url, () =>
    withEngine(url, async (engine, adapter) => {
      const migrationsList = readMigrations(options.folder);
      await knowReplaced(url, migrationsList);
      const before = await engine.diagnoseMigrationHistory({
        migrationsList,
        optInToShadowDatabase: false,
        filters: NO_FILTER,
      });
      if (before.failedMigrationNames.length > 0) {
        throw new MigrationError(
          `migration ${before.failedMigrationNames.join(", ")} failed half-way earlier; repair the database, then mark it with "prisma migrate resolve"`,
        );
      }
      if (before.editedMigrationNames.length > 0) {
        throw new MigrationError(
          `migration ${before.editedMigrationNames.join(", ")} was changed after it had been applied to this database; restore the file and add a new migration instead`,
        );
      }
      try {
        const done = await engine.applyMigrations({ migrationsList, filters: NO_FILTER });
        return done.appliedMigrationNames;
      } catch (error) {
        await forgetFailure(engine, migrationsList);
        throw new MigrationError(
          `migration failed: ${adapter.scriptFailure() ?? engineMessage(error)}`,
          error,
        );
      }
    }),
  );
}

/** A database that applied an earlier text of a migration is told of the one that stands for it now. */
async function knowReplaced(url: string, { migrationDirectories }: MigrationList): Promise<void> {
  await withClient(url, async (client) => {
    const exists = await client.query("SELECT to_regclass('_prisma_migrations') IS NOT NULL AS present");
    if (exists.rows[0]?.present !== true) return;
    for (const { name, sha256 } of REPLACED) {
      const now = migrationDirectories.find(({ path }) => path === name)?.migrationFile.content;
      if (now?.tag !== "ok") continue;
      await client.query(
        "UPDATE _prisma_migrations SET checksum = $3 WHERE migration_name = $1 AND checksum = $2",
        [name, sha256, createHash("sha256").update(now.value).digest("hex")],
      );
    }
  });
}

/**
 * A script that PostgreSQL refused left nothing behind but its row in `_prisma_migrations`; marked as rolled back, the corrected
 * migration can simply be applied at the next start.
 */
async function forgetFailure(engine: SchemaEngine, migrationsList: MigrationList): Promise<void> {
  const after = await engine.diagnoseMigrationHistory({
    migrationsList,
    optInToShadowDatabase: false,
    filters: NO_FILTER,
  });
  for (const migrationName of after.failedMigrationNames) {
    await engine.markMigrationRolledBack({ migrationName });
  }
}

/** What `diffAgainstSchema` found; both empty when schema.prisma, migrations and the live catalogue agree. */
export interface SchemaDiff {
  /** SQL that would turn the live database into schema.prisma, as far as Prisma can express it. */
  readonly liveToSchema: string;
  /** Names of migrations on disk that the live database lacks, and the reverse. */
  readonly missingMigrations: readonly string[];
  readonly unknownMigrations: readonly string[];
}

/** Compares the live database at `url` with schema.prisma and with the migrations on disk. Changes nothing. */
export async function diffAgainstSchema(url: string): Promise<SchemaDiff> {
  const content = readFileSync(SCHEMA_FILE, "utf8");
  const diff = await withEngine(
    url,
    (engine) =>
      engine.diff({
        from: {
          tag: "schemaDatasource",
          files: [{ path: SCHEMA_FILE, content }],
          configDir: ROOT,
        } satisfies DiffTarget,
        to: { tag: "schemaDatamodel", files: [{ path: SCHEMA_FILE, content }] } satisfies DiffTarget,
        script: true,
        exitCode: null,
        filters: { ...NO_FILTER, externalTables: ["public._prisma_migrations"] },
      }),
    [[SCHEMA_FILE, content]],
  );
  const onDisk = readMigrations().migrationDirectories.map((directory) => directory.path);
  const applied = await appliedMigrations(url);
  const sql = (diff.stdout ?? "").trim();
  return {
    liveToSchema: sql === "-- This is an empty migration." ? "" : sql,
    missingMigrations: onDisk.filter((name) => !applied.includes(name)),
    unknownMigrations: applied.filter((name) => !onDisk.includes(name)),
  };
}

/** Whether every migration on disk is applied: what readiness and `start` ask before they touch a table. */
export async function migrationsPending(url: string): Promise<readonly string[]> {
  const applied = await appliedMigrations(url);
  return readMigrations()
    .migrationDirectories.map((directory) => directory.path)
    .filter((name) => !applied.includes(name));
}

async function appliedMigrations(url: string): Promise<string[]> {
  return withClient(url, async (client) => {
    const exists = await client.query(`SELECT to_regclass('_prisma_migrations') IS NOT NULL AS present`);
    if (exists.rows[0]?.present !== true) return [];
    const rows = await client.query(
      "SELECT migration_name FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL ORDER BY 1",
    );
    return rows.rows.map((row: { migration_name: string }) => row.migration_name);
  });
}

function readMigrations(folder: string = MIGRATIONS_DIR): MigrationList {
  const lock = readOptional(join(folder, "migration_lock.toml"));
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
  return {
    baseDir: folder,
    lockfile: { path: "migration_lock.toml", content: lock },
    shadowDbInitScript: "",
    migrationDirectories: names.map((name) => ({
      path: name,
      migrationFile: {
        path: "migration.sql",
        content: { tag: "ok", value: readFileSync(join(folder, name, "migration.sql"), "utf8") },
      },
    })),
  };
}

function readOptional(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null;
  }
}

async function withAdvisoryLock<T>(url: string, fn: () => Promise<T>): Promise<T> {
  return withClient(url, async (client) => {
    await client.query(`SET statement_timeout = ${LOCK_WAIT_MS}`);
    try {
      await client.query("SELECT pg_advisory_lock($1)", [ADVISORY_KEY]);
    } catch (error) {
      throw new MigrationError(
        "another process has been applying migrations to this database for two minutes; wait for it or end it",
        error,
      );
    }
    return fn(); // the lock ends with the connection
  });
}

async function withClient<T>(url: string, fn: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: url,
    application_name: "countersign-migrate",
    connectionTimeoutMillis: 10_000,
  });
  client.on("error", () => {});
  await client.connect();
  try {
    return await fn(client);
  } finally {
    await client.end();
  }
}

function engineMessage(error: unknown): string {
  const text = error instanceof Error ? error.message : JSON.stringify(error);
  return text.trim();
}
