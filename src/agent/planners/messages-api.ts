/**
 * The planner on the Messages API. Sends each request once (the client's own retries are off), with a deadline for the whole
 * call and a watchdog on silence: the client's timeout ends when the headers have arrived.
 */
import Anthropic from "@anthropic-ai/sdk";
import { Stream } from "@anthropic-ai/sdk/streaming";
import type { Planner, PlannerAnswer, PlannerReply, PlannerRequest } from "../planner.js";
import { assemble, BrokenReply, toReply } from "./assemble.js";
import { classifyFailure, type StoppedBy } from "./classify.js";

export interface MessagesApiOptions {
  apiKey: string;
  /** Null: the service's own address. */
  baseUrl: string | null;
  model: string;
  /** Longest silence inside a reply, pings included, in milliseconds. */
  idleMs: number;
}

const DEFAULT_BASE_URL = "https://api.anthropic.com";

export function messagesApiPlanner(options: MessagesApiOptions): Planner {
  const client = new Anthropic({
    apiKey: options.apiKey,
    baseURL: options.baseUrl ?? DEFAULT_BASE_URL,
    maxRetries: 0,
    logLevel: "off",
  });
  return {
    name: "messages-api",
    model: options.model,
    plan: (request) => planOnce(client, options, request),
  };
}

async function planOnce(
  client: Anthropic,
  options: MessagesApiOptions,
  request: PlannerRequest,
): Promise<PlannerAnswer> {
  const watch = new Watch(request.deadlineMs, options.idleMs, request.signal);
  try {
    return { ok: true, reply: await call(client, options, request, watch) };
  } catch (error) {
    return { ok: false, failure: classifyFailure(error, watch.stoppedBy, options.model) };
  } finally {
    watch.stop();
  }
}

async function call(
  client: Anthropic,
  options: MessagesApiOptions,
  request: PlannerRequest,
  watch: Watch,
): Promise<PlannerReply> {
  const response = await client.messages
    .create(
      {
        model: options.model,
        max_tokens: request.maxTokens,
        system: request.system,
        tools: request.tools.map((tool) => ({
          name: tool.name,
          description: tool.description,
          input_schema: { ...tool.inputSchema, type: "object" as const },
          strict: true,
        })),
        // Content blocks are stored and sent back verbatim: their types are the service's own.
        messages: request.messages as unknown as Anthropic.MessageParam[],
        stream: true,
      },
      { signal: watch.signal, maxRetries: 0, timeout: request.deadlineMs },
    )
    .asResponse();
  watch.alive();
  const requestId = response.headers.get("request-id");
  // A gateway in between may answer whole although a stream was asked for.
  if (!(response.headers.get("content-type") ?? "").includes("text/event-stream")) {
    return toReply(parseBody(await response.text()), { requestId, malformed: new Map() });
  }
  return assemble(Stream.rawEvents(response), { requestId, onEvent: () => watch.alive() });
}

function parseBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new BrokenReply("unreadable_reply", "the reply is not JSON", error);
  }
}

/** Ends a call by deadline, by silence, or because its caller gave up; remembers which came first. */
class Watch {
  readonly signal: AbortSignal;
  stoppedBy: StoppedBy = null;
  readonly #controller = new AbortController();
  readonly #deadline: NodeJS.Timeout;
  readonly #caller: AbortSignal;
  readonly #onCaller = () => this.#end("caller");
  #idle: NodeJS.Timeout;

  constructor(deadlineMs: number, idleMs: number, caller: AbortSignal) {
    this.signal = this.#controller.signal;
    this.#caller = caller;
    this.#deadline = setTimeout(() => this.#end("deadline"), deadlineMs);
    this.#idle = setTimeout(() => this.#end("idle"), idleMs);
    if (caller.aborted) this.#end("caller");
    else caller.addEventListener("abort", this.#onCaller, { once: true });
  }

  /** Something arrived. */
  alive(): void {
    this.#idle.refresh();
  }

  stop(): void {
    clearTimeout(this.#deadline);
    clearTimeout(this.#idle);
    this.#caller.removeEventListener("abort", this.#onCaller);
  }

  #end(by: Exclude<StoppedBy, null>): void {
    this.stoppedBy ??= by;
    this.#controller.abort();
  }
}
