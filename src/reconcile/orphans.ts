/**
 * The books compared both ways: effects at the provider that no operation of ours explains, and confirmed operations that the
 * provider does not show. Each finding is an incident, once, whoever finds it.
 */
import {
  contradictRejected,
  judgeBesideWord,
  maybeAliveAgain,
  refreshBalance,
  reportAliveAgain,
  reportDuplicate,
  tellOpen,
} from "../dispatch/index.js";
import { isDead, type ProviderEffect } from "../domain/evidence.js";
import { isOperationId, type OperationId } from "../domain/ids.js";
import { isConfirmedOnWord } from "../domain/named-evidence.js";
import type { Operation, OperationStatus } from "../domain/operation.js";
import {
  countCompared,
  getOperation,
  openIncident,
  operationByProviderRef,
  paymentsWithNews,
  staysRejected,
  takeToCompare,
  wasClosedKnowing,
} from "../ledger/index.js";
import { alone } from "./alone.js";
import type { ReconcileCtx } from "./context.js";
import { missingEffects } from "./missing.js";

/** States in which an effect at the provider is explained: it may happen, did happen, or was taken back. */
const EXPLAINED: ReadonlySet<OperationStatus> = new Set([
  "DISPATCHED",
  "OUTCOME_UNKNOWN",
  "RECONCILING",
  "QUARANTINED",
  "CONFIRMED",
  "REVERSED",
]);
/**
 * Payments that one pass reads whole, whatever their age, so that a refund or a failure from before the window is found too: one call
 * each, and none is read more than once a day.
 */
const COMPARED_LIMIT = 50;
const COMPARED_EVERY_MS = 24 * 3_600_000;
/** One whose list could not be read has its turn again after this. */
const UNREAD_AGAIN_MS = 3_600_000;
/** Longer than a pass takes: what was taken by a process that died has its turn again after this. */
const TAKEN_MS = 900_000;
/** So many in a row that cannot be read are the provider's outage, in which a pass asks no further. */
const UNREAD_IN_A_ROW = 2;

export interface SweepResult {
  /** false: the provider's list of everything could not be read; payments were read in their turn all the same. */
  readonly read: boolean;
  readonly effects: number;
  readonly orphans: number;
  readonly missing: number;
  /** Payments that were read whole in their turn. */
  readonly compared: number;
  /** Effects and payments about which nothing could be written. */
  readonly broken: number;
}

/** One pass over everything that the provider made within the window, and over some payments that were not read for long. */
export async function sweepOrphans(ctx: ReconcileCtx): Promise<SweepResult> {
  const [clock] = await ctx.db.sql<{ since: Date; now: Date }>(
    "reconcile.window",
    `SELECT countersign_now() - $1::bigint * interval '1 millisecond' AS since, countersign_now() AS now`,
    [ctx.reconcile.orphanWindowMs],
  );
  if (clock === undefined) throw new Error("the database gave no time");
  const listing = await ctx.provider.listSince(clock.since, { timeoutMs: ctx.timing.providerTimeoutMs });
  if (listing.read === "failed")
    ctx.log.warn(
      { reason: listing.reason },
      "the provider's list of everything could not be read; payments are read one by one, each in its turn",
    );
  const found =
    listing.read === "failed"
      ? { effects: 0, orphans: 0, missing: 0, broken: 0 }
      : await compareRecent(ctx, clock.since, listing.effects);
  const inTurn = await compareInTurn(ctx);
  return {
    read: listing.read === "complete",
    effects: found.effects,
    orphans: found.orphans + inTurn.orphans,
    missing: found.missing + inTurn.missing,
    compared: inTurn.compared,
    broken: found.broken + inTurn.broken,
  };
}

/** Payments that were not read for longest. What could not be read keeps its turn, or has it again soon. */
async function compareInTurn(
  ctx: ReconcileCtx,
): Promise<Pick<SweepResult, "orphans" | "missing" | "compared" | "broken">> {
  const whole = await takeToCompare(ctx.db, {
    limit: COMPARED_LIMIT,
    unreadMs: COMPARED_EVERY_MS,
    restMs: TAKEN_MS,
  });
  const result = { orphans: 0, missing: 0, broken: 0 };
  const read: string[] = [];
  const unread: string[] = [];
  let inARow = 0;
  let at = 0;
  for (; at < whole.length && inARow < UNREAD_IN_A_ROW; at += 1) {
    const paymentIntent = whole[at] ?? "";
    const one = await alone(ctx, { paymentIntent }, () => comparePayment(ctx, paymentIntent));
    if (!one.done || one.value === null) {
      unread.push(paymentIntent);
      // What breaks here is no outage there.
      if (one.done) inARow += 1;
      else result.broken += 1;
      continue;
    }
    inARow = 0;
    read.push(paymentIntent);
    result.orphans += one.value.orphans;
    result.missing += one.value.missing;
  }
  await countCompared(ctx.db, read, 0);
  await countCompared(ctx.db, unread, COMPARED_EVERY_MS - UNREAD_AGAIN_MS);
  await countCompared(ctx.db, whole.slice(at), COMPARED_EVERY_MS);
  return { ...result, compared: read.length };
}

/** Everything that the provider made within the window. */
async function compareRecent(
  ctx: ReconcileCtx,
  since: Date,
  effects: readonly ProviderEffect[],
): Promise<Pick<SweepResult, "effects" | "orphans" | "missing" | "broken">> {
  let broken = 0;
  const tried = async <T>(about: Readonly<Record<string, string>>, work: () => Promise<T>) => {
    const one = await alone(ctx, about, work);
    if (!one.done) broken += 1;
    return one.done ? one.value : null;
  };
  await tried({}, () => tellOpen(ctx, effects));
  let orphans = 0;
  const touched = new Set<string>();
  for (const effect of effects) {
    if ((await tried({ effect: effect.ref }, () => isOrphan(ctx, effect))) !== true) continue;
    orphans += 1;
    if (effect.kind === "refund") touched.add(effect.target);
  }
  // The payment's own list tells how much is gone, or is there again.
  const refunds = effects.filter(({ kind }) => kind === "refund");
  for (const paymentIntent of await paymentsWithNews(ctx.db, refunds)) touched.add(paymentIntent);
  for (const paymentIntent of touched) {
    await tried({ paymentIntent }, () => refreshBalance(ctx, { paymentIntent, providerSubscription: null }));
  }
  const missing = await tried({}, () => missingEffects(ctx, { since }, effects));
  return { effects: effects.length, orphans, missing: missing ?? 0, broken };
}

/** One payment's whole list, held against everything that we have of it; null: it could not be read. */
async function comparePayment(
  ctx: ReconcileCtx,
  paymentIntent: string,
): Promise<{ orphans: number; missing: number } | null> {
  const effects = await refreshBalance(ctx, { paymentIntent, providerSubscription: null });
  if (effects === null) return null;
  let orphans = 0;
  for (const effect of effects) {
    if (await isOrphan(ctx, effect)) orphans += 1;
  }
  return { orphans, missing: await missingEffects(ctx, { paymentIntent }, effects) };
}

/**
 * An effect that names an operation of ours which cannot have made it, one that does not exist here, one that was taken back, or one that
 * is confirmed by another effect: then money moved twice.
 */
async function isOrphan(ctx: ReconcileCtx, effect: ProviderEffect): Promise<boolean> {
  // Without our mark it was made elsewhere, and is no orphan of ours.
  if (isDead(effect) || effect.operationId === null) return false;
  const named: OperationId | null = isOperationId(effect.operationId) ? effect.operationId : null;
  const operation =
    (named === null ? null : await getOperation(ctx.db, named)) ?? (await confirmedBy(ctx, effect.ref));
  if (operation !== null && isSecond(operation, effect)) {
    if (isConfirmedOnWord(operation))
      return (await judgeBesideWord(ctx, operation, effect, "sweep")) === "duplicate";
    await ctx.db.tx((tx) => reportDuplicate(tx, ctx, operation, effect));
    return true;
  }
  if (operation !== null && maybeAliveAgain(operation, effect)) return isAliveAgain(ctx, operation, effect);
  if (operation !== null && (EXPLAINED.has(operation.status) || wasClosedKnowing(operation, effect.ref))) {
    return false;
  }
  // Counted as not done, and done: the case is open again, with an incident of its own. On another payment it was not done.
  if (await contradictRejected(ctx, effect)) return true;
  if (operation !== null && staysRejected(operation, effect)) return false;
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

/** A list may be older than the failure: the refund itself is asked for. */
async function isAliveAgain(
  ctx: ReconcileCtx,
  operation: Operation,
  { ref }: ProviderEffect,
): Promise<boolean> {
  const reading = await ctx.provider.read(ref, { timeoutMs: ctx.timing.providerTimeoutMs });
  const effect = reading.read === "complete" ? reading.effects.find((one) => one.ref === ref) : undefined;
  if (effect === undefined || !maybeAliveAgain(operation, effect)) return false;
  await reportAliveAgain(ctx, operation, effect, "sweep");
  return true;
}

/** A person's word explains no effect that carries another id. */
async function confirmedBy(ctx: ReconcileCtx, ref: string): Promise<Operation | null> {
  const operation = await operationByProviderRef(ctx.db, ref);
  return operation === null || isConfirmedOnWord(operation) ? null : operation;
}

/** What is still open is judged by its reconciler, which sees both. */
const isSecond = (operation: Operation, effect: ProviderEffect): boolean =>
  (operation.status === "CONFIRMED" || operation.status === "REVERSED") &&
  operation.providerRef !== null &&
  operation.providerRef !== effect.ref;
