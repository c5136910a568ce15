/**
 * What a statement reads follows the work at hand and not how much there has ever been: also under a plan that was made while the tables
 * were empty and is kept, and under one that is made anew once they are large.
 *
 * A few cases are played from the ticket to their end while everything that is asked is kept. Each statement is then asked again, with the
 * parameters that it was given, before and after a thousand times as much work that has ended; what counts is the pages that it touches.
 */
import pg from "pg";
import { expect, it } from "vitest";
import { withManyOrders } from "../../src/app/demo/many-orders.js";
import { PLAN_ONCE } from "../../src/db/connect.js";
import { refundByHand } from "./support/by-hand.js";
import { withDatabases } from "./support/databases.js";
import { growHistory } from "./support/history.js";
import { type House, inHouse } from "./support/house.js";
import { onCall } from "./support/on-call.js";
import { type Asked, recordStatements } from "./support/statements.js";

const databases = withDatabases();
const LONG_MS = 300_000;
const COPIES = 1_000;
/** A deeper index costs each look-up a page or two, and what it finds may lie on pages of its own. */
const FACTOR = 3;
const PAGES = 100;

/** What happens once: asked again, each of these finds what it has made. They read what their keys say. */
const NOT_TWICE = [
  "approvals.insert",
  "ledger.insert_block",
  "ledger.insert_resolution",
  "runs.call_insert",
  "runs.insert",
  "runs.turn_insert",
];
/** Once an hour or a day, and over all there is: what no index knows of, and what is old enough to go. A slow machine comes to them. */
const OVER_ALL: ReadonlySet<string> = new Set([
  "slack.card.forgotten",
  "slack.outbox.forgotten",
  "slack.prune.inbox",
  "slack.prune.outbox",
  "slack.prune.pace",
]);
/** Statements that the cases lead to, and a few more. */
const ASKED_AT_LEAST = 260;

it("no statement reads more because of what has ended", { timeout: LONG_MS }, async () => {
  const recorder = await recordStatements(databases.serverUrl);
  try {
    await inHouse(
      databases,
      {
        changeShop: (shop) => withManyOrders(shop, 8),
        env: { QUARANTINE_AFTER_MS: "1500" },
      },
      async (house) => {
        await house.stage.start({ DATABASE_URL: recorder.through(house.world.databaseUrl) });
        await playCases(house);
        await house.stage.stop();
        const asked = recorder
          .asked()
          .filter(({ name }) => !OVER_ALL.has(name))
          .filter(({ text }) => /^\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b/iu.test(text));
        const old = await connect(house.world.databaseUrl);
        const before = await pagesOfAll(old, asked);
        const other = await connect(house.world.databaseUrl);
        const rows = await growHistory(other, COPIES);
        const after = await pagesOfAll(old, asked);
        await old.end();
        await other.query("ANALYZE");
        const fresh = await pagesOfAll(other, asked);
        await other.end();
        expect(rows["operations"]).toBeGreaterThan(5 * COPIES);
        expect(rows["slack_cards"]).toBeGreaterThan(10 * COPIES);
        expect(asked.length).toBeGreaterThan(ASKED_AT_LEAST);
        const measured = new Set([...before.keys()].map((call) => call.split(" ")[0]));
        expect(asked.filter(({ name }) => !measured.has(name)).map(({ name }) => name)).toEqual(NOT_TWICE);
        // What could be asked before can be asked after.
        expect([...after.keys()]).toEqual([...before.keys()]);
        expect([...fresh.keys()]).toEqual([...before.keys()]);
        const grown = [...before].flatMap(([name, pages]) => {
          const [kept, anew] = [after.get(name) ?? 0, fresh.get(name) ?? 0];
          const most = FACTOR * pages + PAGES;
          return kept <= most && anew <= most
            ? []
            : [`${name}: ${pages} pages before, ${kept} after, ${anew} planned anew`];
        });
        expect(grown).toEqual([]);
      },
    );
  } finally {
    await recorder.stop();
  }
});

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString, options: PLAN_ONCE });
  client.on("error", () => {}); // a failed test drops the database under it
  await client.connect();
  return client;
}

/** The pages that each call touches, by the statement's name and the call's number; what cannot be asked again is left out. */
async function pagesOfAll(client: pg.Client, asked: readonly Asked[]): Promise<Map<string, number>> {
  const pages = new Map<string, number>();
  for (const [index, { name, text, given }] of asked.entries()) {
    const plan = `grown_${index}`;
    const known = await client.query("SELECT 1 FROM pg_prepared_statements WHERE name = $1", [plan]);
    if (known.rowCount === 0) await client.query(`PREPARE ${plan} AS ${text}`);
    for (const [call, values] of given.entries()) {
      const touched = await pagesOf(client, plan, values);
      if (touched !== null) pages.set(`${name} ${call + 1}`, touched);
    }
  }
  return pages;
}

/** Null: it cannot be done twice. */
async function pagesOf(
  client: pg.Client,
  plan: string,
  values: readonly (string | null)[],
): Promise<number | null> {
  const given = values.map((value) => (value === null ? "NULL" : pg.escapeLiteral(value)));
  await client.query("BEGIN");
  try {
    const call = given.length === 0 ? plan : `${plan} (${given.join(", ")})`;
    const { rows } = await client.query<{ "QUERY PLAN": [{ Plan: Record<string, number> }] }>(
      `EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE ${call}`,
    );
    const top = rows[0]?.["QUERY PLAN"][0].Plan;
    return (top?.["Shared Hit Blocks"] ?? 0) + (top?.["Shared Read Blocks"] ?? 0);
  } catch {
    return null;
  } finally {
    await client.query("ROLLBACK");
  }
}

async function inStatus(house: House, order: string, status: string): Promise<string> {
  return house.stage.until(`${order} in ${status}`, async () => {
    const [row] = await house.db.sql<{ id: string; status: string }>(
      "test.of_order",
      "SELECT id, status FROM operations WHERE order_ref = $1 ORDER BY created_at DESC LIMIT 1",
      [order],
    );
    return row?.status === status ? row.id : null;
  });
}

async function playCases(house: House): Promise<void> {
  const { stage, world } = house;
  const desk = onCall(house);
  const file = async (order: string, pounds: string): ReturnType<typeof stage.file> => {
    const thread = await stage.file(
      "U_AGENT",
      `Order ${order}: it arrived torn. Please refund the £${pounds}.`,
    );
    await stage.confirmBinding(thread);
    return thread;
  };
  const cancelled = await stage.file("U_AGENT", "Please cancel order A-4472.");
  const small = await file("ORD-7001", "20.00");
  const ended = await stage.file("U_AGENT", "Please cancel subscription SUB-1, CUS-7 is moving abroad.");
  await stage.confirmBinding(ended);
  const approved = await file("ORD-7002", "180.00");
  const other = await stage.file("U_AGENT2", "Order ORD-7002: it arrived torn. Please refund the £180.00.");
  await stage.confirmBinding(other);
  await stage.runIn(other, "awaiting_approval", "waiting");
  await stage.approve("U_SUP1", approved);
  await inStatus(house, "ORD-7002", "CONFIRMED");
  await stage.runIn(approved, "resolved");
  const denied = await file("ORD-7003", "180.00");
  await stage.deny("U_SUP1", denied, "The photos show normal wear.");
  await stage.runIn(denied, "escalated");
  await stage.runIn(small, "resolved");
  const lost = stage.fault({ kind: "commit_then_drop" });
  const unknown = await file("ORD-7004", "180.00");
  await stage.approve("U_SUP1", unknown);
  await stage.runIn(unknown, "resolved");
  world.payments.control.disarm(lost);
  const gone = stage.fault({ kind: "drop_before_commit", times: null });
  const down = stage.fault({ kind: "read_down", how: "500", times: null });
  const parked = await file("ORD-7005", "180.00");
  await stage.approve("U_SUP1", parked);
  const id = await inStatus(house, "ORD-7005", "QUARANTINED");
  await desk.card(id);
  for (const text of [
    "list",
    "list open",
    `show ${id}`,
    `events ${id}`,
    "approvals",
    "runs",
    "health",
    "help",
  ]) {
    await desk.ops("U_ONC1", text);
  }
  world.payments.control.disarm(gone);
  world.payments.control.disarm(down);
  await desk.press("U_ONC1", "Authorise retry", id);
  await desk.fill("U_ONC1");
  await desk.card("A second person is needed: authorise retry");
  await desk.press("U_ONC2", "Agree", "authorise retry");
  await stage.runIn(parked, "resolved");
  await desk.ops("U_ONC1", "freeze all while we look");
  const waiting = await file("ORD-7006", "180.00");
  await stage.approve("U_SUP1", waiting);
  await world.slack.control.openHome({ as: "U_SUP1" });
  await world.slack.control.openHome({ as: "U_AGENT" });
  await desk.ops("U_ONC2", "thaw all");
  await stage.runIn(waiting, "resolved");
  await refundByHand(house, { payment: "pi_many_7007", amount: 4_200, names: `op_${"0".repeat(31)}1` });
  await desk.card("Incident: frozen automatically");
  for (const text of ["show ORD-7002", `show ${id.slice(0, 12)}`, "health", "incidents"])
    await desk.ops("U_ONC1", text);
  await desk.press("U_ONC1", "Close", "Incident: effect without an operation");
  await desk.fill("U_ONC1", { Reason: "The shop refunded it by hand." });
  await desk.ops("U_ONC1", "thaw all");
  await stage.runIn(cancelled, "resolved", "escalated");
}
