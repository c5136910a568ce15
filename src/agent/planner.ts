/**
 * The planner port: given a conversation in the shape of the Messages API, one reply. What a planner says is a proposal and
 * never a fact.
 *
 * A planner call is made once: repeating is the run's business (backoff stored in its row).
 */
import type { Json, JsonObject } from "../domain/json.js";
import type { ContentBlock } from "../runs/index.js";

export interface ToolDefinition {
  name: string;
  description: string;
  /** Plain JSON Schema: objects closed, every property required, no numeric bounds. */
  inputSchema: JsonObject;
}

export interface Message {
  role: "user" | "assistant";
  content: readonly ContentBlock[];
}

export interface PlannerRequest {
  system: string;
  tools: readonly ToolDefinition[];
  /** Every `tool_use` is answered directly after; no blank text; ends with a user message unless the last turn was paused. */
  messages: readonly Message[];
  /** Output tokens at most. */
  maxTokens: number;
  /** For the whole call, reading included. */
  deadlineMs: number;
  signal: AbortSignal;
}

export interface PlannerReply {
  content: readonly ContentBlock[];
  stopReason: string | null;
  stopDetails: Json;
  model: string;
  usage: { inputTokens: number; outputTokens: number; raw: JsonObject };
  requestId: string | null;
  /** Tool calls whose text was not plain JSON (a key twice, 1e3 for 1000), by `tool_use` id, with a sentence each. */
  malformed: ReadonlyMap<string, string>;
}

/** Why there was no reply, and what may be done. `detail` is a sentence for people. */
export type PlannerFailure =
  | { next: "later"; code: string; detail: string; retryAfterMs: number | null; billed: boolean }
  /** Asking again changes nothing. */
  | { next: "give_up"; code: string; detail: string };

export type PlannerAnswer = { ok: true; reply: PlannerReply } | { ok: false; failure: PlannerFailure };

export interface Planner {
  name: "messages-api" | "scripted" | "none" | (string & {});
  /** The model's id, or null where there is none. */
  model: string | null;
  /** Never throws for what the service or the network did. */
  plan(request: PlannerRequest): Promise<PlannerAnswer>;
}

/** Prices of one model in millionths of a US dollar for a million tokens: 3_000_000 is 3 dollars. */
export interface ModelPrice {
  inputMicroUsd: bigint;
  outputMicroUsd: bigint;
}

export interface PlannerSettings {
  /** RUN_MAX_OUTPUT_TOKENS: output tokens of one call. */
  maxOutputTokens: number;
  /** Output tokens of the one larger try after a reply that was cut off. */
  largerOutputTokens: number;
  /** One call, from the request to the last byte. */
  callDeadlineMs: number;
  /** DAILY_MAX_COST_USD, in millionths of a dollar, for all runs together; null: no limit. */
  dailyMaxMicroUsd: bigint | null;
  /** Null: calls cost nothing (the scripted planner). */
  price: ModelPrice | null;
  /** Backoff of failed calls: base doubled each time, up to the cap; milliseconds. */
  retryBaseMs: number;
  retryMaxMs: number;
  /** Failed calls in a row after which the run ends. */
  maxFailures: number;
}
