/** Events as lines of text, for the command line. */

import { utcSecond } from "../../domain/text/utc-time.js";
import type { StoryEvent } from "../../ledger/index.js";
import { type Doer, timelineEntry } from "../../ops/index.js";

/** "3. 29 Nov 2026, 14:05:09 UTC  Attempt 1 began: it is sent. By worker w:1." and below it what it rests on. */
export function timelineText(event: StoryEvent): string {
  const told = timelineEntry({ ...event, at: new Date(event.at), evidence: event.data });
  const { seq, at, what, by, second, votes, evidence } = told;
  const agreed = second === null ? "" : `, and ${doerText(second)} agreed`;
  const moved = event.to === null || event.to === event.from ? "" : ` [${event.to}]`;
  return [
    `${seq === null ? "–" : `${seq}.`} ${utcSecond(at)}  ${what}${moved} By ${doerText(by)}${agreed}.`,
    ...votes.map((vote) => {
      const role = vote.role === null ? "" : ` (${vote.role})`;
      return `     ${vote.verdict} by ${doerText(vote.person)}${role}${vote.at === null ? "" : `, ${utcSecond(vote.at)}`}`;
    }),
    ...evidence.map((one) => `     ${one}`),
  ].join("\n");
}

const doerText = (doer: Doer): string => ("person" in doer ? doer.person : doer.part);
