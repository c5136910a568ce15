/**
 * From a valid write call to an intent that code computed: scope checked, money worked out from the shop's rows. What the
 * ledger does with it (balance under lock, policy, identity) is the ledger's.
 */

import { assertNever } from "../../domain/assert-never.js";
import type { Landing } from "../../domain/identity.js";
import type { Intent, Operation, RefundScope } from "../../domain/operation.js";
import type { Db, Tx } from "../../domain/ports/database.js";
import type { OrderFacts } from "../ports.js";
import { namedBy, outOfScope, type Scope, subscriptionOutOfScope } from "../scope.js";
import type { ToolInput, WriteCall } from "./catalogue.js";
import { findOrder, type ReadCtx, refundableMinor } from "./reads.js";

export type Computed =
  | {
      ok: true;
      intent: Intent;
      landing: Landing;
      itemRefs: readonly string[];
      refundScope: RefundScope | null;
      reason: string;
    }
  | ({ ok: false } & Refused);

/** A refusal by code before the gate: which rule, and the sentence for the planner. */
export interface Refused {
  rule: RefusedBy;
  sentence: string;
}
export type RefusedBy =
  | "input"
  | "no_customer"
  /** Not among the orders or subscriptions of the ticket's customer, or not there at all. */
  | "scope"
  | "not_looked_up"
  | "no_payment"
  | "unknown_line"
  | "nothing_to_refund";

export interface WriteRules {
  scope: Extract<Scope, { kind: "customer" }>;
  /** Orders (in capitals) that this run has looked up in an earlier turn; null: not asked for (a person clicked). */
  lookedUp: ReadonlySet<string> | null;
}

const no = (rule: RefusedBy, sentence: string): Computed => ({ ok: false, rule, sentence });

/** Computes what the call asks for, or a sentence that the model can act on. */
export async function computeWrite(
  ctx: ReadCtx,
  db: Db | Tx,
  rules: WriteRules,
  call: WriteCall,
): Promise<Computed> {
  switch (call.name) {
    case "cancel_subscription":
      return cancelSubscription(ctx, db, rules, call.input);
    case "issue_refund":
    case "cancel_order": {
      const reference = call.input.order_reference;
      const order = await findOrder(ctx, db, reference);
      if (order === null || order.customerRef !== rules.scope.customerRef) {
        if (order !== null) ctx.forbidden("scope");
        return no("scope", outOfScope(reference));
      }
      if (rules.lookedUp !== null && !rules.lookedUp.has(order.ref.toUpperCase())) {
        return no(
          "not_looked_up",
          `Order ${order.ref} has not been looked up in this run. Call get_order for it first, read the result, then decide. Nothing was done.`,
        );
      }
      return call.name === "cancel_order"
        ? cancelOrder(order, call.input.reason)
        : refund(ctx, db, order, call.input);
    }
    default:
      return assertNever(call, "write tool");
  }
}

function intentOn(order: OrderFacts, kind: Intent["kind"], amountMinor: bigint): Intent {
  return {
    kind,
    customerRef: order.customerRef,
    orderRef: order.ref,
    subscriptionRef: null,
    amountMinor,
    currency: order.currency,
    atPeriodEnd: null,
    occurrence: 1,
  };
}

function cancelOrder(order: OrderFacts, reason: string): Computed {
  return {
    ok: true,
    intent: intentOn(order, "cancel_order", 0n),
    landing: { paymentIntent: null, providerSubscription: null },
    itemRefs: [],
    refundScope: null,
    reason,
  };
}

async function refund(
  ctx: ReadCtx,
  db: Db | Tx,
  order: OrderFacts,
  input: ToolInput<"issue_refund">,
): Promise<Computed> {
  if (order.payment === null)
    return no("no_payment", `There is no payment on order ${order.ref}: nothing can be refunded.`);
  const amount = await refundAmount(ctx, db, order, input);
  if ("rule" in amount) return { ok: false, ...amount };
  return {
    ok: true,
    intent: { ...intentOn(order, "refund", amount.minor), occurrence: amount.occurrence },
    landing: { paymentIntent: order.payment.paymentIntent, providerSubscription: null },
    itemRefs: amount.itemRefs,
    refundScope: input.scope,
    reason: input.reason,
  };
}

interface Amount {
  minor: bigint;
  occurrence: number;
  itemRefs: readonly string[];
}

async function refundAmount(
  ctx: ReadCtx,
  db: Db | Tx,
  order: OrderFacts,
  input: ToolInput<"issue_refund">,
): Promise<Amount | Refused> {
  switch (input.scope) {
    case "amount":
      return { minor: BigInt(input.amount_minor), occurrence: 1, itemRefs: [] };
    case "items":
      return itemsAmount(order, input.item_references);
    case "everything_left": {
      const left = refundableMinor(order);
      if (left > 0n) return { minor: left, occurrence: 1, itemRefs: [] };
      // Nothing is left because it was, or is being, refunded: then this is that refund, asked for again.
      const earlier = lastRefund(await ctx.gate.liveOn(db, { kind: "refund", orderRef: order.ref }));
      if (earlier === null) {
        return { rule: "nothing_to_refund", sentence: `Nothing is left to refund on order ${order.ref}.` };
      }
      return { minor: earlier.amountMinor, occurrence: earlier.occurrence, itemRefs: earlier.itemRefs };
    }
    default:
      return assertNever(input.scope, "refund scope");
  }
}

const lastRefund = (live: readonly Operation[]): Operation | null =>
  live.filter((operation) => operation.status !== "REJECTED").at(-1) ?? null;

function itemsAmount(order: OrderFacts, references: readonly string[]): Amount | Refused {
  let minor = 0n;
  const itemRefs: string[] = [];
  for (const reference of references) {
    const item = order.items.find((line) => line.ref.toUpperCase() === reference.toUpperCase());
    if (item === undefined) {
      const known = order.items
        .map((line) => line.ref)
        .slice(0, 30)
        .join(", ");
      return {
        rule: "unknown_line",
        sentence: `Order ${order.ref} has no line ${namedBy(reference)}. Its lines are: ${known}. Nothing was done.`,
      };
    }
    minor += item.unitMinor * BigInt(item.quantity);
    itemRefs.push(item.ref);
  }
  if (minor === 0n) {
    return {
      rule: "nothing_to_refund",
      sentence: "The lines named cost nothing: there is nothing to refund.",
    };
  }
  return { minor, occurrence: 1, itemRefs };
}

async function cancelSubscription(
  ctx: ReadCtx,
  db: Db | Tx,
  rules: WriteRules,
  input: ToolInput<"cancel_subscription">,
): Promise<Computed> {
  const reference = input.subscription_reference;
  const subscription =
    (await ctx.shop.subscription(db, reference)) ??
    (await ctx.shop.subscription(db, reference.toUpperCase()));
  if (subscription === null || subscription.customerRef !== rules.scope.customerRef) {
    if (subscription !== null) ctx.forbidden("scope");
    return no("scope", subscriptionOutOfScope(reference));
  }
  return {
    ok: true,
    intent: {
      kind: "cancel_subscription",
      customerRef: subscription.customerRef,
      orderRef: null,
      subscriptionRef: subscription.ref,
      amountMinor: 0n,
      currency: "",
      atPeriodEnd: input.at_period_end,
      occurrence: 1,
    },
    landing: { paymentIntent: null, providerSubscription: subscription.providerRef },
    itemRefs: [],
    refundScope: null,
    reason: input.reason,
  };
}
