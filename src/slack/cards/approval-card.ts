/**
 * The approval card: rendered from the approval's binding and the operation's state, never from words of a planner.
 *
 * 1. Every bound value stands once, in the row that bears its name.
 * 2. Buttons stand only while a click can do something; afterwards the same place says who, when, why and what came of it.
 * 3. The same view gives the same card in every channel, so all cards of an approval end with the same text.
 */

import type { KnownBlock } from "@slack/types";
import type { Approval, Change, Vote } from "../../domain/approval.js";
import { missingVotes } from "../../domain/approval-click.js";
import { assertNever } from "../../domain/assert-never.js";
import type { Frozen } from "../../domain/frozen.js";
import { formatMoney } from "../../domain/money.js";
import { wordAlone } from "../../domain/named-evidence.js";
import { stateWords } from "../../domain/operation.js";
import { CUSTOMER_UNCONFIRMED } from "../../domain/policy/rules-order.js";
import { durationText } from "../../domain/policy/text.js";
import { uncapital } from "../../domain/text/capital.js";
import { cutText } from "../../domain/text/cut.js";
import { listOf } from "../../domain/text/list-of.js";
import { asSentence } from "../../domain/text/sentence.js";
import { utcTime } from "../../domain/text/utc-time.js";
import { isTriedAgain, nothingDone } from "../../domain/tried.js";
import type { Ticket } from "../../runs/index.js";
import { ACTIONS, approvalValue } from "../actions.js";
import {
  actions,
  attributed,
  type ButtonSpec,
  header,
  type Message,
  note,
  ours,
  type Row,
  rows,
  theirs,
  withinLimits,
} from "../blocks/build.js";
import { withoutAddresses } from "../text/addresses.js";
import { escapeText, escapeWithin, mentionUser, oneLine, withRef } from "../text/safe.js";
import { localTime, withLocalTimes } from "../text/time.js";
import { changedSinceBlocks, changedSinceText, changeLines } from "./changes.js";
import { frozenSentence, frozenSince, frozenText, heldBackBy } from "./frozen.js";
import { leftLines } from "./left.js";
import {
  amountOf,
  askAgain,
  consequenceOf,
  FROZEN,
  furtherAskedBy,
  kindName,
  type OperationFacts,
  resultOf,
  vouchedBy,
  whatOf,
} from "./sentences.js";

export interface ApprovalView {
  readonly approval: Approval;
  readonly operation: OperationFacts;
  /** Undecided siblings of the same turn. */
  readonly waitsFor: number;
  /** The approval that asks again after this one died. */
  readonly successor: boolean;
  /** While it waits: what of the world on the card is not so any more. */
  readonly changedSince: readonly Change[];
  /** The ticket's customer is confirmed now, whatever it was when the card was made. */
  readonly customerConfirmed: boolean;
  /** Another ticket asks for the same and waits with it: then the card stands though the filer confirms the customer. */
  readonly othersWait?: boolean;
  /** Who confirmed the ticket's customer; null: nobody. */
  readonly confirmedBy: string | null;
  /** Of an approval that was not needed any more: the operation that was asked for in its place. */
  readonly instead: OperationFacts | null;
  /** When somebody who has said no had said yes before, by their Slack user id. Absent: nobody. */
  readonly yesBefore?: ReadonlyMap<string, Date>;
  /** Of what was refunded before on the payment: what rests by on-call's word alone. Minor units; absent: nothing. */
  readonly onWordMinor?: bigint;
}

/** How much of a planner's reason, a note or a policy sentence a card shows; the rest is one click away. */
const REASON_MAX = 280;
const NOTE_MAX = 500;
const WHY_MAX = 12;
const WHY_LINE_MAX = 200;
const EARLIER_MAX = 5;
const ITEMS_MAX = 6;

/** In a channel and, with a `blockId` of its own, in App Home: whoever decides reads the same everywhere. */
export function approvalCard(view: ApprovalView, blockId = "decide"): Message {
  const open = view.approval.state === "PENDING";
  const blocks: KnownBlock[] = [
    header(open ? `Approval needed: ${kindName(view.operation.kind).toLowerCase()}` : headline(view)),
    ...frozenBlocks(view),
    ...changedSinceBlocks(view.changedSince),
    ...changesBlocks(view.approval),
    ...rows(boundRows(view)),
    ...(open ? whyBlocks(view) : []),
    ...earlierBlocks(view.approval),
    note(`Operation ${view.operation.id}`),
    ...wordsOfThePlanner(view.operation),
    ...endBlocks(view, blockId),
  ];
  return withinLimits({ text: approvalText(view), blocks }, 3);
}

/** When Slack refuses the card: the same facts in the plainest form that has the same buttons. */
export function plainApprovalCard(view: ApprovalView): Message {
  const facts = boundRows(view)
    .map(({ label, value }) => `${label}: ${"theirs" in value ? oneLine(value.theirs) : plainOf(value.ours)}`)
    .join("\n");
  const buttons = buttonsOf(view);
  return {
    text: approvalText(view),
    blocks: [
      ...frozenBlocks(view),
      ...changedSinceBlocks(view.changedSince),
      theirs(`${headline(view)}\n${facts}`, 2000),
      ...(buttons.length === 0 ? [] : [actions("decide", buttons)]),
    ],
  };
}

/** Mrkdwn of ours without its markup, for a plain_text that shows it literally. */
const plainOf = (mrkdwn: string): string =>
  mrkdwn
    .replace(/<!date\^\d+\^[^|]*\|([^>]*)>/gu, "$1")
    .replace(/[<>*]/gu, "")
    .replaceAll("\n", " ");

/** That the filer has confirmed it since is no reason to hold: it stands with the customer. */
function customerText({ approval: { binding, state }, customerConfirmed }: ApprovalView): string {
  const customer = withRef(binding.customerName, binding.customerRef);
  const since = state === "PENDING" && binding.bindingUnconfirmed && customerConfirmed;
  return since ? `${customer}, confirmed by the filer after this card was made` : customer;
}

/** Who asked when the card was made, and whoever asks for the same since: none of them may decide it. */
const askedBy = ({ approval, operation }: ApprovalView): string =>
  listOf([...new Set([...approval.binding.filers, ...operation.filers])].map(mentionUser));

function boundRows(view: ApprovalView): Row[] {
  const { approval, operation } = view;
  const { binding } = approval;
  const amount = amountOf(binding);
  const left = leftLines(approval, view.onWordMinor);
  const table: (Row | null)[] = [
    amount === null ? null : { label: "Amount", value: { theirs: amount } },
    binding.orderRef === null ? null : { label: "Order", value: { theirs: orderText(approval) } },
    binding.subscriptionRef === null
      ? null
      : { label: "Subscription", value: { theirs: subscriptionText(approval) } },
    { label: "Customer", value: { theirs: customerText(view) } },
    { label: "What is done", value: { theirs: scopeText(approval, operation) } },
    { label: "Asked by", value: { ours: askedBy(view) || "nobody known" } },
    approval.state === "PENDING"
      ? { label: "Expires", value: { ours: localTime(approval.expiresAt) } }
      : null,
    // What has changed since stands above, and this would be the sum of before.
    left === null || approval.state !== "PENDING" || view.changedSince.some(({ what }) => SUMMED.has(what))
      ? null
      : { label: "Left after this", value: { ours: left.map(escapeText).join("\n") } },
  ];
  return table.filter((row) => row !== null);
}

/** What the balance is made of. */
const SUMMED: ReadonlySet<Change["what"]> = new Set(["refundable", "captured", "amount"]);

const orderText = ({ binding }: Approval): string =>
  withRef(binding.orderRef ?? "?", binding.world.order?.status);

const subscriptionText = ({ binding }: Approval): string =>
  withRef(binding.subscriptionRef ?? "?", binding.world.subscription?.status);

function scopeText({ binding }: Approval, operation: OperationFacts): string {
  const again = binding.occurrence > 1 ? `, occurrence ${binding.occurrence}` : "";
  if (binding.kind !== "refund") return `${kindName(binding.kind)}${again}`;
  if (binding.itemRefs.length === 0) {
    return `Refund of ${operation.refundScope === "everything_left" ? "everything that is left" : "an exact amount"}${again}`;
  }
  const named = binding.itemRefs.slice(0, ITEMS_MAX).map((ref) => {
    const name = operation.items.find((item) => item.ref === ref)?.name;
    return name === null || name === undefined ? ref : `${name} (${ref})`;
  });
  const more = binding.itemRefs.length - named.length;
  return `Refund of ${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}${again}`;
}

/** The switch that holds back what is asked for here or went on in its place. */
const frozenOf = ({ operation, instead }: ApprovalView): Frozen | null => heldBackBy(instead ?? operation);

function frozenBlocks(view: ApprovalView): KnownBlock[] {
  const frozen = frozenOf(view);
  if (frozen === null) return [];
  return [ours(view.approval.state === "PENDING" ? frozenSentence(frozen) : frozenSince(frozen))];
}

function changesBlocks(approval: Approval): KnownBlock[] {
  if (approval.changes.length === 0) return [];
  return [ours("*Changed since the last card*"), theirs(changeLines(approval.changes))];
}

function whyBlocks({ approval, operation, customerConfirmed, othersWait }: ApprovalView): KnownBlock[] {
  const { binding } = approval;
  const reasons = reasonLines(heldBecause(approval, customerConfirmed, othersWait));
  const gate =
    approval.gate !== null && !approval.gate.satisfiable ? [`• ${oneLine(approval.gate.sentence)}`] : [];
  const cooling =
    binding.policy.coolingOffMinutes > 0
      ? ` It waits ${durationText(binding.policy.coolingOffMinutes / 60)} first and can be undone until then.`
      : "";
  return [
    ours("*Why it is held*"),
    theirs([...reasons, ...gate].join("\n") || "• The policy asks for an approval."),
    ours(`*If approved:* ${consequenceOf({ ...operation, ...binding })}${cooling}`),
  ];
}

const OTHERS_WAIT = "Another ticket asks for the same and waits for this as well.";

/**
 * Why it is held, as it is now: that nobody has confirmed the customer is one sentence, and none once somebody has. The policy's own
 * sentence about it is of the past and gives way; the customer's row says that the filer has confirmed it since. What holds it
 * then where another ticket waits with it is that ticket.
 */
export function heldBecause(
  { binding }: Approval,
  customerConfirmed: boolean,
  othersWait = false,
): readonly string[] {
  const { reasons } = binding.policy;
  if (!binding.bindingUnconfirmed) return reasons;
  const now = customerConfirmed
    ? othersWait
      ? [OTHERS_WAIT]
      : []
    : ["Nobody has confirmed the customer. Approving confirms the customer for this operation alone."];
  const at = reasons.indexOf(CUSTOMER_UNCONFIRMED);
  return at < 0 ? [...reasons, ...now] : reasons.toSpliced(at, 1, ...now);
}

/** The ticket's filer has confirmed the very customer that the approval is about. */
export const isConfirmed = ({ binding }: Approval, ticket: Ticket | null): boolean =>
  ticket?.binding === "confirmed" && ticket.customerRef === binding.customerRef;

/** Every reason has a line; what has no room is counted. */
function reasonLines(reasons: readonly string[]): string[] {
  const more = reasons.length - WHY_MAX;
  return [
    ...reasons.slice(0, WHY_MAX).map((reason) => `• ${cutText(oneLine(reason), WHY_LINE_MAX)}`),
    ...(more > 0 ? [`• ${more} more under Full text.`] : []),
  ];
}

function earlierBlocks({ binding }: Approval): KnownBlock[] {
  if (binding.earlier.length === 0) return [];
  const lines = binding.earlier.slice(-EARLIER_MAX).map((earlier) => {
    const amount = formatMoney(earlier);
    const denied = earlier.denied;
    const became =
      denied === null
        ? escapeText(stateWords(earlier.status))
        : `denied by ${mentionUser(denied.by)}, ${localTime(new Date(denied.at))}${
            denied.note === null ? "" : `: ${escapeWithin(oneLine(denied.note), 200).text}`
          }`;
    return `• ${amount}, asked for ${localTime(new Date(earlier.at))}, ${became}`;
  });
  return [ours(`*Asked for before*\n${lines.join("\n")}`)];
}

function wordsOfThePlanner({ reason }: OperationFacts): KnownBlock[] {
  const person = furtherAskedBy(reason);
  if (person !== null) return [note(`A further refund, asked for by ${mentionUser(person)}.`)];
  return reason.trim() === ""
    ? []
    : [attributed("_Planner's words, unverified:_", oneLine(withoutAddresses(reason)), REASON_MAX)];
}

function endBlocks(view: ApprovalView, blockId: string): KnownBlock[] {
  const buttons = buttonsOf(view);
  const decided = decisionBlocks(view);
  return buttons.length === 0 ? decided : [...decided, actions(blockId, buttons)];
}

/** Buttons only while a decision is asked for, and the Undo of what cools off or is tried again; a decided card has none. */
function buttonsOf({ approval, operation }: ApprovalView): ButtonSpec[] {
  const value = approvalValue(approval.id, approval.cardVersion);
  const amount = amountOf(approval.binding);
  if (approval.state === "PENDING") {
    return [
      {
        action: ACTIONS.approve,
        text: amount === null ? "Approve" : `Approve ${amount}`,
        value,
        style: "primary",
        says: whatOf(approval.binding),
      },
      {
        action: ACTIONS.deny,
        text: "Deny",
        value,
        style: "danger",
        says: whatOf(approval.binding),
      },
      { action: ACTIONS.approvalDetails, text: "Full text", value },
    ];
  }
  const waits = operation.status === "PREPARED" && (operation.notBefore !== null || isTriedAgain(operation));
  return approval.state === "RELEASED" && waits
    ? [
        {
          action: ACTIONS.undo,
          text: amount === null ? "Undo approval" : `Undo approval of ${amount}`,
          value,
          style: "danger",
          says: whatOf(approval.binding),
        },
      ]
    : [];
}

/** Of what is approved and cools off, or is tried again: until when, and what Undo ends. */
export function coolingNotes(operation: OperationFacts): KnownBlock[] {
  const { notBefore, status } = operation;
  if (isTriedAgain(operation))
    return [
      note(
        "Nothing was carried out, so it can be undone until it is; what was undone cannot be approved again.",
      ),
    ];
  if (notBefore === null || status !== "PREPARED") return [];
  return [
    note(
      `It is not sent before ${localTime(notBefore)}. Until then it can be undone; what was undone cannot be approved again.`,
    ),
  ];
}

/** In App Home: what this person approved or could have, and what has not been sent yet. */
export function stoppableButtons(view: ApprovalView): ButtonSpec[] {
  const { approval } = view;
  // Released already: it cools off, with the Undo of its card.
  if (approval.state !== "APPROVED") return buttonsOf(view);
  const value = approvalValue(approval.id, approval.cardVersion);
  return [
    {
      action: ACTIONS.deny,
      text: "Deny after all",
      value,
      style: "danger",
      says: whatOf(approval.binding),
    },
  ];
}

/** Who, when, note, and what came of it. */
function decisionBlocks(view: ApprovalView): KnownBlock[] {
  const { approval, operation } = view;
  const votes = approval.votes.map((vote) => note(voteLine(vote, view)));
  const notes = approval.votes
    .filter((vote) => vote.note !== null && vote.note.trim() !== "" && vote.note !== approval.denyNote)
    .map((vote) => attributed(`Note by ${mentionUser(vote.userId)}:`, oneLine(vote.note ?? ""), NOTE_MAX));
  const denied =
    approval.denyNote === null || approval.denyNote.trim() === ""
      ? []
      : [attributed("Note:", oneLine(approval.denyNote), NOTE_MAX)];
  const suggested =
    approval.suggestedMinor === null
      ? []
      : [
          note(
            `Suggested instead: ${formatMoney({ amountMinor: approval.suggestedMinor, currency: approval.binding.currency })}. A new ticket can ask for that.`,
          ),
        ];
  const standing = standingLine(view);
  const vouched = confirmedLine(view.instead ?? operation);
  const { approversNeeded } = approval;
  const given = approversNeeded - missingVotes(approval);
  const counted = approval.state === "PENDING" && (approversNeeded > 1 || given > 0);
  return [
    ...votes,
    ...(counted ? [note(`${given} of ${approversNeeded} approvals given.`)] : []),
    ...notes,
    ...denied,
    ...suggested,
    ...(standing === null
      ? []
      : approval.state === "EXPIRED" || isTriedAgain(operation)
        ? [ours(withLocalTimes(standing))]
        : [theirs(standing, NOTE_MAX * 2)]),
    ...(vouched === null ? [] : [note(vouched)]),
    ...(approval.endCode === "binding_confirmed" && view.confirmedBy !== null
      ? [note(`The customer was confirmed by ${mentionUser(view.confirmedBy)}.`)]
      : []),
    ...coolingNotes(operation),
  ];
}

/** "Confirmed by @…" or "Rejected by @…" of an end that only on-call vouches for: mrkdwn. null: the provider shows it. */
export function confirmedLine(operation: OperationFacts): string | null {
  const people = vouchedBy(operation);
  return people.length === 0
    ? null
    : `${operation.status === "REJECTED" ? "Rejected" : "Confirmed"} by ${listOf(people.map(mentionUser))}.`;
}

function voteLine(vote: Vote, view: ApprovalView): string {
  const who = `by ${mentionUser(vote.userId)} (${escapeText(oneLine(vote.role))})`;
  const yes = vote.verdict === "deny" ? view.yesBefore?.get(vote.userId) : undefined;
  if (yes !== undefined)
    return `*Approved* ${who}, ${localTime(yes)}, and *${tookBack(view)}*, ${localTime(vote.at)}`;
  return `*${vote.verdict === "approve" ? "Approved" : "Denied"}* ${who}, ${localTime(vote.at)}`;
}

/** What somebody did who had approved. */
const tookBack = ({ approval }: ApprovalView): string =>
  approval.endCode === "undone" ? "took it back" : "then denied";

/** How a no is named: of what was approved before, Undo takes that back. */
const noOf = ({ endCode }: Approval): string => (endCode === "undone" ? "Taken back" : "Denied");

/** The same without marks. */
function voteText(vote: Vote, view: ApprovalView): string {
  const who = mentionUser(vote.userId);
  const yes = vote.verdict === "deny" ? view.yesBefore?.get(vote.userId) : undefined;
  if (yes !== undefined)
    return `Approved by ${who}, ${utcTime(yes)}, and ${tookBack(view)}, ${utcTime(vote.at)}.`;
  return `${vote.verdict === "approve" ? "Approved" : "Denied"} by ${who}, ${utcTime(vote.at)}.`;
}

function standingLine(view: ApprovalView): string | null {
  const { approval, operation, waitsFor } = view;
  switch (approval.state) {
    case "PENDING":
      return null;
    case "APPROVED":
      return waitsFor === 0
        ? `Approved. ${operation.frozen !== null ? FROZEN : "Not sent yet."}`
        : `Approved. Waits for ${waitsFor === 1 ? "one other decision" : `${waitsFor} other decisions`} of the same step. Nothing is sent before.${operation.frozen !== null ? " Sending is frozen, too." : ""}`;
    case "RELEASED":
      return resultOf(operation);
    case "DENIED":
      return `${noOf(approval)}. ${nothingDone(operation.attempts)} ${nextAfter("DENIED", operation)}`;
    case "EXPIRED":
      return `Nobody decided before ${utcTime(approval.expiresAt)}. Nothing was sent. ${nextAfter("EXPIRED", operation)}`;
    case "VOIDED":
      return [
        voidedBecause(approval),
        approval.endCode === "binding_confirmed"
          ? insteadSentence(view.instead)
          : nothingDone(operation.attempts),
        view.successor ? "A new card asks again." : afterVoided(view),
      ]
        .filter((part) => part !== "")
        .join(" ");
    default:
      return assertNever(approval.state, "approval state");
  }
}

/** Where no card asks again and nothing of the same is under way. */
const afterVoided = ({ approval, operation }: ApprovalView): string =>
  (approval.endCode === "drift" || approval.endCode === "nobody_waits") && operation.status === "VOIDED"
    ? nextAfter("VOIDED", operation)
    : "";

const nextAfter = (
  status: "DENIED" | "EXPIRED" | "VOIDED",
  { occurrence }: Pick<OperationFacts, "occurrence">,
): string => askAgain({ status, occurrence }) ?? "";

/** Why it ended without a decision, with the amount where there is one. */
export function voidedBecause({ binding, endCode, endDetail }: Approval): string {
  if (endCode === "binding_confirmed") {
    return `The filer confirmed the customer, and ${amountOf(binding) ?? "this"} is within what the agent may do alone.`;
  }
  return asSentence(endDetail ?? "It does not fit the present state any more.");
}

/** What came of what needs no approval any more: it was asked for again, as an operation of its own. */
function insteadSentence(instead: OperationFacts | null): string {
  if (instead === null) return "It is judged anew; the ticket's thread tells what comes of it.";
  const what = whatOf(instead);
  const again = `It was asked for anew as the ${uncapital(what)}`;
  if (instead.status === "AWAITING_APPROVAL")
    return `${again} and is held for another reason; its own card asks.`;
  const alone = !ENDED_UNSENT.has(instead.status) && instead.approvedBy.length === 0;
  return `${again}${alone ? ", which the policy allows without an approver" : ""}. ${resultOf(instead)}`;
}

const ENDED_UNSENT: ReadonlySet<OperationFacts["status"]> = new Set(["DENIED", "EXPIRED", "VOIDED"]);

/** The card's first words once it is no longer a question. */
function headline({ approval, operation }: ApprovalView): string {
  const kind = kindName(operation.kind).toLowerCase();
  switch (approval.state) {
    case "PENDING":
      return `Approval needed: ${kind}`;
    case "APPROVED":
    case "RELEASED": {
      const word = wordAlone(operation.result);
      if (word === null) return `Approved: ${kind}`;
      return `Approved: ${kind}, ${operation.status === "CONFIRMED" ? "confirmed" : "rejected"} ${word}`;
    }
    case "DENIED":
      return `${noOf(approval)}: ${kind}`;
    case "EXPIRED":
      return `Expired: ${kind}`;
    case "VOIDED":
      return `${voidedWords(approval)}: ${kind}`;
    default:
      return assertNever(approval.state, "approval state");
  }
}

/** What was let go because only the filer's word was missing has not failed: the work goes on without an approval. */
export const voidedWords = ({ endCode }: Pick<Approval, "endCode">): string =>
  endCode === "binding_confirmed" ? "Approval not needed any more" : "No longer valid";

/** One line for a list. */
export function approvalHeadline(view: ApprovalView): string {
  const { binding } = view.approval;
  return `${whatOf(binding)} for ${oneLine(binding.customerName)} (${oneLine(binding.customerRef)}). ${standingLine(view) ?? ""}`.trimEnd();
}

/** For notifications and screen readers: everything that the card says first. Escaped. */
export function approvalText(view: ApprovalView): string {
  const { approval } = view;
  const { binding } = approval;
  const what = `${whatOf(binding)} for ${withRef(binding.customerName, binding.customerRef)}`;
  const switched = frozenOf(view);
  const frozen = switched === null ? "" : frozenText(switched);
  if (approval.state !== "PENDING") {
    const dead = approval.state === "VOIDED" ? `${voidedWords(approval)}: ` : "";
    const said = escapeWithin(oneLine(`${what}. ${dead}${standingLine(view) ?? ""}`), 1200).text;
    const who = approval.votes.map((vote) => voteText(vote, view));
    const note =
      approval.denyNote === null ? "" : escapeWithin(oneLine(`Note: ${approval.denyNote}`), 300).text;
    return [said, frozen, confirmedLine(view.instead ?? view.operation) ?? "", ...who, note]
      .filter((part) => part !== "")
      .join(" ");
  }
  const filers = askedBy(view);
  const head = escapeWithin(oneLine(`Approval needed: ${what}.`), 800).text;
  const why = escapeWithin(
    oneLine(heldBecause(approval, view.customerConfirmed, view.othersWait)[0] ?? ""),
    400,
  ).text;
  const changed = changedSinceText(view.changedSince);
  return `${head} ${frozen} ${changed} Asked by ${filers}. ${why} Expires ${utcTime(approval.expiresAt)}.`.replace(
    / {2,}/gu,
    " ",
  );
}
