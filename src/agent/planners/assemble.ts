/**
 * One reply out of a stream of events. Keeps the raw text of each tool input, so that what a JSON reader would smooth over is
 * seen. A stream that ends without `message_stop` is no reply.
 */
import { z } from "zod";
import type { Json, JsonObject } from "../../domain/json.js";
import type { ContentBlock } from "../../runs/index.js";
import type { PlannerReply } from "../planner.js";
import { jsonProblem } from "./strict-json.js";

/** The service said in the stream that it failed. */
export class StreamErrorEvent extends Error {
  readonly type: string;
  constructor(type: string, message: string) {
    super(message);
    this.name = "StreamErrorEvent";
    this.type = type;
  }
}

/** The stream ended, or was not readable, before the reply was whole. */
export class BrokenReply extends Error {
  readonly code: "stream_cut" | "unreadable_reply";
  constructor(code: "stream_cut" | "unreadable_reply", message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "BrokenReply";
    this.code = code;
  }
}

const MESSAGE = z.looseObject({
  model: z.string(),
  content: z.array(z.looseObject({ type: z.string() })),
  stop_reason: z.string().nullish(),
  stop_details: z.unknown().optional(),
  usage: z.looseObject({
    input_tokens: z.number().nullish(),
    output_tokens: z.number().nullish(),
    cache_creation_input_tokens: z.number().nullish(),
    cache_read_input_tokens: z.number().nullish(),
  }),
});

/** Checks the shape of a message. Throws `BrokenReply`. */
export function toReply(
  message: unknown,
  about: { requestId: string | null; malformed: ReadonlyMap<string, string> },
): PlannerReply {
  const parsed = MESSAGE.safeParse(message);
  if (!parsed.success) {
    throw new BrokenReply("unreadable_reply", "the reply is not a message", parsed.error);
  }
  const { content, model, stop_reason, stop_details, usage } = parsed.data;
  const tokens = (value: number | null | undefined): number => Math.max(0, Math.floor(value ?? 0));
  return {
    content: content as ContentBlock[],
    model,
    stopReason: stop_reason ?? null,
    stopDetails: (stop_details ?? null) as Json,
    usage: {
      inputTokens:
        tokens(usage.input_tokens) +
        tokens(usage.cache_creation_input_tokens) +
        tokens(usage.cache_read_input_tokens),
      outputTokens: tokens(usage.output_tokens),
      raw: usage as JsonObject,
    },
    ...about,
  };
}

interface OpenBlock {
  block: Record<string, unknown> & { type: string };
  inputText: string;
}

type EventData = Record<string, unknown>;

/** Reads server-sent events to the end of one message. Throws `StreamErrorEvent` and `BrokenReply`. */
export async function assemble(
  events: AsyncIterable<{ event: string | null; data: string }>,
  { requestId, onEvent }: { requestId: string | null; onEvent: () => void },
): Promise<PlannerReply> {
  const reader = new Assembly();
  for await (const { event, data } of events) {
    onEvent();
    if (event === null || event === "ping" || data === "") continue;
    reader.take(event, parseData(data));
    if (reader.stopped) break;
  }
  if (!reader.stopped) throw new BrokenReply("stream_cut", "the stream ended before the reply was whole");
  const { message, malformed } = reader.finish();
  return toReply(message, { requestId, malformed });
}

function parseData(data: string): EventData {
  try {
    const parsed: unknown = JSON.parse(data);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed as EventData;
  } catch (error) {
    throw new BrokenReply("unreadable_reply", "an event of the stream is not JSON", error);
  }
  throw new BrokenReply("unreadable_reply", "an event of the stream is not an object");
}

class Assembly {
  stopped = false;
  #message: EventData | null = null;
  readonly #blocks = new Map<number, OpenBlock>();
  readonly #malformed = new Map<string, string>();

  take(event: string, data: EventData): void {
    switch (event) {
      case "message_start":
        this.#message = { ...objectIn(data, "message") };
        return;
      case "content_block_start":
        this.#blocks.set(indexOf(data), {
          block: { ...objectIn(data, "content_block") } as OpenBlock["block"],
          inputText: "",
        });
        return;
      case "content_block_delta":
        this.#delta(this.#blocks.get(indexOf(data)), objectIn(data, "delta"));
        return;
      case "message_delta":
        this.#messageDelta(data);
        return;
      case "message_stop":
        this.stopped = true;
        return;
      case "error": {
        const error = objectIn(data, "error");
        throw new StreamErrorEvent(
          String(error["type"] ?? "error"),
          String(error["message"] ?? "no message"),
        );
      }
      default:
        // content_block_stop needs nothing; unknown events pass.
        return;
    }
  }

  #delta(open: OpenBlock | undefined, delta: EventData): void {
    if (open === undefined) throw new BrokenReply("unreadable_reply", "a delta belongs to no block");
    const { block } = open;
    const grow = (key: string, more: unknown): void => {
      if (typeof more === "string") block[key] = `${typeof block[key] === "string" ? block[key] : ""}${more}`;
    };
    switch (delta["type"]) {
      case "text_delta":
        grow("text", delta["text"]);
        return;
      case "thinking_delta":
        grow("thinking", delta["thinking"]);
        return;
      case "signature_delta":
        grow("signature", delta["signature"]);
        return;
      case "input_json_delta":
        open.inputText += typeof delta["partial_json"] === "string" ? delta["partial_json"] : "";
        return;
      case "citations_delta":
        block["citations"] = [
          ...(Array.isArray(block["citations"]) ? block["citations"] : []),
          delta["citation"],
        ];
        return;
      default:
        return;
    }
  }

  /** Cumulative: what it names overwrites, never adds. */
  #messageDelta(data: EventData): void {
    if (this.#message === null)
      throw new BrokenReply("unreadable_reply", "the stream did not begin with a message");
    const delta = objectIn(data, "delta");
    Object.assign(this.#message, delta);
    const usage = data["usage"];
    if (typeof usage !== "object" || usage === null) return;
    const stated = Object.fromEntries(Object.entries(usage).filter(([, value]) => value !== null));
    this.#message["usage"] = { ...objectIn(this.#message, "usage"), ...stated };
  }

  finish(): { message: EventData; malformed: ReadonlyMap<string, string> } {
    if (this.#message === null) throw new BrokenReply("unreadable_reply", "the stream held no message");
    const content = [...this.#blocks.entries()]
      .sort(([a], [b]) => a - b)
      .map(([, open]) => this.#closed(open));
    return { message: { ...this.#message, content }, malformed: this.#malformed };
  }

  #closed({ block, inputText }: OpenBlock): Record<string, unknown> {
    if (inputText.trim() === "") return block;
    const id = typeof block["id"] === "string" ? block["id"] : "";
    try {
      const input: unknown = JSON.parse(inputText);
      const problem = jsonProblem(inputText);
      if (problem !== null) this.#malformed.set(id, problem);
      return { ...block, input };
    } catch {
      // Cut off, or never JSON. Only a reply that stopped for its tools gets as far as an answer.
      this.#malformed.set(id, "The input is not readable as JSON.");
      return { ...block, input: { unreadable: inputText } };
    }
  }
}

function objectIn(data: EventData, key: string): EventData {
  const value = data[key];
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new BrokenReply("unreadable_reply", `an event of the stream has no ${key}`);
  }
  return value as EventData;
}

function indexOf(data: EventData): number {
  const index = data["index"];
  if (typeof index === "number") return index;
  throw new BrokenReply("unreadable_reply", "an event of the stream names no block");
}
