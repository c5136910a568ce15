/** What the provider shows of a payment or subscription beside our own operations: reading. `elsewhere.ts` writes. */
import { z } from "zod";
import type { SqlRunner } from "../db/connect.js";
import { isDead, type ProviderEffect } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import type { ListingContext } from "../domain/judge-listing.js";
import type { Operation, OperationStatus } from "../domain/operation.js";
import { type Uncovered, uncovered } from "../domain/uncovered.js";
import { dataIn } from "./audit-check.js";
import { referenceIsGiven, referenceStands } from "./on-word.js";

interface Known {
  id: OperationId;
  /** null also where only a person named it and that end was taken back. */
  provider_ref: string | null;
  status: OperationStatus;
  amount_minor: bigint;
  /** Its reference is only what a person named. */
  given: boolean;
}

/** $1 payment intent. All our refunds on it, whatever became of them. */
const ON_PAYMENT = `
SELECT o.id, CASE WHEN ${referenceStands("o")} THEN o.provider_ref END AS provider_ref, o.status, o.amount_minor,
  ${referenceIsGiven("o")} AS given FROM operations o JOIN payments p ON p.order_id = o.order_id
WHERE p.payment_intent = $1 AND o.kind = 'refund'`;

/** $1 the provider's subscription. */
const ON_SUBSCRIPTION = `
SELECT o.id, o.provider_ref, o.status, o.amount_minor, false AS given FROM operations o JOIN subscriptions s ON s.id = o.subscription_id
WHERE s.provider_ref = $1`;

type Target = { readonly paymentIntent: string } | { readonly providerSubscription: string };

const onTarget = (on: SqlRunner, target: Target): Promise<Known[]> =>
  "paymentIntent" in target
    ? on.sql<Known>("ledger.on_payment", ON_PAYMENT, [target.paymentIntent])
    : on.sql<Known>("ledger.on_subscription", ON_SUBSCRIPTION, [target.providerSubscription]);

const ALIVE_AGAIN = "alive_again:";

/** Under which it is kept that the provider, asked for the refund itself, shows as made what it had taken back. */
export const aliveAgainKey = (ref: string): string => `${ALIVE_AGAIN}${ref}`;

/** $1 references. Of which the provider has said that they came to nothing, and has not taken that back itself. */
const DEAD = `
SELECT DISTINCT d.provider_ref AS ref FROM provider_evidence d
WHERE d.provider_ref = ANY($1::text[]) AND d.payload ->> 'status' IN ('failed', 'canceled')
  AND NOT EXISTS (SELECT 1 FROM provider_evidence a WHERE a.dedupe_key = '${ALIVE_AGAIN}' || d.provider_ref)`;

/** Those of these references of which the provider has said that they came to nothing, and has not taken that back itself. */
export async function knownDead(on: SqlRunner, refs: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await on.sql<{ ref: string }>("ledger.known_dead", DEAD, [refs]);
  return new Set(rows.map(({ ref }) => ref));
}

/**
 * What no operation's own money covers of the refunds on a payment's list: made elsewhere, under the id of an operation that holds
 * nothing, a second one under an operation's id, or more than was asked for. Failed ones are none, also where the list is older
 * than the news.
 */
export async function unexplainedRefunds(
  on: SqlRunner,
  paymentIntent: string,
  effects: readonly ProviderEffect[],
): Promise<Uncovered[]> {
  const known = await onTarget(on, { paymentIntent });
  const [payment] = await on.sql<{ currency: string }>(
    "ledger.currency_of",
    "SELECT currency FROM payments WHERE payment_intent = $1",
    [paymentIntent],
  );
  const gone = await knownDead(
    on,
    effects.map(({ ref }) => ref),
  );
  const marks = new Map(effects.map(({ ref, operationId }) => [ref, operationId] as const));
  // A word covers no effect that carries another id.
  const isAnothers = ({ id, given, provider_ref: ref }: Known): boolean =>
    given && ref !== null && (marks.get(ref) ?? id) !== id;
  return uncovered(
    effects.filter(({ ref }) => !gone.has(ref)),
    known.map((one) => ({
      id: one.id,
      status: one.status,
      amountMinor: one.amount_minor,
      providerRef: isAnothers(one) ? null : one.provider_ref,
    })),
    payment?.currency ?? null,
  );
}

const referencesOf = (known: readonly Known[]): Map<string, OperationId> =>
  new Map(known.flatMap(({ id, provider_ref }) => (provider_ref === null ? [] : [[provider_ref, id]])));

/**
 * $1 references, $2 time, $3 payment intent. Seen on a list, and counted as made elsewhere, before that time, as the log tells: a row of
 * evidence alone, which anybody may have written, makes nobody's refund one of before. Read as the text that it is.
 */
const SEEN = `
SELECT l.ref FROM unnest($1::text[]) AS l (ref)
WHERE EXISTS (
  SELECT 1 FROM payments p JOIN operation_events e ON e.subject = 'payment:' || p.id
  WHERE p.payment_intent = $3 AND e.type = 'refunded_elsewhere' AND e.at < $2::timestamptz
    AND strpos(e.body, to_json(l.ref)::text) > 0)`;

/**
 * What `judgeListing` needs to know about a listing read for this operation, whose references are `listed`. Seen before means:
 * counted as made elsewhere before our first attempt began, or, before there was one, before we were asked.
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
  const seen = await on.sql<{ ref: string }>("ledger.seen_before", SEEN, [
    listed,
    operation.firstClaimedAt ?? operation.createdAt,
    operation.paymentIntent,
  ]);
  const [payment] = await on.sql<{ captured: bigint }>(
    "ledger.captured",
    "SELECT captured FROM payments WHERE payment_intent = $1",
    [operation.paymentIntent],
  );
  // A word makes no effect another operation's; but what it means is no stranger.
  const given = known.filter((one) => one.given && one.id !== operation.id);
  return {
    known: referencesOf(known.filter((one) => !given.includes(one))),
    operations: new Set(known.map(({ id }) => id)),
    seenBefore: new Set([
      ...seen.map(({ ref }) => ref),
      ...given.flatMap(({ provider_ref: ref }) => (ref === null ? [] : [ref])),
    ]),
    capturedMinor: payment?.captured ?? null,
  };
}

/** $1 payment intent, $2 references that are listed now. What was seen as made elsewhere before, and is not on this list. */
const SEEN_AND_NOT_LISTED = `
SELECT provider_ref AS ref, payload FROM provider_evidence
WHERE operation_id IS NULL AND payload ->> 'paymentIntent' = $1 AND payload ->> 'amount' IS NOT NULL
  AND provider_ref <> ALL($2::text[])`;

/** As `recordSeen` writes it. One that somebody changed into something else tells of nothing, and hides no other. */
const Seen = z.object({
  amount: z.number().int().nonnegative(),
  currency: z.string(),
  operation: z.string().nullable(),
  createdAt: z.coerce.date(),
});

/**
 * Refunds that were seen as made elsewhere on this payment, and that a list does not show. A list may be older than they are, or
 * behind: only the provider's word about the refund itself takes it away.
 */
export async function seenAndNotListed(
  on: SqlRunner,
  paymentIntent: string,
  listed: readonly ProviderEffect[],
): Promise<ProviderEffect[]> {
  const rows = await on.sql<{ ref: string; payload: unknown }>(
    "ledger.seen_and_not_listed",
    SEEN_AND_NOT_LISTED,
    [paymentIntent, listed.map(({ ref }) => ref)],
  );
  return rows.flatMap(({ ref, payload }) => {
    const seen = Seen.safeParse(payload);
    if (!seen.success) return [];
    const { amount, currency, operation, createdAt } = seen.data;
    return [
      {
        ref,
        kind: "refund",
        target: paymentIntent,
        amountMinor: BigInt(amount),
        currency,
        status: "seen",
        pendingReason: null,
        failureReason: null,
        operationId: operation,
        createdAt,
      },
    ];
  });
}

/** SQL: whether anything was kept of the listed effect `l` under this name; null: no. Looked up: behind EXISTS all rows could be read. */
const evidence = (name: string): string =>
  `(SELECT true FROM provider_evidence e WHERE e.dedupe_key = '${name}' || l.ref)`;

/**
 * $1 references, $2 their payment intents, $3 minor units, $4 currencies, $5 operations that they name, $6 whether they came to nothing.
 * A living one is news unless it was seen before or an operation covers it alone; a dead one, when it was seen alive.
 */
const NEWS_OF_PAYMENT = `
SELECT DISTINCT l.payment_intent
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::boolean[])
  AS l (ref, payment_intent, amount, currency, operation, dead)
JOIN LATERAL (SELECT * FROM payments WHERE payment_intent = l.payment_intent OFFSET 0) p ON true
WHERE CASE WHEN l.dead
  THEN ${evidence("elsewhere:")} IS NOT NULL AND ${evidence("elsewhere_dead:")} IS NULL
  ELSE ${evidence("elsewhere:")} IS NULL
    AND (
      SELECT true FROM operations o WHERE o.provider_ref = l.ref AND o.status = 'CONFIRMED' AND o.payment_intent = l.payment_intent
        AND o.amount_minor >= l.amount LIMIT 1) IS NULL
    AND (
      SELECT true FROM operations o WHERE o.id = l.operation AND o.kind = 'refund' AND o.order_id = p.order_id
        AND o.amount_minor >= l.amount AND upper(l.currency) = upper(p.currency)
        AND o.status IN ('PREPARED', 'DISPATCHED', 'OUTCOME_UNKNOWN', 'RECONCILING', 'QUARANTINED')) IS NULL
  END
ORDER BY 1`;

/** Payments of ours on which one of these refunds is news: more left than our operations cover, or what counted as gone came to nothing. */
export async function paymentsWithNews(on: SqlRunner, effects: readonly ProviderEffect[]): Promise<string[]> {
  const rows = await on.sql<{ payment_intent: string }>("ledger.news_of_payment", NEWS_OF_PAYMENT, [
    effects.map(({ ref }) => ref),
    effects.map(({ target }) => target),
    effects.map(({ amountMinor }) => amountMinor),
    effects.map(({ currency }) => currency),
    effects.map(({ operationId }) => operationId),
    effects.map((effect) => isDead(effect)),
  ]);
  return rows.map(({ payment_intent }) => payment_intent);
}

/**
 * $1 rows, $2 milliseconds, $3 milliseconds. Payments that nobody has read whole for $2, the longest unread first. They rest for $3, and do
 * not count as read before somebody says that they were.
 */
const TAKE_TO_COMPARE = `
UPDATE payments p SET compared_at = countersign_now() - ($2::bigint - $3::bigint) * interval '1 millisecond'
FROM (
  SELECT id FROM payments WHERE compared_at <= countersign_now() - $2::bigint * interval '1 millisecond'
  ORDER BY compared_at, id LIMIT $1::int FOR NO KEY UPDATE SKIP LOCKED
) due
WHERE p.id = due.id RETURNING p.payment_intent`;

/** The next payments whose whole list is to be compared, each taken by one sweep, which says how it went (`countCompared`). */
export async function takeToCompare(
  on: SqlRunner,
  options: { limit: number; unreadMs: number; restMs: number },
): Promise<string[]> {
  const rows = await on.sql<{ payment_intent: string }>("ledger.take_to_compare", TAKE_TO_COMPARE, [
    options.limit,
    options.unreadMs,
    options.restMs,
  ]);
  return rows.map(({ payment_intent }) => payment_intent);
}

/** $1 payments, $2 milliseconds. */
const COUNT_COMPARED = `
UPDATE payments SET compared_at = countersign_now() - $2::bigint * interval '1 millisecond' WHERE payment_intent = ANY ($1::text[])`;

/** Payments that were taken count as unread for this long, in milliseconds; 0: they were read now. */
export async function countCompared(
  on: SqlRunner,
  paymentIntents: readonly string[],
  unreadMs: number,
): Promise<void> {
  if (paymentIntents.length > 0)
    await on.sql("ledger.count_compared", COUNT_COMPARED, [paymentIntents, unreadMs]);
}

/** The currency that the provider shows on this payment and that cannot be counted in its own; null: there is none. */
export async function otherCurrencyOn(on: SqlRunner, paymentIntent: string): Promise<string | null> {
  const [row] = await on.sql<{ other_currency: string | null }>(
    "ledger.other_currency_on",
    "SELECT other_currency FROM payments WHERE payment_intent = $1",
    [paymentIntent],
  );
  return row?.other_currency ?? null;
}

export const paymentSubject = (paymentId: string): `payment:${string}` => `payment:${paymentId}`;

/** $1 subject. The last event that says what is in the sum, as text: one that somebody made unreadable keeps nobody from counting. */
const COUNTED = `
SELECT body FROM operation_events WHERE subject = $1 AND type = 'refunded_elsewhere' ORDER BY seq DESC LIMIT 1`;

export interface Counted {
  /** References that the sum holds now. */
  readonly refs: ReadonlySet<string>;
  /** What of the sum no incident of an operation's tells; null: the event is older than that was kept. */
  readonly toldHereMinor: bigint | null;
}

/** What counts as refunded elsewhere on a payment now. Who writes reads it under the payment's lock. */
export async function countedElsewhere(on: SqlRunner, paymentId: string): Promise<Counted> {
  const [last] = await on.sql<{ body: string }>("ledger.counted_elsewhere", COUNTED, [
    paymentSubject(paymentId),
  ]);
  const data = last === undefined ? {} : dataIn(last.body);
  const { effects, toldHere } = data;
  return {
    refs: new Set(Array.isArray(effects) ? effects.filter((ref) => typeof ref === "string") : []),
    toldHereMinor: typeof toldHere === "number" && Number.isInteger(toldHere) ? BigInt(toldHere) : null,
  };
}
