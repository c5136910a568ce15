/**
 * An operation that is with a person, and that the provider would settle: what was known when it was parked is no news, so that nothing
 * but a look finds that it can be read now.
 */
import type { Evidence, ProviderEffect } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import { getOperation, lookAgainKey, recordEvidence } from "../ledger/index.js";
import type { DispatchCtx } from "./context.js";
import { effectEvidence } from "./effect-evidence.js";
import { read } from "./read.js";

/**
 * Reads the provider. An answer that settles the operation becomes a reason to look at once, at most once within the time after which its
 * card comes again; true when it did. Anything else changes nothing.
 */
export async function lookAtParked(ctx: DispatchCtx, id: OperationId): Promise<boolean> {
  const dedupeKey = await lookAgainKey(ctx, id);
  const operation = dedupeKey === null ? null : await getOperation(ctx.db, id);
  if (dedupeKey === null || operation === null) return false;
  const effect = settling((await read(ctx, operation)).evidence);
  if (effect === null) return false;
  const { first } = await ctx.db.tx((tx) =>
    recordEvidence(tx, ctx, { ...effectEvidence(id, effect, "probe"), dedupeKey }),
  );
  return first;
}

function settling(evidence: Evidence): ProviderEffect | null {
  if (evidence.says === "failed_at_provider") return evidence.effect;
  return evidence.says === "committed" && evidence.postcondition === "holds" ? evidence.effect : null;
}
