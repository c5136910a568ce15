/** Redis emptied in the middle and away for a while, with operations in every state; the order in which things start. */
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { withManyOrders } from "../../src/app/demo/many-orders.js";
import type { Thread } from "../../src/app/demo/stage.js";
import { startProxy } from "../support/proxy.js";
import { withOwnRedis } from "../support/redis.js";
import { withDatabases } from "./support/databases.js";
import { type House, inHouse } from "./support/house.js";
import { count } from "./support/metrics.js";
import { NOTHING_COUNTED } from "./support/nothing-counted.js";

const redis = withOwnRedis();
const databases = withDatabases();
const LONG_MS = 240_000;
const REMIND_SOON = `${NOTHING_COUNTED}approvals: { remindAfterMinutes: [0.3] }\n`;

/** A held refund of an order of its own. */
async function held({ stage }: House, order: string): Promise<Thread> {
  const thread = await stage.file("U_AGENT", `The jacket of order ${order} is torn. Please refund £180.00.`);
  await stage.confirmBinding(thread);
  await stage.runIn(thread, "awaiting_approval");
  return thread;
}

const statusOf = async (house: House, order: string): Promise<string | undefined> =>
  (
    await house.db.sql<{ status: string }>(
      "test.status_of",
      "SELECT status FROM operations WHERE order_ref = $1",
      [order],
    )
  )[0]?.status;

const inStatus = (house: House, order: string, status: string) =>
  house.stage.until(`${order} to be ${status}`, async () => (await statusOf(house, order)) === status);

/** Whatever a worker should have taken by now. */
const nothingIsDue = ({ stage, db }: House) =>
  stage.until("no row to be due", async () => {
    const [left] = await db.sql<{ n: number }>(
      "test.due",
      `SELECT ((SELECT count(*) FROM slack_outbox WHERE due_at <= countersign_now()) + (SELECT count(*) FROM slack_inbox WHERE due_at IS NOT NULL)
        + (SELECT count(*) FROM operations WHERE due_at IS NOT NULL) + (SELECT count(*) FROM runs WHERE due_at <= countersign_now()))::int AS n`,
    );
    return left?.n === 0;
  });

const refunds = async (house: House): Promise<number[]> =>
  (await house.world.payments.control.effects()).map(({ amount }) => amount);

describe.skipIf(!redis.there)("S-Q-2 (a): FLUSHALL with operations in four states", () => {
  it("every row moves again within a sweep, and nothing happens twice", { timeout: LONG_MS }, () =>
    inHouse(
      databases,
      {
        redisUrl: redis.url,
        policy: { text: REMIND_SOON },
        changeShop: (shop) => withManyOrders(shop, 4),
        env: {
          PROVIDER_TIMEOUT_MS: "15000",
          LEASE_MS: "20000",
          RECONCILE_BASE_MS: "4000",
          RECONCILE_MAX_MS: "8000",
        },
      },
      async (house) => {
        const { stage, world } = house;
        await stage.start();
        world.payments.control.setWebhook(null);
        const waits = await held(house, "ORD-7001");
        const unknown = await held(house, "ORD-7002");
        stage.fault({ kind: "commit_then_drop" });
        await stage.approve("U_SUP1", unknown);
        await inStatus(house, "ORD-7002", "OUTCOME_UNKNOWN");
        const hangs = await held(house, "ORD-7003");
        stage.fault({ kind: "commit_then_hang", delayMs: 6_000 });
        await stage.approve("U_SUP1", hangs);
        await inStatus(house, "ORD-7003", "DISPATCHED");
        // Frozen, so that it stays prepared while the queue loses everything.
        const frozen = await held(house, "ORD-7004");
        const ops = (as: string, text: string) =>
          world.slack.control.command({ as, channel: "C_OPS", command: "/ops", text });
        await ops("U_ONC1", "freeze refund");
        await stage.until(
          "the freeze",
          async () =>
            (await house.db.sql("test.frozen", "SELECT 1 FROM freeze_switches WHERE frozen")).length > 0,
        );
        await stage.approve("U_SUP1", frozen);
        await inStatus(house, "ORD-7004", "PREPARED");
        const client = new Redis(redis.url);
        await client.flushall();
        await ops("U_ONC2", "thaw refund");
        for (const order of ["ORD-7002", "ORD-7003", "ORD-7004"]) await inStatus(house, order, "CONFIRMED");
        await stage.until("the reminder of the one that waits", async () =>
          world.slack.control.messages("U_SUP1", "C_APPR", {}).some(({ text }) => text.includes("ORD-7001")),
        );
        await stage.until(
          "its reminder to be counted",
          async () =>
            (await house.db.sql("test.reminded", "SELECT 1 FROM approvals WHERE reminders_sent > 0")).length >
            0,
        );
        await client.flushall();
        client.disconnect();
        await stage.approve("U_SUP1", waits);
        await inStatus(house, "ORD-7001", "CONFIRMED");
        await nothingIsDue(house);
        expect(await refunds(house)).toEqual([18_000, 18_000, 18_000, 18_000]);
        await house.assertAuditIntact();
      },
    ),
  );
});

describe.skipIf(!redis.there)("S-Q-2 (b): Redis away", () => {
  it("at the start and at a click: ready only when it answers, the click is recorded, /ops health says so, all follows", {
    timeout: LONG_MS,
  }, async () => {
    const proxy = await startProxy(redis.url);
    await proxy.cut();
    try {
      await inHouse(databases, { redisUrl: proxy.through(redis.url), transport: "http" }, async (house) => {
        const { stage, world, db } = house;
        const base = `http://127.0.0.1:${world.productPort}`;
        // Not ready, but alive: nothing restarts it, and it comes up by itself.
        const starting = stage.start();
        await stage.until(
          "the process to be alive",
          async () => (await fetch(`${base}/healthz`).catch(() => null))?.status === 200,
        );
        expect((await fetch(`${base}/readyz`)).status).toBe(503);
        await proxy.mend();
        await starting;
        const thread = await stage.file(
          "U_AGENT",
          "Tom Whitfield's jacket arrived torn, order ORD-10042. Please refund the £180.00.",
        );
        await stage.confirmBinding(thread);
        await stage.runIn(thread, "awaiting_approval");
        await stage.messageWith(thread, "Approve");
        await proxy.cut();
        await stage.approve("U_SUP1", thread);
        await stage.until(
          "the click to be recorded",
          async () => (await db.sql("test.votes", "SELECT id FROM votes")).length === 1,
        );
        const ack = 'countersign_slack_ack_seconds_bucket{le="2.5",kind="action"}';
        const all = 'countersign_slack_ack_seconds_count{kind="action"}';
        expect(await count(base, all)).toBeGreaterThan(0);
        expect(await count(base, ack), "every click was acknowledged within 2.5 s").toBe(
          await count(base, all),
        );
        await world.slack.control.command({
          as: "U_ONC1",
          channel: "C_OPS",
          command: "/ops",
          text: "health",
        });
        await stage.until("/ops health to say that the queue is away", async () =>
          world.slack.control
            .messages("U_ONC1", "C_OPS", { ephemeral: true })
            .some((message) => /not ok\*? – queue/i.test(JSON.stringify(message.blocks))),
        );
        expect((await fetch(`${base}/readyz`)).status).toBe(503);
        expect(await count(base, 'countersign_wakeups_lost_total{kind="run"}')).toBeGreaterThan(0);
        await proxy.mend();
        await stage.operationIn("CONFIRMED");
        await stage.runIn(thread, "resolved");
        await nothingIsDue(house);
        expect(await refunds(house)).toEqual([18_000]);
        const said = house.log().match(/the queue is away/g) ?? [];
        expect(said.length, "said once in a while, not once a second").toBeLessThanOrEqual(4);
      });
    } finally {
      await proxy.stop();
    }
  });
});
