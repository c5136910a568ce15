/**
 * A refund that is accepted, paid out and taken back by the bank days later, told by signed webhooks at the product's own endpoint: in
 * any order, more than once, also before the provider's answer. What counts are the provider's books and ours.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withManyOrders } from "../../src/app/demo/many-orders.js";
import type { Thread } from "../../src/app/demo/stage.js";
import { setClockOffset } from "../../src/db/clock.js";
import { signatureHeader } from "../../src/sandbox/payments/index.js";
import { withDatabases } from "./support/databases.js";
import { type House, openHouse } from "./support/house.js";
import { NOTHING_COUNTED } from "./support/nothing-counted.js";

const databases = withDatabases();
const LONG_MS = 180_000;
const DAYS_MS = 3 * 24 * 3_600_000;
let house: House;

beforeAll(async () => {
  house = await openHouse(databases, {
    policy: { text: NOTHING_COUNTED },
    changeShop: (shop) => withManyOrders(shop, 5),
    // An answer may take its time here.
    env: { PROVIDER_TIMEOUT_MS: "30000" },
  });
  // Only this test sends webhooks.
  house.world.payments.control.setWebhook(null);
  await house.stage.start();
});
afterAll(() => house.close());

const paymentOf = (order: string): string => `pi_many_${order.slice(4)}`;
const provider = () => house.world.payments.control;

/** What the endpoint answers to these bytes. */
async function post(body: Buffer, signature?: string): Promise<number> {
  const secret = house.world.env["STRIPE_WEBHOOK_SECRET"] ?? "";
  const response = await fetch(`http://127.0.0.1:${house.world.productPort}/webhooks/stripe`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "stripe-signature":
        signature ?? signatureHeader(body.toString("utf8"), secret, Math.floor(Date.now() / 1000)),
    },
    body: new Uint8Array(body),
  });
  return response.status;
}

/** The provider's events about this payment's refund, as it would send them, oldest first. */
async function eventsOf(order: string): Promise<Buffer[]> {
  const events = await provider().events();
  return events.map(({ body }) => Buffer.from(body)).filter((body) => body.includes(paymentOf(order)));
}

async function stored(): Promise<{ all: number; open: number }> {
  const [row] = await house.db.sql<{ all: number; open: number }>(
    undefined,
    `SELECT count(*)::int AS all, count(*) FILTER (WHERE processed_at IS NULL)::int AS open FROM provider_webhooks`,
  );
  return row ?? { all: -1, open: -1 };
}

interface Books {
  readonly status: string;
  readonly attempts: number;
  readonly reserved: number;
  readonly refunded: number;
  readonly elsewhere: number;
  readonly steps: readonly string[];
  readonly incidents: readonly string[];
}

/** Our rows about the one refund of this order. One that was held until its filer said who the customer is gives way to it. */
async function books(order: string): Promise<Books | undefined> {
  const [row] = await house.db.sql<Books>(
    undefined,
    `SELECT o.status, o.attempts, p.reserved::int AS reserved, p.refunded::int AS refunded, p.refunded_elsewhere::int AS elsewhere,
            ARRAY(SELECT e.to_status FROM operation_events e WHERE e.operation_id = o.id AND e.to_status IS DISTINCT FROM e.from_status
                  ORDER BY e.seq) AS steps,
            ARRAY(SELECT i.kind FROM incidents i WHERE i.operation_id = o.id ORDER BY i.id) AS incidents
       FROM operations o JOIN payments p ON p.id = o.payment_id WHERE o.order_ref = $1 AND o.status <> 'VOIDED'`,
    [order],
  );
  return row;
}

const inState = (order: string, status: string): Promise<Books> =>
  house.stage.until(`${order} to be ${status}`, async () => {
    const now = await books(order);
    return now?.status === status ? now : null;
  });

const shown = (thread: Thread): string[] =>
  house.stage.threadMessages(thread).map(({ text, blocks }) => `${text}\n${JSON.stringify(blocks)}`);

/** Refunds that the provider made on the order and that did not come to nothing, in minor units. */
async function alive(order: string): Promise<number> {
  const effects = await provider().effects({ paymentIntent: paymentOf(order) });
  return effects
    .filter(({ status }) => status !== "failed" && status !== "canceled")
    .reduce((sum, { amount }) => sum + amount, 0);
}

async function askedFor(order: string, amount: string): Promise<Thread> {
  const thread = await house.stage.file("U_AGENT", `Order ${order}: refund £${amount} please.`);
  await house.stage.confirmBinding(thread);
  return thread;
}

describe("accepted, paid out, and taken back days later", () => {
  it.each([
    ["in their order", "ORD-7001", "20.00", [] as string[]],
    ["the last first", "ORD-7002", "20.00", ["reversed"]],
    ["the last first, of what a supervisor approved", "ORD-7003", "180.00", ["reversed", "approved"]],
  ])(
    "webhooks %s, each twice: the case opens again once, the money counts anew, its people are told",
    {
      timeout: LONG_MS,
    },
    async (_how, order, amount, ways) => {
      const { stage } = house;
      const minor = Math.round(Number(amount) * 100);
      stage.fault({ kind: "outcome", status: "pending", match: { paymentIntent: paymentOf(order) } });
      const thread = await askedFor(order, amount);
      if (ways.includes("approved")) await stage.approve("U_SUP1", thread);
      expect(await inState(order, "OUTCOME_UNKNOWN")).toMatchObject({ reserved: minor, refunded: 0 });

      const [effect] = await provider().effects({ paymentIntent: paymentOf(order) });
      await provider().advanceRefund(effect?.id ?? "", { status: "succeeded" });
      for (const body of await eventsOf(order)) expect(await post(body)).toBe(200);
      expect(await inState(order, "CONFIRMED")).toMatchObject({ reserved: 0, refunded: minor, attempts: 1 });
      await stage.runIn(thread, "resolved");

      await setClockOffset(house.db, DAYS_MS);
      await provider().advanceRefund(effect?.id ?? "", { status: "failed" });
      const made = await eventsOf(order);
      expect(made.length).toBeGreaterThan(2);
      const before = await stored();
      for (const body of made) {
        expect(await post(body, "t=1,v1=00")).toBe(400);
        expect(await post(Buffer.concat([body, Buffer.from(" ")]), forged(body))).toBe(400);
      }
      expect(await stored()).toEqual(before);
      const bodies = ways.includes("reversed") ? made.reverse() : made;
      for (const body of [...bodies, ...bodies]) expect(await post(body)).toBe(200);

      const now = await inState(order, "REVERSED");
      expect(now).toMatchObject({
        reserved: 0,
        refunded: 0,
        elsewhere: 0,
        attempts: 1,
        incidents: ["reversed"],
      });
      expect(now.steps.filter((to) => to === "REVERSED")).toHaveLength(1);
      expect(now.steps.filter((to) => to === "CONFIRMED")).toHaveLength(1);
      expect(await alive(order)).toBe(0);
      expect(await provider().requests({ method: "POST", paymentIntent: paymentOf(order) })).toHaveLength(1);
      await stage.until("every webhook to be judged", async () => (await stored()).open === 0);

      const told = await stage.until("the thread to be told", async () =>
        shown(thread).find((text) => /took it back after confirming it/u.test(text)),
      );
      expect(told).toContain("<@U_AGENT>");
      if (ways.includes("approved")) expect(told).toContain("<@U_SUP1>");
      await stage.until("a card for on-call", async () =>
        house.world.slack.control
          .messages("U_ONC1", "C_OPS")
          .some(({ blocks }) => /taken back by the provider/iu.test(JSON.stringify(blocks))),
      );
      expect(shown(thread).filter((text) => /took it back after confirming it/u.test(text))).toHaveLength(1);
      await house.assertAuditIntact();
    },
  );

  it("webhooks that come before the answer, and again after it, confirm it once", {
    timeout: LONG_MS,
  }, async () => {
    const { stage } = house;
    const order = "ORD-7004";
    // The answer takes its time, and the webhooks of what it will say are there before.
    stage.fault({ kind: "commit_then_hang", delayMs: 20_000, match: { paymentIntent: paymentOf(order) } });
    const thread = await askedFor(order, "20.00");
    const bodies = await stage.until("the provider to have made it", async () => {
      const made = await eventsOf(order);
      return made.length > 0 ? made : null;
    });
    const statuses = await Promise.all([...bodies, ...bodies].map((body) => post(body)));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect((await books(order))?.steps, "the answer is not there yet").not.toContain("CONFIRMED");
    await provider().hurry();
    expect(await inState(order, "CONFIRMED")).toMatchObject({ reserved: 0, refunded: 2_000, attempts: 1 });
    await stage.runIn(thread, "resolved");
    for (const body of bodies) expect(await post(body)).toBe(200);
    await stage.until("every webhook to be judged", async () => (await stored()).open === 0);
    const now = await books(order);
    expect(now).toMatchObject({ status: "CONFIRMED", refunded: 2_000, elsewhere: 0, incidents: [] });
    expect(now?.steps.filter((to) => to === "CONFIRMED")).toHaveLength(1);
    expect(await alive(order)).toBe(2_000);
    await house.assertAuditIntact();
  });
});

/** The right signature of other bytes. */
function forged(body: Buffer): string {
  const secret = house.world.env["STRIPE_WEBHOOK_SECRET"] ?? "";
  return signatureHeader(body.toString("utf8"), secret, Math.floor(Date.now() / 1000));
}
