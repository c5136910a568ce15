/**
 * One write of a turn on its way to a decision: who it is (identity), where it lands (the locked world), what it is worth asking
 * the policy about. Pure, apart from nothing: it reads what `world.ts` has locked.
 */
import { fingerprint, hasFieldsOfItsKind, operationKey } from "../domain/identity.js";
import type { CallId, OperationId } from "../domain/ids.js";
import { formatMoney, money } from "../domain/money.js";
import type { Intent, Operation } from "../domain/operation.js";
import type { JudgeSubject } from "../domain/ports/judge.js";
import type { ApprovedBinding, PerCall, Proposal } from "./types.js";
import type { OrderLock, SubscriptionLock, World } from "./world.js";

/** A proposal with its final occurrence, or an operation that was held and is now approved. */
export interface Candidate {
  readonly callId: CallId;
  readonly intent: Intent;
  readonly key: string;
  readonly source:
    | { readonly kind: "proposal"; readonly proposal: Proposal; readonly predecessorId: OperationId | null }
    | {
        readonly kind: "held";
        readonly operation: Operation;
        readonly approval: ApprovedBinding;
        readonly bindingConfirmed: boolean;
      };
}

/** Where a candidate lands: rows of the shop, locked. */
export interface Site {
  readonly customerId: string;
  readonly order: OrderLock | null;
  readonly subscription: SubscriptionLock | null;
}

export type Placed =
  | { readonly ok: true; readonly site: Site }
  | { readonly ok: false; readonly code: string; readonly sentence: string };

/**
 * Finds the candidate's rows and checks that they are still whose and what they were when the intent was computed, and that it is
 * an intent that code computes: what waits for its siblings lies in a row meanwhile. For what was held they need only exist: what else
 * changed is compared by its approval.
 */
export function place(candidate: Candidate, world: World): Placed {
  const { intent } = candidate;
  const landing = landingOf(candidate);
  const proposed = candidate.source.kind === "proposal";
  if (proposed && !hasFieldsOfItsKind(intent)) return malformed();
  if (intent.subscriptionRef !== null) {
    const subscription = world.subscriptions.get(intent.subscriptionRef);
    if (subscription === undefined) return gone(`The subscription ${intent.subscriptionRef} does not exist.`);
    if (proposed && subscription.customerRef !== intent.customerRef) {
      return otherCustomer(intent.subscriptionRef);
    }
    if (proposed && subscription.providerRef !== landing.providerSubscription) {
      return changed(`The subscription ${intent.subscriptionRef} is another one at the provider now.`);
    }
    return { ok: true, site: { customerId: subscription.customerId, order: null, subscription } };
  }
  const order = world.orders.get(intent.orderRef ?? "");
  if (order === undefined) return gone(`The order ${intent.orderRef ?? ""} does not exist.`);
  if (proposed && order.customerRef !== intent.customerRef) return otherCustomer(order.ref);
  if (proposed && intent.kind === "refund") {
    if (order.payment === null) return gone(`The order ${order.ref} has no payment.`);
    if (order.payment.paymentIntent !== landing.paymentIntent || order.payment.currency !== intent.currency) {
      return changed(`The payment of the order ${order.ref} has changed.`);
    }
  }
  return { ok: true, site: { customerId: order.customerId, order, subscription: null } };
}

export const landingOf = (
  candidate: Candidate,
): { paymentIntent: string | null; providerSubscription: string | null } =>
  candidate.source.kind === "proposal"
    ? candidate.source.proposal.landing
    : {
        paymentIntent: candidate.source.operation.paymentIntent,
        providerSubscription: candidate.source.operation.providerSubscription,
      };

/** Why the payment does not hold the amount; null when it does. */
export function shortfall(
  candidate: Candidate,
  site: Site,
): Extract<PerCall, { outcome: "insufficient" }> | null {
  const { intent } = candidate;
  const payment = site.order?.payment;
  if (intent.kind !== "refund" || payment === null || payment === undefined) return null;
  if (intent.amountMinor <= payment.left) return null;
  const left = payment.left < 0n ? 0n : payment.left;
  return {
    callId: candidate.callId,
    outcome: "insufficient",
    leftMinor: left,
    currency: payment.currency,
    sentence:
      payment.otherCurrency === null
        ? `Only ${formatMoney(money(left, payment.currency))} is left on the payment of ${intent.orderRef ?? ""}.`
        : `Nothing can be refunded on ${intent.orderRef ?? ""} now: it was paid in ${payment.currency}, and the provider shows a refund in ${payment.otherCurrency}. On-call looks into it.`,
  };
}

/** The payment that an operation of this kind reserves on. */
export const paymentOf = (candidate: Candidate, site: Site): OrderLock["payment"] =>
  candidate.intent.kind === "refund" ? (site.order?.payment ?? null) : null;

export function subjectOf(candidate: Candidate, site: Site): JudgeSubject {
  const { source } = candidate;
  const from = source.kind === "proposal" ? source.proposal : source.operation;
  return {
    intent: candidate.intent,
    refundScope: from.refundScope,
    itemRefs: from.itemRefs,
    filers: from.filers,
    bindingConfirmed: source.kind === "proposal" ? source.proposal.bindingConfirmed : source.bindingConfirmed,
    customerId: site.customerId,
    orderId: site.order?.id ?? null,
    paymentId: paymentOf(candidate, site)?.id ?? null,
    subscriptionId: site.subscription?.id ?? null,
    operationId: source.kind === "held" ? source.operation.id : null,
    predecessorId: source.kind === "held" ? source.operation.predecessorId : source.predecessorId,
  };
}

/** Whether the proposal means what the operation with its key means, under the contract that the operation was made under. */
export const sameEffect = (candidate: Candidate, operation: Operation): boolean =>
  fingerprint(candidate.intent, landingOf(candidate), operation.contractVersion) === operation.fingerprint;

/** The intent as the next occurrence after `of`; null when `of` is no occurrence of it. */
export function furtherIntent(intent: Intent, of: Operation): Intent | null {
  return operationKey({ ...intent, occurrence: of.occurrence }) === of.key
    ? { ...intent, occurrence: of.occurrence + 1 }
    : null;
}

const gone = (sentence: string): Placed => ({ ok: false, code: "not_there", sentence });
const changed = (sentence: string): Placed => ({ ok: false, code: "world_changed", sentence });
const malformed = (): Placed => ({
  ok: false,
  code: "malformed",
  sentence: "What was to be done is not stored as it was computed.",
});
const otherCustomer = (ref: string): Placed => ({
  ok: false,
  code: "other_customer",
  sentence: `${ref} does not belong to this ticket's customer.`,
});
