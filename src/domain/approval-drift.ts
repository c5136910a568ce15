/**
 * Drift: what of a binding no longer holds. Pure comparison of what a card showed with what is so now.
 *
 * Everything that differs is reported, not only the first thing: the new card shows all of it.
 */
import type { ApprovalBinding, BoundAnswer, Change, WorldSnapshot } from "./approval.js";

/** The operation's own fields, as its row has them now, and the fingerprint computed from them and where it would land. */
export interface PresentOperation {
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly occurrence: number;
  readonly customerRef: string;
  /** Stored with the row. */
  readonly fingerprint: string;
  /** Computed now from the row, the payment (or subscription) it would land on, and the contract in force. */
  readonly freshFingerprint: string;
}

/** What the policy answers now; a refusal carries its sentences. */
export type PresentAnswer =
  | ({ readonly refused: false } & Demand & Pick<BoundAnswer, "answerHash" | "policyHash" | "line">)
  | { readonly refused: true; readonly sentence: string };

/** What an answer asks of people. */
type Demand = Pick<
  BoundAnswer,
  "answer" | "role" | "approvers" | "confirmAmount" | "coolingOffMinutes" | "selfApproval"
>;

/** Differences in the operation and the world around it. Empty: the card still tells the truth. */
export function worldChanges(
  binding: ApprovalBinding,
  operation: PresentOperation,
  world: WorldSnapshot,
): readonly Change[] {
  return [...materialChanges(binding, operation), ...snapshotChanges(binding.world, world)];
}

/** Of what a card shows of the world, what is not so any more. */
export function snapshotChanges(bound: WorldSnapshot, now: WorldSnapshot): readonly Change[] {
  return [
    ...differs("customer", bound.customerRef, now.customerRef),
    ...ticketChanges(bound, now),
    ...orderChanges(bound.order, now.order),
    ...paymentChanges(bound.payment, now.payment),
    ...subscriptionChanges(bound.subscription, now.subscription),
  ];
}

/**
 * A changed answer matters; a changed comment, reason or reminder does not.
 *
 * `siblingEnded`: another call of the same turn was counted when this one was judged and did not go ahead (denied, expired,
 * void). Then a milder answer of the same policy is what was approved, and more: the people who said yes to the larger
 * demand need not be asked again.
 */
export function policyChanges(
  bound: BoundAnswer,
  now: PresentAnswer,
  siblingEnded: boolean,
): readonly Change[] {
  if (now.refused) return [{ what: "policy_refuses", sentence: now.sentence }];
  if (now.answerHash === bound.answerHash) return [];
  if (siblingEnded && now.policyHash === bound.policyHash && isMilder(now, bound)) return [];
  return [{ what: "policy", from: demandText(bound), to: demandText(now) }];
}

function isMilder(now: Extract<PresentAnswer, { refused: false }>, bound: BoundAnswer): boolean {
  if (now.coolingOffMinutes > bound.coolingOffMinutes) return false;
  if (now.answer === "allow") return true;
  return (
    now.line <= bound.line &&
    now.approvers <= bound.approvers &&
    (bound.confirmAmount || !now.confirmAmount) &&
    (now.selfApproval || !bound.selfApproval)
  );
}

/**
 * True when the operation as it stands can still be wished for: the same customer's order, the same landing, the same
 * fields. Otherwise it is voided; a changed status, balance or policy only kills the approval.
 */
export function materialFieldsHold(changes: readonly Change[]): boolean {
  return !changes.some((change) => MATERIAL.has(change.what));
}

const MATERIAL: ReadonlySet<Change["what"]> = new Set<Change["what"]>([
  "amount",
  "occurrence",
  "fingerprint",
  "customer",
  "order_customer",
  "order_currency",
  "subscription_customer",
  "missing",
]);

function materialChanges(binding: ApprovalBinding, operation: PresentOperation): Change[] {
  const { currency } = binding;
  const changes: Change[] = [];
  if (operation.amountMinor !== binding.amountMinor || operation.currency !== currency) {
    changes.push({
      what: "amount",
      fromMinor: binding.amountMinor,
      toMinor: operation.amountMinor,
      currency,
    });
  }
  if (operation.occurrence !== binding.occurrence) {
    changes.push({ what: "occurrence", from: binding.occurrence, to: operation.occurrence });
  }
  const present =
    operation.fingerprint === operation.freshFingerprint ? operation.fingerprint : operation.freshFingerprint;
  return [
    ...changes,
    ...differs("fingerprint", binding.fingerprint, present),
    ...differs("customer", binding.customerRef, operation.customerRef),
  ];
}

/** The ticket was bound to somebody else after the card was shown. One that lost its binding is not about anybody else. */
function ticketChanges(bound: WorldSnapshot, now: WorldSnapshot): Change[] {
  if (bound.ticketCustomerRef === null || now.ticketCustomerRef === null) return [];
  return differs("customer", bound.ticketCustomerRef, now.ticketCustomerRef);
}

function orderChanges(bound: WorldSnapshot["order"], now: WorldSnapshot["order"]): Change[] {
  if (bound === null) return [];
  if (now === null) return [{ what: "missing", thing: "order" }];
  return [
    ...differs("order_status", bound.status, now.status),
    ...differs("order_customer", bound.customerRef, now.customerRef),
    ...differs("order_currency", bound.currency, now.currency),
  ];
}

function paymentChanges(bound: WorldSnapshot["payment"], now: WorldSnapshot["payment"]): Change[] {
  if (bound === null) return [];
  if (now === null) return [{ what: "missing", thing: "payment" }];
  const { currency } = now;
  const changes: Change[] = [...differs("order_currency", bound.currency, currency)];
  if (bound.capturedMinor !== now.capturedMinor) {
    changes.push({ what: "captured", fromMinor: bound.capturedMinor, toMinor: now.capturedMinor, currency });
  }
  if (bound.refundableMinor !== now.refundableMinor) {
    const [fromMinor, toMinor] = [bound.refundableMinor, now.refundableMinor];
    changes.push({ what: "refundable", fromMinor, toMinor, currency });
  }
  return changes;
}

function subscriptionChanges(
  bound: WorldSnapshot["subscription"],
  now: WorldSnapshot["subscription"],
): Change[] {
  if (bound === null) return [];
  if (now === null) return [{ what: "missing", thing: "subscription" }];
  return [
    ...differs("subscription_status", bound.status, now.status),
    ...differs("subscription_customer", bound.customerRef, now.customerRef),
  ];
}

type TextChange = Extract<Change, { from: string }>["what"];

function differs(what: TextChange, from: string, to: string): Change[] {
  return from === to ? [] : [{ what, from, to }];
}

function demandText(demand: Demand): string {
  const minutes = demand.coolingOffMinutes;
  const wait = minutes > 0 ? [`waits ${minutes} ${minutes === 1 ? "minute" : "minutes"}`] : [];
  if (demand.answer === "allow") return ["no approval needed", ...wait].join(", ");
  const people = demand.approvers === 1 ? "one person" : `${demand.approvers} people`;
  return [
    `${people} of the role ${demand.role}`,
    ...(demand.confirmAmount ? ["the amount repeated"] : []),
    ...(demand.selfApproval ? ["the filer may approve"] : []),
    ...wait,
  ].join(", ");
}
