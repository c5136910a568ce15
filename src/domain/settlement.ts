/**
 * What one attempt's outcome makes of its operation (DESIGN §5, "A verdict belongs to an attempt").
 *
 * 1. REJECTED, and going back to PREPARED, need every attempt proven not executed; while another is open, a refusal is
 *    evidence about its own attempt only ("already refunded" may be our own refund), unless it is the stored answer of the key
 *    that all of them share.
 * 2. Only an effect whose postcondition holds confirms. Everything that is not proven is unknown.
 */
import { assertNever } from "./assert-never.js";
import { differsWords } from "./effect-words.js";
import type { AttemptOutcome, ProviderEffect } from "./evidence.js";
import { type AttemptFact, provenNotExecuted } from "./recovery.js";

export type Settlement =
  | { readonly event: "settle_confirmed"; readonly effect: ProviderEffect }
  | { readonly event: "settle_rejected"; readonly code: string; readonly detail: string }
  | {
      readonly event: "not_executed";
      readonly code: string;
      readonly detail: string;
      readonly retryAfterMs: number | null;
    }
  /** `look`: how soon a reconciler should look. `retryAfterMs`: not sooner than the provider asks for. */
  | {
      readonly event: "settle_unknown";
      readonly code: string;
      readonly detail: string;
      readonly look: "now" | "backoff";
      readonly retryAfterMs?: number | null;
    };

/** `others`: the attempts before this one, as their rows say. */
export function settlementOf(outcome: AttemptOutcome, others: readonly AttemptFact[]): Settlement {
  const othersProven = others.every(({ verdict }) => provenNotExecuted(verdict));
  switch (outcome.verdict) {
    case "committed":
      return { event: "settle_confirmed", effect: outcome.effect };
    case "postcondition_failed":
      return {
        event: "settle_unknown",
        code: "postcondition_failed",
        detail: differsWords(outcome.effect, outcome.differs),
        // Told again, it was looked for before, and not found: the list needs time.
        look: others.some(({ verdict }) => verdict === "postcondition_failed") ? "backoff" : "now",
      };
    case "pending":
      return { event: "settle_unknown", code: "pending", detail: outcome.reason, look: "backoff" };
    case "not_executed":
      return othersProven
        ? {
            event: "not_executed",
            code: outcome.code,
            detail: outcome.detail,
            retryAfterMs: outcome.retryAfterMs,
          }
        : {
            event: "settle_unknown",
            code: outcome.code,
            detail: outcome.detail,
            look: "backoff",
            retryAfterMs: outcome.retryAfterMs,
          };
    case "rejected":
      return othersProven || keptByTheKey(outcome, others)
        ? { event: "settle_rejected", code: outcome.code, detail: outcome.detail }
        : { event: "settle_unknown", code: outcome.code, detail: outcome.detail, look: "now" };
    case "failed_at_provider":
      return othersProven
        ? {
            event: "settle_rejected",
            code: outcome.code,
            detail: `${outcome.effect.ref} failed at the provider`,
          }
        : { event: "settle_unknown", code: outcome.code, detail: outcome.effect.ref, look: "now" };
    case "unknown":
      return { event: "settle_unknown", code: outcome.code, detail: outcome.detail, look: "backoff" };
    default:
      return assertNever(outcome);
  }
}

/** A refusal that is told again is what the key keeps: no attempt under it had another answer, unless one is known to have had. */
const keptByTheKey = (
  outcome: Extract<AttemptOutcome, { verdict: "rejected" }>,
  others: readonly AttemptFact[],
): boolean =>
  outcome.replayed === true &&
  others.every(({ verdict }) => verdict === "open" || verdict === "unknown" || provenNotExecuted(verdict));
