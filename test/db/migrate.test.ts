import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { openDb } from "../../src/db/connect.js";
import {
  applyMigrations,
  diffAgainstSchema,
  MigrationError,
  migrationsPending,
} from "../../src/db/migrate.js";
import { verifyAudit } from "../../src/ledger/index.js";
import { withDatabaseName } from "../support/global-setup.js";

const server = inject("server");
let url = "";
let counter = 0;
let folder = "";

const on = async (target: string, statement: string): Promise<Record<string, unknown>[]> => {
  const client = new pg.Client({ connectionString: target });
  await client.connect();
  try {
    return (await client.query(statement)).rows as Record<string, unknown>[];
  } finally {
    await client.end();
  }
};

beforeEach(async () => {
  counter += 1;
  const name = `${server.prefix}_migrate_${process.pid}_${counter}`;
  await on(server.adminUrl, `CREATE DATABASE ${name}`);
  url = withDatabaseName(server.adminUrl, name);
  folder = mkdtempSync(join(tmpdir(), "countersign-migrations-"));
});

afterEach(async () => {
  await on(server.adminUrl, `DROP DATABASE ${new URL(url).pathname.slice(1)} WITH (FORCE)`);
  rmSync(folder, { recursive: true });
});

const migration = (name: string, sql: string): void => {
  mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(join(folder, name, "migration.sql"), sql);
};

describe("the product's schema", () => {
  it("schema.prisma, the migrations and the live catalogue agree, and a second start applies nothing", async () => {
    expect((await migrationsPending(url)).length).toBeGreaterThan(0);
    expect((await applyMigrations(url)).length).toBeGreaterThan(0);
    expect(await applyMigrations(url)).toEqual([]);
    expect(await migrationsPending(url)).toEqual([]);
    expect(await diffAgainstSchema(url)).toEqual({
      liveToSchema: "",
      missingMigrations: [],
      unknownMigrations: [],
    });
  });

  it("the comparison bites: a column dropped by hand shows", async () => {
    await applyMigrations(url);
    await on(url, "ALTER TABLE customers DROP COLUMN name");
    expect((await diffAgainstSchema(url)).liveToSchema).toContain('"name"');
  });

  it("the rules that the design puts into the database are there", async () => {
    await applyMigrations(url);
    const rows = await on(
      url,
      `SELECT conname AS name FROM pg_constraint WHERE connamespace = 'public'::regnamespace
       UNION SELECT indexname FROM pg_indexes WHERE schemaname = 'public'
       UNION SELECT tgname FROM pg_trigger WHERE NOT tgisinternal`,
    );
    const names = rows.map((row) => String(row["name"]));
    for (const part of [
      /^operations_key_.*unique/, // one effect for one intent
      /^runs_one_active/, // one active run per ticket
      /^payments_.*not_negative/, // the refundable balance
      /^operations_due/, // scans cost what is due
      /append_only|are_append/, // events refuse UPDATE and DELETE
    ]) {
      expect(
        names.filter((name) => part.test(name)),
        `something like ${part}`,
      ).not.toEqual([]);
    }
  });

  it("events refuse UPDATE and DELETE from anybody", async () => {
    await applyMigrations(url);
    await expect(on(url, "TRUNCATE operation_events CASCADE")).rejects.toThrow();
    const triggers = await on(
      url,
      "SELECT tgname FROM pg_trigger WHERE tgrelid = 'operation_events'::regclass AND NOT tgisinternal",
    );
    expect(triggers.length).toBeGreaterThan(0);
  });

  it("three starters at once apply it once", async () => {
    const applied = await Promise.all([applyMigrations(url), applyMigrations(url), applyMigrations(url)]);
    expect(applied.filter((names) => names.length > 0)).toHaveLength(1);
    const rows = await on(url, "SELECT migration_name FROM _prisma_migrations");
    expect(new Set(rows.map((row) => row["migration_name"])).size).toBe(rows.length);
  });
});

describe("migrations in general", () => {
  it("a script is run whole: function bodies and comments may hold semicolons", async () => {
    migration(
      "0001_a",
      `-- one; two; three
       CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM 1; RETURN 2; END $$;
       CREATE TABLE t (id int);`,
    );
    expect(await applyMigrations(url, { folder })).toEqual(["0001_a"]);
    expect(await on(url, "SELECT f() AS f")).toEqual([{ f: 2 }]);
  });

  it("a script that fails names the line, leaves nothing behind, and can be corrected", async () => {
    migration("0001_a", "CREATE TABLE t (id int);\nCREATE TABLE u (id int);\nCREATE TABLE v (id nonsense);");
    const failure = await applyMigrations(url, { folder }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(MigrationError);
    expect(String(failure)).toMatch(/nonsense.*line 3/s);
    expect(await on(url, "SELECT to_regclass('t') AS t")).toEqual([{ t: null }]);
    migration("0001_a", "CREATE TABLE t (id int);");
    expect(await applyMigrations(url, { folder })).toEqual(["0001_a"]);
  });

  it("a migration edited after it was applied stops the start with its name", async () => {
    migration("0001_a", "CREATE TABLE t (id int);");
    await applyMigrations(url, { folder });
    migration("0001_a", "CREATE TABLE t (id bigint);");
    migration("0002_b", "CREATE TABLE u (id int);");
    await expect(applyMigrations(url, { folder })).rejects.toThrow(/0001_a was changed/);
    expect(await on(url, "SELECT to_regclass('u') AS u")).toEqual([{ u: null }]);
  });

  it("a database that a newer program has migrated is left as it is, for the older half of a rolling deploy", async () => {
    migration("0001_a", "CREATE TABLE t (id int);");
    migration("0002_b", "CREATE TABLE u (id int);");
    await applyMigrations(url, { folder });
    const older = join(folder, "older");
    mkdirSync(older);
    cpSync(join(folder, "0001_a"), join(older, "0001_a"), { recursive: true });
    expect(await applyMigrations(url, { folder: older })).toEqual([]);
  });

  it("what stood before the log told of it begins a chain that verifies", async () => {
    const all = fileURLToPath(new URL("../../prisma/migrations", import.meta.url));
    for (const name of readdirSync(all).filter((entry) => /^000[1-3]_/.test(entry))) {
      cpSync(join(all, name), join(folder, name), { recursive: true });
    }
    expect(await applyMigrations(url, { folder })).toHaveLength(3);
    await on(
      url,
      `SET session_replication_role = replica;
       INSERT INTO incidents (id, kind, dedupe_key, detail, status)
       SELECT 'inc_' || n, 'overdrawn', 'k' || n, '{}', CASE WHEN n % 2 = 0 THEN 'open' ELSE 'closed' END FROM generate_series(0, 3) n;
       UPDATE freeze_switches SET frozen = true, at = countersign_now(), by = 'U_ONC', reason = 'r' WHERE kind = 'all'`,
    );
    expect((await applyMigrations(url)).length).toBeGreaterThan(0);
    const db = openDb({ url, applicationName: "countersign-test", poolSize: 2 });
    try {
      expect(await verifyAudit(db)).toMatchObject({ broken: [], subjectEvents: 7 });
    } finally {
      await db.close();
    }
  });

  it("a database that applied the earlier text of a replaced migration goes on", async () => {
    await applyMigrations(url);
    const earlier = "b0a9e1dd1f4a81a0a6cab869a15c2938e7374e60c6b161246d6ae95a3c3c6bba";
    const name = "0004_audited_subjects";
    await on(url, `UPDATE _prisma_migrations SET checksum = '${earlier}' WHERE migration_name = '${name}'`);
    expect(await applyMigrations(url)).toEqual([]);
    await on(url, `UPDATE _prisma_migrations SET checksum = 'another' WHERE migration_name = '${name}'`);
    await expect(applyMigrations(url)).rejects.toThrow(/0004_audited_subjects was changed after/);
  });

  it("what was refunded elsewhere before the log told of it begins a chain that verifies", async () => {
    const all = fileURLToPath(new URL("../../prisma/migrations", import.meta.url));
    for (const name of readdirSync(all).filter((entry) => /^000[1-6]_/.test(entry))) {
      cpSync(join(all, name), join(folder, name), { recursive: true });
    }
    expect(await applyMigrations(url, { folder })).toHaveLength(6);
    await on(
      url,
      `SET session_replication_role = replica;
       INSERT INTO payments (id, order_id, payment_intent, currency, captured, refunded_elsewhere)
       SELECT 'pay_' || n, 'ord_' || n, 'pi_' || n, 'GBP', 1000, 100 * n FROM generate_series(0, 3) n`,
    );
    expect((await applyMigrations(url)).length).toBeGreaterThan(0);
    const db = openDb({ url, applicationName: "countersign-test", poolSize: 2 });
    try {
      expect(await verifyAudit(db)).toMatchObject({ broken: [], subjectEvents: 3 });
    } finally {
      await db.close();
    }
  });

  it("a database that is away is an error that says so, soon", async () => {
    await expect(applyMigrations("postgresql://nobody@127.0.0.1:1/none", { folder })).rejects.toThrow(
      /ECONNREFUSED/,
    );
  });
});
