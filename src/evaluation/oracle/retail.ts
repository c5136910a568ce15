/** A retail shop of third parties with tasks whose right effects are known to the cent, as our shop and our calls. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";
import type { ShopFileInput } from "../../shop/index.js";

const cents = z.int().nonnegative();
const customersSchema = z.array(
  z.object({ id: z.string(), first_name: z.string(), last_name: z.string(), email: z.string() }),
);
const ordersSchema = z.array(
  z.object({
    id: z.string(),
    customer: z.string(),
    status: z.enum(["pending", "processed", "delivered", "cancelled"]),
    items: z.array(z.object({ item_id: z.string(), name: z.string(), price_cents: cents })),
    total_cents: cents,
  }),
);
const effectSchema = z.object({
  type: z.enum(["cancel_order", "refund_items"]),
  order: z.string(),
  item_ids: z.array(z.string()).default([]),
  refund_total_cents: cents,
});
const tasksSchema = z.array(
  z.object({
    id: z.string(),
    customer: z.string(),
    in_scope: z.boolean(),
    effects: z.array(effectSchema),
  }),
);

export type RetailOrder = z.output<typeof ordersSchema>[number];
export type RetailTask = z.output<typeof tasksSchema>[number];
export type RetailEffect = z.output<typeof effectSchema>;

export interface Retail {
  readonly customers: z.output<typeof customersSchema>;
  readonly orders: ReadonlyMap<string, RetailOrder>;
  /** Those whose every effect is one that the product has. */
  readonly tasks: readonly RetailTask[];
}

/** Reads `customers.json`, `orders.json` and `tasks.json` of `dir`. */
export function readRetail(dir: string): Retail {
  const read = <T>(name: string, schema: z.ZodType<T>): T =>
    schema.parse(JSON.parse(readFileSync(path.join(dir, name), "utf8")));
  return {
    customers: read("customers.json", customersSchema),
    orders: new Map(read("orders.json", ordersSchema).map((order) => [order.id, order])),
    tasks: read("tasks.json", tasksSchema).filter(({ in_scope }) => in_scope),
  };
}

const STATUS = {
  pending: "placed",
  processed: "packed",
  delivered: "delivered",
  cancelled: "cancelled",
} as const satisfies Record<RetailOrder["status"], string>;

const CURRENCY = "USD";
const DAY_MS = 86_400_000;

export const paymentIntentOf = (orderRef: string): string => `pi_${orderRef.replace("#", "")}`;

/** References of an order's lines: an article that was bought twice has two. */
export function lineRefs({ items }: Pick<RetailOrder, "items">): string[] {
  const bought = new Map<string, number>();
  return items.map(({ item_id }) => {
    const times = (bought.get(item_id) ?? 0) + 1;
    bought.set(item_id, times);
    return times === 1 ? item_id : `${item_id}-${times}`;
  });
}

/** These customers with their orders. The data has no dates: everything is of the last days. */
export function retailShop(retail: Retail, customers: ReadonlySet<string>, now: Date): ShopFileInput {
  const ago = (days: number): string => new Date(now.getTime() - days * DAY_MS).toISOString();
  return {
    customers: retail.customers
      .filter(({ id }) => customers.has(id))
      .map(({ id, first_name, last_name, email }) => ({
        ref: id,
        name: `${first_name} ${last_name}`,
        email,
      })),
    orders: [...retail.orders.values()]
      .filter(({ customer }) => customers.has(customer))
      .map((order) => {
        const refs = lineRefs(order);
        return {
          ref: order.id,
          customer: order.customer,
          status: STATUS[order.status],
          currency: CURRENCY,
          placedAt: ago(5),
          ...(order.status === "delivered" ? { deliveredAt: ago(2) } : {}),
          ...(order.status === "cancelled" ? { cancelledAt: ago(2) } : {}),
          items: order.items.map(({ name, price_cents }, index) => ({
            ref: refs[index] ?? "",
            name,
            unitAmount: price_cents,
          })),
          payment: { paymentIntent: paymentIntentOf(order.id), captured: order.total_cents },
        };
      }),
  };
}

/** Tasks in rounds, so that no order is touched twice in one round: each round finds the shop as the file has it. */
export function inRounds(tasks: readonly RetailTask[]): RetailTask[][] {
  const rounds: { tasks: RetailTask[]; touched: Set<string> }[] = [];
  for (const task of tasks) {
    const orders = task.effects.map(({ order }) => order);
    let round = rounds.find(({ touched }) => orders.every((order) => !touched.has(order)));
    if (round === undefined) {
      round = { tasks: [], touched: new Set() };
      rounds.push(round);
    }
    round.tasks.push(task);
    for (const order of orders) round.touched.add(order);
  }
  return rounds.map((round) => round.tasks);
}
