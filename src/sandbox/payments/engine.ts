/**
 * What the provider does: the rules of refunds and subscriptions, each effect in one transaction with its
 * events and with the answer kept under its idempotency key.
 *
 * 1. Refunds of a charge never add up to more than its amount (failed and canceled ones do not count).
 * 2. Nothing is committed without being counted: rows of `refunds` and `cancellations` are the effects.
 */
import { type SandboxClock, toSeconds } from "./clock.js";
import { type Counter, deterministicId } from "./ids.js";
import {
  renderCharge,
  renderPaymentIntent,
  renderRefund,
  renderSubscription,
  type WireObject,
} from "./objects.js";
import type { CreateRefundParams, ListRefundParams, UpdateSubscriptionParams } from "./params.js";
import type {
  ChargeRecord,
  FailureReason,
  PendingReason,
  RefundRecord,
  RefundStatus,
  SubscriptionRecord,
} from "./records.js";
import * as store from "./store.js";
import { wireErrors } from "./wire-error.js";

/** Makes a payment intent on first sight; null: there is none. Amounts in minor units, currency in lower case. */
export type AutoProvision = (paymentIntent: string) => { amount: number; currency: string } | null;

export interface EngineContext {
  db: store.Database;
  clock: SandboxClock;
  seed: string;
  counters: { refunds: Counter; events: Counter };
  autoProvision: AutoProvision | null;
  /** Called after a commit that left events to deliver. */
  onEvents(): void;
}

/** How a refund is to come out when a fault says so; empty: succeeded, as asked. */
export interface RefundBehaviour {
  status?: RefundStatus;
  pendingReason?: PendingReason;
  failureReason?: FailureReason;
  amount?: number;
  currency?: string;
  /** Another payment's charge gives the money. */
  paymentIntent?: string;
}

export interface EffectContext {
  idempotencyKey: string | null;
  requestId: string | null;
  origin: RefundRecord["origin"];
  /** Runs inside the transaction, last, with the answer: keeps it under its key. */
  seal?: (tx: store.Queryable, answer: WireObject) => Promise<void>;
}

/** @throws WireError; then nothing was committed */
export async function createRefund(
  ctx: EngineContext,
  params: CreateRefundParams,
  effect: EffectContext,
  behaviour: RefundBehaviour = {},
): Promise<{ refund: RefundRecord; answer: WireObject }> {
  const result = await store.inTransaction(ctx.db, async (tx) => {
    const asked = await lockCharge(ctx, tx, params);
    const amount = refundableAmount(asked, params.amount);
    const charge =
      behaviour.paymentIntent === undefined
        ? asked
        : await lockCharge(ctx, tx, { ...params, charge: null, paymentIntent: behaviour.paymentIntent });
    const ordinal = ctx.counters.refunds.next();
    const status = behaviour.status ?? "succeeded";
    const refund: RefundRecord = {
      ordinal,
      id: deterministicId(ctx.seed, "re", ordinal),
      charge: charge.id,
      paymentIntent: charge.paymentIntent,
      amount: behaviour.amount ?? amount,
      currency: behaviour.currency ?? charge.currency,
      status,
      pendingReason: status === "pending" ? (behaviour.pendingReason ?? "processing") : null,
      failureReason: status === "failed" ? (behaviour.failureReason ?? "unknown") : null,
      reason: params.reason,
      metadata: params.metadata,
      origin: effect.origin,
      idempotencyKey: effect.idempotencyKey,
      createdAtMs: ctx.clock.nowMs(),
    };
    await store.insertRefund(tx, refund);
    const after = await store.findCharge(tx, { charge: charge.id });
    const answer = renderRefund(ctx.seed, refund, {
      ...(params.expand.includes("charge") && after !== null ? { charge: after } : {}),
      ...(params.expand.includes("payment_intent") && after !== null ? { paymentIntent: after } : {}),
    });
    await recordEvent(ctx, tx, "refund.created", renderRefund(ctx.seed, refund), effect);
    if (after !== null && status !== "failed" && status !== "canceled") {
      await recordEvent(ctx, tx, "charge.refunded", renderCharge(after), effect);
    }
    if (status === "failed") {
      await recordEvent(ctx, tx, "refund.failed", renderRefund(ctx.seed, refund), effect);
    }
    await effect.seal?.(tx, answer);
    return { refund, answer };
  });
  ctx.onEvents();
  return result;
}

async function lockCharge(
  ctx: EngineContext,
  tx: store.Queryable,
  params: CreateRefundParams,
): Promise<ChargeRecord> {
  const by =
    params.paymentIntent === null ? { charge: params.charge ?? "" } : { paymentIntent: params.paymentIntent };
  const known = await store.findCharge(tx, by, { lock: true });
  const charge = known ?? (await provision(ctx, tx, params.paymentIntent));
  if (charge === null) {
    throw params.paymentIntent === null
      ? wireErrors.missing("charge", params.charge ?? "", "charge")
      : wireErrors.missing("payment_intent", params.paymentIntent, "payment_intent");
  }
  if (charge.paymentIntentStatus !== "succeeded") throw wireErrors.noSuccessfulCharge(charge.paymentIntent);
  if (charge.disputed) throw wireErrors.disputed(charge.id);
  return charge;
}

async function provision(
  ctx: EngineContext,
  tx: store.Queryable,
  paymentIntent: string | null,
): Promise<ChargeRecord | null> {
  if (paymentIntent === null || ctx.autoProvision === null) return null;
  const made = ctx.autoProvision(paymentIntent);
  if (made === null) return null;
  await store.upsertCharge(tx, {
    id: deterministicId(ctx.seed, "ch", paymentIntent),
    paymentIntent,
    customer: null,
    amount: made.amount,
    currency: made.currency.toLowerCase(),
    paymentIntentStatus: "succeeded",
    createdAtMs: ctx.clock.nowMs(),
  });
  return store.findCharge(tx, { paymentIntent }, { lock: true });
}

function refundableAmount(charge: ChargeRecord, wanted: number | null): number {
  const left = charge.amount - charge.refunded;
  if (left <= 0) throw wireErrors.alreadyRefunded(charge.id);
  if (wanted !== null && wanted > left) throw wireErrors.moreThanLeft(wanted, left);
  return wanted ?? left;
}

/**
 * Moves a refund on, as the banks would: pending to succeeded, succeeded to failed days later.
 *
 * @throws WireError when there is no such refund
 */
export async function advanceRefund(
  ctx: EngineContext,
  id: string,
  to: { status: RefundStatus; pendingReason?: PendingReason; failureReason?: FailureReason },
): Promise<RefundRecord> {
  const refund = await store.inTransaction(ctx.db, async (tx) => {
    const before = await store.findRefund(tx, id, { lock: true });
    if (before === null) throw wireErrors.missing("refund", id, "refund");
    const next: RefundRecord = {
      ...before,
      status: to.status,
      pendingReason: to.status === "pending" ? (to.pendingReason ?? "processing") : null,
      failureReason: to.status === "failed" ? (to.failureReason ?? "unknown") : null,
    };
    await store.updateRefundStatus(tx, next);
    const none = { idempotencyKey: null, requestId: null };
    const previous = { status: before.status };
    await recordEvent(ctx, tx, "refund.updated", renderRefund(ctx.seed, next), none, previous);
    if (to.status === "failed") {
      await recordEvent(ctx, tx, "refund.failed", renderRefund(ctx.seed, next), none, previous);
    }
    return next;
  });
  ctx.onEvents();
  return refund;
}

/** @throws WireError; a refund can be canceled only while it waits for the customer */
export async function cancelRefund(ctx: EngineContext, id: string): Promise<WireObject> {
  const refund = await store.findRefund(ctx.db, id);
  if (refund === null) throw wireErrors.missing("refund", id, "refund");
  if (refund.status !== "requires_action") throw wireErrors.refundNotCancelable(refund.status);
  return renderRefund(ctx.seed, await advanceRefund(ctx, id, { status: "canceled" }));
}

/** What a read does not know or makes up, when a fault says so. */
export interface ReadBehaviour {
  /** Refunds younger than this are not visible. Milliseconds. */
  lagMs?: number;
  hideAll?: boolean;
  invent?: RefundRecord;
}

export async function listRefunds(
  ctx: EngineContext,
  params: ListRefundParams,
  behaviour: ReadBehaviour = {},
): Promise<WireObject> {
  if (behaviour.hideAll === true) return listOf([], false);
  const cursorId = params.startingAfter ?? params.endingBefore;
  let cursor: number | null = null;
  if (cursorId !== null) {
    const at = await store.findRefund(ctx.db, cursorId);
    if (at === null && cursorId !== behaviour.invent?.id) {
      const param = params.startingAfter === null ? "ending_before" : "starting_after";
      throw wireErrors.missing("refund", cursorId, param);
    }
    cursor = at?.ordinal ?? null;
  }
  const visibleUntilMs = behaviour.lagMs === undefined ? null : ctx.clock.nowMs() - behaviour.lagMs;
  const page = await store.pageRefunds(ctx.db, params, cursor, visibleUntilMs);
  const shown =
    behaviour.invent !== undefined && cursorId === null ? [behaviour.invent, ...page.refunds] : page.refunds;
  const rendered: WireObject[] = [];
  for (const refund of shown.slice(0, params.limit)) {
    const charge =
      params.expand.length === 0 ? null : await store.findCharge(ctx.db, { charge: refund.charge });
    rendered.push(
      renderRefund(ctx.seed, refund, {
        ...(params.expand.includes("data.charge") && charge !== null ? { charge } : {}),
        ...(params.expand.includes("data.payment_intent") && charge !== null
          ? { paymentIntent: charge }
          : {}),
      }),
    );
  }
  return listOf(rendered, page.hasMore || shown.length > params.limit);
}

function listOf(data: WireObject[], hasMore: boolean): WireObject {
  return { object: "list", data, has_more: hasMore, url: "/v1/refunds" };
}

export async function retrieveRefund(
  ctx: EngineContext,
  id: string,
  expand: readonly string[],
  behaviour: ReadBehaviour = {},
): Promise<WireObject> {
  const refund = await store.findRefund(ctx.db, id);
  const tooYoung =
    refund !== null &&
    behaviour.lagMs !== undefined &&
    refund.createdAtMs > ctx.clock.nowMs() - behaviour.lagMs;
  if (refund === null || behaviour.hideAll === true || tooYoung) throw wireErrors.missing("refund", id, "id");
  const charge = expand.length === 0 ? null : await store.findCharge(ctx.db, { charge: refund.charge });
  return renderRefund(ctx.seed, refund, {
    ...(expand.includes("charge") && charge !== null ? { charge } : {}),
    ...(expand.includes("payment_intent") && charge !== null ? { paymentIntent: charge } : {}),
  });
}

export async function retrievePaymentIntent(
  ctx: EngineContext,
  id: string,
  expand: readonly string[],
): Promise<WireObject> {
  const known = await store.findCharge(ctx.db, { paymentIntent: id });
  const charge = known ?? (await store.inTransaction(ctx.db, (tx) => provision(ctx, tx, id)));
  if (charge === null) throw wireErrors.missing("payment_intent", id, "intent");
  return renderPaymentIntent(charge, expand.includes("latest_charge") ? renderCharge(charge) : undefined);
}

export async function retrieveCharge(ctx: EngineContext, id: string): Promise<WireObject> {
  const charge = await store.findCharge(ctx.db, { charge: id });
  if (charge === null) throw wireErrors.missing("charge", id, "id");
  return renderCharge(charge);
}

export async function retrieveSubscription(ctx: EngineContext, id: string): Promise<WireObject> {
  const subscription = await store.findSubscription(ctx.db, id, ctx.clock.nowMs());
  if (subscription === null) throw wireErrors.missing("subscription", id, "id");
  return renderSubscription(ctx.seed, subscription);
}

/**
 * Cancels at once. A subscription that is already canceled is not found by this call, as at Stripe, so repeating
 * it is harmless but answers 404.
 *
 * @throws WireError; then nothing was committed
 */
export async function cancelSubscription(
  ctx: EngineContext,
  id: string,
  effect: EffectContext,
): Promise<WireObject> {
  return changeSubscription(ctx, id, effect, (subscription) => {
    if (subscription.status === "canceled") throw wireErrors.missing("subscription", id, "id");
    const now = ctx.clock.nowMs();
    return {
      type: "customer.subscription.deleted",
      next: {
        ...subscription,
        status: "canceled",
        canceledAtMs: subscription.canceledAtMs ?? now,
        endedAtMs: now,
        cancellations: subscription.cancellations + 1,
      },
    };
  });
}

/** @throws WireError; then nothing was committed */
export async function updateSubscription(
  ctx: EngineContext,
  id: string,
  params: UpdateSubscriptionParams,
  effect: EffectContext,
): Promise<WireObject> {
  return changeSubscription(ctx, id, effect, (subscription) => {
    const wanted = params.cancelAtPeriodEnd ?? subscription.cancelAtPeriodEnd;
    if (subscription.status === "canceled" && wanted !== subscription.cancelAtPeriodEnd) {
      throw wireErrors.canceledSubscription();
    }
    const begins = wanted && !subscription.cancelAtPeriodEnd;
    return {
      type: "customer.subscription.updated",
      next: {
        ...subscription,
        cancelAtPeriodEnd: wanted,
        canceledAtMs: wanted ? (subscription.canceledAtMs ?? ctx.clock.nowMs()) : null,
        metadata: { ...subscription.metadata, ...params.metadata },
        cancellations: subscription.cancellations + (begins ? 1 : 0),
      },
    };
  });
}

async function changeSubscription(
  ctx: EngineContext,
  id: string,
  effect: EffectContext,
  decide: (subscription: SubscriptionRecord) => { type: string; next: SubscriptionRecord },
): Promise<WireObject> {
  const answer = await store.inTransaction(ctx.db, async (tx) => {
    const subscription = await store.findSubscription(tx, id, ctx.clock.nowMs(), { lock: true });
    if (subscription === null) throw wireErrors.missing("subscription", id, "id");
    const { type, next } = decide(subscription);
    await store.updateSubscription(tx, next);
    const rendered = renderSubscription(ctx.seed, next);
    await recordEvent(ctx, tx, type, rendered, effect);
    await effect.seal?.(tx, rendered);
    return rendered;
  });
  ctx.onEvents();
  return answer;
}

async function recordEvent(
  ctx: EngineContext,
  tx: store.Queryable,
  type: string,
  object: WireObject,
  cause: { idempotencyKey: string | null; requestId: string | null },
  previous?: WireObject,
): Promise<void> {
  const ordinal = ctx.counters.events.next();
  const createdAtMs = ctx.clock.nowMs();
  const event = eventBody({
    id: deterministicId(ctx.seed, "evt", ordinal),
    type,
    createdAtMs,
    object,
    cause,
    ...(previous === undefined ? {} : { previous }),
  });
  await store.insertEvent(tx, {
    ordinal,
    id: event.id,
    type,
    objectId: String(object["id"]),
    body: event.body,
    createdAtMs,
  });
}

/** Stripe's event envelope as the exact text that is signed and sent. */
export function eventBody(event: {
  id: string;
  type: string;
  createdAtMs: number;
  object: WireObject;
  cause: { idempotencyKey: string | null; requestId: string | null };
  previous?: WireObject;
}): { id: string; body: string } {
  const body = {
    id: event.id,
    object: "event",
    api_version: API_VERSION,
    created: toSeconds(event.createdAtMs),
    data: {
      object: event.object,
      ...(event.previous === undefined ? {} : { previous_attributes: event.previous }),
    },
    livemode: false,
    pending_webhooks: 1,
    request: { id: event.cause.requestId, idempotency_key: event.cause.idempotencyKey },
    type: event.type,
  };
  return { id: event.id, body: JSON.stringify(body, null, 2) };
}

/** The version that the pinned official client speaks. */
export const API_VERSION = "2026-10-28.endive";
