/**
 * S-DB-3 on the product's own wires: twenty refunds hang at the provider at once, the database pools hold five connections each, and
 * a ticket, a click and a command go on as if nothing were.
 */
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { withManyOrders } from "../../src/app/demo/many-orders.js";
import { prepareTurn } from "../../src/ledger/index.js";
import { makeJudge } from "../../src/policy/index.js";
import { ledgerWorld, putRun, refund } from "../support/ledger-world.js";
import { withDatabases } from "./support/databases.js";
import { type House, inHouse } from "./support/house.js";
import { scrape } from "./support/metrics.js";
import { NOTHING_COUNTED } from "./support/nothing-counted.js";

const databases = withDatabases();
const LONG_MS = 240_000;
const AT_ONCE = 20;
const MINOR = 2_000;
const LOOK_EVERY_MS = 100;
const POOL = { DATABASE_POOL_SIZE: "5", PROVIDER_TIMEOUT_MS: "120000", LEASE_MS: "130000" } as const;

/** Prepared refunds on orders of their own, for whichever worker takes them. */
async function prepareAll({ db, seals }: House): Promise<void> {
  const ctx = { ...ledgerWorld(db), seals };
  for (let index = 1; index <= AT_ONCE; index += 1) {
    const n = 7000 + index;
    const proposal = {
      ...refund(await putRun(db), BigInt(MINOR), { customerRef: `CUS-${n}`, orderRef: `ORD-${n}` }),
      landing: { paymentIntent: `pi_many_${n}`, providerSubscription: null },
    };
    const [call] = await db.tx((tx) =>
      prepareTurn(tx, ctx, {
        calls: [{ callId: proposal.callId, proposal }],
        judge: makeJudge(),
        onHold: async () => {},
      }),
    );
    expect(call?.outcome).toBe("prepared");
  }
}

const inState = async ({ db }: House, status: string): Promise<number> => {
  const [row] = await db.sql<{ n: number }>(
    undefined,
    "SELECT count(*)::int AS n FROM operations WHERE status = $1 AND amount_minor = $2",
    [status, MINOR],
  );
  return row?.n ?? 0;
};

/** Sessions of the product that sit in a transaction for a second or more, and rows of operations that somebody holds locked. */
async function heldUp({ db }: House): Promise<{ idle: number; free: number }> {
  const idle = await db.sql(
    undefined,
    `SELECT query FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'
       AND state_change < clock_timestamp() - interval '1 second'`,
  );
  const free = await db.tx((tx) =>
    tx.sql(undefined, "SELECT id FROM operations WHERE amount_minor = $1 FOR UPDATE SKIP LOCKED", [MINOR]),
  );
  return { idle: idle.length, free: free.length };
}

/** Looks again and again until it is ended: the most sessions that idled at once, and how often it looked. */
function watchSessions(house: House): { end(): Promise<{ idle: number; looks: number }> } {
  const seen = { idle: 0, looks: 0 };
  let over = false;
  const watching = (async () => {
    while (!over) {
      seen.idle = Math.max(seen.idle, (await heldUp(house)).idle);
      seen.looks += 1;
      await delay(LOOK_EVERY_MS);
    }
  })();
  watching.catch(() => {});
  return {
    end: async () => {
      over = true;
      await watching;
      return seen;
    },
  };
}

/** How many acknowledgements took longer than two and a half seconds, and how many there were. */
async function acknowledged(base: string): Promise<{ late: number; all: number }> {
  const lines = (await scrape(base))
    .split("\n")
    .filter((line) => line.startsWith("countersign_slack_ack_seconds"));
  const sum = (part: RegExp): number =>
    lines
      .filter((line) => part.test(line))
      .reduce((total, line) => total + Number(line.split(" ").at(-1)), 0);
  const all = sum(/_count\{/u);
  return { late: all - sum(/_bucket\{.*le="2\.5"/u), all };
}

it("S-DB-3: people are served while twenty refunds hang; no transaction idles, no row stays locked, each is made once", {
  timeout: LONG_MS,
}, async () => {
  await inHouse(
    databases,
    {
      policy: { text: NOTHING_COUNTED },
      transport: "http",
      changeShop: (shop) => withManyOrders(shop, AT_ONCE + 1),
      env: POOL,
    },
    async (house) => {
      const { stage, world } = house;
      const { control } = world.payments;
      await stage.start();
      await house.another({ roles: "worker" });
      const hang = control.arm({
        kind: "hang_then_commit",
        delayMs: 3_000_000,
        times: null,
        match: { method: "POST" },
      });
      await prepareAll(house);
      await stage.until(
        "twenty requests at the provider",
        async () => (await control.requests({ method: "POST", path: "/v1/refunds" })).length === AT_ONCE,
      );
      expect(await inState(house, "DISPATCHED")).toBe(AT_ONCE);
      // The next one's answer does come.
      control.disarm(hang);

      const watch = watchSessions(house);
      const thread = await stage.file(
        "U_AGENT",
        "The jacket of order ORD-7021 is torn. Please refund £180.00.",
      );
      await stage.confirmBinding(thread);
      await stage.runIn(thread, "awaiting_approval");
      await stage.approve("U_SUP1", thread);
      await stage.runIn(thread, "resolved");
      await world.slack.control.command({ as: "U_ONC1", channel: "C_OPS", command: "/ops", text: "list" });
      await stage.until("/ops list to answer", async () =>
        world.slack.control
          .messages("U_ONC1", "C_OPS", { ephemeral: true })
          .some(({ blocks }) => /ORD-70\d\d/u.test(JSON.stringify(blocks))),
      );
      expect(await watch.end()).toMatchObject({ idle: 0, looks: expect.toSatisfy((n: number) => n >= 3) });
      await stage.until("no lock on what hangs", async () => (await heldUp(house)).free === AT_ONCE);
      expect(await inState(house, "DISPATCHED"), "all of them hang still").toBe(AT_ONCE);
      const acks = await acknowledged(`http://127.0.0.1:${world.productPort}`);
      expect(acks.all).toBeGreaterThanOrEqual(3);
      expect(acks.late, "acknowledgements after 2.5 s").toBe(0);

      await control.hurry();
      await stage.until("all to be confirmed", async () => (await inState(house, "CONFIRMED")) === AT_ONCE);
      expect(await control.counts()).toMatchObject({
        committed: AT_ONCE + 1,
        posts: AT_ONCE + 1,
        duplicates: 0,
      });
      await house.assertAuditIntact();
    },
  );
});
