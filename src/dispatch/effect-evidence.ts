/** An effect that the provider shows, as evidence about an operation: once for each of its states, whoever saw it. */
import { effectKey, type ProviderEffect } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import type { NewEvidence } from "../ledger/index.js";

export const effectEvidence = (
  operationId: OperationId,
  effect: ProviderEffect,
  source: NewEvidence["source"],
): NewEvidence => ({
  operationId,
  source,
  providerRef: effect.ref,
  dedupeKey: effectKey(effect),
  payload: {
    ref: effect.ref,
    target: effect.target,
    status: effect.status,
    amount: Number(effect.amountMinor),
    currency: effect.currency,
    failureReason: effect.failureReason,
  },
});
