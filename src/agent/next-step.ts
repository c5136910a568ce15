/**
 * What to do next with a run, decided purely from its rows. Every crash point is a row that this function reads, so a resumed
 * run and one that never stopped do the same.
 */

import { assertNever } from "../domain/assert-never.js";
import { isPersonsRejection } from "../domain/named-evidence.js";
import type { RunEnd } from "../domain/run.js";
import { factsOnly } from "../domain/text/advice.js";
import { cutText } from "../domain/text/cut.js";
import { findReferences } from "../domain/text/references.js";
import type { RunView, ToolCall, Turn } from "../runs/index.js";
import { isBlank, needsAnAnswer } from "../runs/index.js";
import { namedBy } from "./scope.js";
import { isToolName } from "./tools/catalogue.js";
import { callSignature } from "./tools/parse.js";

export interface Ending {
  state: RunEnd;
  code: string;
  detail: string;
  /** The planner ended of its own accord, with an answer. */
  plannerSuccess: boolean;
  /** Model prose for the thread, if any. */
  says: string | null;
  /** The model's summary for whoever takes over. */
  handover: string | null;
}

export type Step =
  /** `larger`: the reply before was cut off; the one larger try. */
  | { do: "call_model"; larger: boolean }
  | { do: "resolve_turn"; turn: Turn }
  | { do: "release_turn"; turn: Turn }
  | { do: "execute_turn"; turn: Turn }
  | { do: "await_binding" }
  | { do: "end"; ending: Ending };

/** The same call, free text aside, may fail this often before the run is stuck. */
export const SAME_FAILURES = 3;
/** The same call may be made this often at all. */
export const SAME_CALLS = 6;

export function nextStep(view: RunView): Step {
  const { run } = view;
  if (run.cancelRequestedBy !== null) {
    return end("cancelled", "stopped", "Stopped on request.");
  }
  const turn = view.turns.at(-1);
  if (turn === undefined) return { do: "call_model", larger: false };
  switch (turn.state) {
    case "recorded":
      return { do: "resolve_turn", turn };
    case "held":
      return { do: "release_turn", turn };
    case "released":
      return { do: "execute_turn", turn };
    case "resolved":
      return afterResults(view, turn);
    case "final":
      return afterFinal(view, turn);
    default:
      return assertNever(turn.state, "turn state");
  }
}

function end(state: RunEnd, code: string, detail: string, more: Partial<Ending> = {}): Step {
  return {
    do: "end",
    ending: { state, code, detail, plannerSuccess: false, says: null, handover: null, ...more },
  };
}

function afterResults(view: RunView, turn: Turn): Step {
  const calls = view.calls.filter((call) => call.turnId === turn.id);
  const handover = calls.find(
    (call) => call.name === "escalate_to_human" && call.decision === "allowed" && call.isError === false,
  );
  if (handover !== undefined) {
    return end("escalated", "handed_over", "Handed back to a person.", {
      handover: summaryOf(handover),
      plannerSuccess: true,
    });
  }
  if (view.run.planner === "code") {
    const undone = calls.find((call) => call.isError === true);
    return undone === undefined
      ? end("resolved", "asked_by_person", "What the filer asked for was done.", { plannerSuccess: true })
      : end(
          "escalated",
          "asked_by_person",
          `What the filer asked for was not done. ${factsOnly(undone.result ?? "")}`.trim(),
        );
  }
  const stuck = stuckOn(view.calls);
  if (stuck !== null) return end("escalated", "stuck", stuck);
  return { do: "call_model", larger: false };
}

const summaryOf = (call: ToolCall): string => {
  const input = call.input;
  const summary =
    typeof input === "object" && input !== null && !Array.isArray(input) ? input["summary"] : null;
  return typeof summary === "string" && !isBlank(summary) ? summary : "(no summary)";
};

/** A sentence on what the run keeps repeating, or null. */
export function stuckOn(calls: readonly ToolCall[]): string | null {
  const failures = new Map<string, ToolCall[]>();
  const all = new Map<string, number>();
  for (const call of calls.filter((one) => one.state === "done")) {
    const signature = callSignature(call.name, call.input);
    all.set(signature, (all.get(signature) ?? 0) + 1);
    if ((all.get(signature) ?? 0) >= SAME_CALLS) {
      return `Stuck: the same ${label(call)} was asked for ${SAME_CALLS} times.`;
    }
    if (call.isError !== true) continue;
    const failed = [...(failures.get(signature) ?? []), call];
    failures.set(signature, failed);
    if (failed.length >= SAME_FAILURES) {
      return `Stuck: ${label(call)} failed ${failed.length} times, the last time with: ${factsOnly(call.result ?? "")}`;
    }
  }
  return null;
}

/** By code alone: what the planner wrote is repeated only where it is a tool or looks like a reference. */
function label(call: ToolCall): string {
  const input = call.input;
  const name = isToolName(call.name) ? call.name : "call of an unknown tool";
  if (typeof input !== "object" || input === null || Array.isArray(input)) return name;
  const about = input["order_reference"] ?? input["subscription_reference"];
  return typeof about === "string" ? `${name} (${namedBy(about)})` : name;
}

/** What each way of stopping means. Only `tool_use` runs tools, and that is not this function's case. */
function afterFinal(view: RunView, turn: Turn): Step {
  switch (turn.stopReason) {
    case "end_turn":
    case "stop_sequence":
      return afterAnswer(view, turn);
    case "pause_turn":
      return { do: "call_model", larger: false };
    case "max_tokens":
      return cutOffBefore(view, turn)
        ? end(
            "escalated",
            "cut_off",
            "The model's reply was cut off twice, the second time with more room. None of it was acted on.",
          )
        : { do: "call_model", larger: true };
    case "model_context_window_exceeded":
      return end(
        "escalated",
        "context_window",
        "The conversation no longer fits the model's window. The last reply was not acted on.",
      );
    case "refusal":
      return end("escalated", "refusal", refusalSentence(turn));
    case "tool_use":
      return end(
        "escalated",
        "malformed_reply",
        "The model asked for tools in a form that cannot be answered. Nothing of it was done.",
      );
    default:
      return end(
        "escalated",
        "unknown_stop",
        `The model stopped for a reason that is not known here (${turn.stopReason ?? "none"}). Nothing of that reply was acted on.`,
      );
  }
}

function afterAnswer(view: RunView, turn: Turn): Step {
  const untold = view.notes.filter((note) => note.usedInSeq === null);
  if (untold.some(needsAnAnswer)) return { do: "call_model", larger: false };
  const says = proseOf(turn);
  if (view.ticket.binding === "none" && needsACustomer(view, says)) return { do: "await_binding" };
  if (says === null && !view.calls.some((call) => call.state === "done" && call.isError === false)) {
    return end(
      "escalated",
      "empty_reply",
      "The model ended without an answer and without having done anything.",
    );
  }
  const refused = providerRefusal(view.calls);
  if (refused !== null) {
    return end("escalated", "provider_refused", refused, {
      says,
      plannerSuccess: true,
    });
  }
  if (asksBack(says) && !view.calls.some(hasActed)) {
    return end(
      "escalated",
      "asked_back",
      "The planner ended with a question and nothing was changed. Answer it here, or take the ticket over.",
      { says, plannerSuccess: false },
    );
  }
  return end("resolved", "end_turn", "The planner finished.", { says, plannerSuccess: true });
}

/** Tools that mean nothing without somebody whom the ticket is about. */
const ABOUT_SOMEBODY: ReadonlySet<string> = new Set([
  "find_customer",
  "get_order",
  "get_shipment_status",
  "issue_refund",
  "cancel_order",
  "cancel_subscription",
]);

/**
 * Nobody is bound. Is that what the answer lacks? A ticket that names somebody, a run that looked for somebody, and a question have
 * no end yet; a general question that was answered has.
 */
function needsACustomer({ ticket, calls }: RunView, says: string | null): boolean {
  const { emails, lookalikes } = findReferences(ticket.text);
  return (
    ticket.candidates.length > 0 ||
    emails.length + lookalikes.length > 0 ||
    calls.some(({ name }) => ABOUT_SOMEBODY.has(name)) ||
    asksBack(says)
  );
}

/** Ends with a question mark, in any script. Decides only whether somebody is waited for. */
const asksBack = (says: string | null): boolean => says !== null && /[?？؟՞]["'”’)\]\s]*$/u.test(says);

const hasActed = (call: ToolCall): boolean => call.operationId !== null && call.isError === false;

/** Refusals that need nobody: the customer has the money. */
const HARMLESS_REFUSALS: ReadonlySet<string> = new Set(["charge_already_refunded"]);

/** The last word on an effect was a definitive no, the provider's or on-call's: a person should look at that, whatever the planner says. */
function providerRefusal(calls: readonly ToolCall[]): string | null {
  const last = new Map<string, ToolCall>();
  for (const call of calls) {
    const input = call.input;
    if (call.operationId === null || typeof input !== "object" || input === null || Array.isArray(input))
      continue;
    last.set(`${call.name}:${input["order_reference"] ?? input["subscription_reference"] ?? ""}`, call);
  }
  for (const { resultJson, result } of last.values()) {
    if (typeof resultJson !== "object" || resultJson === null || Array.isArray(resultJson)) continue;
    const code = String(resultJson["code"]);
    if (resultJson["status"] !== "REJECTED" || HARMLESS_REFUSALS.has(code)) continue;
    return isPersonsRejection(code) ? `On-call closed it: ${result}` : `The provider refused: ${result}`;
  }
  return null;
}

/** The text of a reply, or null if there is none to read. */
export function proseOf(turn: Turn): string | null {
  const text = turn.content
    .filter((block) => block.type === "text" && typeof block["text"] === "string")
    .map((block) => String(block["text"]))
    .join("\n")
    .trim();
  return isBlank(text) ? null : text;
}

const cutOffBefore = (view: RunView, turn: Turn): boolean =>
  view.turns.some((other) => other.seq === turn.seq - 1 && other.stopReason === "max_tokens");

function refusalSentence(turn: Turn): string {
  const details = turn.stopDetails;
  const category =
    typeof details === "object" && details !== null && !Array.isArray(details) ? details["category"] : null;
  return typeof category === "string"
    ? `The model declined to go on (${cutText(category, 80)}).`
    : "The model declined to go on.";
}
