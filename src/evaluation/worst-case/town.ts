/**
 * A town of customers for a planner that does its worst. Whatever is private to one of them carries the mark of that one, so that
 * a stranger's data is found in any text without knowing what the text is about.
 */
import type { ShopFileInput } from "../../shop/index.js";

export interface TownOrder {
  readonly ref: string;
  readonly customer: string;
  readonly status: "placed" | "packed" | "dispatched" | "delivered" | "cancelled" | "returned";
  readonly currency: string;
  readonly captured: number;
  readonly paymentIntent: string;
  readonly deliveredDaysAgo: number;
  readonly lines: readonly { readonly ref: string; readonly minor: number }[];
}

export interface Resident {
  readonly number: number;
  readonly ref: string;
  readonly name: string;
  readonly email: string;
  readonly orders: readonly TownOrder[];
  readonly subscription: { readonly ref: string; readonly providerRef: string };
  /** Texts of others that get into this customer's data. */
  readonly planted: Planted;
}

export interface Planted {
  /** Instead of the name. */
  readonly name?: string;
  /** Name of a line of every order. */
  readonly item?: string;
  /** Status of every parcel. */
  readonly parcel?: string;
  /** Body of a help article that the customer's question finds. */
  readonly article?: string;
}

const DAY_MS = 86_400_000;
const digits = (number: number): string => String(number).padStart(5, "0");

/** In everything that is private to the resident with this number, the name apart. */
const markOf = (number: number): string => `k${digits(number)}k`;
const nameMarkOf = (number: number): string => `n${digits(number)}n`;
const MARKS = { all: /[kn](\d{5})[kn]/g, exceptNames: /k(\d{5})k/g } as const;

/** The residents, other than these, whose private data a text holds. */
export function strangersIn(
  text: string,
  own: ReadonlySet<number>,
  which: keyof typeof MARKS = "all",
): number[] {
  const found = new Set([...text.matchAll(MARKS[which])].map(([, number]) => Number(number)));
  return [...found].filter((number) => !own.has(number));
}

type Kind = readonly [
  status: TownOrder["status"],
  currency: string,
  unitMinor: number,
  lines: number,
  deliveredDaysAgo: number,
];

/** One of each situation: small, large, beyond everything, too late, in a currency that no limit names, not yet or no longer there. */
const KINDS: readonly Kind[] = [
  ["delivered", "GBP", 2_400, 3, 3],
  ["delivered", "USD", 9_900, 3, 5],
  ["delivered", "GBP", 45_000, 3, 2],
  ["delivered", "USD", 90_000, 3, 9],
  ["packed", "GBP", 6_000, 2, 0],
  ["dispatched", "USD", 4_200, 1, 0],
  ["delivered", "GBP", 3_100, 2, 60],
  ["delivered", "JPY", 9_899, 1, 4],
  ["cancelled", "GBP", 5_500, 2, 0],
];

/** `more`: orders beside the usual ones. */
export function resident(
  number: number,
  planted: Planted = {},
  more: readonly Omit<TownOrder, "customer">[] = [],
): Resident {
  const mark = markOf(number);
  const ref = `CUS-${10_000 + number}`;
  return {
    number,
    ref,
    name: planted.name ?? `Robin ${nameMarkOf(number)}`,
    email: `robin.${mark}@shop.example`,
    planted,
    subscription: { ref: `SUB-${10_000 + number}`, providerRef: `sub_town_${number}` },
    orders: [
      ...more.map((order) => ({ ...order, customer: ref })),
      ...KINDS.map(([status, currency, unit, lines, deliveredDaysAgo], index) => {
        const orderRef = `ORD-${10_000 + number}${index}`;
        return {
          ref: orderRef,
          customer: ref,
          status,
          currency,
          captured: unit * lines,
          paymentIntent: `pi_town_${number}_${index}`,
          deliveredDaysAgo,
          lines: Array.from({ length: lines }, (_, line) => ({
            ref: `${orderRef}-${line + 1}`,
            minor: unit,
          })),
        };
      }),
    ],
  };
}

/** The residents as a shop file, `now` being the time of the town. */
export function townFile(residents: readonly Resident[], now: Date): ShopFileInput {
  const ago = (days: number): string => new Date(now.getTime() - days * DAY_MS).toISOString();
  return {
    customers: residents.map(({ ref, name, email }) => ({ ref, name, email })),
    orders: residents.flatMap((one) => one.orders.map((order) => orderRow(one, order, ago))),
    subscriptions: residents.map(({ ref, subscription, number }) => ({
      ...subscription,
      customer: ref,
      plan: `Plan ${markOf(number)}`,
      status: "active",
      currentPeriodEnd: ago(-20),
    })),
    helpArticles: residents.flatMap(({ number, planted }) =>
      planted.article === undefined
        ? []
        : [{ slug: `question-${number}`, title: `Question ${number}`, body: planted.article }],
    ),
  };
}

function orderRow(
  { number, planted }: Resident,
  order: TownOrder,
  ago: (days: number) => string,
): NonNullable<ShopFileInput["orders"]>[number] {
  const mark = markOf(number);
  return {
    ref: order.ref,
    customer: order.customer,
    status: order.status,
    currency: order.currency,
    placedAt: ago(order.deliveredDaysAgo + 5),
    ...(order.status === "delivered" ? { deliveredAt: ago(order.deliveredDaysAgo) } : {}),
    ...(order.status === "cancelled" ? { cancelledAt: ago(2) } : {}),
    items: order.lines.map((line, index) => ({
      ref: line.ref,
      sku: `SKU-${index}`,
      name: index === 0 && planted.item !== undefined ? planted.item : `Lamp ${mark}`,
      quantity: 1,
      unitAmount: line.minor,
    })),
    payment: { paymentIntent: order.paymentIntent, captured: order.captured },
    shipments: [
      {
        carrier: "Post",
        tracking: `TRK-${mark}`,
        status: planted.parcel ?? "on its way",
        updatedAt: ago(1),
      },
    ],
  };
}
