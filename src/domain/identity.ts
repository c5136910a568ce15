/** Identity of an operation: what makes two intents the same effect (DESIGN, "Identity"). */
import { canonicalHash } from "./canonical.js";
import type { OperationId } from "./ids.js";
import type { Intent } from "./operation.js";

/**
 * The operation key: kind, customer, order or subscription, computed amount and currency, occurrence.
 * Not in it: run, attempt, time, free text, how the amount was named.
 */
export function operationKey(intent: Intent): string {
  const target = intent.orderRef ?? intent.subscriptionRef ?? "";
  const amount = `${intent.amountMinor}${intent.currency === "" ? "" : `:${intent.currency}`}`;
  const mode = intent.atPeriodEnd === null ? "" : `:${intent.atPeriodEnd ? "period-end" : "now"}`;
  return `${intent.kind}:${intent.customerRef}:${target}:${amount}${mode}#${intent.occurrence}`;
}

/**
 * Whether an intent has the fields of its kind and no others. A field that its kind does not have is part of the key all the same:
 * with it the same effect would be another operation.
 */
export function hasFieldsOfItsKind(intent: Intent): boolean {
  const { kind, orderRef, subscriptionRef, amountMinor, atPeriodEnd, occurrence } = intent;
  if (occurrence < 1) return false;
  if (kind === "cancel_subscription") {
    return orderRef === null && subscriptionRef !== null && amountMinor === 0n && atPeriodEnd !== null;
  }
  const money = kind === "refund" ? amountMinor > 0n : amountMinor === 0n;
  return orderRef !== null && subscriptionRef === null && money && atPeriodEnd === null;
}

/** What else is material besides the key's parts: where the effect would land at the provider. */
export interface Landing {
  paymentIntent: string | null;
  providerSubscription: string | null;
}

/** SHA-256 over canonical JSON of the material fields and the contract version. */
export function fingerprint(intent: Intent, landing: Landing, contractVersion: string): string {
  return canonicalHash({
    kind: intent.kind,
    customer: intent.customerRef,
    order: intent.orderRef,
    subscription: intent.subscriptionRef,
    amount: intent.amountMinor,
    currency: intent.currency,
    atPeriodEnd: intent.atPeriodEnd,
    occurrence: intent.occurrence,
    paymentIntent: landing.paymentIntent,
    providerSubscription: landing.providerSubscription,
    contract: contractVersion,
  });
}

/**
 * What does not follow from an operation's own fields, a sentence each; empty: its identity is whole. A row that was changed by
 * hand shows here, and must not be sent.
 */
export function identityProblems(
  operation: Intent &
    Landing & {
      id: OperationId;
      key: string;
      fingerprint: string;
      idempotencyKey: string;
      contractVersion: string;
    },
): string[] {
  const problems: string[] = [];
  if (operationKey(operation) !== operation.key) problems.push("its key does not follow from its fields");
  if (fingerprint(operation, operation, operation.contractVersion) !== operation.fingerprint) {
    problems.push("its fingerprint does not recompute");
  }
  if (idempotencyKey(operation.id) !== operation.idempotencyKey) {
    problems.push("its idempotency key does not follow from its id");
  }
  return problems;
}

/** The key sent to the provider: derived from the operation id alone, the same for every attempt, below 255 characters. */
export const idempotencyKey = (id: OperationId): string => `countersign-${id}`;
