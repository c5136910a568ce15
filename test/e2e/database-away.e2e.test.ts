/** PostgreSQL away while a request is under way at the provider and tickets come in: app and worker live on, nothing is lost or doubled. */
import { describe, expect, it } from "vitest";
import { withManyOrders } from "../../src/app/demo/many-orders.js";
import { freePort } from "../../src/app/demo/ports.js";
import { startProxy } from "../support/proxy.js";
import { withDatabases } from "./support/databases.js";
import { inHouse } from "./support/house.js";
import { NOTHING_COUNTED } from "./support/nothing-counted.js";

const databases = withDatabases();

const status = (url: string): Promise<number | null> =>
  fetch(url).then(
    ({ status: code }) => code,
    () => null,
  );

describe("PostgreSQL away", () => {
  it(
    "between the send and its answer: unready but alive, then one refund, and the ticket that came meanwhile",
    { timeout: 240_000 },
    () =>
      inHouse(
        databases,
        { policy: { text: NOTHING_COUNTED }, changeShop: (shop) => withManyOrders(shop, 2, 4_000) },
        async (house) => {
          const { stage, world, db } = house;
          const proxy = await startProxy(world.databaseUrl);
          try {
            const env = { DATABASE_URL: proxy.through(world.databaseUrl) };
            const app = await house.another({ roles: "app", port: world.productPort, env });
            const worker = await house.another({ roles: "worker", env });
            const base = `http://127.0.0.1:${world.productPort}`;
            world.payments.control.setWebhook(null);
            const before = await stage.file(
              "U_AGENT",
              "The jacket of order ORD-7001 is torn. Please refund £40.00.",
            );
            stage.fault({ kind: "commit_then_hang", delayMs: 1_000 });
            await stage.confirmBinding(before);
            await stage.until(
              "the provider to have done it",
              async () => (await world.payments.control.effects()).length === 1,
            );
            // What the provider answers now cannot be stored.
            await proxy.cut();
            await stage.until("the app to be unready", async () => (await status(`${base}/readyz`)) === 503);
            expect(await status(`${base}/healthz`), "alive: nothing is restarted").toBe(200);
            // Posted by hand: the stage waits for an answer, which nobody can give yet.
            await world.slack.control.post({
              as: "U_AGENT",
              channel: "C_TICK",
              text: "The jacket of order ORD-7002 is torn. Please refund £40.00.",
            });
            expect(await db.sql("test.tickets", "SELECT id FROM tickets")).toHaveLength(1);
            await proxy.mend();
            await stage.runIn(before, "resolved");
            await stage.until(
              "the ticket that came meanwhile",
              async () => (await db.sql("test.tickets", "SELECT id FROM tickets")).length === 2,
            );
            await stage.until("the app to be ready", async () => (await status(`${base}/readyz`)) === 200);
            const operations = await db.sql<{ status: string; attempts: number }>(
              "test.confirmed",
              "SELECT status, attempts FROM operations WHERE order_ref = 'ORD-7001' AND status <> 'VOIDED'",
            );
            expect(operations.map((operation) => operation.status)).toEqual(["CONFIRMED"]);
            const effects = await world.payments.control.effects();
            expect(effects.map(({ amount }) => amount)).toEqual([4_000]);
            expect([app.running(), worker.running()]).toEqual([true, true]);
            await house.assertAuditIntact();
          } finally {
            await proxy.stop();
          }
        },
      ),
  );

  it("at the start: alive and unready until it is there, and then it works", { timeout: 240_000 }, () =>
    inHouse(databases, {}, async (house) => {
      const { stage, world } = house;
      const proxy = await startProxy(world.databaseUrl);
      try {
        await proxy.cut();
        const port = await freePort();
        const base = `http://127.0.0.1:${port}`;
        const starting = house.another({ port, env: { DATABASE_URL: proxy.through(world.databaseUrl) } });
        await stage.until("it to be alive", async () => (await status(`${base}/healthz`)) === 200);
        const unready = await fetch(`${base}/readyz`);
        expect([unready.status, await unready.json()]).toEqual([
          503,
          {
            ok: false,
            checks: [
              {
                part: "database",
                ok: false,
                detail: "The database does not answer yet; waiting for it.",
              },
            ],
          },
        ]);
        // Whoever delivers meanwhile is told to come again.
        for (const path of ["/webhooks/stripe", "/slack/events"])
          expect((await fetch(`${base}${path}`, { method: "POST" })).status, path).toBe(503);
        await proxy.mend();
        const product = await starting;
        expect(await status(`${base}/readyz`)).toBe(200);
        expect((await fetch(`${base}/webhooks/stripe`, { method: "POST" })).status).toBe(400);
        expect(product.running()).toBe(true);
      } finally {
        await proxy.stop();
      }
    }),
  );
});
