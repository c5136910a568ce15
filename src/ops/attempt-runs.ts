/** What was sent, try by try, in words. Tries in a row that went alike are one. */
import type { AttemptVerdict } from "../domain/evidence.js";

export interface AttemptFacts {
  readonly number: number;
  readonly startedAt: Date;
  /** As stored: a verdict, or `open`. */
  readonly verdict: string;
  readonly code: string | null;
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

export function attemptRuns(attempts: readonly AttemptFacts[]): AttemptRun[] {
  const runs: AttemptRun[] = [];
  for (let at = 0; at < attempts.length; ) {
    const alike = countAlike(attempts, at);
    const [first, last] = [attempts[at], attempts[at + alike - 1]];
    if (first !== undefined && last !== undefined) runs.push(runOf(first, last));
    at += alike;
  }
  return runs;
}

function countAlike(attempts: readonly AttemptFacts[], from: number): number {
  const first = attempts[from];
  let count = 1;
  for (let next = attempts[from + 1]; next !== undefined; next = attempts[from + count]) {
    if (next.verdict !== first?.verdict || next.code !== first.code) break;
    count += 1;
  }
  return count;
}

function runOf(first: AttemptFacts, last: AttemptFacts): AttemptRun {
  const which =
    first.number === last.number ? `attempt ${first.number}` : `attempts ${first.number} to ${last.number}`;
  const code = first.code === null ? "" : ` (${spelled(first.code)})`;
  return { first, last, which, what: `${verdictWords(first.verdict)}${code}` };
}

const verdictWords = (verdict: string): string =>
  Object.hasOwn(WORDS, verdict) ? WORDS[verdict as keyof typeof WORDS] : spelled(verdict);

const spelled = (code: string): string => code.replaceAll("_", " ");
