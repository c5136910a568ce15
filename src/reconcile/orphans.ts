/**
 * The books compared both ways: effects at the provider that no operation of ours explains, and confirmed operations that the
 * provider does not show. Each finding is an incident, once, whoever finds it.
 */
import {
  contradictRejected,
  effectEvidence,
  refreshBalance,
  reportDuplicate,
  takeBack,
} from "../dispatch/index.js";
import { isDead, type ProviderEffect } from "../domain/evidence.js";
import { isOperationId, type OperationId } from "../domain/ids.js";
import type { Operation, OperationStatus } from "../domain/operation.js";
import {
  getOperation,
  openIncident,
  operationByProviderRef,
  paymentsWithNews,
  wasClosedKnowing,
} from "../ledger/index.js";
import type { ReconcileCtx } from "./context.js";

/** States in which an effect at the provider is explained: it may happen, did happen, or was taken back. */
const EXPLAINED: ReadonlySet<OperationStatus> = new Set([
  "DISPATCHED",
  "OUTCOME_UNKNOWN",
  "RECONCILING",
  "QUARANTINED",
  "CONFIRMED",
  "REVERSED",
]);
/** Asked for one by one in a pass. */
const MISSED_LIMIT = 1_000;

export interface SweepResult {
  /** false: the provider's list could not be read, and nothing was judged. */
  readonly read: boolean;
  readonly effects: number;
  readonly orphans: number;
  readonly missing: number;
}

/** One pass over everything that the provider made within the window. */
export async function sweepOrphans(ctx: ReconcileCtx): Promise<SweepResult> {
  const [clock] = await ctx.db.sql<{ since: Date; now: Date }>(
    "reconcile.window",
    `SELECT countersign_now() - $1::bigint * interval '1 millisecond' AS since, countersign_now() AS now`,
    [ctx.reconcile.orphanWindowMs],
  );
  if (clock === undefined) throw new Error("the database gave no time");
  const listing = await ctx.provider.listSince(clock.since, { timeoutMs: ctx.timing.providerTimeoutMs });
  if (listing.read === "failed") {
    ctx.log.warn(
      { reason: listing.reason },
      "the provider's list could not be read; the books are compared later",
    );
    return { read: false, effects: 0, orphans: 0, missing: 0 };
  }
  let orphans = 0;
  const touched = new Set<string>();
  for (const effect of listing.effects) {
    if (!(await isOrphan(ctx, effect))) continue;
    orphans += 1;
    if (effect.kind === "refund") touched.add(effect.target);
  }
  // Without our mark it was made elsewhere, by a person or another program: the payment's own list tells how much is gone.
  const unmarked = listing.effects.filter(
    (effect) => effect.kind === "refund" && effect.operationId === null && !isDead(effect),
  );
  for (const paymentIntent of await paymentsWithNews(ctx.db, unmarked)) touched.add(paymentIntent);
  // What they took is gone from the payment, whoever sent it.
  for (const paymentIntent of touched) {
    await refreshBalance(ctx, { paymentIntent, providerSubscription: null });
  }
  const missing = await missingEffects(
    ctx,
    clock.since,
    // One that failed is listed, and is no effect.
    new Set(listing.effects.filter((effect) => !isDead(effect)).map((effect) => effect.ref)),
  );
  return { read: true, effects: listing.effects.length, orphans, missing };
}

/**
 * An effect that names an operation of ours which cannot have made it, one that does not exist here, or one that is confirmed by
 * another effect: then money moved twice.
 */
async function isOrphan(ctx: ReconcileCtx, effect: ProviderEffect): Promise<boolean> {
  // Without our mark it was made elsewhere, and is no orphan of ours.
  if (isDead(effect) || effect.operationId === null) return false;
  const named: OperationId | null = isOperationId(effect.operationId) ? effect.operationId : null;
  const operation =
    (named === null ? null : await getOperation(ctx.db, named)) ??
    (await operationByProviderRef(ctx.db, effect.ref));
  if (operation !== null && isSecond(operation, effect)) {
    await ctx.db.tx((tx) => reportDuplicate(tx, ctx, operation, effect));
    return true;
  }
  if (operation !== null && (EXPLAINED.has(operation.status) || wasClosedKnowing(operation, effect.ref))) {
    return false;
  }
  // Counted as not done, and done: the case is open again, with an incident of its own.
  if (await contradictRejected(ctx, effect)) return true;
  await ctx.db.tx((tx) =>
    openIncident(tx, ctx, {
      kind: "orphan_effect",
      dedupeKey: `orphan:${effect.ref}`,
      operationId: operation?.id ?? null,
      paymentId: null,
      detail: {
        effect: effect.ref,
        payment: effect.target,
        amount: Number(effect.amountMinor),
        currency: effect.currency,
        names: effect.operationId,
        operationStatus: operation?.status ?? "not in the ledger",
      },
    }),
  );
  return true;
}

/** What is still open is judged by its reconciler, which sees both. */
const isSecond = (operation: Operation, effect: ProviderEffect): boolean =>
  (operation.status === "CONFIRMED" || operation.status === "REVERSED") &&
  operation.providerRef !== null &&
  operation.providerRef !== effect.ref;

/**
 * Confirmed within the window, older than the list's lag, not listed and not told of before: asked for by its reference before it is
 * missed.
 */
async function missingEffects(ctx: ReconcileCtx, since: Date, listed: ReadonlySet<string>): Promise<number> {
  const rows = await ctx.db.sql<{ id: OperationId; provider_ref: string }>(
    "reconcile.confirmed_since",
    `SELECT o.id, o.provider_ref FROM operations o
      WHERE o.created_at >= $1 AND o.status = 'CONFIRMED' AND o.kind = 'refund' AND o.provider_ref IS NOT NULL
        AND o.updated_at < countersign_now() - $2::bigint * interval '1 millisecond'
        AND NOT EXISTS (SELECT 1 FROM unnest($4::text[]) AS l (ref) WHERE l.ref = o.provider_ref)
        AND NOT EXISTS (SELECT 1 FROM incidents i WHERE i.dedupe_key = 'missing:' || o.id)
      ORDER BY o.created_at DESC, o.id DESC LIMIT $3`,
    [since, ctx.reconcile.orphanLagMs, MISSED_LIMIT, [...listed]],
  );
  let missing = 0;
  for (const row of rows) {
    const reading = await ctx.provider.read(row.provider_ref, { timeoutMs: ctx.timing.providerTimeoutMs });
    if (reading.read === "failed" || !reading.effects.every(isDead)) continue;
    missing += 1;
    const [dead] = reading.effects;
    if (dead !== undefined && (await tookBack(ctx, row.id, dead))) continue;
    await ctx.db.tx((tx) =>
      openIncident(tx, ctx, {
        kind: "missing_effect",
        dedupeKey: `missing:${row.id}`,
        operationId: row.id,
        paymentId: null,
        detail: { providerRef: row.provider_ref, says: dead?.status ?? "no such effect" },
      }),
    );
  }
  return missing;
}

/** It failed there after it was confirmed, and no webhook said so. */
async function tookBack(ctx: ReconcileCtx, id: OperationId, effect: ProviderEffect): Promise<boolean> {
  const operation = await getOperation(ctx.db, id);
  if (operation === null) return false;
  return takeBack(ctx, operation, effect, {
    actor: "system:reconcile",
    evidence: effectEvidence(id, effect, "sweep"),
  });
}
