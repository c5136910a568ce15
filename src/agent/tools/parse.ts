/**
 * From a model's tool call to a valid one, or to a sentence that the model can act on. Nothing is guessed, rounded or filled in.
 */

import type { z } from "zod";
import type { Json } from "../../domain/json.js";
import { parseAmountMinor } from "../../domain/money.js";
import { cutText, headOf } from "../../domain/text/cut.js";
import {
  isToolName,
  TOOL_INPUTS,
  TOOL_NAMES,
  type ToolInput,
  type ToolName,
  type ValidCall,
} from "./catalogue.js";

export type ParsedCall = { ok: true; call: ValidCall } | { ok: false; sentence: string };

const MAX_REFERENCE_CHARS = 100;
const MAX_QUERY_CHARS = 500;
const MAX_REASON_CHARS = 2_000;
const MAX_ITEMS = 200;

/** A name that code may repeat in a sentence of its own. */
const isPlainName = (name: string): boolean => /^[\w-]{1,64}$/.test(name);

const wrong = (sentence: string): ParsedCall => ({ ok: false, sentence });

/** Reads one call. Every refusal says what to send instead. */
export function parseCall(name: string, input: Json): ParsedCall {
  if (!isToolName(name)) {
    return wrong(
      `There is no tool ${isPlainName(name) ? `"${name}"` : "of that name"}. The tools are: ${TOOL_NAMES.join(", ")}.`,
    );
  }
  const parsed = TOOL_INPUTS[name].safeParse(input);
  if (!parsed.success) return wrong(shapeSentence(name, input, parsed.error));
  const call = { name, input: parsed.data } as ValidCall;
  const problem = rangeProblem(call);
  return problem === null ? { ok: true, call: trimmed(call) } : wrong(problem);
}

function shapeSentence(name: ToolName, input: Json, error: z.ZodError): string {
  if (name === "issue_refund" && typeof input === "object" && input !== null && !Array.isArray(input)) {
    const amount = "amount_minor" in input ? parseAmountMinor(input["amount_minor"]) : null;
    if (amount !== null && !amount.ok) return `amount_minor: ${amount.sentence} Nothing was done.`;
  }
  const problems = error.issues.slice(0, 5).map((issue) => {
    const field = issue.path.join(".");
    const said = issue.code === "unrecognized_keys" ? unknownKeys(issue.keys) : issue.message;
    return field === "" ? said : `${field}: ${said}`;
  });
  const fields = Object.keys(TOOL_INPUTS[name].shape).join(", ");
  return `The input of ${name} does not fit: ${problems.join("; ")}. Send every one of: ${fields}. Nothing was done.`;
}

const unknownKeys = (keys: readonly string[]): string =>
  ["there are keys that this tool does not have", ...keys.filter(isPlainName).slice(0, 5)].join(" ");

function rangeProblem(call: ValidCall): string | null {
  switch (call.name) {
    case "issue_refund":
      return refundProblem(call.input);
    case "cancel_order":
    case "get_order":
    case "get_shipment_status":
      return referenceProblem("order_reference", call.input.order_reference);
    case "cancel_subscription":
      return referenceProblem("subscription_reference", call.input.subscription_reference);
    case "find_customer":
      return textProblem("query", call.input.query);
    case "search_help_centre":
      return textProblem("question", call.input.question);
    case "escalate_to_human":
      return null;
  }
}

function refundProblem(input: ToolInput<"issue_refund">): string | null {
  const bad = referenceProblem("order_reference", input.order_reference);
  if (bad !== null) return bad;
  const amount = parseAmountMinor(input.amount_minor);
  if (!amount.ok) return `amount_minor: ${amount.sentence} Nothing was done.`;
  const items = input.item_references;
  switch (input.scope) {
    case "amount":
      if (amount.amountMinor === 0n) {
        return 'With scope "amount", amount_minor must be greater than 0: name the exact amount in minor units. For all that is left use scope "everything_left". Nothing was done.';
      }
      return items.length === 0
        ? null
        : 'With scope "amount", item_references must be empty. Nothing was done.';
    case "items":
      if (items.length === 0 || items.length > MAX_ITEMS) {
        return 'With scope "items", item_references must name the order lines, as get_order shows them. Nothing was done.';
      }
      if (new Set(items.map((item) => item.trim())).size < items.length) {
        return "item_references names a line twice. Nothing was done.";
      }
      break;
    case "everything_left":
      if (items.length > 0) {
        return 'With scope "everything_left", item_references must be empty. Nothing was done.';
      }
      break;
  }
  return amount.amountMinor === 0n
    ? null
    : `With scope "${input.scope}" the server computes the money: amount_minor must be 0. Nothing was done.`;
}

function referenceProblem(field: string, value: string): string | null {
  const text = value.trim();
  if (text === "") return `${field} is empty. Nothing was done.`;
  return text.length <= MAX_REFERENCE_CHARS
    ? null
    : `${field} is too long to be a reference. Nothing was done.`;
}

const textProblem = (field: string, value: string): string | null =>
  value.trim().length >= 2 ? null : `${field} needs at least two characters.`;

function trimmed(call: ValidCall): ValidCall {
  switch (call.name) {
    case "issue_refund":
      return {
        name: call.name,
        input: {
          ...call.input,
          order_reference: call.input.order_reference.trim(),
          item_references: call.input.item_references.map((item) => item.trim()),
          reason: cutText(call.input.reason, MAX_REASON_CHARS),
        },
      };
    case "cancel_order":
      return {
        name: call.name,
        input: {
          order_reference: call.input.order_reference.trim(),
          reason: cutText(call.input.reason, MAX_REASON_CHARS),
        },
      };
    case "cancel_subscription":
      return {
        name: call.name,
        input: {
          ...call.input,
          subscription_reference: call.input.subscription_reference.trim(),
          reason: cutText(call.input.reason, MAX_REASON_CHARS),
        },
      };
    case "get_order":
    case "get_shipment_status":
      return { name: call.name, input: { order_reference: call.input.order_reference.trim() } };
    case "find_customer":
      return { name: call.name, input: { query: headOf(call.input.query.trim(), MAX_QUERY_CHARS) } };
    case "search_help_centre":
      return { name: call.name, input: { question: headOf(call.input.question.trim(), MAX_QUERY_CHARS) } };
    case "escalate_to_human":
      return call;
  }
}

/** What makes two calls the same try: name and input without free text. */
export function callSignature(name: string, input: Json): string {
  if (typeof input !== "object" || input === null || Array.isArray(input))
    return `${name}:${JSON.stringify(input)}`;
  const kept = Object.entries(input)
    .filter(([key]) => key !== "reason" && key !== "summary")
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `${name}:${JSON.stringify(kept)}`;
}
