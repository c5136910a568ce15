/** One-off posts: threads, ops channel, approvers. Pure; effects are told from the operation's row alone. */

import type { KnownBlock } from "@slack/types";
import type { Approval } from "../../domain/approval.js";
import type { TicketId } from "../../domain/ids.js";
import type { OpsMessage } from "../../domain/ports/notices.js";
import { headOf } from "../../domain/text/cut.js";
import { listOf } from "../../domain/text/list-of.js";
import { utcTime } from "../../domain/text/utc-time.js";
import type { ResolutionVerb } from "../../ops/index.js";
import type { Run } from "../../runs/index.js";
import { ACTIONS, furtherValue } from "../actions.js";
import { actions, type Message, note, ours, theirs, withinLimits } from "../blocks/build.js";
import { LIMITS } from "../limits.js";
import { withoutAddresses } from "../text/addresses.js";
import { ticketLink } from "../text/link.js";
import { actorName, clean, escapeText, escapeWithin, mentionUser, oneLine } from "../text/safe.js";
import { withLocalTimes } from "../text/time.js";
import { confirmedLine, voidedBecause, voidedWords } from "./approval-card.js";
import { changeSentence } from "./changes.js";
import { frozenSince, frozenText, heldBackBy } from "./frozen.js";
import { INCIDENT_KINDS, incidentTitle } from "./incident-card.js";
import { freezeName, nothingNew, verbName } from "./ops-cards.js";
import { markerOf, runTitle } from "./run-card.js";
import { askAgain, isLetGo, type OperationFacts, outcomeOf, whatOf } from "./sentences.js";

const TEXT_MAX = 1500;
const LONG_PARTS = 8;
/** More mentions than this are noise. */
const MENTIONS_MAX = 6;

/** A sentence of code's making that may hold names of others: literal, whole. */
export function sentencePost(text: string, buttons: KnownBlock[] = []): Message {
  return withinLimits(
    { text: escapeWithin(oneLine(text), TEXT_MAX).text, blocks: [...longText(text), ...buttons] },
    buttons.length,
  );
}

/** Literal text in as many sections as it needs; what is beyond is cut and says so. */
export function longText(text: string): KnownBlock[] {
  const blocks: KnownBlock[] = [];
  let rest = clean(text);
  while (rest !== "" && blocks.length < LONG_PARTS) {
    const last = blocks.length === LONG_PARTS - 1;
    const part = last ? rest : cutAtBlank(rest);
    blocks.push(theirs(part));
    rest = last ? "" : rest.slice(part.length).trimStart();
  }
  return blocks.length === 0 ? [theirs("–")] : blocks;
}

/** The longest beginning that a section holds when it is escaped, cut at a blank if there is one near the end. */
function cutAtBlank(text: string): string {
  if (escapeText(text).length <= LIMITS.sectionText) return text;
  let end = Math.min(text.length, LIMITS.sectionText);
  while (escapeText(text.slice(0, end)).length > LIMITS.sectionText) end = Math.floor(end * 0.9);
  const blank = text.slice(0, end).search(/\s\S*$/u);
  const at = blank > end / 2 ? blank : end;
  return headOf(text, at);
}

/** The outcome, and what whoever filed it can do about it. */
const withNext = (operation: OperationFacts): string =>
  [outcomeOf(operation), isLetGo(operation) ? null : askAgain(operation)]
    .filter((part) => part !== null)
    .join(" ");

/** Days after the end nobody reads the thread by chance: whoever asked or approved is named when an end does not hold. */
export function outcomePost(operation: OperationFacts, was?: "CONFIRMED" | "REJECTED"): Message {
  const post = sentencePost(withNext(operation));
  const vouched = confirmedLine(operation);
  if (vouched !== null) return { text: `${post.text} ${vouched}`, blocks: [...post.blocks, note(vouched)] };
  const told = operation.status === "REVERSED" ? "CONFIRMED" : operation.status === was ? undefined : was;
  if (told === undefined) return post;
  const people = [...new Set([...operation.filers, ...operation.approvedBy])].slice(0, MENTIONS_MAX);
  const as = told === "CONFIRMED" ? "done" : "not carried out";
  const held = `hat was told here as ${as} does not hold any more.`;
  const head = people.length === 0 ? `W${held}` : `${listOf(people.map(mentionUser))}: w${held}`;
  return { text: `${head} ${post.text}`, blocks: [ours(head), ...post.blocks] };
}

export const beingCheckedPost = (operation: OperationFacts): Message =>
  sentencePost(
    `${whatOf(operation)}: sent, but its outcome is not certain yet. It is being checked with the provider; nothing is sent a second time blindly.`,
  );

/** States after which "the same again" can only mean a further one. */
const MAY_BE_FURTHER: ReadonlySet<OperationFacts["status"]> = new Set(["CONFIRMED", "REJECTED", "REVERSED"]);

/** `workspace`: where links to messages begin; null: there are none. */
export function replayedPost(
  operation: OperationFacts,
  ticketId: TicketId,
  workspace: string | null = null,
): Message {
  // The same amount once more: where less than it is left, the click could only be refused.
  const further =
    operation.kind === "refund" &&
    MAY_BE_FURTHER.has(operation.status) &&
    operation.leftMinor >= operation.amountMinor;
  const frozen = heldBackBy(operation);
  const post = sentencePost(
    `This was asked for before, so nothing is done a second time. ${withNext(operation)}`,
    further
      ? [
          actions("further", [
            {
              action: ACTIONS.furtherRefund,
              text: "This is a further refund",
              value: furtherValue(operation.id, ticketId),
              says: "Ask for one more refund of the same amount; it needs an approval",
            },
          ]),
        ]
      : [],
  );
  const { ticket } = operation;
  const where =
    ticket === null || ticket.id === ticketId
      ? []
      : [`It was asked for in ${ticketLink(ticket, workspace)}.`];
  const notes = [...where, ...(frozen === null ? [] : [frozenSince(frozen)])];
  return {
    text: [post.text, ...where, ...(frozen === null ? [] : [frozenText(frozen)])].join(" "),
    blocks: [...post.blocks, ...notes.map(note)],
  };
}

export function modelPost(text: string, planner: string): Message {
  const marker = markerOf(planner);
  const words = withoutAddresses(text);
  return withinLimits(
    {
      text: `${marker} ${escapeWithin(oneLine(words), TEXT_MAX).text}`,
      blocks: [note(`_${marker}_`), ...longText(words)],
    },
    1,
  );
}

export function askPost(question: string, candidates: readonly string[]): Message {
  const list = candidates.slice(0, 20).map((one) => `• ${oneLine(one)}`);
  return sentencePost([question, ...list].join("\n"));
}

/** Nobody else is given it: who filed it has it back, and on-call may look. Mrkdwn; nothing where nobody of Slack filed it. */
const backWith = (filers: readonly string[]): string | null =>
  filers.length === 0
    ? null
    : `${listOf(filers.slice(0, MENTIONS_MAX).map(mentionUser))}, who filed it. This run has ended; on-call sees it under \`/ops runs\`.`;

/** `filers`: of the run's ticket. */
export function escalatedPost(run: Run | null, summary: string, filers: readonly string[]): Message {
  const who = backWith(filers);
  const head = `Handed back to ${who ?? "a person."}`;
  const bold = who === null ? `*${head}*` : `*Handed back* to ${who}`;
  const marker = "Summary by the planner, unverified:";
  const words = withoutAddresses(summary);
  return withinLimits(
    {
      text: words === "" ? head : `${head} ${marker} ${escapeWithin(oneLine(words), TEXT_MAX).text}`,
      blocks: [
        ours(bold),
        ...(words === "" ? [] : [note(`_${marker}_`), ...longText(words)]),
        ...(run === null
          ? []
          : [
              actions("run", [
                { action: ACTIONS.runDetails, text: "Details", value: run.id, says: "Details of this run" },
              ]),
            ]),
      ],
    },
    1,
  );
}

/** Ends after which a person has to go on. */
const NEEDS_A_PERSON: ReadonlySet<Run["state"]> = new Set(["escalated", "budget_exhausted", "failed"]);

/** `filers`: of the run's ticket. */
export function runEndedPost(run: Run, filers: readonly string[]): Message {
  const detail = run.ending?.detail ?? "";
  const title = runTitle(run.state);
  // "Stopped on request." says the title itself.
  const told = detail === "" ? `${title}.` : detail.startsWith(title) ? detail : `${title}: ${detail}`;
  const post = sentencePost(told);
  const who = NEEDS_A_PERSON.has(run.state) ? backWith(filers) : null;
  if (who === null) return post;
  const back = `It is back with ${who}`;
  return { text: `${post.text} ${back}`, blocks: [...post.blocks, ours(back)] };
}

export function voidedPost(approval: Approval, operation: OperationFacts, successor: boolean): Message {
  if (approval.endCode === "binding_confirmed") {
    return sentencePost(`${voidedWords(approval)}: ${whatOf(operation)}. ${voidedBecause(approval)}`);
  }
  const head = `The approval of this is no longer valid: ${whatOf(operation)}.`;
  if (successor) return sentencePost(`${head} A new card in this thread asks again and shows what changed.`);
  const why = approval.endDetail ?? approval.changes.map(changeSentence).join("; ");
  return sentencePost(
    `${head} ${why}\nNothing was sent. ${askAgain({ ...operation, status: "VOIDED" }) ?? ""}`.trimEnd(),
  );
}

/** `mentions` is mrkdwn of ours: whom to ping. */
export function reminderPost(
  approval: Approval,
  operation: OperationFacts,
  reminder: { readonly number: number; readonly role: string; readonly escalatedTo: string | null },
  mentions: string,
): Message {
  const { role, escalatedTo } = reminder;
  const head =
    escalatedTo === null
      ? `Reminder: waits for ${role}.`
      : `Still undecided by ${role}; ${escalatedTo} is asked to look after it.`;
  const sentence = escapeWithin(
    oneLine(
      `${head} ${whatOf(operation)} for ${operation.customerName}. Expires ${utcTime(approval.expiresAt)}.`,
    ),
    TEXT_MAX,
  ).text;
  const text = mentions === "" ? sentence : `${mentions} ${sentence}`;
  return { text, blocks: [ours(withLocalTimes(text))] };
}

export function opsPost(message: OpsMessage, operation: OperationFacts | null): Message {
  switch (message.type) {
    case "frozen": {
      const kind = message.kind as Parameters<typeof freezeName>[0];
      const name = freezeName(kind);
      const head = `*Frozen: ${escapeText(oneLine(name))}* by ${actorName(message.by)}. ${nothingNew(kind)} until ${message.by.startsWith("system:") ? "one person on call" : "a person"} thaws it; what was sent before is still followed up.`;
      return withReason(head, message.reason === "" ? [] : [["Reason", message.reason]]);
    }
    case "thawed": {
      const name = freezeName(message.kind as Parameters<typeof freezeName>[0]);
      const still = (message.stillFrozen ?? []).map((kind) =>
        escapeText(oneLine(freezeName(kind as Parameters<typeof freezeName>[0]))),
      );
      const rest = still.length === 0 ? "" : ` Still frozen by a switch of its own: ${still.join(", ")}.`;
      const who =
        message.askedBy == null
          ? `by ${actorName(message.by)}`
          : `asked by ${actorName(message.askedBy)}, agreed by ${actorName(message.by)}`;
      return oursOnly(`*Thawed: ${escapeText(oneLine(name))}* ${who}.${rest}`);
    }
    case "resolved": {
      const verb = message.verb;
      const known = isVerb(verb) ? verbName(verb) : verb;
      const what =
        operation === null ? message.operationId : `${resolvedWords(verb, operation)} (${operation.id})`;
      const agreed = message.second == null ? "" : `, agreed by ${actorName(message.second)}`;
      return withReason(
        `*${escapeText(oneLine(known))}* by ${actorName(message.by)}${agreed}: ${escapeWithin(oneLine(what), 800).text}`,
        [
          ["Reason", message.reason],
          ["Evidence", message.evidence],
        ],
      );
    }
    case "proposal_ended": {
      const { verb, by, how } = message;
      const name = isVerb(verb) ? verbName(verb) : verb;
      const what = operation === null ? message.operationId : `${whatOf(operation)} (${operation.id})`;
      const why =
        how === "expired"
          ? "nobody agreed in time. Ask again if it is still needed"
          : "the operation moved meanwhile. Look at it again";
      return oursOnly(
        `*${escapeText(oneLine(name))}*, asked for by ${actorName(by)}, is void: ${why}. ${escapeWithin(oneLine(what), 800).text}`,
      );
    }
    case "thaw_request_ended": {
      const name = escapeText(oneLine(freezeName(message.kind as Parameters<typeof freezeName>[0])));
      const why =
        message.refusedBy === null
          ? "nobody agreed in time. Ask again if it is still needed"
          : `${actorName(message.refusedBy)} does not agree`;
      return oursOnly(`*Still frozen: ${name}*. ${actorName(message.by)} asked for a thaw, and ${why}.`);
    }
    case "incident_closed":
      return withReason(
        `*Closed: ${escapeText(oneLine(incidentName(message.kind)))}* (${escapeText(message.incidentId)}) by ${actorName(message.by)}.`,
        [["Reason", message.reason]],
      );
    case "chain_head":
      return sentencePost(
        `Audit chain: block ${message.seq}, hash ${message.hash}. Kept here as an outside witness.`,
      );
    case "sentence":
      return sentencePost(message.text);
  }
}

/** What the decision did, in words that stay true however the operation goes on. */
function resolvedWords(verb: string, operation: OperationFacts): string {
  const what = whatOf(operation);
  if (verb === "retry") return `${what}: it is sent once more under the same key.`;
  if (verb === "reopen")
    return `${what}: it waits for a person again${operation.kind === "refund" ? ", and its amount counts as spent" : ""}.`;
  return outcomeOf(operation);
}

const VERBS: readonly ResolutionVerb[] = ["confirm", "reject", "retry", "reopen"];
const isVerb = (verb: string): verb is ResolutionVerb => VERBS.some((known) => known === verb);

const incidentName = (kind: string): string => {
  const known = INCIDENT_KINDS.find((one) => one === kind);
  return known === undefined ? kind : incidentTitle(known);
};

const oursOnly = (text: string): Message => ({ text, blocks: [ours(text)] });

function withReason(head: string, rows: readonly (readonly [string, string])[]): Message {
  const lines = rows.map(([label, value]) => `${label}: ${oneLine(value)}`).join("\n");
  return {
    text: `${head} ${escapeWithin(oneLine(lines), 600).text}`.trim(),
    blocks: [ours(head), ...(lines === "" ? [] : [theirs(lines, 1500)])],
  };
}
