/** Cards of rows that mean harm: whatever stands in them, the card keeps its structure, its values their places, and nobody is pinged. */
import { fc, test } from "@fast-check/vitest";
import { describe, expect } from "vitest";
import { formatMoney } from "../../src/domain/money.js";
import { type ApprovalView, approvalCard, plainApprovalCard } from "../../src/slack/cards/approval-card.js";
import { bindingCard } from "../../src/slack/cards/binding-card.js";
import { modelPost, outcomePost, replayedPost } from "../../src/slack/cards/posts.js";
import { ticketCard } from "../../src/slack/cards/ticket-card.js";
import { hostile, line } from "./support/hostile.js";
import { buttons, cut, harmless, one, table, values, withinLimits } from "./support/read-card.js";
import { approvalViewOf, operationOf, ticketOf } from "./support/views.js";

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
    spent: fc.bigInt({ min: 0n, max: 9_999_999n }),
    over: fc.bigInt({ min: 0n, max: 9_999_999n }),
  })
  // Paid: this amount, what is left after it, what went before it.
  .map(({ spent, over, ...facts }) => {
    const refundableMinor = facts.money.amountMinor + over;
    return { ...facts, paid: { capturedMinor: refundableMinor + spent, refundableMinor } };
  })
  .map((facts): ApprovalView => approvalViewOf(facts as Parameters<typeof approvalViewOf>[0]));

describe("an approval card of hostile rows", () => {
  test.prop([view], { numRuns: 150 })("stays within Slack's limits and keeps its structure", (facts) => {
    for (const card of [approvalCard(facts), plainApprovalCard(facts)]) {
      withinLimits(card);
      harmless(card, ["U_AGENT", "U_SUP1"]);
    }
  });

  test.prop([view], { numRuns: 150 })("shows every bound value once, in its own row", (facts) => {
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
    const { payment } = binding.world;
    const { currency } = binding;
    if (payment === null) throw new Error("the example has a payment");
    const of = (amountMinor: bigint): string => formatMoney({ amountMinor, currency });
    const before = payment.capturedMinor - payment.refundableMinor;
    const left = [
      of(payment.refundableMinor - binding.amountMinor),
      `= ${of(payment.capturedMinor)} paid`,
      ...(before === 0n ? [] : [`− ${of(before)} refunded or set aside before`]),
      `− ${money} this`,
    ].join("\n");
    expect(shown.get("Left after this")).toEqual(facts.approval.state === "PENDING" ? [left] : undefined);
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

describe("what is left after a refund", () => {
  const facts = {
    customerName: "Tom",
    customerRef: "CUS-7",
    orderRef: "ORD-1",
    status: "delivered",
    reason: "",
    itemRefs: [],
    reasons: [],
    note: null,
    endDetail: "",
    state: "PENDING",
    operationStatus: "AWAITING_APPROVAL",
    changes: [],
    earlier: 0,
  } as const;

  test.each([
    ["all of it", "GBP", 18_000n, 18_000n, 18_000n, "£0.00 GBP\n= £180.00 GBP paid\n− £180.00 GBP this"],
    ["a part", "GBP", 6_000n, 18_000n, 18_000n, "£120.00 GBP\n= £180.00 GBP paid\n− £60.00 GBP this"],
    [
      "a part after another that an older version did not tell apart",
      "GBP",
      6_000n,
      18_000n,
      7_000n,
      "£10.00 GBP\n= £180.00 GBP paid\n− £110.00 GBP refunded or set aside before\n− £60.00 GBP this",
    ],
    ["yen", "JPY", 899n, 9_899n, 9_899n, "¥9,000 JPY\n= ¥9,899 JPY paid\n− ¥899 JPY this"],
    [
      "too little",
      "GBP",
      6_000n,
      18_000n,
      4_000n,
      "not possible: only £40.00 GBP is left now\n= £180.00 GBP paid\n− £140.00 GBP refunded or set aside before",
    ],
    [
      "overdrawn",
      "GBP",
      6_000n,
      5_000n,
      -1n,
      "not possible: nothing is left now: £0.01 GBP more than was paid is refunded or set aside\n= £50.00 GBP paid\n− £50.01 GBP refunded or set aside before",
    ],
  ])("%s", (_what, currency, amountMinor, capturedMinor, refundableMinor, said) => {
    const view = approvalViewOf({
      ...facts,
      itemRefs: [],
      reasons: [],
      changes: [],
      money: { amountMinor, currency },
      paid: { capturedMinor, refundableMinor },
    });
    expect(table(approvalCard(view)).get("Left after this")).toEqual([said]);
  });

  test.each([
    [{}, 18_000n, "£120.00 GBP\n= £180.00 GBP paid\n− £60.00 GBP this"],
    [
      { refundedMinor: 3_000n },
      15_000n,
      "£90.00 GBP\n= £180.00 GBP paid\n− £30.00 GBP refunded before\n− £60.00 GBP this",
    ],
    [
      { refundedMinor: 3_000n, elsewhereMinor: 1_000n, reservedMinor: 2_000n },
      12_000n,
      "£60.00 GBP\n= £180.00 GBP paid\n− £30.00 GBP refunded before\n− £10.00 GBP refunded elsewhere\n− £20.00 GBP set aside for other requests\n− £60.00 GBP this",
    ],
    [
      { reservedMinor: 15_000n },
      3_000n,
      "not possible: only £30.00 GBP is left now\n= £180.00 GBP paid\n− £150.00 GBP set aside for other requests",
    ],
    [
      { refundedMinor: 3_000n },
      0n,
      "not possible: nothing is left now\n= £180.00 GBP paid\n− £30.00 GBP refunded before\n− £150.00 GBP not to be refunded now",
    ],
  ])("with %o spent before shows how it comes about", (before, refundableMinor, said) => {
    const spent = { refundedMinor: 0n, elsewhereMinor: 0n, reservedMinor: 0n, ...before };
    const view = approvalViewOf({
      ...facts,
      itemRefs: [],
      reasons: [],
      changes: [],
      money: { amountMinor: 6_000n, currency: "GBP" },
      paid: { capturedMinor: 18_000n, refundableMinor, spent },
    });
    expect(table(approvalCard(view)).get("Left after this")).toEqual([said]);
  });
});

describe("This is a further refund", () => {
  test.each([
    [18_000n, true],
    [18_001n, true],
    [17_999n, false],
    [0n, false],
  ])("with %d left of a refund of 18000: offered is %s", (leftMinor, offered) => {
    const post = replayedPost(operationOf({ status: "CONFIRMED", leftMinor }), `tkt_${"0".repeat(32)}`);
    expect(JSON.stringify(post.blocks).includes("This is a further refund")).toBe(offered);
  });
});

describe("other posts of hostile text", () => {
  test.prop([hostile, hostile], { numRuns: 100 })("are literal and whole within limits", (text, name) => {
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
        { ended: false, approved: false, waits: [text] },
      ),
      bindingCard(
        ticketOf({
          text,
          binding: "unconfirmed",
          customerId: "c",
          customerRef: `x${name}`,
          customerName: text,
        }),
        { ended: true, approved: true, waits: [] },
      ),
      bindingCard(ticketOf({ text, binding: "none" }), { ended: false, approved: false, waits: [text] }),
      bindingCard(ticketOf({ text, binding: "none" }), { ended: true, approved: false, waits: [] }),
    ];
    for (const message of messages) {
      withinLimits(message);
      harmless(message, ["U_AGENT"]);
    }
  });

  test("model prose is never without the marker that says whose it is", () => {
    const said = modelPost("I have refunded £180.00.", "scripted");
    expect(said.text).toMatch(/^Scripted planner says, unverified: /);
    expect(JSON.stringify(said.blocks[0])).toContain("Scripted planner says, unverified:");
  });
});
