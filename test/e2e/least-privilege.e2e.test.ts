/** The product under a role that owns nothing: its whole story works, and what it recorded it cannot change. */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { heldRefund } from "../../src/app/demo/stories/refunds.js";
import { grantAppRole } from "../../src/db/app-role.js";
import { type OpenDb, openDb } from "../../src/db/connect.js";
import { migrateQueueTables } from "../../src/jobs/index.js";
import { eraseSubject, exportAudit, sealBlocks } from "../../src/ledger/index.js";
import { withDatabases } from "./support/databases.js";
import { type House, openHouse } from "./support/house.js";

const { adminUrl, prefix } = inject("server");
const ROLE = `${prefix}_app`;
const LONG_MS = 120_000;

// Registered before the databases' own: it runs after them, when nothing is left that the role has rights on.
afterAll(async () => {
  const admin = openDb({ url: adminUrl, applicationName: "test-admin", poolSize: 2 });
  await admin.pool.query(`DROP ROLE IF EXISTS ${ROLE}`);
  await admin.close();
});
const databases = withDatabases();

let house: House;
let asRole: OpenDb;

beforeAll(async () => {
  house = await openHouse(databases, { transport: "http" });
  const { databaseUrl } = house.world;
  await migrateQueueTables(databaseUrl);
  await grantAppRole(databaseUrl, { name: ROLE, password: "it's \\ a secret" });
  // What a second migration step does changes nothing.
  await grantAppRole(databaseUrl, { name: ROLE, password: null });
  const url = new URL(databaseUrl);
  url.username = ROLE;
  url.password = encodeURIComponent("it's \\ a secret");
  asRole = openDb({ url: url.href, applicationName: "test-role", poolSize: 4 });
  await house.stage.start({ DATABASE_URL: url.href });
});
afterAll(async () => {
  await asRole?.close();
  await house.close();
});

/** SQLSTATE of the refusal; undefined: it was allowed. */
async function refusal(statement: string): Promise<string | undefined> {
  const client = await asRole.pool.connect();
  try {
    await client.query("BEGIN");
    await client.query(statement);
    return undefined;
  } catch (error) {
    return (error as { code?: string }).code;
  } finally {
    await client.query("ROLLBACK");
    client.release();
  }
}

describe("the product under its own role", () => {
  it("plays its main story: held, approved, lost, looked up, confirmed; frozen and thawed", {
    timeout: LONG_MS,
  }, async () => {
    const { stage, world } = house;
    const thread = await heldRefund(stage);
    world.payments.control.setWebhook(null);
    stage.fault({ kind: "commit_then_drop" });
    await stage.approve("U_SUP1", thread);
    await stage.operationIn("CONFIRMED");
    await stage.runIn(thread, "resolved");
    stage.assertFaultsFired();
    expect((await world.payments.control.effects()).map(({ amount }) => amount)).toEqual([18_000]);
    const ops = (as: string, text: string) =>
      world.slack.control.command({ as, channel: "C_OPS", command: "/ops", text });
    const frozen = async (): Promise<boolean> =>
      (await house.db.sql("test.frozen", "SELECT kind FROM freeze_switches WHERE frozen")).length > 0;
    await ops("U_ONC1", "freeze refund");
    await stage.until("the freeze", frozen);
    await ops("U_ONC2", "thaw refund");
    await stage.until("the thaw", async () => !(await frozen()));
    await house.assertAuditIntact();
    expect(house.log()).not.toMatch(/permission denied|must be owner/);
  });

  it("seals, exports and erases", async () => {
    await sealBlocks(asRole, { patienceMs: 30_000 });
    expect((await house.db.sql("test.blocks", "SELECT seq FROM audit_blocks")).length).toBeGreaterThan(0);
    let lines = 0;
    for await (const _line of exportAudit(asRole)) lines += 1;
    expect(lines).toBeGreaterThan(5);
    await asRole.tx((tx) => eraseSubject(tx, "U_NOBODY"));
  });

  const OF_RECORD = [
    ["operation_events", "actor"],
    ["audit_blocks", "hash"],
    ["policy_versions", "hash"],
  ] as const;
  it.each(
    OF_RECORD.flatMap(([table, column]) => [
      `UPDATE ${table} SET ${column} = ${column}`,
      `DELETE FROM ${table}`,
      `TRUNCATE ${table}`,
      `ALTER TABLE ${table} DISABLE TRIGGER ALL`,
      `ALTER TABLE ${table} ADD COLUMN x int`,
      `DROP TABLE ${table} CASCADE`,
    ]),
  )("may not: %s", async (statement) => {
    expect(await refusal(statement)).toBe("42501");
  });

  it.each([
    "SET session_replication_role = replica",
    "DROP TRIGGER operation_events_append_only ON operation_events",
    "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
    "CREATE TABLE mine (a int)",
    "CREATE SCHEMA mine",
    "UPDATE clock_offset SET offset_ms = 1",
    "DELETE FROM operation_transitions",
    "INSERT INTO operation_transitions (from_status, to_status) VALUES ('DENIED', 'CONFIRMED')",
    "DELETE FROM operations",
    "DELETE FROM attempts",
    "DELETE FROM approvals",
    "DELETE FROM votes",
    "DELETE FROM resolutions",
    "DELETE FROM incidents",
    "DELETE FROM provider_evidence",
    "TRUNCATE operations CASCADE",
    "DELETE FROM _prisma_migrations",
  ])("may not: %s", async (statement) => {
    expect(await refusal(statement)).toBe("42501");
  });

  it("is never the owner, a superuser, or made without a password", async () => {
    const { databaseUrl } = house.world;
    const owner = decodeURIComponent(new URL(databaseUrl).username);
    await expect(grantAppRole(databaseUrl, { name: owner, password: null })).rejects.toThrow(
      /owns the schema/,
    );
    await expect(grantAppRole(databaseUrl, { name: "nobody_here", password: null })).rejects.toThrow(
      /APP_ROLE_PASSWORD/,
    );
    await expect(grantAppRole(databaseUrl, { name: 'x"; DROP', password: null })).rejects.toThrow(
      /plain role/,
    );
  });
});
