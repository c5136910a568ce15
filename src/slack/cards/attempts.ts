/** What was sent, in mrkdwn. */
import { utcTime } from "../../domain/text/utc-time.js";
import { type AttemptFacts, type AttemptRun, type AttemptsOf, attemptRuns } from "../../ops/index.js";
import { escapeWithin, oneLine } from "../text/safe.js";
import { localTime } from "../text/time.js";

const WHAT_MAX = 160;

export const attemptLines = (attempts: readonly AttemptFacts[], of: AttemptsOf): string[] =>
  attemptRuns(attempts, of).map(line);

function line({ first, last, which, what }: AttemptRun): string {
  // Times are shown to the minute.
  const until =
    utcTime(first.startedAt) === utcTime(last.startedAt) ? "" : ` to ${localTime(last.startedAt)}`;
  return `• ${which}, ${localTime(first.startedAt)}${until}: ${escapeWithin(oneLine(what), WHAT_MAX).text}`;
}
