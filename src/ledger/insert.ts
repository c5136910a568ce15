/** How an operation comes into being: its row, reservation, totals and first event in one statement. */
import type { Tx } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import { fingerprint, idempotencyKey, operationKey } from "../domain/identity.js";
import type { OperationId, RunId, TicketId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import { type Intent, next, type Operation, type RefundScope } from "../domain/operation.js";
import type { StoredRequest } from "../domain/ports/payment-provider.js";
import type { Seals } from "../domain/seals.js";
import { sealAnswer } from "./decision-seals.js";
import { type ClaimParameters, INSERT, INSERT_CLAIMED, type InsertParameters } from "./insert-sql.js";
import { canonicalData } from "./json.js";
import { type OperationRow, toOperation, toRequest } from "./rows.js";
import { runOne } from "./statement.js";
import { personNames } from "./subjects.js";
import type { Claim } from "./types.js";

export interface NewOperation {
  readonly id: OperationId;
  /** Prepared (reserves) or held (does not). */
  readonly status: "PREPARED" | "AWAITING_APPROVAL";
  readonly intent: Intent;
  readonly contractVersion: string;
  readonly customerId: string;
  readonly orderId: string | null;
  readonly paymentId: string | null;
  readonly paymentIntent: string | null;
  readonly subscriptionId: string | null;
  readonly providerSubscription: string | null;
  readonly itemRefs: readonly string[];
  readonly refundScope: RefundScope | null;
  readonly reason: string;
  readonly policyHash: string;
  readonly decision: JsonObject;
  readonly answerHash: string;
  readonly predecessorId: OperationId | null;
  readonly runId: RunId;
  readonly ticketId: TicketId;
  readonly ticketTextHash: string | null;
  readonly filers: readonly string[];
  readonly scopes: readonly string[];
  readonly actor: string;
  readonly notBeforeMs: number | null;
  readonly dueMs: number | null;
}

/** What is material about an operation: what its first event states and the verifier compares with the row. */
const materialData = (made: NewOperation, key: string, print: string): JsonObject => ({
  key,
  fingerprint: print,
  kind: made.intent.kind,
  customer: made.intent.customerRef,
  order: made.intent.orderRef,
  subscription: made.intent.subscriptionRef,
  amount: Number(made.intent.amountMinor),
  currency: made.intent.currency,
  occurrence: made.intent.occurrence,
  paymentIntent: made.paymentIntent,
  idempotencyKey: idempotencyKey(made.id),
  contract: made.contractVersion,
  policyHash: made.policyHash,
  answerHash: made.answerHash,
  predecessor: made.predecessorId,
  run: made.runId,
  ticket: made.ticketId,
  ticketTextHash: made.ticketTextHash,
  rules: made.decision["rules"] ?? null,
  notBeforeMinutes: made.decision["notBeforeMinutes"] ?? null,
});

/**
 * What the first event states. Who asked stands in it where people will decide, because nobody decides about what they filed; what
 * the policy allows by itself is not slowed down by it.
 */
async function firstData(tx: Tx, made: NewOperation, key: string, print: string): Promise<JsonObject> {
  const material = materialData(made, key, print);
  return made.status === "PREPARED" ? material : { ...material, filers: await personNames(tx, made.filers) };
}

/** The first claim, made with the operation. Durations in milliseconds. */
export interface FirstClaim {
  readonly worker: string;
  readonly leaseMs: number;
  readonly timeoutMs: number;
  readonly attemptId: string;
  readonly request: StoredRequest;
}

export interface Inserted {
  readonly operation: Operation;
  /** null: it was not asked for, or its kind is frozen. */
  readonly claim: Claim | null;
}

/** null: a live operation has this key, or the balance does not hold it; the caller has locks that make both impossible, or lost a race. */
export async function insertOperation(
  tx: Tx,
  seals: Seals,
  made: NewOperation,
  claim: FirstClaim | null = null,
): Promise<Inserted | null> {
  const parameters = await insertParameters(tx, seals, made);
  if (claim === null) {
    const row = await runOne<OperationRow, InsertParameters>(tx, INSERT, parameters);
    return row === null ? null : { operation: toOperation(row), claim: null };
  }
  const step = next("PREPARED", "claim");
  if (!step.legal || made.status !== "PREPARED") {
    throw new CountersignError("illegal_transition", `${made.status} cannot be claimed`, {
      ids: { operationId: made.id },
    });
  }
  const row = await runOne<ClaimedRow, InsertParameters & ClaimParameters>(tx, INSERT_CLAIMED, {
    ...parameters,
    claimed_to: step.to,
    claim_event: "claim",
    claim_actor: "system:dispatch",
    claim_data: canonicalData({ worker: claim.worker }),
    worker: claim.worker,
    lease_ms: claim.leaseMs,
    timeout_ms: claim.timeoutMs,
    attempt_id: claim.attemptId,
    request: claim.request,
  });
  return row === null ? null : insertedOf(row);
}

type ClaimedRow = OperationRow & { request: JsonObject | null; lease_until: Date | null };

function insertedOf(row: ClaimedRow): Inserted {
  const operation = toOperation(row);
  const { request, lease_until: leaseUntil } = row;
  if (request === null || leaseUntil === null) return { operation, claim: null };
  return {
    operation,
    claim: {
      operation,
      attempt: operation.attempts,
      leaseToken: operation.leaseToken,
      request: toRequest(request),
      leaseUntil,
    },
  };
}

async function insertParameters(tx: Tx, seals: Seals, made: NewOperation): Promise<InsertParameters> {
  const { intent } = made;
  const key = operationKey(intent);
  const print = fingerprint(
    intent,
    { paymentIntent: made.paymentIntent, providerSubscription: made.providerSubscription },
    made.contractVersion,
  );
  return {
    id: made.id,
    key,
    occurrence: intent.occurrence,
    kind: intent.kind,
    customer_id: made.customerId,
    customer_ref: intent.customerRef,
    order_id: made.orderId,
    order_ref: intent.orderRef,
    payment_id: made.paymentId,
    payment_intent: made.paymentIntent,
    subscription_id: made.subscriptionId,
    subscription_ref: intent.subscriptionRef,
    provider_subscription: made.providerSubscription,
    amount: intent.amountMinor,
    currency: intent.currency,
    at_period_end: intent.atPeriodEnd,
    refund_scope: made.refundScope,
    item_refs: made.itemRefs,
    reason: made.reason,
    fingerprint: print,
    contract: made.contractVersion,
    idempotency_key: idempotencyKey(made.id),
    policy_hash: made.policyHash,
    seal:
      made.status === "PREPARED"
        ? sealAnswer(seals, {
            id: made.id,
            fingerprint: print,
            policyHash: made.policyHash,
            approvalId: null,
          })
        : null,
    decision: made.decision,
    predecessor: made.predecessorId,
    run_id: made.runId,
    ticket_id: made.ticketId,
    filers: made.filers,
    scopes: made.scopes,
    reserve: made.status === "PREPARED",
    due_ms: made.dueMs,
    not_before_ms: made.notBeforeMs,
    actor: made.actor,
    data: canonicalData(await firstData(tx, made, key, print)),
    event: made.status === "PREPARED" ? "prepare" : "hold",
    from: null,
    to: made.status,
  };
}
