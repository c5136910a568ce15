/** How an operation comes into being: its row, reservation, totals and first event in one statement. */
import type { Tx } from "../db/connect.js";
import { fingerprint, idempotencyKey, operationKey } from "../domain/identity.js";
import type { OperationId, RunId, TicketId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import type { Intent, Operation, RefundScope } from "../domain/operation.js";
import { eventBody, eventHash, INSERT_EVENT } from "./event-sql.js";
import { canonicalData } from "./json.js";
import { type OperationRow, operationColumns, toOperation } from "./rows.js";
import { runOne, statement } from "./statement.js";

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

interface InsertParameters {
  id: string;
  key: string;
  occurrence: number;
  kind: string;
  customer_id: string;
  customer_ref: string;
  order_id: string | null;
  order_ref: string | null;
  payment_id: string | null;
  payment_intent: string | null;
  subscription_id: string | null;
  subscription_ref: string | null;
  provider_subscription: string | null;
  amount: bigint;
  currency: string;
  at_period_end: boolean | null;
  refund_scope: string | null;
  item_refs: readonly string[];
  reason: string;
  fingerprint: string;
  contract: string;
  idempotency_key: string;
  policy_hash: string;
  decision: JsonObject;
  predecessor: string | null;
  run_id: string;
  ticket_id: string;
  filers: readonly string[];
  scopes: readonly string[];
  reserve: boolean;
  due_ms: number | null;
  not_before_ms: number | null;
  actor: string;
  data: string;
  event: string;
  from: null;
  to: string;
}

/**
 * Money in minor units, durations in milliseconds. Reserves only what fits into what is left of the payment. No row: a live
 * operation has this key, or the balance does not hold it.
 */
const INSERT = statement<InsertParameters>(
  "ledger.insert",
  `
WITH m AS MATERIALIZED (
  SELECT :id::text AS id, 0 AS event_count, ''::text AS head_hash, countersign_now() AS at_now
), money AS (
  UPDATE payments p
  SET reserved = p.reserved + :amount::bigint, version = p.version + 1, updated_at = m.at_now
  FROM m
  WHERE :reserve::boolean AND p.id = :payment_id
    AND p.reserved + p.refunded + p.refunded_elsewhere + :amount::bigint <= p.captured
  RETURNING p.id
), e AS MATERIALIZED (
  SELECT m.*, NULL::int AS event_attempt, b.body, ${eventHash("m.head_hash", "b.body")} AS hash
  FROM m CROSS JOIN LATERAL (SELECT ${eventBody({ attempt: "NULL::int", token: "0" })} AS body) b
  WHERE NOT :reserve::boolean OR :payment_id::text IS NULL OR EXISTS (SELECT 1 FROM money)
), wrote AS (
  INSERT INTO operations AS o (id, key, occurrence, kind, status, customer_id, customer_ref, order_id, order_ref, payment_id,
    payment_intent, subscription_id, subscription_ref, provider_subscription, amount_minor, currency, at_period_end, refund_scope,
    item_refs, reason, fingerprint, contract_version, idempotency_key, policy_hash, decision, predecessor_id, owner_run_id,
    ticket_id, filers, reserved_minor, scopes, due_at, not_before, event_count, head_hash, created_at, updated_at)
  SELECT e.id, :key, :occurrence::int, :kind::text, :to::text, :customer_id, :customer_ref, :order_id, :order_ref, :payment_id,
    :payment_intent, :subscription_id, :subscription_ref, :provider_subscription, :amount::bigint, :currency::text,
    :at_period_end::boolean, :refund_scope, :item_refs::text[], :reason, :fingerprint, :contract, :idempotency_key, :policy_hash,
    :decision::jsonb, :predecessor, :run_id, :ticket_id, :filers::text[],
    CASE WHEN :reserve::boolean THEN :amount::bigint ELSE 0 END, :scopes::text[],
    e.at_now + :due_ms::bigint * interval '1 millisecond', e.at_now + :not_before_ms::bigint * interval '1 millisecond',
    1, e.hash, e.at_now, e.at_now
  FROM e
  ON CONFLICT (key) WHERE key_live DO NOTHING
  RETURNING ${operationColumns("o")}
), event AS (${INSERT_EVENT} WHERE EXISTS (SELECT 1 FROM wrote)
), counted AS (
  INSERT INTO total_entries (scope, operation_id, kind, currency, amount_minor, at)
  SELECT s.name, w.id, :kind::text, :currency::text, :amount::bigint, w.created_at
  FROM wrote w CROSS JOIN LATERAL unnest(:scopes::text[]) AS s(name)
  WHERE :reserve::boolean
)
SELECT * FROM wrote`,
);

/** What is material about an operation: what its first event states and the verifier compares with the row. */
export const materialData = (made: NewOperation, key: string, print: string): JsonObject => ({
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
});

/** null: a live operation has this key, or the balance does not hold it; the caller has locks that make both impossible, or lost a race. */
export async function insertOperation(tx: Tx, made: NewOperation): Promise<Operation | null> {
  const { intent } = made;
  const key = operationKey(intent);
  const print = fingerprint(
    intent,
    { paymentIntent: made.paymentIntent, providerSubscription: made.providerSubscription },
    made.contractVersion,
  );
  const row = await runOne<OperationRow, InsertParameters>(tx, INSERT, {
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
    data: canonicalData(materialData(made, key, print)),
    event: made.status === "PREPARED" ? "prepare" : "hold",
    from: null,
    to: made.status,
  });
  return row === null ? null : toOperation(row);
}
