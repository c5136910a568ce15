/** What was sent, try by try, in mrkdwn. Tries in a row that went alike are one line. */
import type { AttemptVerdict } from "../../domain/evidence.js";
import { utcTime } from "../../domain/text/utc-time.js";
import { escapeWithin, oneLine } from "../text/safe.js";
import { localTime } from "../text/time.js";

export interface AttemptFacts {
  readonly number: number;
  readonly startedAt: Date;
  /** As stored: a verdict, or `open`. */
  readonly verdict: string;
  readonly code: string | null;
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

export function attemptLines(attempts: readonly AttemptFacts[]): string[] {
  const lines: string[] = [];
  for (let at = 0; at < attempts.length; ) {
    const alike = countAlike(attempts, at);
    const [first, last] = [attempts[at], attempts[at + alike - 1]];
    if (first !== undefined && last !== undefined) lines.push(line(first, last));
    at += alike;
  }
  return lines;
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

function line(first: AttemptFacts, last: AttemptFacts): string {
  const which =
    first.number === last.number ? `attempt ${first.number}` : `attempts ${first.number} to ${last.number}`;
  const from = localTime(first.startedAt);
  // Times are shown to the minute.
  const until =
    utcTime(first.startedAt) === utcTime(last.startedAt) ? "" : ` to ${localTime(last.startedAt)}`;
  const code = first.code === null ? "" : ` (${spelled(first.code)})`;
  return `• ${which}, ${from}${until}: ${verdictWords(first.verdict)}${code}`;
}

const verdictWords = (verdict: string): string =>
  Object.hasOwn(WORDS, verdict) ? WORDS[verdict as keyof typeof WORDS] : spelled(verdict);

const spelled = (code: string): string => escapeWithin(oneLine(code.replaceAll("_", " ")), 80).text;
