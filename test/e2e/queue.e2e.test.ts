/** The queue carries wake-ups only: a worker that stands still, a queue that is emptied, a database that goes away. */
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Thread } from "../../src/app/demo/stage.js";
import { heldRefund } from "../../src/app/demo/stories/refunds.js";
import { startProxy, type TcpProxy } from "../support/proxy.js";
import { redisUrl } from "../support/redis.js";
import { withDatabases } from "./support/databases.js";
import { type House, inHouse } from "./support/house.js";

const databases = withDatabases();
const LONG_MS = 240_000;

const refunds = async (house: House): Promise<number[]> =>
  (await house.world.payments.control.effects()).map((effect) => effect.amount);

const keysSent = async (house: House): Promise<number> =>
  new Set(
    (await house.world.payments.control.requests({ method: "POST" })).map((sent) => sent.idempotencyKey),
  ).size;

/** Operations that are still DISPATCHED although their lease has run out. */
const leasesOver = async (house: House): Promise<number> =>
  (
    await house.db.sql(
      "test.leases_over",
      "SELECT id FROM operations WHERE status = 'DISPATCHED' AND lease_until < countersign_now()",
    )
  ).length;

const outcomesTold = (house: House, thread: Thread): number =>
  house.stage
    .threadMessages(thread)
    .filter((message) => /^Refunded £180\.00 .*Reference re_\w+\.$/.test(message.text)).length;

/** Settled at the end: one refund, one settling event, one sentence, books equal. */
async function oneRefund(house: House, thread: Thread): Promise<void> {
  const { stage } = house;
  const operation = await stage.operationIn("CONFIRMED");
  await stage.runIn(thread, "resolved");
  await stage.until("the outcome to be told", async () => outcomesTold(house, thread) > 0);
  await stage.world.payments.control.settle();
  expect(await refunds(house)).toEqual([18_000]);
  expect(await keysSent(house)).toBe(1);
  const confirmed = await house.db.sql(
    "test.confirmed",
    "SELECT seq FROM operation_events WHERE operation_id = $1 AND to_status = 'CONFIRMED' AND from_status <> to_status",
    [operation.id],
  );
  expect(confirmed).toHaveLength(1);
  expect(outcomesTold(house, thread)).toBe(1);
  await house.assertAuditIntact();
}

describe("S-Q-1: a worker stands still in the middle and comes back later", () => {
  it(
    "before it sent: another takes over, and the first sends nothing when it wakes",
    { timeout: LONG_MS },
    () =>
      inHouse(databases, {}, async (house) => {
        const { stage } = house;
        await house.another({ roles: "app", port: house.world.productPort });
        const first = await house.another({
          roles: "worker",
          env: { COUNTERSIGN_FAILPOINTS: "dispatch.before_send=wait:3000" },
        });
        const thread = await heldRefund(stage);
        await stage.approve("U_SUP1", thread);
        await stage.operationIn("DISPATCHED");
        first.signal("SIGSTOP");
        expect(await refunds(house)).toEqual([]);
        // It hears nothing of Slack, so the secrets of Slack's deliveries are not its business.
        await house.another({ roles: "worker", env: { SLACK_APP_TOKEN: "", SLACK_SIGNING_SECRET: "" } });
        await stage.operationIn("CONFIRMED");
        first.signal("SIGCONT");
        await stage.runIn(thread, "resolved");
        // Whatever it still wanted to do, it has done when it has stopped in order.
        await first.stop();
        await oneRefund(house, thread);
      }),
  );

  it("after it sent: its late answer is evidence and overwrites nothing", { timeout: LONG_MS }, () =>
    inHouse(databases, { env: { PROVIDER_TIMEOUT_MS: "20000", LEASE_MS: "4000" } }, async (house) => {
      const { stage } = house;
      await house.another({ roles: "app", port: house.world.productPort });
      const first = await house.another({ roles: "worker" });
      const thread = await heldRefund(stage);
      stage.fault({ kind: "commit_then_hang", delayMs: 2500 });
      await stage.approve("U_SUP1", thread);
      await stage.until("the provider to have committed", async () => (await refunds(house)).length === 1);
      first.signal("SIGSTOP");
      await house.another({ roles: "worker" });
      await stage.operationIn("CONFIRMED");
      first.signal("SIGCONT");
      await stage.runIn(thread, "resolved");
      await first.stop();
      stage.assertFaultsFired();
      await oneRefund(house, thread);
    }),
  );
});

/** Takes every wake-up away, again and again, until told to stop. */
function robber(empty: () => Promise<unknown>): () => Promise<void> {
  let over = false;
  const robbing = (async () => {
    while (!over) {
      await empty();
      await pause(20);
    }
  })();
  return async () => {
    over = true;
    await robbing;
  };
}

describe("S-Q-2: the queue loses everything, all the time", () => {
  it("on PostgreSQL: rows are found by the sweep and move, nothing happens twice", { timeout: LONG_MS }, () =>
    inHouse(databases, {}, async (house) => {
      const { stage } = house;
      await stage.start();
      // BullMQ makes its tables a moment after the start.
      await stage.until("the queue's tables", async () => {
        const [made] = await house.db.sql<{ made: boolean }>(
          "test.queue_tables",
          "SELECT to_regclass('bullmq.job') IS NOT NULL AS made",
        );
        return made?.made;
      });
      const stop = robber(() => house.db.pool.query("DELETE FROM bullmq.job"));
      try {
        const thread = await heldRefund(stage);
        stage.fault({ kind: "commit_then_drop" });
        await stage.approve("U_SUP1", thread);
        await oneRefund(house, thread);
        stage.assertFaultsFired();
      } finally {
        await stop();
      }
    }),
  );

  describe.skipIf(redisUrl() === undefined)("on Redis", () => {
    it("flushed all the time: rows are found by the sweep and move, nothing happens twice", {
      timeout: LONG_MS,
    }, async () => {
      const { Redis } = await import("ioredis");
      const url = redisUrl() ?? "";
      const redis = new Redis(url);
      try {
        await redis.flushdb();
        await inHouse(databases, { redisUrl: url }, async (house) => {
          const { stage } = house;
          await stage.start();
          const stop = robber(() => redis.flushdb());
          try {
            const thread = await heldRefund(stage);
            stage.fault({ kind: "commit_then_drop" });
            await stage.approve("U_SUP1", thread);
            await oneRefund(house, thread);
          } finally {
            await stop();
          }
        });
      } finally {
        redis.disconnect();
      }
    });

    it("away while a supervisor clicks: the click is recorded at once, /ops health says so, the refund follows", {
      timeout: LONG_MS,
    }, async () => {
      const url = redisUrl() ?? "";
      const proxy: TcpProxy = await startProxy(url);
      try {
        await inHouse(databases, { redisUrl: proxy.through(url) }, async (house) => {
          const { stage, world, db } = house;
          await stage.start();
          const thread = await heldRefund(stage);
          await stage.messageWith(thread, "Approve");
          await proxy.cut();
          const before = performance.now();
          await stage.approve("U_SUP1", thread);
          expect(performance.now() - before, "acknowledged within Slack's patience").toBeLessThan(3_000);
          await stage.until(
            "the click to be recorded",
            async () => (await db.sql("test.votes", "SELECT id FROM votes")).length === 1,
          );
          const asked = await world.slack.control.command({
            as: "U_ONC1",
            channel: "C_OPS",
            command: "/ops",
            text: "health",
          });
          expect(asked.ok).toBe(true);
          await stage.until("/ops health to say that the queue is away", async () =>
            world.slack.control
              .messages("U_ONC1", "C_OPS", { ephemeral: true })
              .some(
                (message) =>
                  /queue/i.test(JSON.stringify(message.blocks) + message.text) &&
                  /away|not answer|unreachable|down/i.test(JSON.stringify(message.blocks) + message.text),
              ),
          );
          await proxy.mend();
          await oneRefund(house, thread);
        });
      } finally {
        await proxy.stop();
      }
    });
  });
});

describe("S-Q-3: wake-ups that are swallowed", () => {
  it("the database goes away while jobs are active: afterwards every due row is worked off", {
    timeout: LONG_MS,
  }, async () => {
    const proxy = await startProxy(databases.serverUrl);
    try {
      await inHouse(databases, {}, async (house) => {
        const { stage, world, db } = house;
        await stage.start({ DATABASE_URL: proxy.through(world.databaseUrl) });
        const thread = await heldRefund(stage);
        stage.fault({ kind: "hang_then_commit", delayMs: 1_000 });
        await stage.approve("U_SUP1", thread);
        await stage.until("the request to be at the provider", async () => (await keysSent(house)) === 1);
        await proxy.cut();
        await stage.until("the provider to have committed", async () => (await refunds(house)).length === 1);
        // Nothing was recorded since, and the lease runs out while nobody can prolong it.
        await stage.until("the lease to be over", async () => (await leasesOver(house)) === 1);
        await proxy.mend();
        await oneRefund(house, thread);
        await stage.until("no row to be due", async () => {
          const [left] = await db.sql<{ n: bigint }>(
            "test.due",
            `SELECT (SELECT count(*) FROM slack_outbox WHERE due_at IS NOT NULL) + (SELECT count(*) FROM slack_inbox WHERE due_at IS NOT NULL)
                  + (SELECT count(*) FROM runs WHERE due_at IS NOT NULL) + (SELECT count(*) FROM operations WHERE due_at IS NOT NULL) AS n`,
          );
          return left?.n === 0n;
        });
      });
    } finally {
      await proxy.stop();
    }
  });
});
