/**
 * Recovery: from a contract, evidence and the clock to the one legal move (DESIGN §5, "Contracts").
 *
 * 1. Total and pure: every combination has exactly one answer.
 * 2. Nothing is sent again unless a repeated key is safe now, or nothing sent before can still commit.
 * 3. An empty lookup is "unknown" unless the contract makes it terminal.
 * 4. Every path that cannot end by itself ends with a person.
 * 5. What had ended and is open again is settled by what the provider shows, or by a person: whoever was told of its end may have paid
 *    otherwise since, so no machine sends it again.
 */
import { assertNever } from "./assert-never.js";
import type { EffectContract } from "./contract.js";
import { differsWords } from "./effect-words.js";
import type { AttemptVerdict, Evidence, ProviderEffect } from "./evidence.js";

/** An attempt as far as recovery cares. `open`: sent or about to be, no answer recorded. */
export interface AttemptFact {
  readonly number: number;
  readonly verdict: AttemptVerdict | "open";
  readonly code: string | null;
}

/** Times are the database's. Durations in milliseconds. */
export interface RecoveryInput {
  readonly contract: EffectContract;
  readonly evidence: Evidence;
  readonly attempts: readonly AttemptFact[];
  readonly now: Date;
  readonly firstClaimedAt: Date | null;
  /** When our last sender could no longer send: its answer, or the end of its lease plus its timeout. null: not over yet. */
  readonly lastSendEndedAt: Date | null;
  readonly unknownSince: Date;
  readonly quarantineAfterMs: number;
  readonly timeoutMs: number;
  readonly marginMs: number;
  /** Attempts that may have reached the provider, after which an open outcome is no longer sent again. */
  readonly maxAttempts: number;
  /** It had ended and is open again, and no person has authorised sending it since. */
  readonly endedBefore: boolean;
}

export type QuarantineReason =
  | "postcondition_failed"
  | "duplicate_effect"
  | "unattributed_effect"
  | "pending_too_long"
  | "unknown_too_long"
  | "proof_incomplete"
  | "key_conflict"
  | "row_changed"
  | "evidence_contradicts"
  | "ended_before"
  | "shown_otherwise";

export type Move =
  | { readonly do: "confirm"; readonly effect: ProviderEffect }
  | { readonly do: "reject"; readonly code: string; readonly detail: string }
  /** Every attempt is proven not executed: back to PREPARED. */
  | { readonly do: "prepare_again"; readonly why: string }
  | { readonly do: "send_again"; readonly why: "not_committed" | "key_is_safe" }
  /** `look`: at once, because what was read is not the news any more; else after a while. */
  | { readonly do: "later"; readonly why: string; readonly look?: "now" }
  | { readonly do: "quarantine"; readonly reason: QuarantineReason; readonly detail: string };

/** Attempts that are proven to have done nothing. A business refusal proves it for its own attempt alone. */
export const provenNotExecuted = (verdict: string): boolean =>
  verdict === "not_executed" || verdict === "rejected" || verdict === "failed_at_provider";

/** The provider holds another request under our key: what is sent under it again is refused again. */
export const KEY_CONFLICT = "idempotency_error";

/** The row, or its stored request, was changed by hand: the attempt was not sent, and no other is until a person has looked. */
export const ROW_CHANGED = "row_changed";

/**
 * Whether a request under the operation's key may leave now: the key is safe to repeat and its life, counted from the first
 * claim, outlasts the request's timeout and a margin.
 */
export function keyIsSafe(
  contract: EffectContract,
  clock: { now: Date; firstClaimedAt: Date | null; timeoutMs: number; marginMs: number },
): boolean {
  if (!contract.keyed) return false;
  if (contract.keyTtlMs === null || clock.firstClaimedAt === null) return true;
  const endsAt = clock.firstClaimedAt.getTime() + contract.keyTtlMs;
  return clock.now.getTime() + clock.timeoutMs + clock.marginMs < endsAt;
}

/** Whether nothing that was sent can still commit: the contract knows a bound and it has passed since our last sender. */
export function inflightBoundPassed(
  contract: EffectContract,
  clock: { now: Date; lastSendEndedAt: Date | null },
): boolean {
  if (contract.inflightBoundMs === null || clock.lastSendEndedAt === null) return false;
  return clock.lastSendEndedAt.getTime() + contract.inflightBoundMs <= clock.now.getTime();
}

/** Whether an empty, complete lookup means that nothing happened and nothing will. */
export const absenceIsTerminal = (
  contract: EffectContract,
  clock: { now: Date; lastSendEndedAt: Date | null },
): boolean => contract.readback.kind === "strong" && inflightBoundPassed(contract, clock);

/** The one legal move. */
export function recover(input: RecoveryInput): Move {
  return input.endedBefore ? endedBefore(input) : byEvidence(input);
}

/** Only what the provider shows settles it: that nothing is shown sends nothing, and ends nothing a second time. */
function endedBefore(input: RecoveryInput): Move {
  const { evidence } = input;
  if (evidence.says !== "absent" && evidence.says !== "unknown") return byEvidence(input);
  // What opened it again may be younger than the list.
  const listed = evidence.says === "absent" && openForMs(input) >= listLagMs(input.contract);
  if (listed || overdue(input)) return quarantine("ended_before", "");
  return { do: "later", why: evidence.says === "absent" ? "nothing is listed yet" : evidence.reason };
}

function byEvidence(input: RecoveryInput): Move {
  const { evidence } = input;
  switch (evidence.says) {
    case "committed":
      if (evidence.postcondition === "holds") return { do: "confirm", effect: evidence.effect };
      return quarantine("postcondition_failed", differsWords(evidence.effect, evidence.differs));
    case "duplicate":
      return quarantine("duplicate_effect", refs(evidence.effects));
    case "unattributed":
      return quarantine("unattributed_effect", refs(evidence.effects));
    case "pending":
      return overdue(input)
        ? quarantine("pending_too_long", `${evidence.effect.ref}: ${evidence.reason}`)
        : { do: "later", why: `pending: ${evidence.reason}` };
    case "failed_at_provider":
      return failedThere(input, evidence.effect, evidence.code);
    case "absent":
      return nothingFound(input, absenceIsTerminal(input.contract, input), "nothing is listed");
    case "unknown":
      return nothingFound(input, false, evidence.reason);
    default:
      return assertNever(evidence);
  }
}

/**
 * Accepted, then failed: proven for the object that was read. Attempts under one key share one object, and a list that cannot be
 * out of date holds all of them; otherwise every other attempt must be proven by itself.
 */
function failedThere(input: RecoveryInput, effect: ProviderEffect, code: string): Move {
  const unproven = input.attempts.filter(({ verdict }) => !provenNotExecuted(verdict)).length;
  if (input.contract.keyed || unproven <= 1 || absenceIsTerminal(input.contract, input)) {
    return { do: "reject", code, detail: `${effect.ref} failed at the provider` };
  }
  return overdue(input)
    ? quarantine("proof_incomplete", `${effect.ref} failed, but another attempt is open`)
    : { do: "later", why: "another attempt is open" };
}

function nothingFound(input: RecoveryInput, terminal: boolean, why: string): Move {
  const { attempts, contract } = input;
  if (attempts.length > 0 && attempts.every(({ verdict }) => provenNotExecuted(verdict))) {
    const refusal = attempts.find(({ verdict }) => verdict !== "not_executed");
    return refusal === undefined
      ? { do: "prepare_again", why: "no attempt was executed" }
      : { do: "reject", code: refusal.code ?? refusal.verdict, detail: "refused by the provider" };
  }
  if (attempts.some(({ verdict }) => verdict === "committed")) {
    return overdue(input)
      ? quarantine("evidence_contradicts", "an answer said committed, and the provider lists nothing")
      : { do: "later", why: "an answer said committed; the list lags behind" };
  }
  // An answer that named an effect, waiting or not as asked for: a list without it proves nothing, and no refusal after it does.
  const shown = attempts.some(({ verdict }) => verdict === "pending" || verdict === "postcondition_failed");
  const last = attempts.at(-1);
  if (last?.code === ROW_CHANGED) return quarantine("row_changed", why);
  if (attempts.some(({ code }) => code === KEY_CONFLICT)) return keyConflict(input, why);
  if (last?.verdict === "rejected")
    return refusedAfterOpen(input, last.code ?? last.verdict, terminal && !shown);
  const exhausted = isExhausted(input);
  if (keyIsSafe(contract, input)) {
    // Time may have been up before anybody could look: what is safe is tried once before a person is asked.
    const tried = attempts.slice(1).some(({ verdict }) => verdict !== "open");
    if (exhausted || (overdue(input) && tried)) return quarantine("unknown_too_long", why);
    return { do: "send_again", why: terminal ? "not_committed" : "key_is_safe" };
  }
  if (terminal && shown) {
    return overdue(input)
      ? quarantine("evidence_contradicts", "an answer named an effect, and the provider lists nothing")
      : { do: "later", why: "an answer named an effect; the list does not show it" };
  }
  if (terminal) {
    if (exhausted) return quarantine("unknown_too_long", why);
    // A key past its life is never sent again, even though nothing happened: the operation is prepared anew and ends unsent.
    if (contract.keyed)
      return { do: "prepare_again", why: "proven not committed, and the key's life is over" };
    return { do: "send_again", why: "not_committed" };
  }
  return overdue(input) ? quarantine("unknown_too_long", why) : { do: "later", why };
}

/**
 * The provider refused our last attempt while an earlier one is open. Nothing is proven of the earlier one, unless nothing can
 * come of it any more. Under a key the question can be put once more: a stored refusal, told again, holds for all of them, and
 * settles it; a second fresh one says no more than the first.
 */
function refusedAfterOpen(input: RecoveryInput, code: string, terminal: boolean): Move {
  if (terminal) return { do: "reject", code, detail: "refused by the provider, and nothing else happened" };
  const asked = input.attempts.filter(({ verdict }) => verdict === "rejected").length;
  if (asked === 1 && !isExhausted(input) && keyIsSafe(input.contract, input)) {
    return { do: "send_again", why: "key_is_safe" };
  }
  const refused = "the last attempt was refused while an earlier one is open";
  return overdue(input) ? quarantine("proof_incomplete", refused) : { do: "later", why: refused };
}

/** Sending again only repeats the refusal, so nothing is sent: once the list has had time to show the effect, a person looks. */
function keyConflict(input: RecoveryInput, why: string): Move {
  const lag = listLagMs(input.contract);
  const looked =
    input.evidence.says === "absent" &&
    input.lastSendEndedAt !== null &&
    input.lastSendEndedAt.getTime() + lag <= input.now.getTime();
  return looked || overdue(input)
    ? quarantine("key_conflict", "the provider holds another request under this operation's key")
    : { do: "later", why: `another request under this key; ${why}` };
}

/** What never reached the provider, or was turned away unread, has tried nothing: an outage of minutes uses no attempts up. */
const isExhausted = ({ attempts, maxAttempts }: RecoveryInput): boolean =>
  attempts.filter(({ verdict }) => verdict !== "not_executed").length >= maxAttempts;

const openForMs = ({ now, unknownSince }: RecoveryInput): number => now.getTime() - unknownSince.getTime();

const overdue = (input: RecoveryInput): boolean => openForMs(input) >= input.quarantineAfterMs;

const listLagMs = ({ readback }: EffectContract): number =>
  readback.kind === "eventual" ? readback.lagMs : 0;

const quarantine = (reason: QuarantineReason, detail: string): Move => ({ do: "quarantine", reason, detail });

const refs = (effects: readonly ProviderEffect[]): string => effects.map(({ ref }) => ref).join(", ");
