/** Reading the provider: what its list means for one operation, and what it says of the payment's balance. */
import type { Evidence, Listing, ProviderEffect } from "../domain/evidence.js";
import { judgeListing } from "../domain/judge-listing.js";
import type { Operation } from "../domain/operation.js";
import { listingContext, recordElsewhere, unexplainedRefunds } from "../ledger/index.js";
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
  effects: readonly ProviderEffect[],
): Promise<void> {
  if (paymentIntent === null) return;
  let foreign = await unexplainedRefunds(ctx.db, paymentIntent, effects);
  // What a rejected operation made after all is its own again, and no longer made elsewhere.
  let reopened = false;
  for (const effect of foreign) reopened = (await contradictRejected(ctx, effect)) || reopened;
  if (reopened) foreign = await unexplainedRefunds(ctx.db, paymentIntent, effects);
  await recordElsewhere(ctx, {
    paymentIntent,
    elsewhereMinor: foreign.reduce((sum, effect) => sum + effect.amountMinor, 0n),
    effects: foreign.map((effect) => effect.ref),
    // Those under an operation's id are a duplicate's or an orphan's incident.
    toldApart: foreign.length > 0 && foreign.every((effect) => effect.operationId !== null),
  });
}
