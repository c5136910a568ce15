/** The queue written to by somebody else: a job for every row under every name, a thousand of one, contents that make no sense. */
import { createPostgresBackend, type PgPool, Queue } from "bullmq";
import { Redis } from "ioredis";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { heldRefund } from "../../src/app/demo/stories/refunds.js";
import { LANE_NAMES, LANES } from "../../src/jobs/catalogue.js";
import { queueName } from "../../src/jobs/store.js";
import { withOwnRedis } from "../support/redis.js";
import { withDatabases } from "./support/databases.js";
import { type House, inHouse } from "./support/house.js";

const databases = withDatabases();
const redis = withOwnRedis();
const LONG_MS = 240_000;
const STORES = ["postgres", "redis"] as const;

type ForeignQueue = Pick<Queue, "add" | "addBulk" | "getJobCounts">;

/** The queues as anybody sees them who can write to where they are kept. */
async function withQueues(
  house: House,
  store: (typeof STORES)[number],
  use: (queues: readonly ForeignQueue[]) => Promise<void>,
): Promise<void> {
  const connection = store === "redis" ? new Redis(redis.url, { maxRetriesPerRequest: null }) : null;
  const pool = new pg.Pool({
    connectionString: house.world.databaseUrl,
    max: 4,
    options: "-c search_path=bullmq",
  });
  const queues = LANE_NAMES.map((lane) =>
    connection === null
      ? new Queue(queueName(lane), { connection: pool as unknown as PgPool }, createPostgresBackend)
      : new Queue(queueName(lane), { connection }),
  );
  try {
    await use(queues);
  } finally {
    await Promise.all(queues.map((queue) => queue.close()));
    connection?.disconnect();
    await pool.end();
  }
}

const NAMES = [...Object.values(LANES).flat(), "nonsense", "constructor", "x".repeat(5_000)];
const ABSURD: readonly unknown[] = [
  null,
  7,
  "text",
  [],
  { id: null },
  { id: { $ne: null } },
  { id: "" },
  { id: "x".repeat(201) },
  { id: "\u0000" },
  { id: "op_' OR 1=1 --" },
  { id: `op_${"0".repeat(32)}` },
  { id: `run_${"0".repeat(32)}` },
  { id: "x", deep: JSON.parse(`${"[".repeat(500)}${"]".repeat(500)}`) },
  { id: "x", long: "y".repeat(100_000) },
];
const OPTIONS = [
  {},
  { priority: 3 },
  { delay: 200, attempts: 9 },
  { lifo: true, removeOnFail: false },
  { jobId: "one-of-a-kind" },
] as const;

/** What the store does not take is not there to be worked on: PostgreSQL refuses a zero byte. */
async function forge(queues: readonly ForeignQueue[], ids: readonly string[]): Promise<void> {
  for (const queue of queues) {
    for (const name of NAMES) {
      await queue.addBulk(
        ids.map((id, at) => ({ name, data: { id }, opts: OPTIONS[at % OPTIONS.length] ?? {} })),
      );
      for (const data of ABSURD) await queue.add(name, data).catch(() => undefined);
    }
  }
}

async function isWorkedOff(queues: readonly ForeignQueue[]): Promise<boolean> {
  const counts = await Promise.all(
    queues.map((queue) => queue.getJobCounts("waiting", "active", "delayed", "prioritized")),
  );
  return counts.every((of) => Object.values(of).every((n) => n === 0));
}

/** Everything that has an id. */
const EVERY_ID = `
SELECT id FROM operations UNION ALL SELECT id FROM runs UNION ALL SELECT id FROM approvals UNION ALL SELECT id FROM tickets
UNION ALL SELECT id::text FROM slack_outbox UNION ALL SELECT id::text FROM slack_inbox UNION ALL SELECT id::text FROM slack_cards`;

describe.each(STORES)("jobs on %s that nobody of ours queued", (store) => {
  it("send nothing before the approval and one refund after it, and keep no job of ours from its turn", {
    timeout: LONG_MS,
  }, async (context) => {
    if (store === "redis" && !redis.there) return context.skip("there is no redis-server on this machine");
    await inHouse(databases, store === "redis" ? { redisUrl: redis.url } : {}, async (house) => {
      const { stage, db, world } = house;
      const { control } = world.payments;
      const posts = () => control.requests({ method: "POST", path: "/v1/refunds" });
      await stage.start();
      const thread = await heldRefund(stage);
      await withQueues(house, store, async (queues) => {
        const ids = (await db.sql<{ id: string }>("test.every_id", EVERY_ID)).map(({ id }) => id);
        const [operation] = await stage.operations();
        const effects = queues[LANE_NAMES.indexOf("effects")];
        const thousand = Array.from({ length: 1_000 }, () => ({
          name: "operation",
          data: { id: operation?.id },
          opts: { removeOnComplete: true },
        }));
        await forge(queues, ids);
        await effects?.addBulk(thousand);
        await stage.until("every job to be worked off", () => isWorkedOff(queues));
        expect(await posts()).toEqual([]);
        expect((await stage.operations()).map(({ status }) => status)).toEqual(["AWAITING_APPROVAL"]);

        await effects?.addBulk(thousand);
        const approved = stage.approve("U_SUP1", thread);
        await effects?.addBulk(thousand);
        await approved;
        await stage.operationIn("CONFIRMED");
        await stage.runIn(thread, "resolved");
        await stage.until("every job to be worked off", () => isWorkedOff(queues));
      });
      await control.settle();
      expect((await control.effects()).map(({ amount }) => amount)).toEqual([18_000]);
      expect(await posts()).toHaveLength(1);
      const claims = await db.sql(
        "test.claims",
        "SELECT 1 FROM operation_events WHERE type IN ('claim', 'resend')",
      );
      expect(claims).toHaveLength(1);
      await house.assertAuditIntact();
    });
  });
});
