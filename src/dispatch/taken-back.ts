/** A confirmed refund that the provider shows as failed or cancelled: the case opens again, whoever saw it. */
import { isDead, type ProviderEffect } from "../domain/evidence.js";
import type { Actor, Operation } from "../domain/operation.js";
import { type NewEvidence, reverse } from "../ledger/index.js";
import type { DispatchCtx } from "./context.js";

/** Once, however often it is seen. false: the operation is not confirmed, or by another effect. */
export async function takeBack(
  ctx: DispatchCtx,
  operation: Operation,
  effect: ProviderEffect,
  seen: { actor: Actor; evidence: NewEvidence },
): Promise<boolean> {
  if (operation.status !== "CONFIRMED" || !isDead(effect) || effect.ref !== operation.providerRef)
    return false;
  const why = effect.failureReason ?? effect.status;
  const { moved } = await reverse(ctx, {
    operationId: operation.id,
    ...seen,
    code: why,
    detail: `The provider took the refund back (${why}). The money did not reach the customer.`,
  });
  return moved;
}
