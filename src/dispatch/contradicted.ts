/** An operation that counts as rejected, and an effect at the provider that carries its id: the money may have moved. */
import { isDead, type ProviderEffect } from "../domain/evidence.js";
import { isOperationId } from "../domain/ids.js";
import { contradict, getOperation } from "../ledger/index.js";
import type { DispatchCtx } from "./context.js";
import { effectEvidence } from "./effect-evidence.js";

/**
 * Opens it again for a person, with what was listed as evidence. false: this effect contradicts no rejection, as one on another payment does
 * not, of which a finding tells.
 */
export async function contradictRejected(ctx: DispatchCtx, effect: ProviderEffect): Promise<boolean> {
  if (isDead(effect)) return false;
  if (effect.operationId === null || !isOperationId(effect.operationId)) return false;
  const operation = await getOperation(ctx.db, effect.operationId);
  if (operation?.status !== "REJECTED") return false;
  const { moved } = await contradict(ctx, {
    operationId: operation.id,
    actor: "system:reconcile",
    evidence: effectEvidence(operation.id, effect, "probe"),
    effect,
    detail: `Counted as rejected, but the provider lists ${effect.ref} as ${effect.status}.`,
  });
  return moved;
}
