/**
 * Everything that can come over the model's wire, one row each, at the moment at which money is at stake: the order is looked up, the
 * next reply is to ask for a refund of $20.00. Whatever comes instead, the end is named and the refund is made once or not at all.
 */
import { describe, expect, test } from "vitest";
import { messagesApiPlanner } from "../../src/agent/index.js";
import { inOrder, type Play, says, text, use, uses } from "../support/messages-stub.js";
import { look, loopSuite, refund } from "./support/suite.js";

const suite = loopSuite();

/** Four bytes a sign, so that the pieces of the wire cut through characters. */
const LONG_REASON = "壊れて届いた 💷💷💷 ¥ – Größe “XL” ".repeat(12);
const wanted = () => refund("ORD-1001", 2_000);
const whole = (...content: Parameters<typeof uses>) => ({ content, stop_reason: "tool_use" });

interface Right {
  state: string;
  code?: string;
  /** Refunds at the provider. */
  refunds: 0 | 1;
  /** Requests to the model. */
  requests: number;
  /** What became of the calls after the lookup. */
  decisions?: (string | null)[];
}

const DONE: Right = { state: "resolved", code: "end_turn", refunds: 1, requests: 3, decisions: ["allowed"] };
const AGAIN: Right = { ...DONE, requests: 4 };

const ROWS: readonly (readonly [item: string, plays: readonly Play[], right: Right])[] = [
  [
    "ping, an empty first piece of input, JSON and UTF-8 cut inside a delta",
    [uses(refund("ORD-1001", 2_000, LONG_REASON))],
    DONE,
  ],
  [
    "429 with retry-after",
    [
      { play: "status", status: 429, type: "rate_limit_error", headers: { "retry-after-ms": "5" } },
      uses(wanted()),
    ],
    AGAIN,
  ],
  ["529 overloaded", [{ play: "status", status: 529, type: "overloaded_error" }, uses(wanted())], AGAIN],
  ["500", [{ play: "status", status: 500, type: "api_error" }, uses(wanted())], AGAIN],
  [
    "an error event in the middle of the stream",
    [{ play: "error_event", after: 5, type: "overloaded_error", ...whole(wanted()) }, uses(wanted())],
    AGAIN,
  ],
  ["a cut stream", [{ play: "cut", after: 6, ...whole(wanted()) }, uses(wanted())], AGAIN],
  ["an end without message_stop", [{ play: "no_stop", ...whole(wanted()) }, uses(wanted())], AGAIN],
  ["a stalled body", [{ play: "stall", after: 5, ...whole(wanted()) }, uses(wanted())], AGAIN],
  ["silence instead of an answer", [{ play: "silence" }, uses(wanted())], AGAIN],
  ["a connection that is closed at once", [{ play: "refuse_connection" }, uses(wanted())], AGAIN],
  [
    "max_tokens inside the tool's JSON, and once more with more room",
    [
      {
        play: "reply",
        content: [text("Refunding."), use("issue_refund", {})],
        rawInputs: { 1: '{"order_reference":"ORD-1001","amount_minor": 20' },
        stop_reason: "max_tokens",
      },
      uses(wanted()),
    ],
    AGAIN,
  ],
  [
    "a tool's JSON that is cut off although the reply says that it is whole",
    [
      {
        play: "reply",
        rawInputs: { 0: '{"order_reference":"ORD-1001","scope":"amount"' },
        ...whole(wanted()),
      },
    ],
    { state: "resolved", refunds: 0, requests: 3, decisions: ["invalid"] },
  ],
  [
    "a key twice",
    [
      {
        play: "reply",
        rawInputs: {
          0: '{"order_reference":"ORD-1001","scope":"amount","item_references":[],"amount_minor":1,"amount_minor":2000,"reason":"r"}',
        },
        ...whole(wanted()),
      },
    ],
    { state: "resolved", refunds: 0, requests: 3, decisions: ["invalid"] },
  ],
  [
    "two tool_use blocks",
    [uses(wanted(), use("get_shipment_status", { order_reference: "ORD-1001" }))],
    { ...DONE, decisions: ["allowed", "allowed"] },
  ],
  [
    "two tool_use blocks that ask for the same",
    [uses(wanted(), refund("ORD-1001", 2_000, "in other words"))],
    { ...DONE, decisions: ["allowed", "same"] },
  ],
  [
    "an unknown tool beside a known one",
    [uses(use("wire_money", { amount: 2_000 }), wanted())],
    { ...DONE, decisions: ["invalid", "allowed"] },
  ],
  [
    "a refusal without content",
    [
      {
        play: "reply",
        content: [],
        stop_reason: "refusal",
        stop_details: { type: "refusal", category: null },
      },
    ],
    { state: "escalated", code: "refusal", refunds: 0, requests: 2 },
  ],
  [
    "a refusal with a call in it",
    [{ play: "reply", content: [wanted()], stop_reason: "refusal" }],
    { state: "escalated", code: "refusal", refunds: 0, requests: 2 },
  ],
  [
    "pause_turn, then the refund",
    [
      {
        play: "reply",
        content: [{ type: "server_tool_use", id: "srvtoolu_1", name: "web", input: {} }],
        stop_reason: "pause_turn",
      },
      uses(wanted()),
    ],
    AGAIN,
  ],
  [
    "a full window",
    [{ play: "reply", content: [wanted()], stop_reason: "model_context_window_exceeded" }],
    { state: "escalated", code: "context_window", refunds: 0, requests: 2 },
  ],
  [
    "a stop sequence with a call in it",
    [{ play: "reply", content: [text("That is all."), wanted()], stop_reason: "stop_sequence" }],
    { state: "resolved", code: "end_turn", refunds: 0, requests: 2 },
  ],
  [
    "a stop reason that nobody knows",
    [{ play: "reply", content: [wanted()], stop_reason: "compaction" }],
    { state: "escalated", code: "unknown_stop", refunds: 0, requests: 2 },
  ],
  [
    "400 for the history",
    [{ play: "status", status: 400, type: "invalid_request_error" }],
    { state: "failed", code: "invalid_request", refunds: 0, requests: 2 },
  ],
  [
    "401 for the key",
    [{ play: "status", status: 401, type: "authentication_error" }],
    { state: "failed", code: "model_key_refused", refunds: 0, requests: 2 },
  ],
  [
    "529 for as long as anybody asks",
    [{ play: "status", status: 529, type: "overloaded_error" }],
    { state: "failed", code: "model_unavailable", refunds: 0, requests: 5 },
  ],
];

const signed = { type: "thinking", thinking: "Look first. ¥ 💷", signature: "c2lnbmVkIQ==" };

describe("over the model's wire", () => {
  test.each(ROWS)("%s", async (item, plays, right) => {
    const world = await suite.start({
      planner: messagesApiPlanner({
        apiKey: "sk-test",
        baseUrl: suite.stub.url,
        model: "claude-sonnet-5-5",
        // Short only where silence is what is played: a slow machine is not silence.
        idleMs: plays.some(({ play }) => play === "stall" || play === "silence") ? 400 : 20_000,
      }),
    });
    const last = plays.at(-1);
    const persists = last?.play === "status" && plays.length === 1;
    suite.stub.script(
      inOrder(
        uses(signed, look("ORD-1001")),
        ...plays,
        ...(persists ? [] : [says("Done, as the results say.")]),
      ),
    );
    const { runId } = await world.fileConfirmed("ORD-1001 came broken, $20 back please");
    await world.pump();
    const { run, calls, turns } = await world.view(runId);
    expect(run).toMatchObject({
      state: right.state,
      ...(right.code === undefined ? {} : { ending: { code: right.code, constraintsKept: true } }),
    });
    expect(suite.stub.requests).toHaveLength(right.requests);
    expect(calls.slice(1).map(({ decision }) => decision)).toEqual(right.decisions ?? []);
    expect(calls.every(({ state, result }) => state === "done" && result !== null)).toBe(true);
    expect((await suite.payments.sandbox.control.effects()).map(({ amount }) => amount)).toEqual(
      right.refunds === 1 ? [2_000] : [],
    );
    expect(turns[0]?.content[0]).toEqual(signed);
    const request = suite.stub.requests.at(-1);
    expect(request?.headers["authorization"]).toBe("Bearer sk-test");
    expect(request?.headers["x-stainless-retry-count"], "the client itself never repeats").toBe("0");
    if (item.startsWith("ping")) expect(calls[1]?.input).toMatchObject({ reason: LONG_REASON });
  });

  test("a reply without a message in it, or with a body that is not JSON, is no reply", async () => {
    const world = await suite.start();
    suite.stub.script(
      inOrder(
        uses(look("ORD-1001")),
        { play: "reply", content: "nothing" as never, stop_reason: "end_turn" },
        uses(wanted()),
        says("Done."),
      ),
    );
    const { runId } = await world.fileConfirmed("ORD-1001 came broken, $20 back please");
    await world.pump();
    expect((await world.view(runId)).run.state).toBe("resolved");
    expect(await suite.committed()).toBe(1);
  });
});

test("the stand-in refuses thinking that was changed on the way, and two messages of one role in a row", async () => {
  const ask = (messages: object[]) =>
    fetch(`${suite.stub.url}/v1/messages`, {
      method: "POST",
      headers: { authorization: "Bearer k", "anthropic-version": "2026-10-21" },
      body: JSON.stringify({ model: "m", max_tokens: 10, messages, tools: [], stream: true }),
    });
  const user = { role: "user", content: [{ type: "text", text: "hi" }] };
  const forged = { ...signed, signature: "Zm9yZ2Vk" };
  const answers = [
    await ask([user, { role: "assistant", content: [forged, text("Hello.")] }, user]),
    await ask([user, user]),
  ];
  expect(answers.map(({ status }) => status)).toEqual([400, 400]);
  const problems = suite.stub.refused.map(({ problem }) => problem);
  expect(problems[0]).toMatch(/thinking blocks cannot be modified/);
  expect(problems[1]).toMatch(/roles must alternate/);
  suite.stub.requests.length = 0;
});
