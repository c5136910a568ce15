/** Reading the provider, and keeping what it says of the payment's balance. */
import { isDead, type ProviderEffect } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import {
  aliveAgainKey,
  knownDead,
  recordElsewhere,
  recordEvidence,
  seenAndNotListed,
  unexplainedRefunds,
} from "../ledger/index.js";
import type { DispatchCtx } from "./context.js";
import { contradictRejected } from "./contradicted.js";
import { type Probe, read } from "./read.js";
import { tellOpen } from "./tell-open.js";

/** As `read`, and records refunds made elsewhere: judged before that, because what is news now must not look known. */
export async function probe(ctx: DispatchCtx, operation: Operation): Promise<Probe> {
  const probed = await read(ctx, operation);
  if (probed.listing.read === "complete") {
    await noteElsewhere(ctx, operation.paymentIntent, probed.listing.effects, operation.id);
  }
  return probed;
}

/** Reads a payment's list for what was refunded elsewhere; what was listed. null: a failed reading changes nothing. */
export async function refreshBalance(
  ctx: DispatchCtx,
  target: { paymentIntent: string | null; providerSubscription: string | null },
): Promise<readonly ProviderEffect[] | null> {
  if (target.paymentIntent === null) return null;
  const listing = await ctx.provider.list(target, { timeoutMs: ctx.timing.providerTimeoutMs });
  if (listing.read !== "complete") {
    ctx.log.warn(
      { paymentIntent: target.paymentIntent, reason: listing.reason },
      "the provider's list of a payment could not be read",
    );
    return null;
  }
  await noteElsewhere(ctx, target.paymentIntent, listing.effects);
  return listing.effects;
}

/** Money that left the payment and that no operation of ours explains. `judged`: the operation that who reads judges by it themselves. */
async function noteElsewhere(
  ctx: DispatchCtx,
  paymentIntent: string | null,
  listed: readonly ProviderEffect[],
  judged: OperationId | null = null,
): Promise<void> {
  if (paymentIntent === null) return;
  await noteRevived(ctx, listed);
  // What a rejected operation made after all is its own again, and no longer made elsewhere.
  for (const { effect } of await unexplainedRefunds(ctx.db, paymentIntent, listed)) {
    await contradictRejected(ctx, effect);
  }
  // A list may be older than what was seen before, or behind: only the provider's word about the refund itself takes it away. However many
  // they are, they have one call's time: who reads holds a lease.
  const signal = AbortSignal.timeout(ctx.timing.providerTimeoutMs);
  const gone = new Set<string>();
  const read: ProviderEffect[] = [];
  for (const { ref } of await seenAndNotListed(ctx.db, paymentIntent, listed)) {
    if (signal.aborted) break;
    const reading = await ctx.provider.read(ref, { timeoutMs: ctx.timing.providerTimeoutMs, signal });
    if (reading.read === "failed") continue;
    read.push(...reading.effects);
    if (reading.effects.length === 0) gone.add(ref);
  }
  await tellOpen(
    ctx,
    [...listed, ...read].filter(({ operationId }) => operationId !== judged),
  );
  const { freed } = await recordElsewhere(ctx, { paymentIntent, listed: [...listed, ...read], gone });
  if (freed.length > 0)
    ctx.log.info(
      { paymentIntent, refs: freed },
      "what counted as refunded elsewhere does not count any more",
    );
}

/**
 * What had come to nothing and is listed as made: a list may be older than that, so the refund itself is asked for. However many they are,
 * they have one call's time.
 */
async function noteRevived(ctx: DispatchCtx, listed: readonly ProviderEffect[]): Promise<void> {
  const alive = listed.filter((effect) => effect.kind === "refund" && !isDead(effect)).map(({ ref }) => ref);
  if (alive.length === 0) return;
  const signal = AbortSignal.timeout(ctx.timing.providerTimeoutMs);
  for (const ref of await knownDead(ctx.db, alive)) {
    if (signal.aborted) return;
    const reading = await ctx.provider.read(ref, { timeoutMs: ctx.timing.providerTimeoutMs, signal });
    const effect = reading.read === "complete" ? reading.effects.find((one) => one.ref === ref) : undefined;
    if (effect === undefined || isDead(effect)) continue;
    await ctx.db.tx((tx) =>
      recordEvidence(tx, ctx, {
        operationId: null,
        source: "probe",
        providerRef: ref,
        dedupeKey: aliveAgainKey(ref),
        payload: { ref, status: effect.status },
      }),
    );
  }
}
