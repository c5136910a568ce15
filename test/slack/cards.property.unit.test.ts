/** Cards of rows that mean harm: whatever stands in them, the card keeps its structure, its values their places, and nobody is pinged. */
import { fc, test } from "@fast-check/vitest";
import { describe, expect } from "vitest";
import { formatMoney } from "../../src/domain/money.js";
import type { Message } from "../../src/slack/blocks/build.js";
import { type ApprovalView, approvalCard, plainApprovalCard } from "../../src/slack/cards/approval-card.js";
import { bindingCard } from "../../src/slack/cards/binding-card.js";
import { modelPost, outcomePost, replayedPost } from "../../src/slack/cards/posts.js";
import { ticketCard } from "../../src/slack/cards/ticket-card.js";
import { LIMITS } from "../../src/slack/limits.js";
import { clean } from "../../src/slack/text/safe.js";
import { approvalViewOf, operationOf, ticketOf } from "./support/views.js";

const NASTY = [
  "<!channel>",
  "<@U_SUP1>",
  "<!subteam^S_SUP>",
  "<https://pay.example|refund policy>",
  "<!date^1^{date}|x>",
  "&amp;lt;!here&gt;",
  "*_~`> ```",
  "\u202Egnp.exe\u202C",
  "\u200B\u2060\uFEFF\u00AD",
  "Z\u0301\u0302\u0303\u0304\u0305\u0306\u0307",
  "\uD800",
  "\u0000\u0007\r\n\t",
  "👩‍👩‍👧‍👦🇬🇧",
  "https://pay.example/now",
  "a@b.example",
  "\u{E0041}\u{E0042}",
  "Approve £1.00 GBP",
];

/** Any text, and the texts that have done harm elsewhere, in any mix and up to forty thousand characters. */
const hostile = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .array(fc.oneof(fc.constantFrom(...NASTY), fc.string({ unit: "binary" })), {
        minLength: 1,
        maxLength: 8,
      })
      .map((parts) => parts.join("")),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom(...NASTY), fc.integer({ min: 1, max: 40_000 }))
      .map(([piece, size]) => piece.repeat(Math.ceil(size / piece.length)).slice(0, size)),
  },
);
const line = hostile.map((text) => `x${text}`);
const amount = fc.record({
  amountMinor: fc.bigInt({ min: 1n, max: 9_999_999_999n }),
  currency: fc.constantFrom("GBP", "USD", "JPY", "KWD", "EUR"),
});

const view = fc
  .record({
    money: amount,
    customerName: line,
    customerRef: line,
    orderRef: line,
    status: line,
    reason: hostile,
    itemRefs: fc.array(line, { maxLength: 60 }),
    reasons: fc.array(line, { maxLength: 12 }),
    note: fc.option(hostile),
    endDetail: hostile,
    state: fc.constantFrom("PENDING", "APPROVED", "RELEASED", "DENIED", "EXPIRED", "VOIDED"),
    operationStatus: fc.constantFrom(
      "AWAITING_APPROVAL",
      "PREPARED",
      "DISPATCHED",
      "OUTCOME_UNKNOWN",
      "QUARANTINED",
      "CONFIRMED",
      "REJECTED",
    ),
    changes: fc.array(
      fc.tuple(line, line).map(([from, to]) => ({ what: "order_status" as const, from, to })),
      { maxLength: 20 },
    ),
    earlier: fc.nat({ max: 9 }),
  })
  .map((facts): ApprovalView => approvalViewOf(facts as Parameters<typeof approvalViewOf>[0]));

describe("an approval card of hostile rows", () => {
  test.prop([view], { numRuns: 300 })("stays within Slack's limits and keeps its structure", (facts) => {
    for (const card of [approvalCard(facts), plainApprovalCard(facts)]) {
      withinLimits(card);
      harmless(card, facts);
    }
  });

  test.prop([view], { numRuns: 300 })("shows every bound value once, in its own row", (facts) => {
    const { binding } = facts.approval;
    const shown = table(approvalCard(facts));
    const money = formatMoney(binding);
    expect(shown.get("Amount")).toEqual([money]);
    expect(shown.get("Customer")).toEqual([
      cut(`${one(binding.customerName)} (${one(binding.customerRef)})`),
    ]);
    expect(shown.get("Order")).toEqual([
      cut(`${one(binding.orderRef ?? "")} (${one(binding.world.order?.status ?? "")})`),
    ]);
    expect([...shown.keys()].filter((label) => label === "Asked by")).toHaveLength(1);
    if (facts.approval.state === "PENDING") {
      expect(buttons(approvalCard(facts)).slice(0, 2)).toEqual([`Approve ${money}`, "Deny"]);
      expect(approvalCard(facts).text).toContain(money);
    } else {
      expect(buttons(approvalCard(facts)).some((label) => label.startsWith("Approve"))).toBe(false);
    }
  });

  test.prop([view], { numRuns: 100 })("carries ids and a version only", (facts) => {
    for (const value of values(approvalCard(facts))) expect(value).toMatch(/^apr_[0-9a-f]{32}\.\d+$/);
  });
});

describe("other posts of hostile text", () => {
  test.prop([hostile, hostile], { numRuns: 200 })("are literal and whole within limits", (text, name) => {
    const operation = operationOf({
      status: "CONFIRMED",
      customerName: `x${name}`,
      orderRef: `x${text}`.slice(0, 300),
    });
    const messages = [
      modelPost(text, "messages-api"),
      outcomePost(operation),
      replayedPost(operation, `tkt_${"0".repeat(32)}`),
      ticketCard(ticketOf({ text: `x${text}`, files: [{ id: "F1", name, mimetype: "x" }] })),
      bindingCard(
        ticketOf({
          text,
          binding: "unconfirmed",
          customerId: "c",
          customerRef: `x${name}`,
          customerName: text,
        }),
      ),
      bindingCard(ticketOf({ text, binding: "none" })),
    ];
    for (const message of messages) {
      withinLimits(message);
      harmless(message, null);
    }
  });

  test("model prose is never without the marker that says whose it is", () => {
    const said = modelPost("I have refunded £180.00.", "scripted");
    expect(said.text).toMatch(/^Scripted planner says, unverified: /);
    expect(JSON.stringify(said.blocks[0])).toContain("Scripted planner says, unverified:");
  });
});

// ── how a message is read ───────────────────────────────────────────────────────────────────────────────────────

interface TextObject {
  readonly type: "mrkdwn" | "plain_text";
  readonly text: string;
  readonly verbatim?: boolean;
}

function texts(value: unknown): TextObject[] {
  if (Array.isArray(value)) return value.flatMap(texts);
  if (typeof value !== "object" || value === null) return [];
  const record = value as Record<string, unknown>;
  if (
    (record["type"] === "mrkdwn" || record["type"] === "plain_text") &&
    typeof record["text"] === "string"
  ) {
    return [record as unknown as TextObject];
  }
  return Object.values(record).flatMap(texts);
}

/** No control sequence of Slack's that we did not make, and nothing that hides or reorders text. */
function harmless(message: Message, facts: ApprovalView | null): void {
  const ours = new Set(facts === null ? ["U_AGENT"] : ["U_AGENT", "U_SUP1"]);
  for (const { type, text, verbatim } of [
    ...texts(message.blocks),
    { type: "mrkdwn", text: message.text, verbatim: true } as const,
  ]) {
    expect(text).not.toMatch(/\p{Surrogate}/u);
    expect(text).not.toMatch(
      /[\u202A-\u202E\u2066-\u2069\u200B-\u200F\u2060\uFEFF\u00AD]|[\u{E0000}-\u{E007F}]/u,
    );
    expect(text.replace(/&(?:amp|lt|gt);/gu, "")).not.toContain("&");
    if (type === "plain_text") {
      expect(text).not.toMatch(/[<>]/u);
      continue;
    }
    expect(verbatim).toBe(true);
    for (const [, inside = ""] of text.matchAll(/<([^<>]*)>/gu)) {
      if (inside.startsWith("@")) expect(ours).toContain(inside.slice(1));
      else expect(inside).toMatch(/^!date\^\d+\^\{date_short_pretty\} \{time\}\|[^<>|]+ UTC$/u);
    }
    expect(text.replace(/<[^<>]*>/gu, "")).not.toMatch(/[<>]/u);
  }
}

function withinLimits({ text, blocks }: Message): void {
  expect(text.length).toBeGreaterThan(0);
  expect(text.length).toBeLessThanOrEqual(4000);
  expect(blocks.length).toBeLessThanOrEqual(LIMITS.blocksPerMessage);
  const ids = blocks.flatMap((block) => (block.block_id === undefined ? [] : [block.block_id]));
  expect(new Set(ids).size).toBe(ids.length);
  for (const block of blocks) {
    switch (block.type) {
      case "header":
        bounded(block.text.text, LIMITS.headerText);
        break;
      case "section":
        if (block.text !== undefined) bounded(block.text.text, LIMITS.sectionText);
        expect(block.fields?.length ?? 0).toBeLessThanOrEqual(LIMITS.sectionFields);
        for (const field of block.fields ?? []) bounded(field.text, LIMITS.fieldText);
        break;
      case "context":
        expect(block.elements.length).toBeLessThanOrEqual(LIMITS.contextElements);
        for (const { text: part } of texts(block)) bounded(part, LIMITS.sectionText);
        break;
      case "actions":
        for (const { text: label } of texts(block)) bounded(label, LIMITS.buttonText);
        for (const element of block.elements) {
          if ("accessibility_label" in element)
            bounded(element.accessibility_label ?? "x", LIMITS.accessibilityLabel);
        }
        break;
      default:
        throw new Error(`a card has a block of the kind ${block.type}`);
    }
  }
}

function bounded(text: string, max: number): void {
  expect(text.length).toBeGreaterThan(0);
  expect(text.length).toBeLessThanOrEqual(max);
}

const decode = (text: string): string =>
  text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
const one = (text: string): string => clean(text).replace(/\s+/gu, " ").trim();
/** As long a beginning as the row holds; escaped text is cut, so its length counts. */
function cut(text: string): unknown {
  const escaped = text.replace(
    /[&<>]/gu,
    (character) => `&${character === "&" ? "amp" : character === "<" ? "lt" : "gt"};`,
  );
  return clean(escaped).length <= 300 ? clean(text).replace(/\s+/gu, " ") : expect.stringMatching(/ …$/u);
}

/** Label → values of every row with that label. */
function table(message: Message): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const block of message.blocks) {
    if (block.type !== "section" || block.fields === undefined) continue;
    for (let at = 0; at < block.fields.length; at += 2) {
      const label = block.fields[at]?.text.replaceAll("*", "") ?? "";
      found.set(label, [...(found.get(label) ?? []), decode(block.fields[at + 1]?.text ?? "")]);
    }
  }
  return found;
}

function buttons(message: Message): string[] {
  return message.blocks.flatMap((block) =>
    block.type === "actions" ? texts(block).map(({ text }) => decode(text)) : [],
  );
}

function values(message: Message): string[] {
  return message.blocks.flatMap((block) =>
    block.type === "actions"
      ? block.elements.flatMap((element) =>
          "value" in element && typeof element.value === "string" ? [element.value] : [],
        )
      : [],
  );
}
