/**
 * What the provider shows of a payment beside our own operations: counted in `refunded_elsewhere`, under the payment's lock.
 *
 * 1. The sum is what no operation covers (`uncovered`). It is computed anew whenever a list was read, and whenever an operation
 *    whose effects were seen begins or ceases to hold money.
 * 2. What was seen before and is neither listed nor gone still counts, so that the order in which two readings are written decides nothing.
 * 3. Money of another currency is never added: the payment is closed for refunds (`other_currency`) while the provider shows it.
 */
import type { SqlRunner, Tx } from "../db/connect.js";
import { isDead, type ProviderEffect } from "../domain/evidence.js";
import type { Operation } from "../domain/operation.js";
import { isOther } from "../domain/uncovered.js";
import type { LedgerCtx } from "./context.js";
import { countedElsewhere, paymentSubject, seenAndNotListed, unexplainedRefunds } from "./elsewhere-reads.js";
import { sumOf, tellChanged, tellMore, tellOther, toldHere } from "./elsewhere-told.js";
import { recordEvidence } from "./evidence.js";
import { recordSubjectEvent } from "./subject-events.js";

interface PaymentRow {
  id: string;
  payment_intent: string;
  currency: string;
  captured: bigint;
  reserved: bigint;
  refunded: bigint;
  before: bigint;
  other_currency: string | null;
}

/** $1 payment intent. */
const LOCK_PAYMENT = `
SELECT id, payment_intent, currency, captured, reserved, refunded, refunded_elsewhere AS before, other_currency
FROM payments WHERE payment_intent = $1
FOR NO KEY UPDATE`;

/** $1 payment. What operations hold of it that may have been sent; found by its order, which has an index and one payment. */
const MAY_BE_SPENT = `
SELECT COALESCE(sum(amount_minor), 0)::bigint AS held FROM operations
WHERE order_id = (SELECT order_id FROM payments WHERE id = $1) AND payment_id = $1 AND status IN ('DISPATCHED', 'OUTCOME_UNKNOWN', 'RECONCILING', 'QUARANTINED')`;

/** $1 payment, $2 minor units, $3 another currency that the provider shows. */
const SET_ELSEWHERE = `
UPDATE payments SET refunded_elsewhere = $2::bigint, other_currency = $3, version = version + 1, updated_at = countersign_now()
WHERE id = $1 RETURNING version`;

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

/** $1 references, $2 what is said of each: `dead` or `absent`. Of those that were seen as made elsewhere, and this not said of yet. */
const NEWLY_ENDED = `
SELECT r.ref FROM unnest($1::text[], $2::text[]) AS r (ref, said)
WHERE EXISTS (SELECT 1 FROM provider_evidence e WHERE e.dedupe_key = 'elsewhere:' || r.ref)
  AND NOT EXISTS (SELECT 1 FROM provider_evidence e WHERE e.dedupe_key = 'elsewhere_' || r.said || ':' || r.ref)`;

/** The provider knows no such refund; it may show it again. What failed stays so. */
const ABSENT = "absent";
const saidOf = (status: string): "dead" | "absent" => (status === ABSENT ? "absent" : "dead");

/** Keeps that what was seen as made elsewhere came to nothing, once. */
async function recordEnded(
  tx: Tx,
  ctx: LedgerCtx,
  payment: PaymentRow,
  ended: ReadonlyMap<string, string>,
): Promise<void> {
  const rows = await tx.sql<{ ref: string }>("ledger.newly_ended", NEWLY_ENDED, [
    [...ended.keys()],
    [...ended.values()].map(saidOf),
  ]);
  if (rows.length === 0) return;
  for (const { ref } of rows) {
    const status = ended.get(ref) ?? ABSENT;
    await recordEvidence(tx, ctx, {
      operationId: null,
      source: "sweep",
      providerRef: ref,
      dedupeKey: `elsewhere_${saidOf(status)}:${ref}`,
      payload: { ref, paymentIntent: payment.payment_intent, status },
    });
  }
}

export interface Recorded {
  readonly changed: boolean;
  /** More was spent than was captured. */
  readonly overdrawn: boolean;
  /** References that counted until now: they came to nothing, or an operation of ours covers them since. */
  readonly freed: readonly string[];
}

const NOTHING: Recorded = { changed: false, overdrawn: false, freed: [] };

/**
 * What the provider lists on a payment that is not ours, counted under the payment's lock. Recorded even where it breaks the
 * plan; then an incident says so. An operation that was never sent breaks no plan: it is stopped before it leaves.
 *
 * `gone`: references of which the provider itself said that there is no such refund. Nothing happens for a payment that we do not know.
 */
export async function recordElsewhere(
  ctx: LedgerCtx,
  request: {
    paymentIntent: string;
    listed: readonly ProviderEffect[];
    gone?: ReadonlySet<string>;
  },
): Promise<Recorded> {
  const { paymentIntent, listed, gone = new Set<string>() } = request;
  return ctx.db.tx(async (tx) => {
    const payment = await lockPayment(tx, paymentIntent);
    if (payment === null) return NOTHING;
    const ended = new Map([...gone].map((ref) => [ref, ABSENT]));
    for (const effect of listed) if (isDead(effect)) ended.set(effect.ref, effect.status);
    await recordEnded(tx, ctx, payment, ended);
    const seen = await seenAndNotListed(tx, paymentIntent, listed);
    return count(tx, ctx, payment, [...listed, ...seen.filter(({ ref }) => !gone.has(ref))]);
  });
}

/** $1 references. Which of them were seen to have ended. */
const ENDED_SEEN = `
SELECT provider_ref AS ref FROM provider_evidence
WHERE dedupe_key = ANY (ARRAY(
  SELECT s.said || r.ref FROM unnest($1::text[]) AS r(ref), (VALUES ('elsewhere_dead:'), ('elsewhere_absent:')) AS s(said)))`;

/**
 * Computes the sum anew from what was seen, after one of the payment's operations began or ceased to hold money: whatever is judged
 * next sees what has left, and nothing counts twice. `shown`: what the provider has just shown of the operation. Joins the
 * transaction of the change.
 */
export async function recountElsewhere(
  tx: Tx,
  ctx: LedgerCtx,
  operation: Pick<Operation, "kind" | "paymentIntent">,
  shown: readonly ProviderEffect[] = [],
): Promise<void> {
  if (operation.kind !== "refund") return;
  const here = shown.filter(({ kind }) => kind === "refund");
  const targets = new Set([operation.paymentIntent, ...here.map(({ target }) => target)]);
  for (const target of [...targets].filter((one) => one !== null).sort()) {
    const payment = await lockPayment(tx, target);
    if (payment === null) continue;
    const effects = here.filter((effect) => effect.target === target);
    const seen = await seenAndNotListed(tx, target, effects);
    const { refs: counted } = await countedElsewhere(tx, payment.id);
    const ended = await endedAmong(tx, seen);
    await count(tx, ctx, payment, [
      ...effects,
      ...seen.filter(({ ref }) => counted.has(ref) || !ended.has(ref)),
    ]);
  }
}

/** References of those of these that were seen to have ended. */
export async function endedAmong(
  on: SqlRunner,
  seen: readonly Pick<ProviderEffect, "ref">[],
): Promise<ReadonlySet<string>> {
  const rows = await on.sql<{ ref: string }>("ledger.ended_seen", ENDED_SEEN, [seen.map(({ ref }) => ref)]);
  return new Set(rows.map(({ ref }) => ref));
}

async function lockPayment(tx: Tx, paymentIntent: string): Promise<PaymentRow | null> {
  const [payment] = await tx.sql<PaymentRow>("ledger.lock_payment", LOCK_PAYMENT, [paymentIntent]);
  return payment ?? null;
}

/** `effects`: everything that was shown and may still stand. The payment's row is locked. */
async function count(
  tx: Tx,
  ctx: LedgerCtx,
  payment: PaymentRow,
  effects: readonly ProviderEffect[],
): Promise<Recorded> {
  const foreign = await unexplainedRefunds(tx, payment.payment_intent, effects);
  for (const { effect } of foreign) await recordSeen(tx, ctx, payment.payment_intent, effect);
  const others = foreign.filter(({ effect }) => isOther(effect, payment.currency));
  const elsewhere = sumOf(foreign.filter((one) => !others.includes(one)));
  const otherCurrency = others[0]?.effect.currency ?? null;
  const [sent] = await tx.sql<{ held: bigint }>("ledger.may_be_spent", MAY_BE_SPENT, [payment.id]);
  const overdrawn = (sent?.held ?? 0n) + payment.refunded + elsewhere > payment.captured;
  const refs = foreign.map(({ effect }) => effect.ref);
  const last = await countedElsewhere(tx, payment.id);
  const counted = last.refs;
  const sameSum = payment.before === elsewhere && payment.other_currency === otherCurrency;
  if (sameSum && counted.size === refs.length && refs.every((ref) => counted.has(ref)))
    return { changed: false, overdrawn, freed: [] };
  const [written] = await tx.sql<{ version: bigint }>("ledger.set_elsewhere", SET_ELSEWHERE, [
    payment.id,
    elsewhere,
    otherCurrency,
  ]);
  const { told, ofAnother } = await toldHere(tx, foreign, payment);
  await recordSubjectEvent(tx, {
    subject: paymentSubject(payment.id),
    type: "refunded_elsewhere",
    actor: "system:ledger",
    data: {
      minor: Number(elsewhere),
      before: Number(payment.before),
      effects: refs,
      toldHere: Number(sumOf(told)),
      otherCurrency,
    },
  });
  const version = written?.version ?? 0n;
  const finding = { payment, foreign, told, ofAnother, last, elsewhere, overdrawn, version };
  if (elsewhere > payment.before) await tellMore(tx, ctx, finding);
  if (otherCurrency !== null && otherCurrency !== payment.other_currency) {
    await tellOther(tx, ctx, { ...finding, foreign: others });
  }
  const stands = new Set(refs);
  const freed = [...counted].filter((ref) => !stands.has(ref));
  const fresh = refs.filter((ref) => !counted.has(ref));
  await tellChanged(tx, ctx, payment.id, [...freed, ...fresh]);
  return { changed: true, overdrawn, freed };
}
