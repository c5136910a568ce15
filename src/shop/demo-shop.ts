/**
 * The demo shop: an outdoor shop with the orders that the product's stories speak of (CONTRACT §7). Every date is relative
 * to the day it is loaded, so that the policy's windows are open whenever somebody tries it.
 */
import { DEMO_HELP_ARTICLES } from "./demo-help.js";
import { parseShopFile, type ShopFile, type ShopFileInput } from "./shop-file.js";

type OrderInput = NonNullable<ShopFileInput["orders"]>[number];
type ItemInput = NonNullable<OrderInput["items"]>[number];

const DAY_MS = 86_400_000;

/** The shop file of the demo, with dates relative to `today`. The same day gives the same file. */
export function demoShop(params: { readonly today: Date }): ShopFile {
  const midnight = Math.floor(params.today.getTime() / DAY_MS) * DAY_MS;
  /** `days` days before today, at `hour` o'clock UTC. */
  const ago = (days: number, hour = 9): string =>
    new Date(midnight - days * DAY_MS + hour * 3_600_000).toISOString();
  const parsed = parseShopFile({
    customers: DEMO_CUSTOMERS,
    orders: demoOrders(ago),
    subscriptions: [
      subscription("SUB-1", "CUS-7", "Trail Club, monthly", "sub_demo_1", ago(-17)),
      subscription("SUB-2", "CUS-1", "Trail Club, yearly", "sub_demo_2", ago(-203)),
      subscription("SUB-3", "CUS-5", "Coffee for the hut, monthly", "sub_demo_3", ago(-4)),
    ],
    helpArticles: DEMO_HELP_ARTICLES,
  } satisfies ShopFileInput);
  if (!parsed.ok)
    throw new Error(`the demo shop is not a valid shop file: ${JSON.stringify(parsed.problems)}`);
  return parsed.file;
}

const DEMO_CUSTOMERS: ShopFileInput["customers"] = [
  { ref: "CUS-1", name: "Alice Moreau", email: "alice@shop.example" },
  { ref: "CUS-2", name: "Bob Lindqvist", email: "bob@shop.example" },
  { ref: "CUS-3", name: "Grace Adeyemi", email: "grace@shop.example" },
  { ref: "CUS-4", name: "Kenji Sato", email: "kenji@shop.example" },
  { ref: "CUS-5", name: "Zoë O'Brien", email: "zoe@shop.example" },
  { ref: "CUS-6", name: "Dana Petrov", email: "dana@shop.example" },
  { ref: "CUS-7", name: "Tom Whitfield", email: "tom.w@shop.example" },
  { ref: "CUS-8", name: "Pat Riley", email: "pat@shop.example" },
  { ref: "CUS-9", name: "Pat Rowan", email: "Pat@Shop.example" },
  { ref: "CUS-10", name: "Noura Al-Sabah", email: "noura@shop.example" },
  { ref: "CUS-11", name: "Maya Chen", email: "maya@shop.example" },
  { ref: "CUS-12", name: "Tomasz Whitmore", email: "tomasz@shop.example" },
];

type Ago = (days: number, hour?: number) => string;

function demoOrders(ago: Ago): OrderInput[] {
  return [
    // Stories: a refund above the limit, and everything that can happen to it
    order("ORD-10042", "CUS-7", "GBP", [item("JKT-1", "Storm jacket, blue", 18_000)], {
      ...delivered(ago, 6, "RM100420042GB"),
    }),
    // Stories: cancelling in time, too late, and somebody else's
    order(
      "A-4471",
      "CUS-1",
      "GBP",
      [item("BTL-2", "Steel bottle", 2_450), item("CUP-1", "Enamel cup", 1_200, 2)],
      {
        status: "packed",
        placedAt: ago(1),
      },
    ),
    order(
      "A-4472",
      "CUS-1",
      "GBP",
      [item("TNT-2", "Two-person tent", 21_900)],
      dispatched(ago, 3, "RM447200001GB"),
    ),
    order("B-9001", "CUS-2", "GBP", [item("BAG-35", "Rucksack, 35 litres", 8_900)], {
      status: "packed",
      placedAt: ago(1, 14),
    }),
    order(
      "B-9002",
      "CUS-2",
      "GBP",
      [item("SCK-3", "Wool socks", 820, 3)],
      delivered(ago, 9, "RM900200002GB"),
    ),
    // Stories: small and large refunds in dollars
    order(
      "ORD-1001",
      "CUS-3",
      "USD",
      [item("LMP-1", "Head lamp", 4_900), item("BAT-4", "Battery pack", 3_000)],
      delivered(ago, 4, "1Z1001001"),
    ),
    order(
      "ORD-1002",
      "CUS-3",
      "USD",
      [item("STV-2", "Camping stove set", 33_000)],
      delivered(ago, 8, "1Z1002002"),
    ),
    order("ORD-2001", "CUS-6", "USD", [item("MAT-1", "Sleeping mat", 6_400)], delivered(ago, 5, "1Z2001001")),
    order("ORDER-100", "CUS-11", "USD", [item("MAP-7", "Trail map", 2_500)], delivered(ago, 3, "1Z1000100")),
    // Currencies without decimals and with three
    order("ORD-JP1", "CUS-4", "JPY", [item("FAN-1", "Folding fan", 9_899)], delivered(ago, 7, "JP0001JP")),
    order(
      "ORD-KW1",
      "CUS-10",
      "KWD",
      [item("FLK-1", "Thermos flask", 12_345)],
      delivered(ago, 7, "KW0001KW"),
    ),
    // Variety: several items, shipping, too old, cancelled, returned, one payment for a "double charge", a large one
    order(
      "ORD-10050",
      "CUS-7",
      "GBP",
      [item("BTS-9", "Walking boots", 9_500), item("LCE-1", "Laces", 450, 2), item("WAX-1", "Boot wax", 820)],
      { ...delivered(ago, 12, "RM100500050GB"), shippingAmount: 499 },
    ),
    order(
      "ORD-10021",
      "CUS-7",
      "GBP",
      [item("HAT-1", "Wool hat", 1_900)],
      delivered(ago, 45, "RM100210021GB"),
    ),
    order("ORD-10060", "CUS-8", "GBP", [item("GLV-1", "Gloves", 3_200)], {
      status: "cancelled",
      placedAt: ago(10),
      cancelledAt: ago(9),
    }),
    order("ORD-10061", "CUS-9", "GBP", [item("GLV-2", "Mittens", 2_800)], delivered(ago, 2, "RM100610061GB")),
    order("ORD-10070", "CUS-12", "GBP", [item("ROP-60", "Climbing rope, 60 m", 14_505)], {
      ...delivered(ago, 15, "RM100700070GB"),
      status: "returned",
    }),
    order("ORD-10080", "CUS-5", "GBP", [item("CFE-1", "Coffee beans, 1 kg", 1_497, 3)], {
      ...delivered(ago, 3, "RM100800080GB"),
    }),
    order(
      "ORD-10081",
      "CUS-5",
      "GBP",
      [item("GRD-1", "Hand grinder", 6_200)],
      dispatched(ago, 5, "RM100810081GB"),
    ),
    order(
      "ORD-3001",
      "CUS-11",
      "USD",
      [item("KYK-1", "Inflatable kayak", 149_900)],
      delivered(ago, 11, "1Z3001001"),
    ),
    order(
      "ORD-BIG",
      "CUS-6",
      "GBP",
      [item("EXP-1", "Expedition tent", 250_000)],
      delivered(ago, 10, "RM0BIG0001GB"),
    ),
    order("ORD-10090", "CUS-12", "GBP", [item("PLN-1", "Walking poles", 5_400)], {
      status: "placed",
      placedAt: ago(0, 7),
    }),
  ];
}

function order(
  ref: string,
  customer: string,
  currency: string,
  items: readonly ItemInput[],
  rest: Omit<OrderInput, "ref" | "customer" | "currency" | "items" | "payment">,
): OrderInput {
  const goods = items.reduce((sum, { quantity, unitAmount }) => sum + (quantity ?? 1) * unitAmount, 0);
  return {
    ...rest,
    ref,
    customer,
    currency,
    items: items.map((each, index) => ({ ...each, ref: `${ref}-${index + 1}` })),
    payment: {
      paymentIntent: `pi_demo_${ref.toLowerCase().replaceAll("-", "_")}`,
      captured: goods + (rest.shippingAmount ?? 0),
    },
  };
}

const item = (sku: string, name: string, unitAmount: number, quantity = 1): ItemInput => ({
  ref: sku,
  sku,
  name,
  quantity,
  unitAmount,
});

function delivered(
  ago: Ago,
  days: number,
  tracking: string,
): Omit<OrderInput, "ref" | "customer" | "currency"> {
  const at = ago(days, 13);
  return {
    status: "delivered",
    placedAt: ago(days + 4),
    deliveredAt: at,
    shipments: [{ carrier: "Royal Post", tracking, status: "delivered", updatedAt: at }],
  };
}

function dispatched(
  ago: Ago,
  days: number,
  tracking: string,
): Omit<OrderInput, "ref" | "customer" | "currency"> {
  return {
    status: "dispatched",
    placedAt: ago(days),
    shipments: [{ carrier: "Royal Post", tracking, status: "in transit", updatedAt: ago(1, 18) }],
  };
}

const subscription = (
  ref: string,
  customer: string,
  plan: string,
  providerRef: string,
  currentPeriodEnd: string,
) => ({
  ref,
  customer,
  plan,
  status: "active",
  providerRef,
  currentPeriodEnd,
});
