/** Rows of the sandbox as values, and the only place where a database row becomes one. */
import { z } from "zod";

/** Amounts fit a JSON integer: the wire has no other way to say them. */
const integer = z.union([z.string(), z.number()]).transform((value, ctx) => {
  const parsed = Number(value);
  if (!Number.isSafeInteger(parsed)) {
    ctx.addIssue({ code: "custom", message: `not a safe integer: ${value}` });
    return z.NEVER;
  }
  return parsed;
});

export const REFUND_STATUSES = ["pending", "requires_action", "succeeded", "failed", "canceled"] as const;
export type RefundStatus = (typeof REFUND_STATUSES)[number];
export const PENDING_REASONS = ["charge_pending", "insufficient_funds", "processing"] as const;
export type PendingReason = (typeof PENDING_REASONS)[number];
export const FAILURE_REASONS = [
  "lost_or_stolen_card",
  "expired_or_canceled_card",
  "charge_for_pending_refund_disputed",
  "insufficient_funds",
  "declined",
  "merchant_request",
  "unknown",
] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];
export const REFUND_REASONS = ["duplicate", "fraudulent", "requested_by_customer"] as const;

const metadata = z.record(z.string(), z.string());

const chargeRow = z.object({
  id: z.string(),
  payment_intent: z.string(),
  customer: z.string().nullable(),
  amount: integer,
  currency: z.string(),
  pi_status: z.string(),
  disputed: z.boolean(),
  refunded: integer,
  created_at_ms: integer,
});

/** A payment intent with its one charge. `refunded` counts what has not failed or been canceled. */
export interface ChargeRecord {
  id: string;
  paymentIntent: string;
  customer: string | null;
  amount: number;
  currency: string;
  paymentIntentStatus: string;
  disputed: boolean;
  refunded: number;
  createdAtMs: number;
}

export function toCharge(row: unknown): ChargeRecord {
  const r = chargeRow.parse(row);
  return {
    id: r.id,
    paymentIntent: r.payment_intent,
    customer: r.customer,
    amount: r.amount,
    currency: r.currency,
    paymentIntentStatus: r.pi_status,
    disputed: r.disputed,
    refunded: r.refunded,
    createdAtMs: r.created_at_ms,
  };
}

const refundRow = z.object({
  ordinal: integer,
  id: z.string(),
  charge: z.string(),
  payment_intent: z.string(),
  amount: integer,
  currency: z.string(),
  status: z.enum(REFUND_STATUSES),
  pending_reason: z.enum(PENDING_REASONS).nullable(),
  failure_reason: z.enum(FAILURE_REASONS).nullable(),
  reason: z.enum(REFUND_REASONS).nullable(),
  metadata,
  origin: z.enum(["api", "dashboard"]),
  idempotency_key: z.string().nullable(),
  created_at_ms: integer,
});

export interface RefundRecord {
  ordinal: number;
  id: string;
  charge: string;
  paymentIntent: string;
  amount: number;
  currency: string;
  status: RefundStatus;
  pendingReason: PendingReason | null;
  failureReason: FailureReason | null;
  reason: (typeof REFUND_REASONS)[number] | null;
  metadata: Record<string, string>;
  /** Who made it: a request on the wire, or a person in the provider's dashboard. */
  origin: "api" | "dashboard";
  idempotencyKey: string | null;
  createdAtMs: number;
}

export function toRefund(row: unknown): RefundRecord {
  const r = refundRow.parse(row);
  return {
    ordinal: r.ordinal,
    id: r.id,
    charge: r.charge,
    paymentIntent: r.payment_intent,
    amount: r.amount,
    currency: r.currency,
    status: r.status,
    pendingReason: r.pending_reason,
    failureReason: r.failure_reason,
    reason: r.reason,
    metadata: r.metadata,
    origin: r.origin,
    idempotencyKey: r.idempotency_key,
    createdAtMs: r.created_at_ms,
  };
}

const subscriptionRow = z.object({
  id: z.string(),
  customer: z.string(),
  status: z.string(),
  currency: z.string(),
  unit_amount: integer,
  cancel_at_period_end: z.boolean(),
  current_period_start_ms: integer,
  current_period_end_ms: integer,
  canceled_at_ms: integer.nullable(),
  ended_at_ms: integer.nullable(),
  metadata,
  cancellations: integer,
  created_at_ms: integer,
});

export interface SubscriptionRecord {
  id: string;
  customer: string;
  status: string;
  currency: string;
  unitAmount: number;
  cancelAtPeriodEnd: boolean;
  currentPeriodStartMs: number;
  currentPeriodEndMs: number;
  canceledAtMs: number | null;
  endedAtMs: number | null;
  metadata: Record<string, string>;
  /** How often a cancellation really took effect: what tests count. */
  cancellations: number;
  createdAtMs: number;
}

export function toSubscription(row: unknown): SubscriptionRecord {
  const r = subscriptionRow.parse(row);
  return {
    id: r.id,
    customer: r.customer,
    status: r.status,
    currency: r.currency,
    unitAmount: r.unit_amount,
    cancelAtPeriodEnd: r.cancel_at_period_end,
    currentPeriodStartMs: r.current_period_start_ms,
    currentPeriodEndMs: r.current_period_end_ms,
    canceledAtMs: r.canceled_at_ms,
    endedAtMs: r.ended_at_ms,
    metadata: r.metadata,
    cancellations: r.cancellations,
    createdAtMs: r.created_at_ms,
  };
}

const requestRow = z.object({
  ordinal: integer,
  id: z.string(),
  method: z.string(),
  path: z.string(),
  params: z.record(z.string(), z.unknown()),
  idempotency_key: z.string().nullable(),
  payment_intent: z.string().nullable(),
  at_ms: integer,
});

/** One request as it arrived, whatever became of it. */
export interface RequestRecord {
  ordinal: number;
  id: string;
  method: string;
  path: string;
  params: Record<string, unknown>;
  idempotencyKey: string | null;
  paymentIntent: string | null;
  at: string;
}

export function toRequest(row: unknown): RequestRecord {
  const r = requestRow.parse(row);
  return {
    ordinal: r.ordinal,
    id: r.id,
    method: r.method,
    path: r.path,
    params: r.params,
    idempotencyKey: r.idempotency_key,
    paymentIntent: r.payment_intent,
    at: new Date(r.at_ms).toISOString(),
  };
}

const keyRow = z.object({
  key: z.string(),
  method: z.string(),
  path: z.string(),
  params: z.record(z.string(), z.unknown()),
  params_canonical: z.string(),
  status: integer,
  body: z.string(),
  request_id: z.string(),
  created_at_ms: integer,
});

export interface StoredKey {
  key: string;
  method: string;
  path: string;
  params: Record<string, unknown>;
  paramsCanonical: string;
  status: number;
  body: string;
  requestId: string;
  createdAtMs: number;
}

export function toStoredKey(row: unknown): StoredKey {
  const r = keyRow.parse(row);
  return {
    key: r.key,
    method: r.method,
    path: r.path,
    params: r.params,
    paramsCanonical: r.params_canonical,
    status: r.status,
    body: r.body,
    requestId: r.request_id,
    createdAtMs: r.created_at_ms,
  };
}

const eventRow = z.object({
  ordinal: integer,
  id: z.string(),
  type: z.string(),
  object_id: z.string(),
  body: z.string(),
  created_at_ms: integer,
  attempts: integer,
  delivered: z.boolean(),
});

export interface EventRecord {
  ordinal: number;
  id: string;
  type: string;
  objectId: string;
  /** The exact bytes that are signed and sent. */
  body: string;
  createdAtMs: number;
  attempts: number;
  delivered: boolean;
}

export function toEvent(row: unknown): EventRecord {
  const r = eventRow.parse(row);
  return {
    ordinal: r.ordinal,
    id: r.id,
    type: r.type,
    objectId: r.object_id,
    body: r.body,
    createdAtMs: r.created_at_ms,
    attempts: r.attempts,
    delivered: r.delivered,
  };
}
