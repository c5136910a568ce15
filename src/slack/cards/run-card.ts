/** The live card of a run in its ticket's thread: what it did, step by step, what it waits for, how it ended. */

import type { KnownBlock } from "@slack/types";
import { assertNever } from "../../domain/assert-never.js";
import { type Frozen, frozenWords } from "../../domain/frozen.js";
import type { OperationId } from "../../domain/ids.js";
import type { Json } from "../../domain/json.js";
import { ENDED } from "../../domain/operation.js";
import { isRunEnd, type RunState } from "../../domain/run.js";
import { factsOnly } from "../../domain/text/advice.js";
import { uncapital } from "../../domain/text/capital.js";
import { cutText } from "../../domain/text/cut.js";
import type { RunView, ToolCall, Turn } from "../../runs/index.js";
import { ACTIONS } from "../actions.js";
import { actions, attributed, type Message, note, ours, theirs, withinLimits } from "../blocks/build.js";
import { withoutAddresses } from "../text/addresses.js";
import { ticketLink } from "../text/link.js";
import { escapeWithin, mentionUser, oneLine } from "../text/safe.js";
import { frozenSince, frozenText, heldBackBy } from "./frozen.js";
import { type OperationFacts, standingOf } from "./sentences.js";

export interface RunCardView {
  readonly view: RunView;
  /** Operations that the run's calls name. */
  readonly operations: ReadonlyMap<OperationId, OperationFacts>;
}

/** The newest steps stay; older ones are in the details. */
const STEPS_SHOWN = 12;
const STEP_MAX = 180;
const WORDS_MAX = 400;

/** `workspace`: where links to messages begin; null: there are none. */
export function runCard(card: RunCardView, workspace: string | null = null): Message {
  const { run, turns, notes } = card.view;
  const ended = isRunEnd(run.state);
  const title = runTitleOf(run.state, [...card.operations.values()]);
  const switches = ended ? [] : heldBack(card);
  const frozen = switches.map(({ kind }) => uncapital(frozenWords(kind))).join(", ");
  // What ended it, and the planner's last words, stand in messages of their own by then.
  const words = ended ? null : lastWords(turns);
  const added = notes.filter((one) => !one.author.startsWith("system:")).length;
  const blocks: KnownBlock[] = [
    ours(
      `*${title}*${frozen === "" ? "" : ` – ${frozen}`}${run.cancelRequestedBy !== null && !ended ? " (stopping)" : ""}`,
    ),
    ...switches.map((one) => note(frozenSince(one))),
    ...stepsBlocks(card),
    ...othersBlocks(card, workspace),
    ...(words === null ? [] : [attributed(`_${markerOf(run.planner)}_`, words, WORDS_MAX)]),
    note(
      [
        plannerName(run.planner, run.model),
        // A run without a planner calls no model.
        run.planner === "code" ? null : `step ${run.stepsUsed} of ${run.stepsMax}`,
        costText(run.costUsedMicroUsd),
        added === 0 ? null : `${added} ${added === 1 ? "message" : "messages"} added in the thread`,
        run.cancelRequestedBy === null ? null : `stop asked for by ${mentionUser(run.cancelRequestedBy)}`,
      ]
        .filter((part) => part !== null)
        .join("  ·  "),
    ),
    actions("run", [
      ...(ended || run.cancelRequestedBy !== null
        ? []
        : [
            {
              action: ACTIONS.stop,
              text: "Stop",
              value: run.id,
              style: "danger" as const,
              says: "Stop this run",
            },
          ]),
      { action: ACTIONS.runDetails, text: "Details", value: run.id, says: "Details of this run" },
    ]),
  ];
  return withinLimits({ text: [`${title}.`, ...switches.map(frozenText)].join(" "), blocks }, 2);
}

/** As `runTitle`; where nothing that it waits for has left, there is no outcome yet to wait for. */
export function runTitleOf(state: RunState, operations: readonly Pick<OperationFacts, "status">[]): string {
  const open = operations.filter(({ status }) => !ENDED.has(status));
  const unsent = open.length > 0 && open.every(({ status }) => status === "PREPARED");
  return state === "waiting" && unsent ? "Waiting to be sent" : runTitle(state);
}

/** The switches that hold back what the run waits for. */
function heldBack({ operations }: RunCardView): readonly Frozen[] {
  const switches = [...operations.values()].map(heldBackBy).filter((one) => one !== null);
  return [...new Map(switches.map((one) => [one.kind, one])).values()];
}

export function runTitle(state: RunState): string {
  switch (state) {
    case "queued":
      return "Queued";
    case "running":
      return "Working on it";
    case "awaiting_binding":
      return "Waiting to be told whom this is about";
    case "awaiting_approval":
      return "Waiting for an approval";
    case "waiting":
      return "Waiting for an outcome";
    case "resolved":
      return "Finished";
    case "escalated":
      return "Handed back to a person";
    case "budget_exhausted":
      return "Stopped: the budget is used up";
    case "failed":
      return "Failed";
    case "cancelled":
      return "Stopped";
    default:
      return assertNever(state, "run state");
  }
}

function stepsBlocks({ view, operations }: RunCardView): KnownBlock[] {
  const { calls } = view;
  if (calls.length === 0) return [];
  const hidden = Math.max(0, calls.length - STEPS_SHOWN);
  const lines = calls.slice(-STEPS_SHOWN).map((call, index) => {
    return cutText(
      `${hidden + index + 1}. ${stepText(call, operations, isRunEnd(view.run.state))}`,
      STEP_MAX,
    );
  });
  return [theirs([...(hidden === 0 ? [] : [`(${hidden} earlier steps)`]), ...lines].join("\n"))];
}

/** Steps that ask for what another ticket holds: which one, so that whoever filed this one can follow it there. */
function othersBlocks({ view, operations }: RunCardView, workspace: string | null): KnownBlock[] {
  const over = isRunEnd(view.run.state);
  const lines = view.calls.slice(-STEPS_SHOWN).flatMap((call) => {
    const operation = call.operationId === null ? undefined : operations.get(call.operationId);
    const ticket = operation?.ticket ?? null;
    return operation === undefined || ticket === null || ticket.id === view.ticket.id
      ? []
      : [
          `Step ${view.calls.indexOf(call) + 1}: ${heldThere(operation, over, ticketLink(ticket, workspace))}.`,
        ];
  });
  return lines.length === 0 ? [] : [note(lines.join("\n"))];
}

function heldThere(operation: OperationFacts, over: boolean, ticket: string): string {
  if (isLeft(operation, over)) return `left to ${ticket}`;
  return ENDED.has(operation.status)
    ? `${ticket} asked for the same before`
    : `${ticket} asked for the same first, and this one waits with it`;
}

/** One step: what was asked for, and how it stands by the database; `over`: its run has ended. */
export function stepText(
  call: ToolCall,
  operations: ReadonlyMap<OperationId, OperationFacts>,
  over: boolean,
): string {
  return `${toolText(call.name, call.input)} – ${stepState(call, operations, over)}`;
}

function stepState(
  call: ToolCall,
  operations: ReadonlyMap<OperationId, OperationFacts>,
  over: boolean,
): string {
  const operation = call.operationId === null ? undefined : operations.get(call.operationId);
  if (operation !== undefined)
    return `${standingIn(operation, over)}${call.replayed && !isLeft(operation, over) ? " (asked for before)" : ""}`;
  switch (call.state) {
    case "proposed":
      return "next";
    case "held":
      return "waits for an approval";
    case "ready":
      return "allowed, waits for the rest of its step";
    case "waiting":
      return "waits";
    case "done":
      return call.isError === true
        ? `not possible: ${oneLine(withoutAddresses(factsOnly(call.result ?? "")))}`
        : "done";
    default:
      return assertNever(call.state, "call state");
  }
}

/** A run that ends withdraws what was not sent, unless another ticket asks for it too: then it is that one's to tell. */
const isLeft = ({ status }: OperationFacts, over: boolean): boolean =>
  over && (status === "AWAITING_APPROVAL" || status === "PREPARED");

/** Where an operation stands, as its run tells it; `over`: the run has ended. */
export const standingIn = (operation: OperationFacts, over: boolean): string =>
  isLeft(operation, over) ? "left to another ticket that asks for it too, told there" : standingOf(operation);

const TOOL_WORDS: Readonly<Record<string, { words: string; of: string }>> = {
  find_customer: { words: "Look for customer", of: "query" },
  get_order: { words: "Look up order", of: "order_reference" },
  get_shipment_status: { words: "Look up shipment of", of: "order_reference" },
  search_help_centre: { words: "Search the help centre for", of: "question" },
  issue_refund: { words: "Refund on order", of: "order_reference" },
  cancel_order: { words: "Cancel order", of: "order_reference" },
  cancel_subscription: { words: "Cancel subscription", of: "subscription_reference" },
  escalate_to_human: { words: "Hand over to a person", of: "" },
};

const WRITES: ReadonlySet<string> = new Set(["issue_refund", "cancel_order", "cancel_subscription"]);

/** Whether a tool of this name changes anything. */
export const isWriteTool = (name: string): boolean => WRITES.has(name);

/** A tool call in words; what the planner wrote into it is its own and may be anything. */
export function toolText(name: string, input: Json): string {
  const known = TOOL_WORDS[name];
  if (known === undefined) return `Unknown tool “${oneLine(withoutAddresses(name))}”`;
  const value =
    typeof input === "object" && input !== null && !Array.isArray(input) ? input[known.of] : undefined;
  return typeof value === "string" && value.trim() !== ""
    ? `${known.words} ${asWritten(oneLine(withoutAddresses(value)))}`
    : known.words;
}

/** What of a call's input its words tell already. */
export const toldInWords = (name: string): readonly string[] => {
  const of = TOOL_WORDS[name]?.of ?? "";
  return of === "" ? [] : [of];
};

/** A reference as it is; anything else that the planner wrote in its place stands in quotes. */
const asWritten = (value: string): string =>
  /^[#\p{L}\p{N}._/-]{1,64}$/u.test(value) ? value : `“${value}”`;

/** The planner's latest prose. */
function lastWords(turns: readonly Turn[]): string | null {
  for (const turn of [...turns].reverse()) {
    const text = shownProse(turn);
    if (text !== "") return text;
  }
  return null;
}

/** Prose of a turn as people are shown it. */
export function shownProse(turn: Turn): string {
  const prose = turn.content
    .map((block) => (block.type === "text" && typeof block["text"] === "string" ? block["text"] : ""))
    .join("\n");
  return withoutAddresses(prose);
}

export function markerOf(planner: string): string {
  return planner === "scripted" ? "Scripted planner says, unverified:" : "Planner says, unverified:";
}

function plannerName(planner: string, model: string | null): string {
  switch (planner) {
    case "scripted":
      return "scripted planner, no model";
    case "code":
      return "asked for by a person, no model";
    case "none":
      return "no planner set";
    default:
      return model === null ? "model" : `model ${escapeWithin(oneLine(model), 80).text}`;
  }
}

/** Millionths of a dollar as dollars with four digits; nothing for nothing. */
export function costText(microUsd: bigint): string | null {
  if (microUsd === 0n) return null;
  const tenThousandths = (microUsd + 99n) / 100n;
  return `$${tenThousandths / 10_000n}.${String(tenThousandths % 10_000n).padStart(4, "0")} USD`;
}
