/** What the provider shows of a payment or subscription beside our own operations. */
import type { SqlRunner } from "../db/connect.js";
import type { OperationId } from "../domain/ids.js";
import type { ListingContext } from "../domain/judge-listing.js";
import type { Operation } from "../domain/operation.js";
import type { LedgerCtx } from "./context.js";
import { recordEvidence } from "./evidence.js";
import { openIncident } from "./incidents.js";

interface Known {
  id: OperationId;
  provider_ref: string | null;
}

/** $1 payment intent. All our refunds on it, whatever became of them. */
const ON_PAYMENT = `
SELECT o.id, o.provider_ref FROM operations o JOIN payments p ON p.order_id = o.order_id
WHERE p.payment_intent = $1 AND o.kind = 'refund'`;

/** $1 the provider's subscription. */
const ON_SUBSCRIPTION = `
SELECT o.id, o.provider_ref FROM operations o JOIN subscriptions s ON s.id = o.subscription_id
WHERE s.provider_ref = $1`;

type Target = { readonly paymentIntent: string } | { readonly providerSubscription: string };

const onTarget = (on: SqlRunner, target: Target): Promise<Known[]> =>
  "paymentIntent" in target
    ? on.sql<Known>("ledger.on_payment", ON_PAYMENT, [target.paymentIntent])
    : on.sql<Known>("ledger.on_subscription", ON_SUBSCRIPTION, [target.providerSubscription]);

/** Provider references of one payment or subscription that operations explain: reference → operation. */
export async function knownReferences(on: SqlRunner, target: Target): Promise<Map<string, OperationId>> {
  return referencesOf(await onTarget(on, target));
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

/** $1 payment, $2 minor units. */
const SET_ELSEWHERE = `
UPDATE payments SET refunded_elsewhere = $2::bigint, version = version + 1, updated_at = countersign_now() WHERE id = $1`;

/**
 * What the provider lists on a payment that is not ours, in minor units, with the references. Recorded even where it breaks the
 * plan; then an incident says so. Nothing happens for a payment that we do not know.
 */
export async function recordElsewhere(
  ctx: LedgerCtx,
  request: { paymentIntent: string; elsewhereMinor: bigint; effects: readonly string[] },
): Promise<{ changed: boolean; overdrawn: boolean }> {
  return ctx.db.tx(async (tx) => {
    const [payment] = await tx.sql<PaymentRow>("ledger.lock_payment", LOCK_PAYMENT, [request.paymentIntent]);
    if (payment === undefined) return { changed: false, overdrawn: false };
    for (const ref of request.effects) {
      await recordEvidence(tx, ctx, {
        operationId: null,
        source: "sweep",
        providerRef: ref,
        dedupeKey: `elsewhere:${ref}`,
        payload: { ref, paymentIntent: request.paymentIntent },
      });
    }
    const spent = payment.reserved + payment.refunded + request.elsewhereMinor;
    const overdrawn = spent > payment.captured;
    if (payment.before === request.elsewhereMinor) return { changed: false, overdrawn };
    await tx.sql("ledger.set_elsewhere", SET_ELSEWHERE, [payment.id, request.elsewhereMinor]);
    const detail = {
      captured: Number(payment.captured),
      reserved: Number(payment.reserved),
      refunded: Number(payment.refunded),
      refundedElsewhere: Number(request.elsewhereMinor),
      before: Number(payment.before),
      effects: [...request.effects],
    };
    await openIncident(tx, ctx, {
      kind: overdrawn ? "overdrawn" : "refunded_elsewhere",
      dedupeKey: `elsewhere:${payment.id}:${request.elsewhereMinor}:${overdrawn}`,
      operationId: null,
      paymentId: payment.id,
      detail,
    });
    return { changed: true, overdrawn };
  });
}
