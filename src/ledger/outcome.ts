/** An attempt's outcome as its row, events and evidence keep it. */
import { type AttemptOutcome, effectKey, type ProviderEffect } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import type { Ids } from "../domain/ports/clock.js";
import { toJsonObject } from "./json.js";
import type { AttemptPatch, Patch } from "./transition.js";
import type { EvidenceSource } from "./types.js";

/** The attempt's own row. */
export function attemptPatch(number: number, outcome: AttemptOutcome): AttemptPatch {
  const effect = effectOf(outcome);
  return {
    number,
    verdict: outcome.verdict,
    code: "code" in outcome ? outcome.code : null,
    httpStatus: "httpStatus" in outcome ? outcome.httpStatus : null,
    providerRef: effect?.ref ?? null,
    requestId: "requestId" in outcome ? outcome.requestId : null,
    evidence: outcomeJson(outcome),
  };
}

/** An outcome as events and evidence keep it. */
export const outcomeJson = (outcome: AttemptOutcome): JsonObject => toJsonObject(outcome);

/** The effect that an outcome is about, where it is about one. */
export const effectOf = (outcome: AttemptOutcome): ProviderEffect | null =>
  "effect" in outcome ? outcome.effect : null;

/** An effect as evidence: one fact for each state and amount of the provider's object, whoever saw it. */
export function seenEffect(
  ids: Ids,
  operationId: OperationId,
  source: EvidenceSource,
  effect: ProviderEffect | null,
): Pick<Patch, "seen"> {
  if (effect === null) return {};
  return {
    seen: {
      id: ids.next("evd_"),
      operationId,
      source,
      providerRef: effect.ref,
      dedupeKey: effectKey(effect),
      payload: toJsonObject(effect),
    },
  };
}
