/** What a conversation in the Messages shape holds so far, for a planner that has no other memory. */
import { z } from "zod";
import type { ContentBlock } from "../../runs/index.js";
import type { Message } from "../planner.js";

export interface PastCall {
  name: string;
  input: Record<string, unknown>;
  result: string;
  isError: boolean;
}

export interface Reading {
  /** Ticket and later notes of the filer. */
  words: string;
  /** Customer reference that code told; null: nobody is bound. */
  customer: string | null;
  calls: readonly PastCall[];
  /** Number of replies so far. */
  replies: number;
}

export function readConversation(messages: readonly Message[]): Reading {
  const texts = messages
    .filter((message) => message.role === "user")
    .flatMap((message) => message.content)
    .filter((block) => block.type === "text")
    .map((block) => String(block["text"]));
  const words = texts.flatMap((text) =>
    [...text.matchAll(/<(ticket|note)>\n([\s\S]*?)\n<\/\1>/g)].map((m) => m[2] ?? ""),
  );
  const told = texts
    .filter((text) => text.startsWith("From the system: "))
    .map((text) => /this ticket is about customer (\S+)/.exec(text)?.[1])
    .filter((reference) => reference !== undefined);
  return {
    words: words.join("\n"),
    customer: told.at(-1) ?? null,
    calls: pastCalls(messages),
    replies: messages.filter((message) => message.role === "assistant").length,
  };
}

function pastCalls(messages: readonly Message[]): PastCall[] {
  const results = new Map<string, ContentBlock>();
  for (const block of messages.flatMap((message) => message.content)) {
    if (block.type === "tool_result") results.set(String(block["tool_use_id"]), block);
  }
  return messages
    .filter((message) => message.role === "assistant")
    .flatMap((message) => message.content)
    .filter((block) => block.type === "tool_use")
    .map((block) => {
      const result = results.get(String(block["id"]));
      const input = block["input"];
      return {
        name: String(block["name"]),
        input: typeof input === "object" && input !== null && !Array.isArray(input) ? input : {},
        result: String(result?.["content"] ?? ""),
        isError: result?.["is_error"] === true,
      };
    });
}

const ORDER = z.object({
  order: z.object({
    reference: z.string(),
    status: z.string(),
    currency: z.string(),
    lines: z.array(
      z.object({ reference: z.string(), name: z.string(), line_total_minor: z.number().optional() }),
    ),
  }),
  payment: z
    .object({ paid_minor: z.number(), refundable_left_minor: z.number(), refundable_left: z.string() })
    .nullable(),
});
export type SeenOrder = z.infer<typeof ORDER>;

const CUSTOMER = z.object({
  customer: z.object({ reference: z.string() }),
  orders: z.array(z.object({ reference: z.string(), status: z.string() })),
  subscriptions: z.array(z.object({ reference: z.string(), status: z.string() })),
});
export type SeenCustomer = z.infer<typeof CUSTOMER>;

const SHIPMENTS = z.object({
  order: z.object({ reference: z.string(), status: z.string() }),
  shipments: z.array(z.object({ carrier: z.string(), tracking: z.string(), status: z.string() })),
});
export type SeenShipments = z.infer<typeof SHIPMENTS>;

const HELP = z.object({ articles: z.array(z.object({ title: z.string(), body: z.string() })) });
export type SeenHelp = z.infer<typeof HELP>;

function parsed<T>(schema: z.ZodType<T>, call: PastCall): T | null {
  if (call.isError) return null;
  try {
    const result = schema.safeParse(JSON.parse(call.result));
    return result.success ? result.data : null;
  } catch {
    return null;
  }
}

export const seenOrder = (call: PastCall): SeenOrder | null => parsed(ORDER, call);
export const seenCustomer = (call: PastCall): SeenCustomer | null => parsed(CUSTOMER, call);
export const seenShipments = (call: PastCall): SeenShipments | null => parsed(SHIPMENTS, call);
export const seenHelp = (call: PastCall): SeenHelp | null => parsed(HELP, call);
