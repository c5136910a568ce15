/** What was sent, try by try, in words. Tries in a row that went alike are one. */
import type { AttemptVerdict } from "../domain/evidence.js";
import { ENDED, type OperationStatus } from "../domain/operation.js";

export interface AttemptFacts {
  readonly number: number;
  readonly startedAt: Date;
  /** As stored: a verdict, or `open`. */
  readonly verdict: string;
  readonly code: string | null;
  /** The provider gave the answer that it had stored for an earlier one: nothing new was done. */
  readonly replayed?: boolean;
}

/** The operation that they are attempts of, as far as they are told by it. */
export interface AttemptsOf {
  readonly status: OperationStatus;
  readonly attempts: number;
}

export interface AttemptRun {
  readonly first: AttemptFacts;
  readonly last: AttemptFacts;
  /** "attempt 1", "attempts 2 to 5". */
  readonly which: string;
  /** What came of each: "no clear answer, may have been carried out (connection lost)". */
  readonly what: string;
}

const WORDS: Readonly<Record<AttemptVerdict | "open", string>> = {
  open: "no answer yet",
  committed: "carried out",
  postcondition_failed: "the provider did something else than was asked",
  pending: "accepted, not carried out yet",
  not_executed: "certainly not carried out, may be sent again",
  rejected: "refused by the provider, not carried out",
  failed_at_provider: "failed at the provider, not carried out",
  unknown: "no clear answer, may have been carried out",
};

/** An attempt without an answer is only waited for while it is the one under way. */
const LOST = "no answer: the worker was lost; what became of it is told below";
const REPLAYED: Readonly<Partial<Record<string, string>>> = {
  committed: "the provider gave its stored answer again (carried out before); nothing new was done",
  rejected: "the provider gave its stored answer again (refused before), not carried out",
};

export function attemptRuns(attempts: readonly AttemptFacts[], of: AttemptsOf): AttemptRun[] {
  const told = attempts.map((attempt) => ({ attempt, what: whatOf(attempt, of) }));
  const runs: AttemptRun[] = [];
  for (let at = 0; at < told.length; ) {
    const alike = countAlike(told, at);
    const [first, last] = [told[at], told[at + alike - 1]];
    if (first !== undefined && last !== undefined) runs.push(runOf(first.attempt, last.attempt, first.what));
    at += alike;
  }
  return runs;
}

/** What came back says what the provider did, though no list of it was read. */
export const wasAnswered = ({ verdict }: Pick<AttemptFacts, "verdict">): boolean =>
  verdict !== "open" && verdict !== "unknown";

function countAlike(told: readonly { readonly what: string }[], from: number): number {
  const what = told[from]?.what;
  let count = 1;
  while (told[from + count]?.what === what && from + count < told.length) count += 1;
  return count;
}

function runOf(first: AttemptFacts, last: AttemptFacts, what: string): AttemptRun {
  const which =
    first.number === last.number ? `attempt ${first.number}` : `attempts ${first.number} to ${last.number}`;
  return { first, last, which, what };
}

function whatOf({ number, verdict, code, replayed }: AttemptFacts, of: AttemptsOf): string {
  const why = code === null ? "" : ` (${spelled(code)})`;
  if (verdict === "open" && !(of.status === "DISPATCHED" && number === of.attempts)) return LOST;
  // Of what has ended, nothing is sent again.
  if (verdict === "not_executed" && ENDED.has(of.status)) return `certainly not carried out${why}`;
  const again = replayed === true ? REPLAYED[verdict] : undefined;
  return `${again ?? verdictWords(verdict)}${why}`;
}

const verdictWords = (verdict: string): string =>
  Object.hasOwn(WORDS, verdict) ? WORDS[verdict as keyof typeof WORDS] : spelled(verdict);

/** Codes of the provider that say too little, or the wrong thing, when they are only spelled out. */
const CODE_WORDS: Readonly<Record<string, string>> = {
  idempotency_key_in_use: "an earlier request with its key was still being executed",
  idempotency_error: "the provider has its key with other parameters",
  lost_or_stolen_card: "the card was lost or stolen",
  expired_or_canceled_card: "the card has expired or was cancelled",
};

const spelled = (code: string): string =>
  (Object.hasOwn(CODE_WORDS, code) ? CODE_WORDS[code] : undefined) ?? code.replaceAll("_", " ");
