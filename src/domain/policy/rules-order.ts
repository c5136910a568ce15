/** Rules about the order, its age, who asked and what was asked before. */
import type { OperationKind } from "../operation.js";
import type { RuleVerdict } from "./answer.js";
import type { Facts, OrderFacts, Proposal } from "./facts.js";
import type { KindRules } from "./policy.js";
import { durationText, listText } from "./text.js";

const DAY_MS = 86_400_000;
const DONE = { refund: "refunded", cancel_order: "cancelled", cancel_subscription: "cancelled" } as const;

export function statusRule(kind: OperationKind, order: OrderFacts, rules: KindRules): RuleVerdict[] {
  if (!rules.orderStatuses.includes(order.status)) {
    const allowed = listText(rules.orderStatuses);
    const sentence = `Order ${order.ref} is ${order.status}; only an order that is ${allowed} can be ${DONE[kind]}.`;
    return [{ rule: "order_status", verdict: "refuse", sentence }];
  }
  if (kind === "refund" && order.status === "cancelled") {
    const sentence = `Order ${order.ref} is cancelled; a refund of a cancelled order always needs an approval.`;
    return [{ rule: "order_status", verdict: "hold", sentence }];
  }
  return [];
}

/** The window runs from the delivery, or the cancellation, or else from when the order was placed; the last day counts. */
export function windowRule(
  kind: OperationKind,
  order: OrderFacts,
  facts: Facts,
  rules: KindRules,
): RuleVerdict[] {
  if (rules.windowDays === null) return [];
  const { event, since } = windowStart(order);
  if (since === null) {
    const sentence = `It is not known when order ${order.ref} was ${event}, so its age cannot be checked.`;
    return [{ rule: "window", verdict: "hold", sentence }];
  }
  if (facts.now.getTime() - since.getTime() <= rules.windowDays * DAY_MS) return [];
  const window = durationText(rules.windowDays * 24);
  const day = since.toISOString().slice(0, 10);
  const sentence = `Order ${order.ref} was ${event} on ${day} (UTC), more than ${window} ago; it can no longer be ${DONE[kind]}.`;
  return [{ rule: "window", verdict: "refuse", sentence }];
}

function windowStart(order: OrderFacts): { event: string; since: Date | null } {
  const { status } = order;
  switch (status) {
    case "delivered":
    case "returned":
      return { event: "delivered", since: order.deliveredAt };
    case "cancelled":
      return { event: "cancelled", since: order.cancelledAt };
    case "placed":
    case "packed":
    case "dispatched":
      return { event: "placed", since: order.placedAt };
  }
}

/** True of the moment of the judgement; what people read later says how it is then. */
export const CUSTOMER_UNCONFIRMED = "The customer of this ticket was not confirmed when this was judged.";

export function bindingRule(facts: Facts): RuleVerdict[] {
  if (facts.bindingConfirmed) return [];
  return [{ rule: "binding", verdict: "hold", sentence: CUSTOMER_UNCONFIRMED }];
}

export function occurrenceRule(proposal: Proposal): RuleVerdict[] {
  if (proposal.occurrence <= 1) return [];
  const sentence = `The same ${EFFECT[proposal.kind]} was done before; this is number ${proposal.occurrence}.`;
  return [{ rule: "occurrence", verdict: "hold", sentence }];
}

const EFFECT = {
  refund: "refund",
  cancel_order: "cancellation",
  cancel_subscription: "cancellation",
} as const;

export function deniedRule(facts: Facts): RuleVerdict[] {
  if (facts.denied === null) return [];
  const sentence = "The same request was denied before.";
  return [{ rule: "successor", verdict: "hold", sentence }];
}

export function linesRule(facts: Facts): RuleVerdict[] {
  if (facts.linesTaken.length === 0) return [];
  const lines = listText([...facts.linesTaken].sort(), "and");
  const sentence = `Already refunded or reserved on this order: ${lines}.`;
  return [{ rule: "order_lines", verdict: "hold", sentence }];
}
