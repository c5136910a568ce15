/** What the policy gate is told. Gathered by `src/policy` in the transaction that reserves; the gate itself reads nothing. */
import type { OperationKind } from "../operation.js";
import type { OrderStatus } from "../order.js";
import type { KindRules, TotalPer, TotalRule } from "./policy.js";

/** What is proposed, as code computed it. */
export interface Proposal {
  readonly kind: OperationKind;
  /** Minor units; 0n for effects that move no money. */
  readonly amountMinor: bigint;
  /** ISO 4217; "" for a subscription. */
  readonly currency: string;
  /** 1, unless a person made it a further one. */
  readonly occurrence: number;
}

export interface OrderFacts {
  readonly ref: string;
  readonly status: OrderStatus;
  /** Currency of its payment. */
  readonly currency: string;
  readonly placedAt: Date;
  readonly deliveredAt: Date | null;
  readonly cancelledAt: Date | null;
}

/** What counts already under one total, this proposal not included. Amounts only in the proposal's currency. */
export interface TotalFact {
  readonly per: TotalPer;
  readonly windowHours: number;
  /** Name of the scope, as in `total_entries`: two filers are two facts. */
  readonly scope: string;
  readonly count: number;
  readonly amountMinor: bigint;
}

/** An earlier operation of the same intent that a person denied. */
export interface Denial {
  readonly operationId: string;
  /** Slack user id. */
  readonly by: string;
  readonly at: Date;
  readonly note: string | null;
}

export interface Facts {
  /** The database's time. */
  readonly now: Date;
  /** The filer confirmed which customer the ticket is about. */
  readonly bindingConfirmed: boolean;
  /** null only for kinds without an order. */
  readonly order: OrderFacts | null;
  /** Reserved or refunded on the order in the window, refunds made elsewhere included; this proposal not. Minor units. */
  readonly spentOnOrderMinor: bigint;
  /** What is left to refund on the payment; null for kinds that move no money. May be negative after a correction. */
  readonly refundableMinor: bigint | null;
  /** Order lines of this proposal that an earlier operation refunded or reserved already. */
  readonly linesTaken: readonly string[];
  readonly totals: readonly TotalFact[];
  readonly denied: Denial | null;
}

/** One sum that the rules of a kind ask for. */
export interface TotalNeed {
  readonly per: TotalPer;
  readonly windowHours: number;
}

/** The sums that `evaluate` will look for, each once, sorted. */
export function neededTotals(rules: KindRules): readonly TotalNeed[] {
  const needs = new Map(rules.totals.map((rule) => [needName(rule), needOf(rule)]));
  return [...needs.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, need]) => need);
}

const needName = (need: TotalNeed): string => `${need.per}/${need.windowHours}`;
const needOf = ({ per, windowHours }: TotalRule): TotalNeed => ({ per, windowHours });

/** Who and what an operation counts for. */
export interface TotalSubject {
  readonly orderRef: string | null;
  readonly customerRef: string;
  /** Everybody who counts as filer. */
  readonly filers: readonly string[];
}

/** The total of the whole shop. */
export const SHOP_SCOPE = "shop";

/** Scope names under which an operation is counted, sorted: the order in which their rows are locked. */
export function totalScopes(subject: TotalSubject): readonly string[] {
  return [
    SHOP_SCOPE,
    `customer:${subject.customerRef}`,
    ...(subject.orderRef === null ? [] : [`order:${subject.orderRef}`]),
    ...new Set(subject.filers.map((filer) => `filer:${filer}`)),
  ].sort();
}

/** The scopes of `subject` that a rule about `per` adds up: several for several filers, none without an order. */
export function scopesFor(per: TotalPer, subject: TotalSubject): readonly string[] {
  switch (per) {
    case "order":
      return subject.orderRef === null ? [] : [`order:${subject.orderRef}`];
    case "customer":
      return [`customer:${subject.customerRef}`];
    case "filer":
      return [...new Set(subject.filers.map((filer) => `filer:${filer}`))].sort();
    case "shop":
    case "day":
      return [SHOP_SCOPE];
  }
}

/**
 * The scopes whose rows must be locked before the facts of this kind are read, sorted by name. A scope that no rule counts
 * is not locked: a policy without a shop total has no hot row.
 */
export function scopesToLock(rules: KindRules, subject: TotalSubject): readonly string[] {
  return [...new Set(rules.totals.flatMap((rule) => scopesFor(rule.per, subject)))].sort();
}
