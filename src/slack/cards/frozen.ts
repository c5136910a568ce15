/** What somebody reads who decides while the switch is turned off. */
import { utcTime } from "../../domain/text/utc-time.js";
import { actorName, escapeText, oneLine } from "../text/safe.js";
import { localTime } from "../text/time.js";
import { type Frozen, frozenWords } from "./sentences.js";

const AND_SO = "An approval is recorded as your vote; nothing is sent until on-call thaws.";

/** Mrkdwn: "Refunds are frozen since … by …: …". */
export function frozenSentence({ kind, since, by }: Frozen): string {
  const when = since === null ? "" : ` since ${localTime(since)}`;
  const who = by === null ? "" : ` by ${actorName(by)}`;
  return `*${frozenWords(kind)}*${when}${who}. ${AND_SO}`;
}

/** The same for notifications and screen readers; escaped. */
export function frozenText({ kind, since }: Frozen): string {
  const when = since === null ? "" : ` since ${utcTime(since)}`;
  return escapeText(oneLine(`${frozenWords(kind)}${when}: nothing is sent until on-call thaws.`));
}
