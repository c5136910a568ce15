/**
 * The conversation, rebuilt from rows alone, in a form that the Messages API accepts:
 *
 * 1. Every `tool_use` of an assistant message is answered in the very next user message, results first.
 * 2. No blank text block; no empty message; roles alternate; content blocks otherwise verbatim.
 * 3. A reply that was cut off, declined or empty is in the trace and not in the conversation.
 */
import { CountersignError } from "../domain/errors.js";
import type { ContentBlock, RunNote, RunView, ToolCall, Turn } from "../runs/index.js";
import { isBlank } from "../runs/index.js";
import type { Message } from "./planner.js";
import { noteBlock, openingBlocks } from "./prompt.js";

export interface Conversation {
  messages: readonly Message[];
  /** Notes that this request tells for the first time. */
  newNotes: readonly RunNote[];
}

/** Replies that stay in the conversation. Anything else is told to nobody again. */
const KEPT: ReadonlySet<string> = new Set(["tool_use", "end_turn", "stop_sequence", "pause_turn"]);

/** The messages of the next request. Throws `history_broken` rather than sending what the API would refuse. */
export function buildConversation(view: RunView): Conversation {
  const last = view.turns.at(-1);
  const nextSeq = (last?.seq ?? 0) + 1;
  const newNotes =
    last?.stopReason === "pause_turn" ? [] : view.notes.filter((note) => note.usedInSeq === null);
  const messages: Message[] = [];
  let pending: ContentBlock[] = openingBlocks(view.ticket);
  for (const turn of view.turns) {
    pending.push(...notesAt(view, turn.seq));
    const content = sendable(turn);
    if (content.length === 0) continue;
    if (pending.length > 0) messages.push({ role: "user", content: pending });
    push(messages, { role: "assistant", content });
    pending = resultsOf(turn, view.calls);
  }
  pending.push(...notesAt(view, nextSeq), ...newNotes.map(noteBlock));
  if (pending.length > 0) messages.push({ role: "user", content: pending });
  const open = messages.at(-1)?.role === "assistant" && last?.stopReason !== "pause_turn";
  const problem = open ? "the conversation ends with an answered reply" : conversationProblem(messages);
  if (problem !== null)
    throw new CountersignError("history_broken", problem, { ids: { runId: view.run.id } });
  return { messages, newNotes };
}

const notesAt = (view: RunView, seq: number): ContentBlock[] =>
  view.notes.filter((note) => note.usedInSeq === seq).map(noteBlock);

/** Paused replies follow each other: the API merges them, so do we. */
function push(messages: Message[], message: Message): void {
  const last = messages.at(-1);
  if (last?.role === message.role) {
    messages[messages.length - 1] = { role: last.role, content: [...last.content, ...message.content] };
  } else {
    messages.push(message);
  }
}

function sendable(turn: Turn): ContentBlock[] {
  if (!KEPT.has(turn.stopReason ?? "")) return [];
  const content = turn.content.filter((block) => !isBlankText(block));
  const answersTools = turn.stopReason === "tool_use";
  // Calls of a reply that did not stop for them were never run and have no results.
  const kept = answersTools ? content : content.filter((block) => block.type !== "tool_use");
  const hasSubstance = kept.some((block) => block.type !== "thinking" && block.type !== "redacted_thinking");
  return hasSubstance ? kept : [];
}

const isBlankText = (block: ContentBlock): boolean =>
  block.type === "text" && (typeof block["text"] !== "string" || isBlank(block["text"]));

function resultsOf(turn: Turn, calls: readonly ToolCall[]): ContentBlock[] {
  if (turn.stopReason !== "tool_use") return [];
  return calls
    .filter((call) => call.turnId === turn.id)
    .sort((a, b) => a.position - b.position)
    .map((call) => ({
      type: "tool_result",
      tool_use_id: call.toolUseId,
      content: call.result === null || isBlank(call.result) ? "No result." : call.result,
      ...(call.isError === true ? { is_error: true } : {}),
    }));
}

/** What the Messages API would refuse, or null. */
export function conversationProblem(messages: readonly Message[]): string | null {
  if (messages[0]?.role !== "user") return "the conversation does not begin with a user message";
  for (const [index, message] of messages.entries()) {
    if (message.content.length === 0) return `message ${index} is empty`;
    if (message.content.some(isBlankText)) return `message ${index} has a blank text block`;
    if (message.role !== "assistant") continue;
    const unanswered = unansweredCalls(message, messages[index + 1]);
    if (unanswered.length > 0) return `tool_use without tool_result directly after: ${unanswered.join(", ")}`;
  }
  return null;
}

function unansweredCalls(message: Message, next: Message | undefined): string[] {
  const asked = message.content
    .filter((block) => block.type === "tool_use")
    .map((block) => String(block["id"]));
  const answered = new Set(
    (next?.role === "user" ? next.content : [])
      .filter((block) => block.type === "tool_result")
      .map((block) => String(block["tool_use_id"])),
  );
  return asked.filter((id) => !answered.has(id));
}
