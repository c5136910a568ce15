/** What somebody reads who decides, or waits, while the switch is turned off: what is frozen, since when, by whom and why. */
import { type Frozen, frozenWords } from "../../domain/frozen.js";
import { utcTime } from "../../domain/text/utc-time.js";
import { actorName, escapeWithin, oneLine } from "../text/safe.js";
import { localTime } from "../text/time.js";
import { isHeldBack, type OperationFacts } from "./sentences.js";

const REASON_MAX = 300;

/** Mrkdwn, where a decision is asked for: "Refunds are frozen since … by …: … An approval is recorded as your vote; …". */
export const frozenSentence = (frozen: Frozen): string =>
  `${since(frozen, `*${frozenWords(frozen.kind)}*`, localTime)} An approval is recorded as your vote; ${UNTIL_THAW}`;

/** Mrkdwn, of what is decided or waits: "Refunds are frozen since … by …: … Nothing is sent until on-call thaws." */
export const frozenSince = (frozen: Frozen): string =>
  `${since(frozen, `*${frozenWords(frozen.kind)}*`, localTime)} N${UNTIL_THAW.slice(1)}`;

/** The same for notifications and screen readers; escaped. */
export const frozenText = (frozen: Frozen): string =>
  `${since(frozen, frozenWords(frozen.kind), utcTime)} N${UNTIL_THAW.slice(1)}`;

/** The switch that holds the operation back now; null: none does, or it has left or ended. */
export const heldBackBy = (operation: OperationFacts): Frozen | null =>
  isHeldBack(operation) ? operation.frozen : null;

const UNTIL_THAW = "nothing is sent until on-call thaws.";

function since({ since: at, by, reason }: Frozen, words: string, time: (at: Date) => string): string {
  const when = at === null ? "" : ` since ${time(at)}`;
  const who = by === null ? "" : ` by ${actorName(by)}`;
  const why = reason === null ? "" : oneLine(reason);
  if (why === "") return `${words}${when}${who}.`;
  // In their own words; what follows needs their full stop.
  return `${words}${when}${who}: ${escapeWithin(why, REASON_MAX).text}${/[.!?…]$/u.test(why) ? "" : "."}`;
}
