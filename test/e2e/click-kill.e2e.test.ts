/**
 * The process that acknowledged a click dies before it has judged it: another one does, soon and once. A click that was answered
 * with "nothing was recorded" is none, whatever dies.
 */
import pg from "pg";
import { describe, expect, it } from "vitest";
import { withManyOrders } from "../../src/app/demo/many-orders.js";
import { NOT_RECORDED } from "../../src/slack/inbox/gate.js";
import { withDatabases } from "./support/databases.js";
import { inHouse } from "./support/house.js";
import { cardIn, committed, held, operationsOf } from "./support/races.js";

const databases = withDatabases();
/** Well below the half minute that a lease without renewals would have to last. */
const SOON_S = 20;

describe("killed between the acknowledgement of an Approve and its vote", () => {
  it.each(["http", "socket"] as const)(
    "over %s: one vote, one refund, and nobody waits for half a minute",
    (transport) =>
      inHouse(
        databases,
        { transport, changeShop: (shop) => withManyOrders(shop, 1, 10_000) },
        async (house) => {
          const { stage, world, db } = house;
          await stage.start();
          const thread = await held(house, "ORD-7001", "100.00");
          const at = await cardIn(house, thread);
          const own = await db.sql(
            "test.own",
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'countersign-arrivals'",
          );
          expect(own.length, "arrivals are stored on connections of their own").toBeGreaterThan(0);
          await stage.stop();
          await stage.start({ COUNTERSIGN_FAILPOINTS: "slack.after_ack=kill" });
          await house.another({ roles: "worker" });

          const clicked = await world.slack.control.click({ as: "U_SUP1", at, label: "Approve" });
          expect(clicked).toEqual({ ok: true });
          await stage.productEnded();
          await stage.runIn(thread, "resolved");

          const votes = await db.sql<{ user_id: string; waited: number }>(
            "test.waited",
            `SELECT v.user_id, extract(epoch FROM v.at - i.received_at)::float8 AS waited FROM votes v, slack_inbox i
            WHERE i.kind = 'action' AND i.body->'actions'->0->>'action_id' = 'approval.approve'`,
          );
          expect(votes).toEqual([{ user_id: "U_SUP1", waited: expect.any(Number) }]);
          expect(votes[0]?.waited).toBeLessThan(SOON_S);
          await world.payments.control.settle();
          expect(await committed(house, "ORD-7001")).toEqual([10_000]);
          expect((await operationsOf(house, "ORD-7001")).map(({ status }) => status)).toEqual(["CONFIRMED"]);
          await house.assertAuditIntact();
        },
      ),
    240_000,
  );
});

describe('killed after an Approve was answered with "nothing was recorded", because the database was too slow', () => {
  it(
    "the click counts for nothing afterwards",
    () =>
      inHouse(
        databases,
        { transport: "http", changeShop: (shop) => withManyOrders(shop, 1, 10_000) },
        async (house) => {
          const { stage, world, db } = house;
          await stage.start();
          const thread = await held(house, "ORD-7001", "100.00");
          const at = await cardIn(house, thread);
          await stage.stop();
          const product = await house.another({ port: world.productPort });
          const clicks = () =>
            db.sql(
              "test.clicks",
              "SELECT 1 FROM slack_inbox WHERE body->'actions'->0->>'action_id' = 'approval.approve'",
            );

          const slow = new pg.Client({ connectionString: world.databaseUrl });
          await slow.connect();
          try {
            await slow.query("BEGIN; LOCK TABLE slack_inbox IN ACCESS EXCLUSIVE MODE");
            const clicked = await world.slack.control.click({ as: "U_SUP1", at, label: "Approve" });
            expect(clicked).toEqual({ ok: true });
            expect(stage.toldPrivately("U_SUP1", thread)).toEqual([NOT_RECORDED]);
            await product.kill();
          } finally {
            await slow.query("COMMIT");
            await slow.end();
          }
          await stage.until("what the dead process had begun to be over", async () => {
            const [left] = await db.sql<{ n: number }>(
              "test.begun",
              `SELECT count(*)::int AS n FROM pg_stat_activity
              WHERE datname = current_database() AND application_name = 'countersign-arrivals'`,
            );
            return left?.n === 0;
          });

          expect(await clicks()).toEqual([]);
          expect(await db.sql("test.votes", "SELECT 1 FROM votes")).toEqual([]);
          expect(await committed(house, "ORD-7001")).toEqual([]);
        },
      ),
    240_000,
  );
});
