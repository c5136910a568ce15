/** On-call is asked to look after an approval that nobody decides; once it is over, the same message says how it ended. */

import { decisionOf } from "../../approvals/index.js";
import type { Approval } from "../../domain/approval.js";
import { missingVotes } from "../../domain/approval-click.js";
import { assertNever } from "../../domain/assert-never.js";
import { listOf } from "../../domain/text/list-of.js";
import { type Message, note, ours } from "../blocks/build.js";
import { escapeWithin, mentionUser, oneLine, withRef } from "../text/safe.js";
import { localTime } from "../text/time.js";
import { voidedWords } from "./approval-card.js";
import { whatOf } from "./sentences.js";

/** `mentions` is mrkdwn of ours: whom to ping. */
export function escalationCard(approval: Approval, mentions: string): Message {
  const { binding, state, role, expiresAt } = approval;
  const what = said(`${whatOf(binding)} for ${withRef(binding.customerName, binding.customerRef)}`);
  if (state !== "PENDING") {
    const text = `${what}: ${ended(approval)}. Nothing is left to do here.`;
    return { text, blocks: [note(`_${text}_`)] };
  }
  const missing = missingVotes(approval);
  const who = `${missing === 1 ? "one person" : `${missing} people`} in the role ${said(role)}`;
  const ask = `Still undecided: ${what}. It waits for ${who}, until ${localTime(expiresAt)}; nothing is sent before. Please find somebody who decides.`;
  const text = mentions === "" ? ask : `${mentions} ${ask}`;
  return { text, blocks: [ours(text)] };
}

const said = (text: string): string => escapeWithin(oneLine(text), 800).text;

function ended(approval: Approval): string {
  const { state, by, at } = decisionOf(approval);
  const who = by.length === 0 ? "" : ` by ${listOf(by.map(mentionUser))}`;
  switch (state) {
    case "PENDING":
      return "nobody has decided yet";
    case "APPROVED":
    case "RELEASED":
      return `approved${who}, ${localTime(at)}`;
    case "DENIED":
      return `${approval.endCode === "undone" ? "taken back" : "denied"}${who}, ${localTime(at)}`;
    case "EXPIRED":
      return `nobody decided before ${localTime(approval.expiresAt)}; nothing was sent`;
    case "VOIDED":
      return voidedWords(approval).toLowerCase();
    default:
      return assertNever(state, "approval state");
  }
}
