/** What a person reads behind Details: facts in words and money with its currency, never stored JSON. */
import { describe, expect, test } from "vitest";
import { runDetails } from "../../src/slack/cards/run-details.js";
import { readableLines } from "../../src/slack/text/readable.js";
import { operationOf, runOf } from "./support/views.js";

const ORDER = {
  order: {
    reference: "ORD-10042",
    status: "delivered",
    currency: "GBP",
    placed_at: "2026-11-20T09:00:00.000Z",
    cancelled_at: null,
    lines: [
      {
        reference: "ORD-10042-1",
        name: "Storm jacket, blue",
        quantity: 1,
        unit_amount_minor: 18_000,
        line_total_minor: 18_000,
        line_total: "£180.00 GBP",
      },
    ],
    shipping_minor: 0,
  },
  payment: { paid_minor: 18_000, refundable_left_minor: 18_000, refundable_left: "£180.00 GBP" },
  notes: [],
};

describe("what came back to a run", () => {
  const back = { status: "CONFIRMED", code: "confirmed_unseen", provider_ref: "re_1", replayed: false };
  const detailsOf = (about: ReturnType<typeof operationOf>): string => {
    const calls = [{ name: "issue_refund", input: { order_reference: "ORD-10042" } }];
    const card = runOf({ state: "resolved", prose: "", ending: null, calls, about });
    const told = card.view.calls.map((call) => ({
      ...call,
      operationId: about.id,
      result: "Refunded £180.00 GBP on order ORD-10042.",
      resultJson: back,
    }));
    return JSON.stringify(runDetails({ ...card, view: { ...card.view, calls: told } }));
  };
  const result = { code: "confirmed_unseen", detail: "" };

  test("is told as what is, as long as it holds", () => {
    const details = detailsOf(operationOf({ status: "CONFIRMED", result }));
    expect(details).toContain("*Came back*");
    expect(details).not.toContain("any more");
  });

  test.each([
    ["opened again", { status: "QUARANTINED", result: null }],
    ["rejected since", { status: "REJECTED", result: { code: "rejected_unseen", detail: "" } }],
    ["confirmed with another reference", { status: "CONFIRMED", providerRef: "re_2", result }],
  ] as const)("%s: it is told as what was told then", (_what, changes) => {
    expect(detailsOf(operationOf(changes))).toContain("*Came back then; it does not hold any more*");
  });
});

describe("stored JSON as a person reads it", () => {
  test("an order: labels in words, money once and with its currency, times with their zone, nothing that is empty", () => {
    expect(readableLines(ORDER, { currency: null })).toEqual([
      "Order:",
      "  Reference: ORD-10042",
      "  Status: delivered",
      "  Currency: GBP",
      "  Placed at: 20 Nov 2026, 09:00 UTC",
      "  Lines:",
      "    • Reference: ORD-10042-1; Name: Storm jacket, blue; Quantity: 1; Unit amount: £180.00 GBP; Line total: £180.00 GBP",
      "  Shipping: £0.00 GBP",
      "Payment:",
      "  Paid: £180.00 GBP",
      "  Refundable left: £180.00 GBP",
    ]);
  });

  test.each([
    [{ amount_minor: 9899 }, "JPY", ["Amount: ¥9,899 JPY"]],
    [{ amount_minor: 1234 }, "KWD", ["Amount: 1.234 KWD"]],
    [{ amount_minor: 1234 }, null, ["Amount: 1234 (in the smallest unit)"]],
    [{ amountMinor: 1234, operationId: "op_1" }, "GBP", ["Amount: £12.34 GBP", "Operation id: op_1"]],
    [{ amount_minor: -5 }, "GBP", ["Amount: -5"]],
    [{ amount_minor: "1e3" }, "GBP", ["Amount: 1e3"]],
    [{ currency: "NONE", amount_minor: 5 }, "GBP", ["Currency: NONE", "Amount: £0.05 GBP"]],
    [{ scope: "everything_left", item_references: [] }, "GBP", ["Scope: everything left"]],
    [{ item_references: ["A-1", "A-2"] }, null, ["Item references: A-1, A-2"]],
    [{ at_period_end: false }, null, ["At period end: no"]],
    [["first", "second"], null, ["• first", "• second"]],
    ["just text", null, ["just text"]],
    [{}, null, []],
  ])("%j in %s", (value, currency, lines) => {
    expect(readableLines(value, { currency })).toEqual(lines);
  });

  test("leaves out what is told elsewhere, outermost only", () => {
    const value = { order_reference: "A-1", reason: "torn", inner: { order_reference: "A-2" } };
    expect(readableLines(value, { currency: null, without: ["order_reference"] })).toEqual([
      "Reason: torn",
      "Inner:",
      "  Order reference: A-2",
    ]);
  });
});
