/** Reading the provider: what its list means for one operation, and what it says of the payment's balance. */
import { type Evidence, isDead, type Listing, type ProviderEffect } from "../domain/evidence.js";
import { judgeListing } from "../domain/judge-listing.js";
import type { Operation } from "../domain/operation.js";
import { listingContext, recordElsewhere, seenAndNotListed, unexplainedRefunds } from "../ledger/index.js";
import type { DispatchCtx } from "./context.js";
import { contradictRejected } from "./contradicted.js";

/** What one reading said: the evidence for the operation, and the listing it was judged from. */
export interface Probe {
  readonly evidence: Evidence;
  readonly listing: Listing;
}

/** Reads everything the provider lists for the operation's target and judges it. Records refunds made elsewhere. */
export async function probe(ctx: DispatchCtx, operation: Operation): Promise<Probe> {
  const listing = await ctx.provider.list(operation, { timeoutMs: ctx.timing.providerTimeoutMs });
  const listed = listing.read === "complete" ? listing.effects.map((effect) => effect.ref) : [];
  // Read before the refunds made elsewhere are recorded: what is news now must not look known.
  const context = await listingContext(ctx.db, operation, listed);
  if (listing.read === "complete") {
    await noteElsewhere(ctx, operation.paymentIntent, listing.effects);
  }
  return { evidence: judgeListing(operation, listing, context), listing };
}

/** Reads a payment's list for what was refunded elsewhere. A failed reading changes nothing. */
export async function refreshBalance(
  ctx: DispatchCtx,
  target: { paymentIntent: string | null; providerSubscription: string | null },
): Promise<void> {
  if (target.paymentIntent === null) return;
  const listing = await ctx.provider.list(target, { timeoutMs: ctx.timing.providerTimeoutMs });
  if (listing.read !== "complete") {
    ctx.log.warn(
      { paymentIntent: target.paymentIntent, reason: listing.reason },
      "the provider's list of a payment could not be read",
    );
    return;
  }
  await noteElsewhere(ctx, target.paymentIntent, listing.effects);
}

/** Money that left the payment and that no operation of ours explains. */
async function noteElsewhere(
  ctx: DispatchCtx,
  paymentIntent: string | null,
  listed: readonly ProviderEffect[],
): Promise<void> {
  if (paymentIntent === null) return;
  // What a rejected operation made after all is its own again, and no longer made elsewhere.
  for (const effect of await unexplainedRefunds(ctx.db, paymentIntent, listed)) {
    await contradictRejected(ctx, effect);
  }
  const gone = new Set<string>();
  for (const { ref } of await seenAndNotListed(ctx.db, paymentIntent, listed)) {
    if (await cameToNothing(ctx, ref)) gone.add(ref);
  }
  await recordElsewhere(ctx, { paymentIntent, listed, gone });
}

/** The provider says of this refund that it failed, or that there is none. No answer is no word. */
async function cameToNothing(ctx: DispatchCtx, ref: string): Promise<boolean> {
  const reading = await ctx.provider.read(ref, { timeoutMs: ctx.timing.providerTimeoutMs });
  return reading.read === "complete" && reading.effects.every(isDead);
}
