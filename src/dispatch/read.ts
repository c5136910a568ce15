/** Reading the provider: what it shows, and what that means for one operation. */
import { isOnAnother } from "../domain/as-asked.js";
import { type Evidence, isDead, type Listing, type ProviderEffect } from "../domain/evidence.js";
import { judgeListing } from "../domain/judge-listing.js";
import type { Operation } from "../domain/operation.js";
import { listingContext, shownAndNotListed } from "../ledger/index.js";
import type { DispatchCtx } from "./context.js";

/** What one reading said: the evidence for the operation, and the listing it was judged from. */
export interface Probe {
  readonly evidence: Evidence;
  readonly listing: Listing;
}

type ReadCtx = Pick<DispatchCtx, "db" | "provider"> & {
  readonly timing: Pick<DispatchCtx["timing"], "providerTimeoutMs">;
};

/**
 * Reads everything the provider lists for the operation's target, and by itself each effect of the operation that it has shown before
 * and that the list does not hold; and judges it. Writes nothing.
 */
export async function read(ctx: ReadCtx, operation: Operation): Promise<Probe> {
  const listing = await ctx.provider.list(operation, { timeoutMs: ctx.timing.providerTimeoutMs });
  const listed = listing.read === "complete" ? listing.effects.map((effect) => effect.ref) : [];
  const context = await listingContext(ctx.db, operation, listed);
  const judged = await withShownBefore(ctx, operation, listing);
  return { evidence: judgeListing(operation, judged, context), listing };
}

/**
 * What was shown once and is not listed now has not gone by that: the list may be behind, or another payment's list has it. Where the
 * provider does not say what became of it, the list is not whole. However many they are, they have one call's time.
 */
async function withShownBefore(ctx: ReadCtx, operation: Operation, listing: Listing): Promise<Listing> {
  if (listing.read === "failed" || operation.kind !== "refund") return listing;
  const shown = await shownAndNotListed(
    ctx.db,
    operation.id,
    listing.effects.map(({ ref }) => ref),
  );
  const { providerTimeoutMs: timeoutMs } = ctx.timing;
  const signal = AbortSignal.timeout(timeoutMs);
  const effects: ProviderEffect[] = [];
  for (const ref of shown) {
    const reading = await ctx.provider.read(ref, { timeoutMs, signal });
    if (reading.read === "failed") {
      const detail = `${ref} was shown before, is not listed, and could not be read: ${reading.detail}`;
      return { read: "failed", reason: reading.reason, detail };
    }
    // Somebody else's is judged where it was made; what came to nothing on another payment is nothing of this one.
    effects.push(
      ...reading.effects.filter(
        (effect) =>
          effect.operationId === operation.id && !(isDead(effect) && isOnAnother(operation, effect)),
      ),
    );
  }
  return effects.length === 0 ? listing : { ...listing, effects: [...listing.effects, ...effects] };
}
