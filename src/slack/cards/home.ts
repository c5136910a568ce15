/** App Home: my tickets; approvals that I may decide, each with its own buttons and its own binding; for on-call, what needs a person. */

import type { HomeView, KnownBlock, MrkdwnElement, PlainTextElement } from "@slack/types";
import { type Frozen, frozenWords } from "../../domain/frozen.js";
import type { RunId } from "../../domain/ids.js";
import type { Operation } from "../../domain/operation.js";
import { isRunEnd } from "../../domain/run.js";
import type { OncallHome } from "../../ops/index.js";
import type { ListedRun } from "../../runs/index.js";
import { ACTIONS } from "../actions.js";
import { actions, divider, header, note, ours, theirs } from "../blocks/build.js";
import { LIMITS } from "../limits.js";
import { escapeWithin, oneLine } from "../text/safe.js";
import { localTime, withLocalTimes } from "../text/time.js";
import {
  type ApprovalView,
  approvalCard,
  approvalHeadline,
  coolingNotes,
  stoppableButtons,
} from "./approval-card.js";
import { frozenSentence } from "./frozen.js";
import { chunks, frozenLine, incidentLine, operationLine } from "./ops-views.js";
import { runTitleOf, standingIn } from "./run-card.js";
import { type OperationFacts, whatOf } from "./sentences.js";

export interface HomeFacts {
  /** Result of the last click, first thing to read; mrkdwn, escaped. */
  readonly notice: string | null;
  readonly approvals:
    | { readonly ok: true; readonly views: readonly ApprovalView[]; readonly more: boolean }
    | { readonly ok: false; readonly reason: string };
  /** Approved and not sent, waiting for the other decisions of their step or cooling off: still to be stopped. */
  readonly stoppable: readonly ApprovalView[];
  readonly tickets: readonly ListedRun[];
  /** What those runs asked for, by run, in order. */
  readonly asked: ReadonlyMap<RunId, readonly OperationFacts[]>;
  readonly oncall: Omit<OncallHome, "outcome"> | null;
  /** What is frozen, for whoever looks. */
  readonly frozen: readonly Frozen[];
  readonly now: Date;
}

/** As many are read; as many as fit whole are shown. */
export const HOME_APPROVALS = 8;
export const HOME_STOPPABLE = 5;
export const HOME_TICKETS = 10;
const HOME_OPERATIONS = 8;
/** Of one ticket. */
const HOME_ASKED = 3;

export function homeView(facts: HomeFacts): HomeView {
  const before: KnownBlock[] = [
    ...(facts.notice === null ? [] : [ours(facts.notice), divider()]),
    ...parted(frozenBlocks(facts)),
    header("Approvals for you"),
  ];
  const after: KnownBlock[] = [
    divider(),
    ...parted(stoppableBlocks(facts.stoppable.slice(0, HOME_STOPPABLE))),
    header("Your tickets"),
    ...ticketBlocks(facts),
    ...(facts.oncall === null ? [] : [divider(), ...oncallBlocks(facts.oncall)]),
    divider(),
    note(`As of ${localTime(facts.now)}. For half an hour changes show up here by themselves.`),
    actions("home", [{ action: ACTIONS.homeRefresh, text: "Refresh", value: "refresh" }]),
  ];
  const room = LIMITS.blocksPerView - before.length - after.length;
  return { type: "home", blocks: [...before, ...approvalBlocks(facts.approvals, room), ...after] };
}

/** A part and the line below it; a part that is not there has none. */
const parted = (blocks: KnownBlock[]): KnownBlock[] => (blocks.length === 0 ? [] : [...blocks, divider()]);

/**
 * Above everything. In short where cards follow that say it whole; on-call without an approval to decide reads it in their own part.
 */
function frozenBlocks({ frozen, oncall, approvals }: HomeFacts): KnownBlock[] {
  const decides = approvals.ok && approvals.views.length > 0;
  if (decides)
    return frozen.map(({ kind }) => ours(`*${frozenWords(kind)}.* Nothing is sent until on-call thaws.`));
  return oncall === null ? frozen.map((one) => ours(frozenSentence(one))) : [];
}

/** Each as its card, whole: half of what decides it is no ground for a click. The rest of Home leaves room for one at least. */
function approvalBlocks(approvals: HomeFacts["approvals"], room: number): KnownBlock[] {
  if (!approvals.ok) {
    return [
      theirs(
        `Slack could not be asked what you may decide (${approvals.reason}). Please refresh in a minute.`,
      ),
    ];
  }
  if (approvals.views.length === 0) return [ours("Nothing waits for you.")];
  const shown: KnownBlock[] = [];
  let { more } = approvals;
  for (const view of approvals.views) {
    const card = approvalCard(view, `decide.${view.approval.id}`);
    const blocks = shown.length === 0 ? card.blocks : [divider(), ...card.blocks];
    // One is kept for the line that says there are more.
    more ||= shown.length + blocks.length > room - 1;
    if (shown.length + blocks.length > room - 1) break;
    shown.push(...blocks);
  }
  return [...shown, ...(more ? [note("There are more; they come up here as these are decided.")] : [])];
}

function stoppableBlocks(views: readonly ApprovalView[]): KnownBlock[] {
  if (views.length === 0) return [];
  return [
    header("Approved, not sent yet"),
    ...views.flatMap((view) => [
      theirs(approvalHeadline(view), 600),
      ...coolingNotes(view.operation),
      actions(`stop.${view.approval.id}`, stoppableButtons(view)),
    ]),
  ];
}

function ticketBlocks({ tickets, asked }: Pick<HomeFacts, "tickets" | "asked">): KnownBlock[] {
  if (tickets.length === 0)
    return [ours("You have filed none. Write in the tickets channel, or use `/ticket`.")];
  return tickets.slice(0, HOME_TICKETS).map(({ run, excerpt }) => ({
    type: "context" as const,
    elements: [
      {
        type: "mrkdwn" as const,
        verbatim: true,
        text: `*${runTitleOf(run.state, asked.get(run.id) ?? [])}* · ${localTime(run.createdAt)}`,
      },
      { type: "plain_text" as const, emoji: false, text: escapeWithin(oneLine(excerpt) || "–", 150).text },
      ...askedText(asked.get(run.id) ?? [], isRunEnd(run.state)).map(askedElement),
    ],
  }));
}

/** With a time in it, that is the reader's, as the ticket's own beside it. */
function askedElement(text: string): PlainTextElement | MrkdwnElement {
  const local = withLocalTimes(text);
  return local === text
    ? { type: "plain_text", emoji: false, text }
    : { type: "mrkdwn", verbatim: true, text: local };
}

/** "Refund of £20.00 GBP on order ORD-1001: done", each; what has no room is counted. */
function askedText(operations: readonly OperationFacts[], over: boolean): string[] {
  const lines = operations.slice(0, HOME_ASKED).map((operation) => {
    const said = `${whatOf(operation)}: ${standingIn(operation, over)}`;
    return escapeWithin(oneLine(said), 200).text;
  });
  const more = operations.length - lines.length;
  return more > 0 ? [...lines, `and ${more} more`] : lines;
}

function oncallBlocks({
  unknown,
  quarantined,
  incidents,
  frozen,
}: NonNullable<HomeFacts["oncall"]>): KnownBlock[] {
  const list = (title: string, operations: readonly Operation[]): KnownBlock[] => [
    ours(
      `*${title}*\n${operations.length === 0 ? "None." : operations.slice(0, HOME_OPERATIONS).map(operationLine).join("\n")}${
        operations.length > HOME_OPERATIONS ? `\nand ${operations.length - HOME_OPERATIONS} more` : ""
      }`,
    ),
  ];
  const stopped = frozen.filter((state) => state.frozen);
  return [
    header("On-call"),
    ...list("With a person (quarantined)", quarantined),
    ...list("Outcome unknown", unknown),
    ours("*Open incidents*"),
    ...chunks(incidents.slice(0, HOME_OPERATIONS).map(incidentLine), "None."),
    ...(incidents.length > HOME_OPERATIONS ? [note("`/ops incidents` lists the others.")] : []),
    ours(`*Frozen*\n${stopped.length === 0 ? "Nothing." : stopped.map(frozenLine).join("\n")}`),
  ];
}
