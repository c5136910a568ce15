import { beforeAll, describe, expect, it } from "vitest";
import { plainSlackText } from "../../src/domain/text/slack-text.js";
import {
  bindingFromText,
  demoShop,
  findCustomers,
  findOrder,
  findSubscription,
  ordersOf,
  searchHelpCentre,
  subscriptionsOf,
} from "../../src/shop/index.js";
import { withDatabase } from "../support/database.js";
import { load } from "./shop-context.js";

const pg = withDatabase({ reset: "never" });

beforeAll(async () => {
  await load(pg.db, demoShop({ today: new Date("2026-11-20T15:00:00Z") }));
});

const bound = async (raw: string): Promise<string> => {
  const binding = await bindingFromText(pg.db, plainSlackText(raw));
  switch (binding.found) {
    case "one":
      return `${binding.named.customer.name} ${binding.orderRefs.join(" ")}`.trim();
    case "several":
      return binding.candidates.map(({ customer }) => customer.name).join(" | ");
    case "none":
      return `none ${binding.unknown.join(" ")}`.trim();
  }
};

describe("the customer that a ticket's text is about", () => {
  it.each([
    ["ORD-1001 came broken, $20 back please", "Grace Adeyemi ORD-1001"],
    [
      "refund <mailto:tom.w@shop.example|tom.w@shop.example> order <tel:10042|ORD-10042> R&amp;D jacket",
      "Tom Whitfield ORD-10042",
    ],
    ["ord 10042 and ORD-10050", "Tom Whitfield ORD-10042 ORD-10050"],
    ["TOM.W@SHOP.EXAMPLE is angry", "Tom Whitfield"],
    ["please cancel SUB-1", "Tom Whitfield"],
    ["customer CUS-7", "Tom Whitfield"],
    ["A-4471 and B-9001 both wrong, refund both", "Alice Moreau | Bob Lindqvist"],
    ["refund pat@shop.example", "Pat Riley | Pat Rowan"],
    ["This is for alice@shop.example: please cancel order B-9001.", "Alice Moreau | Bob Lindqvist"],
    ["ORD-999 is broken", "none ORD-999"],
    ["refund nobody@shop.example", "none nobody@shop.example"],
    ["Tom Whitfield wants money", "none"],
    ["my parcel is late", "none"],
    ["   ", "none"],
  ])("%s", async (raw, expected) => {
    expect(await bound(raw)).toBe(expected);
  });
});

describe("finding customers", () => {
  const names = async (query: string): Promise<string[]> =>
    (await findCustomers(pg.db, query)).customers.map(({ name }) => name);

  it.each([
    ["CUS-7", ["Tom Whitfield"]],
    ["cus 7", ["Tom Whitfield"]],
    ["tom.w@shop.example", ["Tom Whitfield"]],
    ["Tom.W@Shop.Example", ["Tom Whitfield"]],
    ["whit", ["Tom Whitfield", "Tomasz Whitmore"]],
    ["o’brien", ["Zoë O'Brien"]],
    ["ZOE", ["Zoë O'Brien"]],
    ["moréau", ["Alice Moreau"]],
    ["pat@shop.example", ["Pat Riley", "Pat Rowan"]],
    ["%", []],
    ["__", []],
    ["a", []],
    ["", []],
    ["nobody at all", []],
  ])("by '%s'", async (query, expected) => {
    expect(await names(query)).toEqual(expected);
  });

  it("says when there are more than it lists", async () => {
    const found = await findCustomers(pg.db, "shop.example");
    expect(found.customers).toHaveLength(10);
    expect(found.more).toBe(true);
  });
});

describe("finding orders and subscriptions", () => {
  it.each([
    ["ORD-10042", "ORD-10042"],
    [" ord-10042 ", "ORD-10042"],
    ["#ORD-10042", "ORD-10042"],
    ["ORD–10042", "ORD-10042"],
    ["ORD 10042", "ORD-10042"],
    ["ord-jp1", "ORD-JP1"],
    ["ORD-9999999", null],
    ["", null],
    ["' OR 1=1 --", null],
  ])("'%s' is %s", async (typed, expected) => {
    expect((await findOrder(pg.db, typed))?.ref ?? null).toBe(expected);
  });

  it("gives an order with all its parts", async () => {
    const order = await findOrder(pg.db, "ORD-10050");
    expect(order).toMatchObject({
      shippingMinor: 499n,
      items: [
        { ref: "ORD-10050-1" },
        { ref: "ORD-10050-2", quantity: 2, unitMinor: 450n },
        { ref: "ORD-10050-3" },
      ],
      payment: { captured: 11719n, refundable: 11719n },
      shipments: [{ status: "delivered" }],
    });
  });

  it("lists a customer's orders and subscriptions", async () => {
    const tom = (await findCustomers(pg.db, "CUS-7")).customers[0];
    const orders = await ordersOf(pg.db, tom?.id ?? "");
    expect(orders.map(({ ref }) => ref)).toEqual(["ORD-10042", "ORD-10050", "ORD-10021"]);
    expect(await subscriptionsOf(pg.db, tom?.id ?? "")).toMatchObject([{ ref: "SUB-1", status: "active" }]);
    expect(await findSubscription(pg.db, "sub-1")).toMatchObject({
      ref: "SUB-1",
      customer: { ref: "CUS-7" },
    });
  });
});

describe("the help centre", () => {
  const first = async (question: string): Promise<string | undefined> =>
    (await searchHelpCentre(pg.db, question))[0]?.slug;

  it.each([
    ["How long can I return something?", "returns-window"],
    ["how mnay days to retrun an item", "returns-window"],
    ["when will the refund arrive on my card", "refund-time"],
    ["where is my parcel", "where-is-my-parcel"],
    ["wheres my parcle, the trakcing is stuck", "where-is-my-parcel"],
    ["it arrived borken", "damaged-items"],
    ["cancel my subscripton", "cancel-a-subscription"],
    ["i was charged twice!!", "duplicate-charge"],
    ["formal complant", "complaints"],
    ["change delivery adress", "change-address"],
  ])("%s", async (question, slug) => {
    expect(await first(question)).toBe(slug);
  });

  it("says nothing rather than something else", async () => {
    expect(await searchHelpCentre(pg.db, "quantum chromodynamics lattice")).toEqual([]);
    expect(await searchHelpCentre(pg.db, "  ")).toEqual([]);
    expect(await searchHelpCentre(pg.db, "the of and")).toEqual([]);
  });

  it("answers at most three, and any text without an error", async () => {
    expect((await searchHelpCentre(pg.db, "refund order parcel item delivery")).length).toBe(3);
    await searchHelpCentre(pg.db, `'; DROP TABLE orders; -- & | ! ( ) : * <-> ${"x".repeat(5000)}`);
  });
});
