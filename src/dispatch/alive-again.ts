/** A refund that the provider had taken back, and shows as made again: its operation stays ended, and what left counts. */
import { isDead, type ProviderEffect } from "../domain/evidence.js";
import type { Operation } from "../domain/operation.js";
import { aliveAgainKey, openIncident, recordEvidence } from "../ledger/index.js";
import type { DispatchCtx } from "./context.js";
import { effectEvidence } from "./effect-evidence.js";

/** `effect`: as some list shows it, which may be older than the news that it was taken back. */
export const maybeAliveAgain = (operation: Operation, effect: ProviderEffect): boolean =>
  operation.status === "REVERSED" && operation.providerRef === effect.ref && !isDead(effect);

/**
 * Opens the incident, once, whoever finds it; from then on the refund counts as made elsewhere while the provider shows it. `effect`: what
 * the provider says of the refund itself, not of a list.
 */
export async function reportAliveAgain(
  ctx: DispatchCtx,
  operation: Operation,
  effect: ProviderEffect,
  source: "webhook" | "sweep",
): Promise<void> {
  await ctx.db.tx(async (tx) => {
    await recordEvidence(tx, ctx, {
      ...effectEvidence(operation.id, effect, source),
      dedupeKey: aliveAgainKey(effect.ref),
    });
    await openIncident(tx, ctx, {
      kind: "late_effect",
      dedupeKey: `alive_again:${operation.id}:${effect.ref}`,
      operationId: operation.id,
      paymentId: null,
      detail: {
        ref: effect.ref,
        known: operation.providerRef,
        status: operation.status,
        amount: Number(effect.amountMinor),
        currency: effect.currency,
      },
    });
  });
}
