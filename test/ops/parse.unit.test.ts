import { describe, expect, it } from "vitest";
import { OPS_HELP, parseOpsCommand } from "../../src/ops/parse.js";

const command = (text: string) => {
  const parsed = parseOpsCommand(text);
  return parsed.ok ? parsed.command : parsed;
};

describe("what a person types behind /ops is read as meant", () => {
  it.each([
    ["", { verb: "help" }],
    ["   ", { verb: "help" }],
    ["HELP", { verb: "help" }],
    ["list", { verb: "list", status: null }],
    ["list QUARANTINED", { verb: "list", status: "QUARANTINED" }],
    ["list outcome_unknown", { verb: "list", status: "OUTCOME_UNKNOWN" }],
    ["list outcome unknown", { verb: "list", status: "OUTCOME_UNKNOWN" }],
    ["list unknown", { verb: "list", status: "OUTCOME_UNKNOWN" }],
    ["list [QUARANTINED]", { verb: "list", status: "QUARANTINED" }],
    ["show op_123", { verb: "show", ref: "op_123" }],
    ["show “op_123”", { verb: "show", ref: "op_123" }],
    ["show\u00a0‘op_123’", { verb: "show", ref: "op_123" }],
    ["show — op_123", { verb: "show", ref: "op_123" }],
    ["show –op_123", { verb: "show", ref: "op_123" }],
    ["“show op_123”", { verb: "show", ref: "op_123" }],
    ["show `op_123`", { verb: "show", ref: "op_123" }],
    ["show\u200b op_123\ufeff", { verb: "show", ref: "op_123" }],
    ["/ops show op_123", { verb: "show", ref: "op_123" }],
    ["show ORD-10042", { verb: "show", ref: "ORD-10042" }],
    ["events ord\u201110042", { verb: "events", ref: "ord-10042" }],
    ["confirm #1001/B", { verb: "confirm", ref: "#1001/B" }],
    ["show re_1A", { verb: "show", ref: "re_1A" }],
    ["show op_123.", { verb: "show", ref: "op_123" }],
    ["events op_123", { verb: "events", ref: "op_123" }],
    ["confirm op_123", { verb: "confirm", ref: "op_123" }],
    ["reject op_123", { verb: "reject", ref: "op_123" }],
    ["Retry  op_123", { verb: "retry", ref: "op_123" }],
    ["runs", { verb: "runs" }],
    ["approvals", { verb: "approvals" }],
    ["health", { verb: "health" }],
    ["freeze", { verb: "freeze", kind: "all", reason: null }],
    ["freeze refund", { verb: "freeze", kind: "refund", reason: null }],
    ["freeze refunds", { verb: "freeze", kind: "refund", reason: null }],
    ["freeze cancel order", { verb: "freeze", kind: "cancel_order", reason: null }],
    ["freeze cancel–order", { verb: "freeze", kind: "cancel_order", reason: null }],
    ["freeze refund provider is odd", { verb: "freeze", kind: "refund", reason: "provider is odd" }],
    ["thaw cancel_subscription", { verb: "thaw", kind: "cancel_subscription" }],
    ["thaw", { verb: "thaw", kind: "all" }],
  ])("%j", (text, expected) => {
    expect(command(text)).toEqual(expected);
  });
});

describe("what cannot be read gets a sentence and a suggestion", () => {
  it.each([
    ["shwo op_123", "/ops show op_123"],
    ["lst", "/ops list"],
    ["confrm op_1", "/ops confirm op_1"],
    ["list QUARANTIEND", "/ops list quarantined"],
    ["freeze refnd", "/ops freeze refund"],
    ["freeze status", "/ops health"],
    ["thaw list", "/ops health"],
    ["freeze something smells", "/ops freeze all something smells"],
    ["op_123", "/ops show op_123"],
    ["retry op_123 please", "/ops retry op_123"],
    ["show", "/ops show op_…"],
  ])("%j suggests %j", (text, suggestion) => {
    const parsed = parseOpsCommand(text);
    expect(parsed).toMatchObject({ ok: false, suggestion });
  });

  it("names the character that it could not read", () => {
    expect(parseOpsCommand("show op_12é")).toMatchObject({
      ok: false,
      sentence: expect.stringContaining("“é” (U+00E9)"),
    });
    expect(parseOpsCommand("show op_1&amp;2")).toMatchObject({
      ok: false,
      sentence: expect.stringContaining("“&” (U+0026)"),
    });
  });

  it("a wild text never throws and is cut in the answer", () => {
    const parsed = parseOpsCommand(`${"x".repeat(40_000)} <!channel> \u202e`);
    expect(parsed.ok).toBe(false);
    if (!parsed.ok) expect(parsed.sentence.length).toBeLessThan(300);
  });
});

describe("help", () => {
  it("every usage line is a command that is understood", () => {
    for (const { usage } of OPS_HELP) {
      const parsed = parseOpsCommand(usage.replace(/\[.*\]/, "").replace("ID", "op_1"));
      expect(parsed, usage).toMatchObject({ ok: true });
    }
  });
});

it("a dash that no id holds is named as it was typed", () => {
  expect(parseOpsCommand("show op_12\u201134")).toMatchObject({
    ok: false,
    sentence: expect.stringContaining("(U+2011)"),
  });
});

describe("what was not carried out says so first", () => {
  it.each([
    ["freeze banana", /^Nothing was frozen\. “banana”/],
    ["freeze provider broken", /^Nothing was frozen\. “provider”/],
    ["freeze status", /^Nothing was frozen\. “status”/],
    ["thaw banana", /^Nothing was thawed\. “banana”/],
    ["confirm", /^Nothing was done\. Which operation/],
    ["retry op_0192 now", /^Nothing was done\. Only an id/],
    ["close inc_1 because", /^Nothing was done\. Only an id/],
    ["freez all", /^Nothing was done\. “freez” is not a command/],
  ])("%s", (text, sentence) => {
    expect(parseOpsCommand(text)).toMatchObject({ ok: false, sentence: expect.stringMatching(sentence) });
  });

  it("who only wanted to look is told no such thing", () => {
    expect(parseOpsCommand("show op_0192 please")).toMatchObject({
      ok: false,
      sentence: expect.stringMatching(/^Only an id/),
    });
  });
});
