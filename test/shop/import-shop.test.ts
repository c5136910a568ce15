import { describe, expect, it } from "vitest";
import { type BelowReserved, demoShop, getOrder, ShopFileError } from "../../src/shop/index.js";
import { withDatabase } from "../support/database.js";
import { load, oneOrder, spend } from "./shop-context.js";

const pg = withDatabase();

async function problems(content: unknown): Promise<readonly string[]> {
  try {
    await load(pg.db, content);
    return [];
  } catch (error) {
    if (error instanceof ShopFileError)
      return error.problems.map(({ path, message }) => `${path}: ${message}`);
    throw error;
  }
}
const counts = async (): Promise<number> => {
  const [row] = await pg.db.sql<{ n: number }>(
    undefined,
    "SELECT ((SELECT count(*) FROM customers) + (SELECT count(*) FROM orders) + (SELECT count(*) FROM help_articles))::int AS n",
  );
  return row?.n ?? -1;
};

describe("importing a shop file", () => {
  it("brings in what the file says, and again without a change", async () => {
    const first = await load(pg.db, oneOrder());
    expect(first).toMatchObject({
      customers: 1,
      orders: 1,
      keptCancelled: [],
      belowReserved: [],
      ignoredKeys: [],
    });
    const order = await getOrder(pg.db, "ORD-1");
    expect(order).toMatchObject({
      ref: "ORD-1",
      status: "delivered",
      currency: "GBP",
      deliveredAt: new Date("2026-11-05T12:00:00Z"),
      customer: { ref: "CUS-1" },
      items: [{ ref: "ORD-1-1", quantity: 2, unitMinor: 5000n }],
      payment: { captured: 10000n, reserved: 0n, refunded: 0n, refundedElsewhere: 0n, refundable: 10000n },
    });
    await load(pg.db, oneOrder());
    expect(await getOrder(pg.db, "ORD-1")).toEqual(order);
  });

  it("takes the smallest order of S-PAY-2, with no dates, names or shipping", async () => {
    const file = oneOrder({
      ref: "ORD-JP1",
      currency: "JPY",
      placedAt: undefined,
      deliveredAt: undefined,
      items: [{ ref: "ORD-JP1-1", quantity: 1, unitAmount: 9899 }],
      payment: { paymentIntent: "pi_jp", captured: 9899 },
    });
    expect(await problems(file)).toEqual([]);
    const order = await getOrder(pg.db, "ORD-JP1");
    expect(order).toMatchObject({ deliveredAt: null, payment: { currency: "JPY", captured: 9899n } });
    expect(order?.placedAt).toBeInstanceOf(Date);
  });

  it("takes the delivery from the newest delivered shipment when the file gives no date", async () => {
    const shipments = [
      { carrier: "R", tracking: "1", status: "delivered", updatedAt: "2026-11-04T10:00:00Z" },
      { carrier: "R", tracking: "2", status: "Delivered", updatedAt: "2026-11-06T10:00:00+02:00" },
      { carrier: "R", tracking: "3", status: "lost", updatedAt: "2026-11-09T10:00:00Z" },
    ];
    await load(pg.db, oneOrder({ deliveredAt: undefined, shipments }));
    expect((await getOrder(pg.db, "ORD-1"))?.deliveredAt).toEqual(new Date("2026-11-06T08:00:00Z"));
  });

  it("replaces items and shipments and moves an order to another customer", async () => {
    await load(pg.db, oneOrder());
    const file = oneOrder({
      customer: "CUS-2",
      items: [{ ref: "ORD-1-2", sku: "T", name: "Other", quantity: 1, unitAmount: 10000 }],
    });
    file.customers.push({ ref: "CUS-2", name: "Bob", email: "bob@shop.example" });
    await load(pg.db, file);
    const order = await getOrder(pg.db, "ORD-1");
    expect(order).toMatchObject({ version: 2n, customer: { ref: "CUS-2" }, items: [{ ref: "ORD-1-2" }] });
    expect(order?.items).toHaveLength(1);
  });

  it("never un-cancels an order or a subscription", async () => {
    const withSubscription = (status: string, orderStatus: string): object => ({
      ...oneOrder({ status: orderStatus }),
      subscriptions: [{ ref: "SUB-1", customer: "CUS-1", plan: "p", status, providerRef: "sub_1" }],
    });
    await load(pg.db, withSubscription("canceled", "cancelled"));
    const cancelled = await getOrder(pg.db, "ORD-1");
    expect(cancelled?.cancelledAt).toBeInstanceOf(Date);
    const result = await load(pg.db, withSubscription("active", "packed"));
    expect(result.keptCancelled).toEqual(["ORD-1", "SUB-1"]);
    expect(await getOrder(pg.db, "ORD-1")).toEqual(cancelled);
    const [subscription] = await pg.db.sql<{ status: string }>(undefined, "SELECT status FROM subscriptions");
    expect(subscription?.status).toBe("canceled");
  });

  it("keeps what is reserved and refunded, and reports a captured amount below it", async () => {
    await load(pg.db, oneOrder());
    await spend(pg.db, 3000n, 4000n);
    const findings: BelowReserved[] = [];
    await load(pg.db, oneOrder({ payment: { paymentIntent: "pi_1", captured: 7000 } }), findings);
    expect(findings).toEqual([]);
    await load(pg.db, oneOrder({ payment: { paymentIntent: "pi_1", captured: 6999 } }), findings);
    expect(findings).toMatchObject([
      { orderRef: "ORD-1", capturedBefore: 7000n, captured: 6999n, reserved: 3000n, refunded: 4000n },
    ]);
    expect((await getOrder(pg.db, "ORD-1"))?.payment).toMatchObject({
      captured: 6999n,
      reserved: 3000n,
      refundable: -1n,
    });
    await load(pg.db, oneOrder({ payment: { paymentIntent: "pi_1", captured: 6999 } }), findings);
    expect(findings).toHaveLength(1);
  });

  it("is undone as a whole when the incident cannot be recorded", async () => {
    await load(pg.db, oneOrder());
    await spend(pg.db, 3000n, 0n);
    const failing = {
      push: () => {
        throw new Error("no room for incidents");
      },
    } as unknown as BelowReserved[];
    await expect(
      load(pg.db, oneOrder({ payment: { paymentIntent: "pi_1", captured: 1 } }), failing),
    ).rejects.toThrow("no room");
    expect((await getOrder(pg.db, "ORD-1"))?.payment?.captured).toBe(10000n);
  });

  it("does not exchange the payment under money that is set aside", async () => {
    await load(pg.db, oneOrder());
    await load(pg.db, oneOrder({ payment: { paymentIntent: "pi_2", captured: 10000 } }));
    await spend(pg.db, 1n, 0n);
    expect(await problems(oneOrder())).toEqual([
      "orders[0].payment.paymentIntent: cannot change: money of this payment is refunded or reserved",
    ]);
    expect(
      await problems(oneOrder({ currency: "USD", payment: { paymentIntent: "pi_2", captured: 10000 } })),
    ).toEqual(["orders[0].currency: cannot change: money of this order is refunded or reserved"]);
  });
});

describe("a shop file with a mistake", () => {
  it.each<[string, unknown, string]>([
    [
      "decimal amount",
      oneOrder({ payment: { paymentIntent: "pi", captured: 100.5 } }),
      "orders[0].payment.captured: must be a whole number",
    ],
    [
      "negative amount",
      oneOrder({ items: [{ ref: "i", unitAmount: -1 }] }),
      "orders[0].items[0].unitAmount: must not be negative",
    ],
    [
      "amount as text",
      oneOrder({ shippingAmount: "499" }),
      "orders[0].shippingAmount: must be a whole number",
    ],
    ["unknown status", oneOrder({ status: "lost" }), "orders[0].status:"],
    ["unknown currency", oneOrder({ currency: "gbp" }), "orders[0].currency: is not a currency code"],
    [
      "time without a zone",
      oneOrder({ placedAt: "2026-11-02T09:00:00" }),
      "orders[0].placedAt: must be a time with its zone",
    ],
    ["unknown customer", oneOrder({ customer: "CUS-9" }), 'orders[0].customer: there is no customer "CUS-9"'],
    [
      "same item twice",
      oneOrder({
        items: [
          { ref: "i", unitAmount: 1 },
          { ref: "i", unitAmount: 1 },
        ],
      }),
      'orders[0].items[1].ref: item "i" is there twice',
    ],
    ["empty reference", oneOrder({ ref: " " }), "orders[0].ref: must not be empty"],
    ["no object", [], "the file: Invalid input"],
    ["no email", { customers: [{ ref: "C", name: "n" }] }, "customers[0].email:"],
  ])("%s: nothing is imported and the place is named", async (_what, content, expected) => {
    const said = await problems(content);
    expect(said.join("\n")).toContain(expected);
    expect(await counts()).toBe(0);
  });

  it("in its last order imports none of the others", async () => {
    const good = oneOrder();
    const bad = {
      ...good,
      orders: [...good.orders, { ...good.orders[0], ref: "ORD-2", customer: "CUS-9", payment: null }],
    };
    expect(await problems(bad)).toHaveLength(1);
    expect(await counts()).toBe(0);
  });

  it("names keys that it does not know and imports the rest", async () => {
    const { ignoredKeys } = await load(pg.db, oneOrder({ colour: "blue", note: 1 }));
    expect(ignoredKeys).toEqual(["orders[0].colour", "orders[0].note"]);
    expect(await counts()).toBe(2);
  });

  it.each<[string, object, string]>([
    [
      "nothing that the format knows",
      {},
      'the file: has none of "customers", "orders", "subscriptions", "helpArticles"',
    ],
    [
      "a key at the top that the format does not know",
      { ...oneOrder(), bad: 1 },
      'bad: is no key of the format: "customers", "orders", "subscriptions", "helpArticles" are',
    ],
    [
      "a misspelt key at the top",
      { order: oneOrder().orders },
      'order: is no key of the format: "orders" is',
    ],
    [
      "a misspelt key below",
      oneOrder({ deliveredAt: undefined, deliverdAt: "2026-11-02" }),
      'orders[0].deliverdAt: is no key of the format: "deliveredAt" is',
    ],
    [
      "a key in other writing",
      oneOrder({ shipping_amount: 500 }),
      'orders[0].shipping_amount: is no key of the format: "shippingAmount" is',
    ],
  ])("with %s is not imported, and its place is named", async (_what, content, said) => {
    expect(await problems(content)).toEqual([said]);
    expect(await counts()).toBe(0);
  });

  it("that uses another order's payment is refused by the database, whole", async () => {
    await load(pg.db, oneOrder());
    const second = oneOrder({ ref: "ORD-2" });
    await expect(load(pg.db, second)).rejects.toMatchObject({ code: "23505" });
    expect(await getOrder(pg.db, "ORD-2")).toBeNull();
  });
});

describe("the demo shop", () => {
  it("is loaded whole, twice on two days, with the orders that the contract names", async () => {
    await load(pg.db, demoShop({ today: new Date("2026-11-20T15:00:00Z") }));
    await load(pg.db, demoShop({ today: new Date("2026-11-21T01:00:00Z") }));
    const rows = await pg.db.sql<{
      ref: string;
      who: string;
      status: string;
      captured: bigint;
      currency: string;
    }>(
      undefined,
      `SELECT o.ref, c.name AS who, o.status, p.captured, o.currency FROM orders o JOIN customers c ON c.id = o.customer_id
       JOIN payments p ON p.order_id = o.id WHERE o.ref = ANY($1) ORDER BY o.ref`,
      [["A-4471", "A-4472", "B-9001", "ORD-10042", "ORD-1001", "ORD-1002", "ORD-2001", "ORDER-100"]],
    );
    expect(
      rows.map(({ ref, who, status, captured, currency }) => [ref, who, status, captured, currency]),
    ).toEqual([
      ["A-4471", "Alice Moreau", "packed", 4850n, "GBP"],
      ["A-4472", "Alice Moreau", "dispatched", 21900n, "GBP"],
      ["B-9001", "Bob Lindqvist", "packed", 8900n, "GBP"],
      ["ORD-1001", "Grace Adeyemi", "delivered", 7900n, "USD"],
      ["ORD-1002", "Grace Adeyemi", "delivered", 33000n, "USD"],
      ["ORD-10042", "Tom Whitfield", "delivered", 18000n, "GBP"],
      ["ORD-2001", "Dana Petrov", "delivered", 6400n, "USD"],
      ["ORDER-100", "Maya Chen", "delivered", 2500n, "USD"],
    ]);
  });
});

describe("two imports at once", () => {
  it("happen one after the other", async () => {
    const many = (captured: number): object => ({
      customers: [{ ref: "CUS-1", name: `n${captured}`, email: "a@b.example" }],
      orders: Array.from({ length: 40 }, (_, i) => ({
        ...oneOrder().orders[0],
        ref: `ORD-${i}`,
        payment: { paymentIntent: `pi_${i}`, captured },
      })),
    });
    const other = pg.openAnother();
    await Promise.all([
      load(pg.db, many(1)),
      load(other, many(2)),
      load(pg.db, many(3)),
      load(other, many(4)),
    ]);
    const rows = await pg.db.sql<{ captured: bigint }>(undefined, "SELECT DISTINCT captured FROM payments");
    expect(rows).toHaveLength(1);
  });
});
