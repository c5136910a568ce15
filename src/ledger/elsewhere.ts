/** What the provider shows of a payment or subscription beside our own operations. */
import type { SqlRunner, Tx } from "../db/connect.js";
import { isDead, type ProviderEffect } from "../domain/evidence.js";
import { holdingOf } from "../domain/holding.js";
import type { OperationId } from "../domain/ids.js";
import type { ListingContext } from "../domain/judge-listing.js";
import type { Operation, OperationStatus } from "../domain/operation.js";
import type { LedgerCtx } from "./context.js";
import { recordEvidence } from "./evidence.js";
import { openIncident } from "./incidents.js";
import { recordSubjectEvent } from "./subject-events.js";

interface Known {
  id: OperationId;
  provider_ref: string | null;
  status: OperationStatus;
}

/** $1 payment intent. All our refunds on it, whatever became of them. */
const ON_PAYMENT = `
SELECT o.id, o.provider_ref, o.status FROM operations o JOIN payments p ON p.order_id = o.order_id
WHERE p.payment_intent = $1 AND o.kind = 'refund'`;

/** $1 the provider's subscription. */
const ON_SUBSCRIPTION = `
SELECT o.id, o.provider_ref, o.status FROM operations o JOIN subscriptions s ON s.id = o.subscription_id
WHERE s.provider_ref = $1`;

type Target = { readonly paymentIntent: string } | { readonly providerSubscription: string };

const onTarget = (on: SqlRunner, target: Target): Promise<Known[]> =>
  "paymentIntent" in target
    ? on.sql<Known>("ledger.on_payment", ON_PAYMENT, [target.paymentIntent])
    : on.sql<Known>("ledger.on_subscription", ON_SUBSCRIPTION, [target.providerSubscription]);

/**
 * The refunds on a payment's list that no operation's own money covers: made elsewhere, under the id of an operation that holds
 * nothing, or a second one under an operation's id. Failed ones are none.
 */
export async function unexplainedRefunds(
  on: SqlRunner,
  paymentIntent: string,
  effects: readonly ProviderEffect[],
): Promise<ProviderEffect[]> {
  const known = await onTarget(on, { paymentIntent });
  const references = referencesOf(known);
  // What an open operation has set aside covers one effect with its id, the oldest.
  const open = new Set<string>(
    known.filter((one) => one.provider_ref === null && holdingOf(one.status) !== "none").map((one) => one.id),
  );
  return effects
    .filter((effect) => effect.kind === "refund" && !isDead(effect))
    .sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime())
    .filter(({ ref }) => !references.has(ref))
    .filter(({ operationId }) => operationId === null || !open.delete(operationId));
}

const referencesOf = (known: readonly Known[]): Map<string, OperationId> =>
  new Map(known.flatMap(({ id, provider_ref }) => (provider_ref === null ? [] : [[provider_ref, id]])));

/** $1 references, $2 time. Seen on a list and recorded before that time. */
const SEEN = `
SELECT DISTINCT provider_ref FROM provider_evidence
WHERE provider_ref = ANY($1::text[]) AND operation_id IS NULL AND at < $2::timestamptz`;

/**
 * What `judgeListing` needs to know about a listing read for this operation, whose references are `listed`. Seen before means:
 * recorded as made elsewhere before our first attempt began, or, before there was one, before we were asked.
 */
export async function listingContext(
  on: SqlRunner,
  operation: Operation,
  listed: readonly string[],
): Promise<ListingContext> {
  const target: Target =
    operation.providerSubscription === null
      ? { paymentIntent: operation.paymentIntent ?? "" }
      : { providerSubscription: operation.providerSubscription };
  const known = await onTarget(on, target);
  const seen = await on.sql<{ provider_ref: string }>("ledger.seen_before", SEEN, [
    listed,
    operation.firstClaimedAt ?? operation.createdAt,
  ]);
  const [payment] = await on.sql<{ captured: bigint }>(
    "ledger.captured",
    "SELECT captured FROM payments WHERE payment_intent = $1",
    [operation.paymentIntent],
  );
  return {
    known: referencesOf(known),
    operations: new Set(known.map(({ id }) => id)),
    seenBefore: new Set(seen.map(({ provider_ref }) => provider_ref)),
    capturedMinor: payment?.captured ?? null,
  };
}

interface PaymentRow {
  id: string;
  captured: bigint;
  reserved: bigint;
  refunded: bigint;
  before: bigint;
}

/** $1 payment intent. */
const LOCK_PAYMENT = `
SELECT id, captured, reserved, refunded, refunded_elsewhere AS before FROM payments WHERE payment_intent = $1
FOR NO KEY UPDATE`;

/** $1 payment. What operations hold of it that may have been sent; found by its order, which has an index and one payment. */
const MAY_BE_SPENT = `
SELECT COALESCE(sum(amount_minor), 0)::bigint AS held FROM operations
WHERE order_id = (SELECT order_id FROM payments WHERE id = $1) AND payment_id = $1 AND status IN ('DISPATCHED', 'OUTCOME_UNKNOWN', 'RECONCILING', 'QUARANTINED')`;

/** $1 payment, $2 minor units. */
const SET_ELSEWHERE = `
UPDATE payments SET refunded_elsewhere = $2::bigint, version = version + 1, updated_at = countersign_now() WHERE id = $1`;

/** $1 payment intent, $2 references that are listed now. What was seen as made elsewhere before, and is not on this list. */
const SEEN_AND_NOT_LISTED = `
SELECT provider_ref AS ref, (payload ->> 'amount')::bigint AS amount, payload ->> 'currency' AS currency,
  payload ->> 'operation' AS operation, (payload ->> 'createdAt')::timestamptz AS created_at
FROM provider_evidence
WHERE operation_id IS NULL AND payload ->> 'paymentIntent' = $1 AND payload ->> 'amount' IS NOT NULL
  AND provider_ref <> ALL($2::text[])`;

interface SeenRow {
  ref: string;
  amount: bigint;
  currency: string;
  operation: string | null;
  created_at: Date;
}

/**
 * Refunds that were seen as made elsewhere on this payment, and that a list does not show. A list may be older than they are, or
 * behind: only the provider's word about the refund itself takes it away.
 */
export async function seenAndNotListed(
  on: SqlRunner,
  paymentIntent: string,
  listed: readonly ProviderEffect[],
): Promise<ProviderEffect[]> {
  const rows = await on.sql<SeenRow>("ledger.seen_and_not_listed", SEEN_AND_NOT_LISTED, [
    paymentIntent,
    listed.map(({ ref }) => ref),
  ]);
  return rows.map((row) => ({
    ref: row.ref,
    kind: "refund",
    target: paymentIntent,
    amountMinor: row.amount,
    currency: row.currency,
    status: "seen",
    pendingReason: null,
    failureReason: null,
    operationId: row.operation,
    createdAt: row.created_at,
  }));
}

/** $1 references, $2 their payment intents. On a payment of ours, not seen before, and no operation's. */
const NEWS_OF_PAYMENT = `
SELECT DISTINCT l.payment_intent FROM unnest($1::text[], $2::text[]) AS l (ref, payment_intent)
JOIN payments p ON p.payment_intent = l.payment_intent
WHERE NOT EXISTS (SELECT 1 FROM provider_evidence e WHERE e.provider_ref = l.ref AND e.operation_id IS NULL)
  AND NOT EXISTS (SELECT 1 FROM operations o WHERE o.provider_ref = l.ref)
ORDER BY 1`;

/** Payments of ours on which one of these refunds is news: nobody here made it, and it was not seen before. */
export async function paymentsWithNews(on: SqlRunner, effects: readonly ProviderEffect[]): Promise<string[]> {
  const rows = await on.sql<{ payment_intent: string }>("ledger.news_of_payment", NEWS_OF_PAYMENT, [
    effects.map(({ ref }) => ref),
    effects.map(({ target }) => target),
  ]);
  return rows.map(({ payment_intent }) => payment_intent);
}

/** Keeps that this refund was seen as made elsewhere, once. Joins the caller's transaction. */
async function recordSeen(
  tx: Tx,
  ctx: LedgerCtx,
  paymentIntent: string,
  effect: ProviderEffect,
): Promise<void> {
  await recordEvidence(tx, ctx, {
    operationId: null,
    source: "sweep",
    providerRef: effect.ref,
    dedupeKey: `elsewhere:${effect.ref}`,
    payload: {
      ref: effect.ref,
      paymentIntent,
      amount: Number(effect.amountMinor),
      currency: effect.currency,
      operation: effect.operationId,
      createdAt: effect.createdAt.toISOString(),
    },
  });
}

/** $1 subject. What its last event says to be in the sum. */
const COUNTED = `
SELECT jsonb_array_elements_text(body::jsonb #> '{data,effects}') AS ref FROM (
  SELECT body FROM operation_events WHERE subject = $1 ORDER BY seq DESC LIMIT 1) last`;

/** References that the sum holds now. Read under the payment's lock. */
async function countedOn(tx: Tx, paymentId: string): Promise<ReadonlySet<string>> {
  const rows = await tx.sql<{ ref: string }>("ledger.counted_elsewhere", COUNTED, [subjectOf(paymentId)]);
  return new Set(rows.map(({ ref }) => ref));
}

const subjectOf = (paymentId: string): `payment:${string}` => `payment:${paymentId}`;

/** `effects`: every reference that the sum holds. */
async function setElsewhere(
  tx: Tx,
  payment: Pick<PaymentRow, "id" | "before">,
  minor: bigint,
  effects: readonly string[],
): Promise<void> {
  await tx.sql("ledger.set_elsewhere", SET_ELSEWHERE, [payment.id, minor]);
  await recordSubjectEvent(tx, {
    subject: subjectOf(payment.id),
    type: "refunded_elsewhere",
    actor: "system:ledger",
    data: { minor: Number(minor), before: Number(payment.before), effects: [...effects] },
  });
}

/**
 * What the provider lists on a payment that is not ours, counted under the payment's lock. Recorded even where it breaks the
 * plan; then an incident says so. An operation that was never sent breaks no plan: it is stopped before it leaves.
 *
 * `gone`: references of which the provider itself said that there is no such refund, or that it came to nothing. What was seen
 * before and is neither listed nor gone still counts, so that the order in which two readings are written decides nothing.
 * Nothing happens for a payment that we do not know.
 */
export async function recordElsewhere(
  ctx: LedgerCtx,
  request: {
    paymentIntent: string;
    listed: readonly ProviderEffect[];
    gone?: ReadonlySet<string>;
  },
): Promise<{ changed: boolean; overdrawn: boolean }> {
  const { paymentIntent, listed, gone = new Set() } = request;
  return ctx.db.tx(async (tx) => {
    const [payment] = await tx.sql<PaymentRow>("ledger.lock_payment", LOCK_PAYMENT, [paymentIntent]);
    if (payment === undefined) return { changed: false, overdrawn: false };
    const seen = await seenAndNotListed(tx, paymentIntent, listed);
    const foreign = await unexplainedRefunds(tx, paymentIntent, [
      ...listed,
      ...seen.filter(({ ref }) => !gone.has(ref)),
    ]);
    for (const effect of foreign) await recordSeen(tx, ctx, paymentIntent, effect);
    const elsewhere = foreign.reduce((sum, effect) => sum + effect.amountMinor, 0n);
    const [sent] = await tx.sql<{ held: bigint }>("ledger.may_be_spent", MAY_BE_SPENT, [payment.id]);
    const overdrawn = (sent?.held ?? 0n) + payment.refunded + elsewhere > payment.captured;
    const effects = foreign.map(({ ref }) => ref);
    const counted = await countedOn(tx, payment.id);
    const sameSum = payment.before === elsewhere;
    if (sameSum && counted.size === effects.length && effects.every((ref) => counted.has(ref)))
      return { changed: false, overdrawn };
    await setElsewhere(tx, payment, elsewhere, effects);
    if (sameSum) return { changed: false, overdrawn };
    // Those under an operation's id are a duplicate's or an orphan's incident.
    const toldApart = foreign.length > 0 && foreign.every(({ operationId }) => operationId !== null);
    if (toldApart && !overdrawn) return { changed: true, overdrawn };
    await openIncident(tx, ctx, {
      kind: overdrawn ? "overdrawn" : "refunded_elsewhere",
      dedupeKey: `elsewhere:${payment.id}:${elsewhere}:${overdrawn}`,
      operationId: null,
      paymentId: payment.id,
      detail: {
        captured: Number(payment.captured),
        reserved: Number(payment.reserved),
        refunded: Number(payment.refunded),
        refundedElsewhere: Number(elsewhere),
        before: Number(payment.before),
        effects,
      },
    });
    return { changed: true, overdrawn };
  });
}

/**
 * Counts one refund that is no operation's any more, at once, unless the sum holds it already: whatever is judged next sees that this
 * money has left, and no reading that began before can take it back. That it was seen is no word on that: while its operation was open
 * again, it was the operation's own. Joins the transaction that closed its operation.
 */
export async function countElsewhere(tx: Tx, ctx: LedgerCtx, effect: ProviderEffect): Promise<void> {
  const [payment] = await tx.sql<PaymentRow>("ledger.lock_payment", LOCK_PAYMENT, [effect.target]);
  if (payment === undefined) return;
  await recordSeen(tx, ctx, effect.target, effect);
  const counted = await countedOn(tx, payment.id);
  if (counted.has(effect.ref)) return;
  await setElsewhere(tx, payment, payment.before + effect.amountMinor, [...counted, effect.ref]);
}
