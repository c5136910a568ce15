/** A new version beside the old one, and a process that is asked to stop in the middle of a request. */
import { describe, expect, it } from "vitest";
import { withManyOrders } from "../../src/app/demo/many-orders.js";
import { heldRefund } from "../../src/app/demo/stories/refunds.js";
import { withDatabases } from "./support/databases.js";
import { inHouse } from "./support/house.js";
import { NOTHING_COUNTED } from "./support/nothing-counted.js";

const databases = withDatabases();
const LONG_MS = 240_000;
/** README: a process stops within its bound; the container's grace is longer. */
const STOP_WITHIN_MS = 40_000;

describe("SIGTERM while the provider hangs", () => {
  it(
    "ends with code 0 within the bound; nothing stays leased, the refund happens once",
    {
      timeout: LONG_MS,
    },
    () =>
      inHouse(databases, { env: { PROVIDER_TIMEOUT_MS: "4000", LEASE_MS: "6000" } }, async (house) => {
        const { stage, world, db } = house;
        await house.another({ roles: "app", port: world.productPort });
        const worker = await house.another({ roles: "worker" });
        world.payments.control.setWebhook(null);
        const thread = await heldRefund(stage);
        stage.fault({ kind: "commit_then_hang", delayMs: 60_000 });
        await stage.approve("U_SUP1", thread);
        await stage.until(
          "the request to hang at the provider",
          async () => (await world.payments.control.effects()).length === 1,
        );
        const asked = performance.now();
        worker.signal("SIGTERM");
        expect(await worker.ended, "exit code").toBe(0);
        expect(performance.now() - asked).toBeLessThan(STOP_WITHIN_MS);
        const leased = await db.sql(
          "test.leased",
          `SELECT id FROM operations WHERE lease_until > countersign_now() AND lease_holder IS NOT NULL AND status = 'DISPATCHED'
         UNION ALL SELECT id FROM runs WHERE lease_until > countersign_now()`,
        );
        expect(leased, "rows that wait for a lease to run out").toEqual([]);
        const left = await db.sql(
          "test.sessions",
          "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'countersign-worker'",
        );
        expect(left, "sessions of the stopped process").toEqual([]);
        await house.another({ roles: "worker" });
        await stage.operationIn("CONFIRMED");
        await stage.runIn(thread, "resolved");
        expect((await world.payments.control.effects()).map(({ amount }) => amount)).toEqual([18_000]);
        await house.assertAuditIntact();
      }),
  );
});

describe("a rolling deploy", () => {
  it(
    "one process after the other is replaced while tickets come in: every ticket is worked on, each refund once",
    {
      timeout: LONG_MS,
    },
    () =>
      inHouse(
        databases,
        { policy: { text: NOTHING_COUNTED }, changeShop: (shop) => withManyOrders(shop, 4, 4_000) },
        async (house) => {
          const { stage, world, db } = house;
          const old = await house.another({ port: world.productPort });
          // What the newer version has migrated stands in the way of the older one no more than a table it does not know.
          await db.pool.query("ALTER TABLE tickets ADD COLUMN of_the_next_version text");
          await db.pool.query("CREATE TABLE of_the_next_version (id text PRIMARY KEY)");
          await db.pool.query(
            `INSERT INTO _prisma_migrations (id, checksum, finished_at, migration_name, applied_steps_count)
           VALUES ('next', 'next', now(), '9999_next_version', 1)`,
          );
          const file = (n: number) =>
            stage.file("U_AGENT", `The jacket of order ORD-${7001 + n} is torn. Please refund £40.00.`);
          const threads = [await file(0)];
          const next = await house.another();
          threads.push(await file(1));
          old.signal("SIGTERM");
          // Filed while the old one stops: its sockets close, the new one's are open.
          threads.push(await file(2));
          expect(await old.ended).toBe(0);
          threads.push(await file(3));
          for (const thread of threads) {
            await stage.confirmBinding(thread);
            await stage.runIn(thread, "resolved");
          }
          expect(next.running()).toBe(true);
          expect((await world.payments.control.effects()).map(({ amount }) => amount)).toEqual(
            threads.map(() => 4_000),
          );
          const tickets = await db.sql("test.tickets", "SELECT id FROM tickets");
          expect(tickets).toHaveLength(threads.length);
          await house.assertAuditIntact();
        },
      ),
  );
});
