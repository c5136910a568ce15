import type { Facts, OrderFacts, Proposal, TotalFact } from "../../../src/domain/policy/facts.js";
import { neededTotals } from "../../../src/domain/policy/facts.js";
import type { Policy } from "../../../src/domain/policy/policy.js";

export const NOW = new Date("2026-11-20T12:00:00Z");
export const daysAgo = (days: number): Date => new Date(NOW.getTime() - days * 86_400_000);

export const refund = (amountMinor: bigint, currency = "GBP", occurrence = 1): Proposal => ({
  kind: "refund",
  amountMinor,
  currency,
  occurrence,
});
export const cancelOrder: Proposal = {
  kind: "cancel_order",
  amountMinor: 0n,
  currency: "GBP",
  occurrence: 1,
};
export const cancelSubscription: Proposal = {
  kind: "cancel_subscription",
  amountMinor: 0n,
  currency: "",
  occurrence: 1,
};

export interface Situation {
  order?: Partial<OrderFacts> | null;
  bindingConfirmed?: boolean;
  spentOnOrder?: bigint;
  refundable?: bigint | null;
  linesTaken?: readonly string[];
  denied?: Facts["denied"];
  /** Sums by `per`; what is not named is zero. */
  totals?: Partial<Record<TotalFact["per"], { count?: number; amount?: bigint }>>;
}

/** A delivered order of five days ago, confirmed, nothing spent, unless the situation says otherwise. */
export function facts(proposal: Proposal, policy: Policy, situation: Situation = {}): Facts {
  const order: OrderFacts = {
    ref: "ORD-1",
    status: proposal.kind === "cancel_order" ? "packed" : "delivered",
    currency: proposal.currency,
    placedAt: daysAgo(8),
    deliveredAt: daysAgo(5),
    cancelledAt: null,
    ...situation.order,
  };
  return {
    now: NOW,
    bindingConfirmed: situation.bindingConfirmed ?? true,
    order: situation.order === null || proposal.kind === "cancel_subscription" ? null : order,
    spentOnOrderMinor: situation.spentOnOrder ?? 0n,
    refundableMinor: situation.refundable === undefined ? 1_000_000_000n : situation.refundable,
    linesTaken: situation.linesTaken ?? [],
    denied: situation.denied ?? null,
    totals: neededTotals(policy.kinds[proposal.kind]).map(({ per, windowHours }) => ({
      per,
      windowHours,
      scope: per,
      count: situation.totals?.[per]?.count ?? 0,
      amountMinor: situation.totals?.[per]?.amount ?? 0n,
    })),
  };
}
