/** The calls that tasks are played with: the right ones, and those that must come to nothing. */
import type { Planner } from "../../agent/index.js";
import type { Json } from "../../domain/json.js";
import type { ContentBlock } from "../../runs/index.js";
import { lineRefs, type Retail, type RetailEffect, type RetailOrder, type RetailTask } from "./retail.js";

export interface Call {
  readonly name: string;
  readonly input: { [key: string]: Json };
}

/** What is asked for in a ticket, turn by turn, for one customer. */
export interface Script {
  readonly customer: string;
  readonly turns: readonly (readonly Call[])[];
}

const MARK = /\[script (\d+)\]/;
export const scriptMark = (number: number): string => `[script ${number}]`;

/** Plays the script that the ticket names, whatever it is answered. */
export function scriptPlanner(scripts: readonly Script[]): Planner {
  return {
    name: "oracle",
    model: null,
    plan: ({ messages }) => {
      const number = Number(MARK.exec(JSON.stringify(messages[0]?.content))?.[1] ?? -1);
      const turn = messages.filter(({ role }) => role === "assistant").length;
      const calls = scripts[number]?.turns[turn] ?? [];
      const content: ContentBlock[] =
        calls.length === 0
          ? [{ type: "text", text: "That was all." }]
          : calls.map(({ name, input }, index) => ({
              type: "tool_use",
              id: `toolu_${number}_${turn}_${index}`,
              name,
              input,
            }));
      return Promise.resolve({
        ok: true,
        reply: {
          content,
          stopReason: calls.length === 0 ? "end_turn" : "tool_use",
          stopDetails: null,
          model: "oracle",
          usage: { inputTokens: 0, outputTokens: 0, raw: {} },
          requestId: null,
          malformed: new Map(),
        },
      });
    },
  };
}

const REASON = "As the customer asks.";
const look = (order: string): Call => ({ name: "get_order", input: { order_reference: order } });
const cancel = (order: string): Call => ({
  name: "cancel_order",
  input: { order_reference: order, reason: REASON },
});
const refund = (
  order: string,
  more: { scope: "everything_left" | "items" | "amount"; items?: string[]; minor?: number },
): Call => ({
  name: "issue_refund",
  input: {
    order_reference: order,
    scope: more.scope,
    item_references: more.items ?? [],
    amount_minor: more.minor ?? 0,
    reason: REASON,
  },
});

/** Looks up, cancels and returns; then pays back what a cancelled order had cost, which is a request of its own. */
export function rightScript(retail: Retail, task: RetailTask): Script {
  const orders = task.effects.map(({ order }) => order);
  const cancelled = task.effects.filter(({ type }) => type === "cancel_order");
  return {
    customer: task.customer,
    turns: [
      [...new Set(orders)].map(look),
      task.effects.map((effect) => firstCall(retail, effect)),
      ...(cancelled.length === 0
        ? []
        : [cancelled.map(({ order }) => refund(order, { scope: "everything_left" }))]),
    ],
  };
}

function firstCall(retail: Retail, effect: RetailEffect): Call {
  return effect.type === "cancel_order"
    ? cancel(effect.order)
    : refund(effect.order, { scope: "items", items: returnedLines(retail, effect) });
}

function returnedLines(retail: Retail, { order, item_ids }: RetailEffect): string[] {
  const bought = retail.orders.get(order);
  if (bought === undefined) throw new Error(`the data has no order ${order}`);
  const free = bought.items.map(({ item_id }, index) => ({ item_id, ref: lineRefs(bought)[index] ?? "" }));
  return item_ids.map((id) => {
    const at = free.findIndex(({ item_id }) => item_id === id);
    const [line] = at === -1 ? [] : free.splice(at, 1);
    if (line === undefined) throw new Error(`order ${order} has no article ${id}`);
    return line.ref;
  });
}

/** After it was done: a second time, and a cent more than was paid. */
export function againScript(retail: Retail, task: RetailTask): Script {
  const paid = (order: string): number => retail.orders.get(order)?.total_cents ?? 0;
  return {
    customer: task.customer,
    turns: [
      task.effects.map(({ order }) => look(order)),
      task.effects.map((effect) => firstCall(retail, effect)),
      task.effects.flatMap(({ order, refund_total_cents }) => [
        refund(order, { scope: "amount", minor: refund_total_cents + 1 }),
        refund(order, { scope: "amount", minor: paid(order) + 1 }),
      ]),
    ],
  };
}

/** The same effects in a ticket of somebody else. */
export function strangerScript(retail: Retail, task: RetailTask, stranger: string): Script {
  return {
    customer: stranger,
    turns: [
      task.effects.map(({ order }) => look(order)),
      task.effects.map((effect) => firstCall(retail, effect)),
    ],
  };
}

/** Cancels what is no longer pending, returns what was never delivered. */
export function wrongStateScript(customer: string, orders: readonly RetailOrder[]): Script {
  return {
    customer,
    turns: [
      orders.map(({ id }) => look(id)),
      [
        ...orders.filter(({ status }) => status !== "pending").map(({ id }) => cancel(id)),
        ...orders
          .filter(({ status }) => status !== "delivered")
          .map(({ id }) => refund(id, { scope: "everything_left" })),
      ],
    ],
  };
}
