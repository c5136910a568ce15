/** Operation rows as the database gives them, and the one place where they are parsed. */
import { CountersignError } from "../domain/errors.js";
import type { ApprovalId, OperationId, RunId, TicketId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import {
  OPERATION_KINDS,
  OPERATION_STATUSES,
  type Operation,
  type OperationKind,
  type OperationResult,
  type OperationStatus,
  type RefundScope,
} from "../domain/operation.js";
import type { StoredRequest } from "../domain/ports/payment-provider.js";

export interface OperationRow {
  id: string;
  key: string;
  occurrence: number;
  kind: string;
  status: string;
  version: bigint;
  customer_ref: string;
  order_ref: string | null;
  payment_intent: string | null;
  subscription_ref: string | null;
  provider_subscription: string | null;
  amount_minor: bigint;
  currency: string;
  at_period_end: boolean | null;
  refund_scope: string | null;
  item_refs: string[];
  reason: string;
  fingerprint: string;
  contract_version: string;
  idempotency_key: string;
  policy_hash: string;
  approval_id: string | null;
  approved_by: string[];
  predecessor_id: string | null;
  owner_run_id: string | null;
  ticket_id: string | null;
  filers: string[];
  provider_ref: string | null;
  result: OperationResult | null;
  quarantine_reason: string | null;
  resolved_by_person: boolean;
  attempts: number;
  not_before: Date | null;
  first_claimed_at: Date | null;
  unknown_since: Date | null;
  lease_token: bigint;
  created_at: Date;
  updated_at: Date;
}

const COLUMN_NAMES = [
  "id",
  "key",
  "occurrence",
  "kind",
  "status",
  "version",
  "customer_ref",
  "order_ref",
  "payment_intent",
  "subscription_ref",
  "provider_subscription",
  "amount_minor",
  "currency",
  "at_period_end",
  "refund_scope",
  "item_refs",
  "reason",
  "fingerprint",
  "contract_version",
  "idempotency_key",
  "policy_hash",
  "approval_id",
  "approved_by",
  "predecessor_id",
  "owner_run_id",
  "ticket_id",
  "filers",
  "provider_ref",
  "result",
  "quarantine_reason",
  "resolved_by_person",
  "attempts",
  "not_before",
  "first_claimed_at",
  "unknown_since",
  "lease_token",
  "created_at",
  "updated_at",
] as const satisfies readonly (keyof OperationRow)[];

/** Column list of an operation, under an alias. */
export const operationColumns = (alias: string): string =>
  COLUMN_NAMES.map((name) => `${alias}.${name}`).join(", ");

const isKind = (text: string): text is OperationKind => (OPERATION_KINDS as readonly string[]).includes(text);
export const isStatus = (text: string): text is OperationStatus =>
  (OPERATION_STATUSES as readonly string[]).includes(text);

/** A row that does not fit throws: it was written by somebody else. */
export function toOperation(row: OperationRow): Operation {
  const { kind, status } = row;
  if (!isKind(kind) || !isStatus(status)) {
    throw new CountersignError("unreadable_row", `operation ${row.id} has kind ${kind} and status ${status}`);
  }
  return {
    id: row.id as OperationId,
    key: row.key,
    kind,
    status,
    version: row.version,
    customerRef: row.customer_ref,
    orderRef: row.order_ref,
    subscriptionRef: row.subscription_ref,
    amountMinor: row.amount_minor,
    currency: row.currency,
    atPeriodEnd: row.at_period_end,
    occurrence: row.occurrence,
    fingerprint: row.fingerprint,
    contractVersion: row.contract_version,
    idempotencyKey: row.idempotency_key,
    paymentIntent: row.payment_intent,
    providerSubscription: row.provider_subscription,
    itemRefs: row.item_refs,
    refundScope: row.refund_scope as RefundScope | null,
    reason: row.reason,
    policyHash: row.policy_hash,
    approvalId: row.approval_id as ApprovalId | null,
    approvedBy: row.approved_by,
    predecessorId: row.predecessor_id as OperationId | null,
    ownerRunId: row.owner_run_id as RunId | null,
    ticketId: row.ticket_id as TicketId | null,
    filers: row.filers,
    providerRef: row.provider_ref,
    result: row.result,
    quarantineReason: row.quarantine_reason,
    attempts: row.attempts,
    leaseToken: row.lease_token,
    notBefore: row.not_before,
    firstClaimedAt: row.first_claimed_at,
    unknownSince: row.unknown_since,
    resolvedByPerson: row.resolved_by_person,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** Stored requests were written by an adapter of ours and are read back as they are. */
export const toRequest = (stored: JsonObject): StoredRequest => stored as unknown as StoredRequest;
