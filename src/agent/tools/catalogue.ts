/**
 * The model's tools (CONTRACT §5). The zod schema is the one source: it makes the strict JSON schema of the wire and checks
 * the input again in code, because a schema guarantees a shape and never the truth.
 *
 * No tool takes a customer, and every money field is required: an absent amount can never mean "everything".
 */
import { z } from "zod";
import { assertNever } from "../../domain/assert-never.js";
import type { JsonObject } from "../../domain/json.js";
import type { ToolDefinition } from "../planner.js";

const reference = (what: string) => z.string().describe(what);
const orderReference = reference("The order's reference as the shop writes it, for example ORD-10042.");
const reason = z.string().describe("Why, in one sentence. Shown to people as unverified.");

export const TOOL_INPUTS = {
  find_customer: z.strictObject({
    query: z.string().describe("Part of a name, an e-mail address or a customer reference."),
  }),
  get_order: z.strictObject({ order_reference: orderReference }),
  get_shipment_status: z.strictObject({ order_reference: orderReference }),
  search_help_centre: z.strictObject({ question: z.string().describe("What to look up.") }),
  issue_refund: z.strictObject({
    order_reference: orderReference,
    scope: z
      .enum(["everything_left", "items", "amount"])
      .describe(
        "What is refunded: all that is left of the payment, whole order lines, or an exact amount. The server computes the money.",
      ),
    item_references: z
      .array(z.string())
      .describe("References of the order lines. Empty unless the scope is items."),
    amount_minor: z
      .int()
      .describe(
        "The exact amount in minor units of the order's currency (14505 for 145.05), a whole number. 0 unless the scope is amount.",
      ),
    reason,
  }),
  cancel_order: z.strictObject({ order_reference: orderReference, reason }),
  cancel_subscription: z.strictObject({
    subscription_reference: reference("The subscription's reference as the shop writes it."),
    at_period_end: z.boolean().describe("True: at the end of the paid period. False: at once."),
    reason,
  }),
  escalate_to_human: z.strictObject({
    summary: z
      .string()
      .describe("What a person must know to take over: the request, what was found, what is open."),
  }),
} as const;

export type ToolName = keyof typeof TOOL_INPUTS;
export type ToolInput<N extends ToolName> = z.infer<(typeof TOOL_INPUTS)[N]>;

/** A tool call whose input fits its schema. */
export type ValidCall = { [N in ToolName]: { name: N; input: ToolInput<N> } }[ToolName];
export type WriteCall = Extract<ValidCall, { name: "issue_refund" | "cancel_order" | "cancel_subscription" }>;
export type ReadCall = Extract<
  ValidCall,
  { name: "find_customer" | "get_order" | "get_shipment_status" | "search_help_centre" }
>;

/** True for a call that would change something. */
export function isWriteCall(call: ValidCall): call is WriteCall {
  switch (call.name) {
    case "issue_refund":
    case "cancel_order":
    case "cancel_subscription":
      return true;
    case "find_customer":
    case "get_order":
    case "get_shipment_status":
    case "search_help_centre":
    case "escalate_to_human":
      return false;
    default:
      return assertNever(call, "tool");
  }
}

/** True for a call that only looks something up. */
export const isReadCall = (call: ValidCall): call is ReadCall =>
  !isWriteCall(call) && call.name !== "escalate_to_human";

const DESCRIPTIONS: Record<ToolName, string> = {
  find_customer:
    "Look up the customer of this ticket by part of a name, e-mail or reference, with their orders and subscriptions.",
  get_order:
    "Look up one order of this ticket's customer: status, lines, what was paid, refunded and can still be refunded. Always do this before acting on an order.",
  get_shipment_status: "Where the parcels of one order are.",
  search_help_centre: "Search the help centre for rules and instructions.",
  issue_refund:
    "Ask for a refund on one order. It may be done, held for a person's approval, or refused; the result says which. Never assume that money moved.",
  cancel_order:
    "Ask to cancel one order that has not been dispatched. This returns no money by itself; a refund is asked for separately.",
  cancel_subscription: "Ask to cancel one subscription, at the end of the paid period or at once.",
  escalate_to_human:
    "Hand the ticket to a person and stop. For complaints, legal matters, and whatever these tools cannot settle.",
};

export const TOOL_NAMES = Object.keys(TOOL_INPUTS) as ToolName[];

/** Narrows text to a tool that exists. */
export const isToolName = (name: string): name is ToolName => Object.hasOwn(TOOL_INPUTS, name);

/** Keywords that a strict tool schema does without: ranges are checked in code. */
const STRIPPED: ReadonlySet<string> = new Set([
  "$schema",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "minLength",
  "maxLength",
  "pattern",
  "format",
]);

function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !STRIPPED.has(key))
      .map(([key, member]) => [key, plain(member)]),
  );
}

/** The tools as they go over the wire. */
export const TOOL_DEFINITIONS: readonly ToolDefinition[] = TOOL_NAMES.map((name) => ({
  name,
  description: DESCRIPTIONS[name],
  inputSchema: plain(z.toJSONSchema(TOOL_INPUTS[name])) as JsonObject,
}));
