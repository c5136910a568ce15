/** The planner on the wire: the unchanged client against the stand-in, everything that facts about the API say can happen. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { messagesApiPlanner, TOOL_DEFINITIONS } from "../../src/agent/index.js";
import type { PlannerAnswer, PlannerReply } from "../../src/agent/planner.js";
import {
  inOrder,
  type MessagesStub,
  type Play,
  says,
  startMessagesStub,
  text,
  use,
  uses,
} from "../support/messages-stub.js";

let stub: MessagesStub;
beforeEach(async () => {
  stub = await startMessagesStub();
});
afterEach(() => stub.close());

const plan = (
  options: { deadlineMs?: number; idleMs?: number; signal?: AbortSignal } = {},
): Promise<PlannerAnswer> =>
  messagesApiPlanner({
    apiKey: "sk-test",
    baseUrl: stub.url,
    model: "claude-sonnet-5-5",
    idleMs: options.idleMs ?? 20_000,
  }).plan({
    system: "You help.",
    tools: TOOL_DEFINITIONS,
    messages: [{ role: "user", content: [{ type: "text", text: "ORD-1001 came broken" }] }],
    maxTokens: 1024,
    deadlineMs: options.deadlineMs ?? 30_000,
    signal: options.signal ?? new AbortController().signal,
  });

async function reply(play: Play): Promise<PlannerReply> {
  stub.script(() => play);
  const answer = await plan();
  if (!answer.ok) throw new Error(`no reply: ${answer.failure.code} ${answer.failure.detail}`);
  return answer.reply;
}

async function failure(play: Play, options: Parameters<typeof plan>[0] = {}) {
  stub.script(() => play);
  const answer = await plan(options);
  if (answer.ok) throw new Error("there was a reply");
  return answer.failure;
}

describe("a reply", () => {
  test("arrives verbatim through split lines, split characters and an empty first piece of input", async () => {
    const content = [
      { type: "thinking", thinking: "Größe? ¥9,899 ✓", signature: "c2lnbmF0dXJl" },
      text("I look it up — “ORD-1001” 💷"),
      use("get_order", { order_reference: "ORD-1001" }, "toolu_1"),
    ];
    const got = await reply({
      play: "reply",
      content,
      stop_reason: "tool_use",
      usage: { input_tokens: 900, output_tokens: 33 },
    });
    expect(got.content).toEqual(content);
    expect(got.stopReason).toBe("tool_use");
    expect(got.usage).toMatchObject({ inputTokens: 900, outputTokens: 33 });
    expect(got.requestId).toBe("req_stub");
    expect(got.malformed.size).toBe(0);
  });

  test("keeps what is unknown: blocks, stop reasons", async () => {
    const got = await reply({
      play: "reply",
      content: [{ type: "hologram", beam: 1 }],
      stop_reason: "compaction",
    });
    expect(got.content).toEqual([{ type: "hologram", beam: 1 }]);
    expect(got.stopReason).toBe("compaction");
  });

  test("may be empty, or a refusal with its details", async () => {
    const got = await reply({
      play: "reply",
      content: [],
      stop_reason: "refusal",
      stop_details: { type: "refusal", category: "violence", explanation: null },
    });
    expect(got).toMatchObject({ content: [], stopReason: "refusal", stopDetails: { category: "violence" } });
  });

  test("cut off inside an amount keeps its stop reason, so that nobody runs it", async () => {
    const got = await reply({
      play: "reply",
      content: [use("issue_refund", {}, "toolu_t1")],
      rawInputs: { 0: '{"order_reference":"ORD-1001","amount_minor":2' },
      stop_reason: "max_tokens",
    });
    expect(got.stopReason).toBe("max_tokens");
  });

  test.each([
    ['{"amount_minor":1,"amount_minor":999999}', /names "amount_minor" twice/],
    ['{"a":{"b":1,"b":2}}', /names "b" twice/],
    ['{"amount_minor":1e3}', /1e3 is not written as plain digits/],
    ['{"amount_minor":145.05}', /145\.05 is not written as plain digits/],
    ['{"amount_minor":2000.0}', /2000\.0 is not/],
    ['{"amount_minor":20', /not readable as JSON/],
  ])("whose tool input is not plain JSON says so: %s", async (raw, sentence) => {
    const got = await reply({
      play: "reply",
      content: [use("issue_refund", {}, "toolu_raw")],
      rawInputs: { 0: raw },
      stop_reason: "tool_use",
    });
    expect(got.malformed.get("toolu_raw")).toMatch(sentence);
  });

  test("from a gateway that does not stream is read all the same", async () => {
    const { createServer } = await import("node:http");
    const server = createServer((_in, out) => {
      out.writeHead(200, { "content-type": "application/json" });
      out.end(
        JSON.stringify({
          type: "message",
          role: "assistant",
          model: "m",
          content: [text("hello")],
          stop_reason: "end_turn",
          usage: { input_tokens: 1, output_tokens: 2 },
        }),
      );
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const address = server.address();
    const planner = messagesApiPlanner({
      apiKey: "k",
      baseUrl: `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`,
      model: "m",
      idleMs: 5_000,
    });
    const answer = await planner.plan({
      system: "s",
      tools: [],
      messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
      maxTokens: 10,
      deadlineMs: 10_000,
      signal: new AbortController().signal,
    });
    server.closeAllConnections();
    server.close();
    expect(answer).toMatchObject({ ok: true, reply: { stopReason: "end_turn" } });
  });
});

describe("what is sent", () => {
  test("is one request with a key, a version, strict plain schemas, and no repetition by the client", async () => {
    stub.script(inOrder({ play: "status", status: 529, type: "overloaded_error" }));
    const answer = await plan();
    expect(answer).toMatchObject({ ok: false, failure: { next: "later", code: "overloaded_error" } });
    expect(stub.requests).toHaveLength(1);
    expect(stub.refused).toEqual([]);
    const [request] = stub.requests;
    expect(request?.headers["x-stainless-retry-count"]).toBe("0");
    expect(request?.body.tools.every((tool) => tool.strict === true)).toBe(true);
    expect(request?.body.stream).toBe(true);
  });
});

describe("no reply", () => {
  const whole = { content: [text("a long enough text to be cut")], stop_reason: "end_turn" };

  test.each([
    [{ play: "status", status: 429, type: "rate_limit_error", headers: { "retry-after": "7" } }, 7_000],
    [{ play: "status", status: 429, type: "rate_limit_error", headers: { "retry-after-ms": "250" } }, 250],
    [
      {
        play: "status",
        status: 429,
        type: "rate_limit_error",
        headers: { "retry-after": "Sun, 29 Nov 2026 10:00:30 GMT", date: "Sun, 29 Nov 2026 10:00:00 GMT" },
      },
      30_000,
    ],
    [{ play: "status", status: 503, type: "api_error", headers: { "retry-after": "soon" } }, null],
    [{ play: "status", status: 529, type: "overloaded_error" }, null],
    [{ play: "status", status: 500, type: "api_error" }, null],
    [{ play: "status", status: 408, type: "timeout_error" }, null],
  ] satisfies [Play, number | null][])("that may come later, unbilled: %j", async (play, retryAfterMs) => {
    expect(await failure(play)).toMatchObject({ next: "later", billed: false, retryAfterMs });
  });

  test.each([
    [{ play: "error_event", after: 3, type: "overloaded_error", ...whole }, "overloaded_error"],
    [{ play: "cut", after: 4, ...whole }, "connection_cut"],
    [{ play: "no_stop", ...whole }, "stream_cut"],
  ] satisfies [Play, string][])(
    "that broke off after it had begun counts as billed: %s",
    async (play, code) => {
      expect(await failure(play)).toMatchObject({ next: "later", billed: true, code });
    },
  );

  test("a reply that stalls ends by the watchdog, long before the deadline", async () => {
    expect(await failure({ play: "stall", after: 3, ...whole }, { idleMs: 200 })).toMatchObject({
      next: "later",
      code: "idle",
    });
  });

  test("silence before the first byte ends by the watchdog too", async () => {
    expect(await failure({ play: "silence" }, { idleMs: 200 })).toMatchObject({ code: "idle" });
  });

  test("a call that outlives its deadline is given up", async () => {
    expect(await failure({ play: "silence" }, { deadlineMs: 200 })).toMatchObject({ code: "deadline" });
  });

  test("a caller that lost its run ends the call", async () => {
    const caller = new AbortController();
    stub.script(() => {
      caller.abort();
      return { play: "silence" };
    });
    expect(await plan({ signal: caller.signal })).toMatchObject({ failure: { code: "aborted" } });
  });

  test("a refused connection cost nothing", async () => {
    const url = stub.url;
    await stub.close();
    const answer = await messagesApiPlanner({ apiKey: "k", baseUrl: url, model: "m", idleMs: 5_000 }).plan({
      system: "s",
      tools: [],
      messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
      maxTokens: 10,
      deadlineMs: 5_000,
      signal: new AbortController().signal,
    });
    stub = await startMessagesStub();
    expect(answer).toMatchObject({ failure: { next: "later", code: "connection", billed: false } });
  });

  test.each([
    [401, "authentication_error", "model_key_refused", /ANTHROPIC_API_KEY/],
    [403, "permission_error", "model_not_permitted", /claude-sonnet-5-5/],
    [404, "not_found_error", "model_not_found", /ANTHROPIC_MODEL/],
    [402, "billing_error", "model_billing", /billing/],
    [413, "request_too_large", "request_too_large", /too large/],
    [400, "invalid_request_error", "invalid_request", /invalid/],
  ])("that asking again would not change: %i", async (status, type, code, sentence) => {
    const got = await failure({ play: "status", status, type });
    expect(got).toMatchObject({ next: "give_up", code });
    expect(got.detail).toMatch(sentence);
  });

  test("a spend limit of the service is not waited for", async () => {
    const play: Play = {
      play: "status",
      status: 429,
      type: "rate_limit_error",
      errorCode: "enforced_spend_limit_reached",
    };
    expect(await failure(play)).toMatchObject({ next: "give_up", code: "model_spend_limit" });
  });

  test("x-should-retry: false is obeyed", async () => {
    const play: Play = {
      play: "status",
      status: 500,
      type: "api_error",
      headers: { "x-should-retry": "false" },
    };
    expect(await failure(play)).toMatchObject({ next: "give_up" });
  });
});

test("the stand-in refuses what the real service refuses", async () => {
  stub.script(() => says("ok"));
  const bad = await messagesApiPlanner({ apiKey: "k", baseUrl: stub.url, model: "m", idleMs: 5_000 }).plan({
    system: "s",
    tools: TOOL_DEFINITIONS,
    messages: [
      { role: "user", content: [{ type: "text", text: "hi" }] },
      { role: "assistant", content: [use("get_order", { order_reference: "A" }, "toolu_x") as never] },
      { role: "user", content: [{ type: "text", text: "no result" }] },
    ],
    maxTokens: 10,
    deadlineMs: 5_000,
    signal: new AbortController().signal,
  });
  expect(bad).toMatchObject({ ok: false, failure: { code: "invalid_request" } });
  expect(stub.refused[0]?.problem).toMatch(/without `tool_result` blocks immediately after: toolu_x/);
  expect(uses(use("get_order", {})).play).toBe("reply");
});
