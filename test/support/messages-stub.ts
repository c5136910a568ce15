/**
 * A stand-in for the Messages API on a real socket, as the unchanged client speaks to it. It refuses a history that the real
 * one would refuse (400), and plays whatever a test tells it to: whole replies, streams cut anywhere, errors, silence.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

export type Block = { type: string } & Record<string, unknown>;

export interface StubMessage {
  role: string;
  content: string | Block[];
}

export interface StubRequest {
  /** 1 for the first. */
  number: number;
  headers: IncomingMessage["headers"];
  body: {
    model: string;
    max_tokens: number;
    system?: string;
    messages: StubMessage[];
    tools: { name: string; strict?: boolean; input_schema: Record<string, unknown> }[];
    stream?: boolean;
  };
  /** What the history lacked; such a request was answered with 400. */
  problem: string | null;
}

export interface Reply {
  content: Block[];
  stop_reason: string | null;
  stop_details?: unknown;
  usage?: { input_tokens?: number; output_tokens?: number };
  model?: string;
}

export type Play =
  /** `rawInputs`: the text of a tool call's input, by block index, where it is not what JSON.stringify writes. */
  | ({ play: "reply"; rawInputs?: Record<number, string> } & Reply)
  | {
      play: "status";
      status: number;
      type: string;
      message?: string;
      headers?: Record<string, string>;
      errorCode?: string;
    }
  /** Streams the reply up to this many events, then says that it failed. */
  | ({ play: "error_event"; after: number; type: string } & Reply)
  /** Streams up to this many events, then destroys the socket. */
  | ({ play: "cut"; after: number } & Reply)
  /** Everything but `message_stop`, and a clean end. */
  | ({ play: "no_stop" } & Reply)
  /** Streams up to this many events and goes silent. */
  | ({ play: "stall"; after: number } & Reply)
  /** Accepts the request and never answers. */
  | { play: "silence" }
  | { play: "refuse_connection" };

/** Answers the n-th request (from 1). Called only for histories that are in order. */
export type Script = (request: StubRequest) => Play | Promise<Play>;

export interface MessagesStub {
  readonly url: string;
  readonly requests: StubRequest[];
  /** Requests that the real service would have answered with 400. */
  readonly refused: StubRequest[];
  script(next: Script): void;
  close(): Promise<void>;
}

export const text = (said: string): Block => ({ type: "text", text: said, citations: null });

let ids = 0;
/** A tool call with an id of its own. */
export const use = (name: string, input: unknown, id?: string): Block => {
  ids += 1;
  return { type: "tool_use", id: id ?? `toolu_stub_${ids}`, name, input, caller: { type: "direct" } };
};

export const says = (said: string): Play => ({
  play: "reply",
  content: [text(said)],
  stop_reason: "end_turn",
});
export const uses = (...content: Block[]): Play => ({ play: "reply", content, stop_reason: "tool_use" });

/** Plays these one after the other; the last one again and again. */
export const inOrder =
  (...plays: Play[]): Script =>
  ({ number }) =>
    plays[Math.min(number, plays.length) - 1] ?? says("Nothing left to say.");

/** Plays by how far the conversation is, so that a call that is made again is answered as the first time, with new ids. */
export const byTurn =
  (...turns: (() => Play)[]): Script =>
  ({ body }) => {
    const done = body.messages.filter((message) => message.role === "assistant").length;
    return (turns[Math.min(done, turns.length - 1)] ?? (() => says("Nothing left to say.")))();
  };

export async function startMessagesStub(first: Script = () => says("Done.")): Promise<MessagesStub> {
  const requests: StubRequest[] = [];
  let script = first;
  let played = 0;
  let lastStop: string | null = null;
  /** Thinking of all replies, as it went out: it must come back as it was. */
  const thought = new Set<string>();
  const server: Server = createServer((incoming, response) => {
    void (async () => {
      const body = JSON.parse(await readAll(incoming)) as StubRequest["body"];
      const problem = requestProblem(incoming, body, lastStop) ?? thinkingProblem(body.messages, thought);
      const request: StubRequest = { number: played + 1, headers: incoming.headers, body, problem };
      requests.push(request);
      if (problem !== null) return answerStatus(response, 400, "invalid_request_error", problem);
      played += 1;
      const next = await script(request);
      lastStop = "stop_reason" in next ? next.stop_reason : lastStop;
      if ("content" in next)
        for (const block of next.content.filter(isThinking)) thought.add(canonical(block));
      await perform(response, body.stream === true, next);
    })().catch(() => response.destroy());
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    get refused() {
      return requests.filter((request) => request.problem !== null);
    },
    script: (next) => {
      script = next;
      played = 0;
    },
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

async function readAll(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

// ── what the real service refuses ───────────────────────────────────────────────────────────────────────────────

function requestProblem(
  incoming: IncomingMessage,
  body: StubRequest["body"],
  lastStop: string | null,
): string | null {
  if (incoming.method !== "POST" || incoming.url !== "/v1/messages") return "unknown path";
  const { authorization, "x-api-key": apiKey } = incoming.headers;
  if (authorization === undefined && apiKey === undefined) return "no key";
  if (incoming.headers["anthropic-version"] === undefined) return "anthropic-version: header is required";
  if (!Number.isInteger(body.max_tokens) || body.max_tokens < 1) return "max_tokens";
  for (const tool of body.tools) {
    const plain = JSON.stringify(tool.input_schema);
    if (/"(?:\$schema|minimum|maximum|exclusiveMinimum|exclusiveMaximum)"/.test(plain)) {
      return `tools.${tool.name}: keyword not supported in a strict schema`;
    }
    const { properties, required, additionalProperties } = tool.input_schema as {
      properties?: object;
      required?: string[];
      additionalProperties?: boolean;
    };
    if (additionalProperties !== false) return `tools.${tool.name}: additionalProperties must be false`;
    if ((required?.length ?? 0) !== Object.keys(properties ?? {}).length) {
      return `tools.${tool.name}: every property must be required`;
    }
  }
  return historyProblem(body.messages, lastStop);
}

const isThinking = ({ type }: Block): boolean => type === "thinking" || type === "redacted_thinking";
const canonical = (block: Block): string =>
  JSON.stringify(Object.entries(block).sort(([a], [b]) => (a < b ? -1 : 1)));

/** Thinking is signed: a block that was changed on the way is refused. */
function thinkingProblem(messages: StubMessage[], thought: ReadonlySet<string>): string | null {
  const changed = messages
    .filter(({ role }) => role === "assistant")
    .flatMap(({ content }) => (typeof content === "string" ? [] : content))
    .some((block) => isThinking(block) && !thought.has(canonical(block)));
  return changed ? "messages: thinking blocks cannot be modified: invalid `signature`" : null;
}

/** The rules of facts/messages-api.md §3, written down a second time. */
export function historyProblem(messages: StubMessage[], lastStop: string | null): string | null {
  if (messages.length === 0) return "messages: at least one message is required";
  if (messages[0]?.role !== "user") return "messages: first message must use the user role";
  if (messages.at(-1)?.role === "assistant" && lastStop !== "pause_turn") return "prefill is not supported";
  for (const [index, message] of messages.entries()) {
    const blocks =
      typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
    if (blocks.length === 0) return `messages.${index}: content must not be empty`;
    if (index > 0 && messages[index - 1]?.role === message.role)
      return `messages.${index}: roles must alternate`;
    for (const block of blocks as Block[]) {
      if (block.type === "text" && String(block["text"] ?? "").trim() === "") {
        return `messages.${index}: text content blocks must be non-empty`;
      }
    }
    const next = messages[index + 1];
    const asked = (blocks as Block[])
      .filter((block) => block.type === "tool_use")
      .map((block) => String(block["id"]));
    if (message.role === "assistant" && asked.length > 0) {
      const following = Array.isArray(next?.content) && next?.role === "user" ? next.content : [];
      const results = following
        .filter((block) => block.type === "tool_result")
        .map((b) => String(b["tool_use_id"]));
      const missing = asked.filter((id) => !results.includes(id));
      if (missing.length > 0) {
        return `messages.${index + 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(", ")}`;
      }
      const firstOther = following.findIndex((block) => block.type !== "tool_result");
      const lastResult = following.findLastIndex((block) => block.type === "tool_result");
      if (firstOther !== -1 && firstOther < lastResult)
        return `messages.${index + 1}: tool_result blocks come first`;
      if (new Set(results).size !== results.length) return `messages.${index + 1}: a tool_result twice`;
    }
    if (message.role === "user") {
      const before = messages[index - 1];
      const known = Array.isArray(before?.content) ? before.content.map((block) => String(block["id"])) : [];
      const stray = (blocks as Block[])
        .filter((block) => block.type === "tool_result")
        .filter((block) => !known.includes(String(block["tool_use_id"])));
      if (stray.length > 0) return `messages.${index}: unexpected \`tool_use_id\` in \`tool_result\``;
    }
  }
  return null;
}

// ── playing ─────────────────────────────────────────────────────────────────────────────────────────────────────

function answerStatus(
  response: ServerResponse,
  status: number,
  type: string,
  message: string,
  more: { headers?: Record<string, string> | undefined; errorCode?: string | undefined } = {},
): void {
  const error = {
    type,
    message,
    ...(more.errorCode === undefined ? {} : { details: { error_code: more.errorCode } }),
  };
  response.writeHead(status, {
    "content-type": "application/json",
    "request-id": "req_stub",
    ...more.headers,
  });
  response.end(JSON.stringify({ type: "error", error, request_id: "req_stub" }));
}

async function perform(response: ServerResponse, stream: boolean, play: Play): Promise<void> {
  switch (play.play) {
    case "refuse_connection":
      response.destroy();
      return;
    case "silence":
      return;
    case "status":
      answerStatus(response, play.status, play.type, play.message ?? play.type, play);
      return;
    case "reply":
      if (!stream) {
        response.writeHead(200, { "content-type": "application/json", "request-id": "req_stub" });
        response.end(JSON.stringify(whole(play)));
        return;
      }
      await sendEvents(response, events(play, play.rawInputs ?? {}));
      response.end();
      return;
    case "error_event":
      await sendEvents(response, events(play, {}).slice(0, play.after));
      await sendEvents(response, [
        { event: "error", data: { type: "error", error: { type: play.type, message: play.type } } },
      ]);
      response.end();
      return;
    case "cut":
      await sendEvents(response, events(play, {}).slice(0, play.after));
      response.destroy();
      return;
    case "no_stop":
      await sendEvents(response, events(play, {}).slice(0, -1));
      response.end();
      return;
    case "stall":
      await sendEvents(response, events(play, {}).slice(0, play.after));
      return;
  }
}

const fullUsage = (reply: Reply) => ({
  input_tokens: reply.usage?.input_tokens ?? 100,
  output_tokens: reply.usage?.output_tokens ?? 20,
  cache_creation_input_tokens: null,
  cache_read_input_tokens: null,
  cache_creation: null,
  output_tokens_details: null,
  server_tool_use: null,
  service_tier: "standard",
  speed: null,
  inference_geo: null,
});

const whole = (reply: Reply) => ({
  id: "msg_stub",
  type: "message",
  role: "assistant",
  model: reply.model ?? "claude-sonnet-5-5",
  content: reply.content,
  stop_reason: reply.stop_reason,
  stop_sequence: null,
  stop_details: reply.stop_details ?? null,
  container: null,
  diagnostics: null,
  usage: fullUsage(reply),
});

interface Event {
  event: string;
  data: Record<string, unknown>;
}

function events(reply: Reply, rawInputs: Record<number, string>): Event[] {
  const list: Event[] = [
    {
      event: "message_start",
      data: {
        type: "message_start",
        message: {
          ...whole(reply),
          content: [],
          stop_reason: null,
          stop_details: null,
          usage: { ...fullUsage(reply), output_tokens: 1 },
        },
      },
    },
    { event: "ping", data: { type: "ping" } },
  ];
  for (const [index, block] of reply.content.entries()) {
    list.push({
      event: "content_block_start",
      data: { type: "content_block_start", index, content_block: opened(block) },
    });
    for (const delta of deltas(block, rawInputs[index])) {
      list.push({ event: "content_block_delta", data: { type: "content_block_delta", index, delta } });
    }
    list.push({ event: "content_block_stop", data: { type: "content_block_stop", index } });
  }
  list.push(
    {
      event: "message_delta",
      data: {
        type: "message_delta",
        delta: {
          stop_reason: reply.stop_reason,
          stop_sequence: null,
          stop_details: reply.stop_details ?? null,
        },
        usage: { output_tokens: fullUsage(reply).output_tokens },
      },
    },
    { event: "message_stop", data: { type: "message_stop" } },
  );
  return list;
}

const opened = (block: Block): Block => {
  switch (block.type) {
    case "text":
      return { ...block, text: "" };
    case "thinking":
      return { ...block, thinking: "", signature: "" };
    case "tool_use":
      return { ...block, input: {} };
    default:
      return block;
  }
};

function deltas(block: Block, raw: string | undefined): Record<string, unknown>[] {
  switch (block.type) {
    case "text":
      return halves(String(block["text"])).map((piece) => ({ type: "text_delta", text: piece }));
    case "thinking":
      return [
        ...halves(String(block["thinking"])).map((piece) => ({ type: "thinking_delta", thinking: piece })),
        { type: "signature_delta", signature: block["signature"] },
      ];
    case "tool_use":
      return ["", ...halves(raw ?? JSON.stringify(block["input"]))].map((piece) => ({
        type: "input_json_delta",
        partial_json: piece,
      }));
    default:
      return [];
  }
}

const halves = (value: string): string[] => {
  const middle = Math.ceil(value.length / 2);
  return [value.slice(0, middle), value.slice(middle)].filter((piece) => piece !== "");
};

/** In pieces of a few bytes, so that lines and characters are split on the way. */
async function sendEvents(response: ServerResponse, list: Event[]): Promise<void> {
  if (!response.headersSent) {
    response.writeHead(200, { "content-type": "text/event-stream", "request-id": "req_stub" });
  }
  const bytes = Buffer.from(
    list.map(({ event, data }) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join(""),
  );
  for (let at = 0; at < bytes.length; at += 97) {
    await new Promise<void>((done) => response.write(bytes.subarray(at, at + 97), () => done()));
  }
}
