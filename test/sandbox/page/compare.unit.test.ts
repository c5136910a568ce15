/** Where the two books differ, the inspector says so, and where nothing is known yet it accuses nobody. */
import { describe, expect, it } from "vitest";

interface Row {
  verdict: string;
  why: string;
  operation: { id: string } | null;
}
const { compare, readEffects, readOperations, money } = (await import(
  new URL("../../../src/sandbox/page/inspector/compare.js", import.meta.url).href
)) as {
  compare(operations: unknown[], effects: unknown[], nameOf?: (id: string) => string): Row[];
  readOperations(raw: unknown): unknown[];
  readEffects(raw: unknown): unknown[];
  money(amount: number | null, currency: string): string;
};

const operation = (status: string, more: object = {}) => ({
  id: "op_1",
  kind: "refund",
  status,
  order: "ORD-1001",
  amount: 7900,
  currency: "USD",
  attempts: 1,
  ...more,
});
const effect = (more: object = {}) => ({
  id: "re_1",
  paymentIntent: "pi_1",
  amount: 7900,
  currency: "usd",
  status: "succeeded",
  operationId: "op_1",
  origin: "api",
  ...more,
});
const verdicts = (operations: object[], effects: object[]) =>
  compare(readOperations({ operations }), readEffects({ effects })).map((row) => row.verdict);

describe("both books", () => {
  it.each([
    ["CONFIRMED", [effect()], "agree"],
    ["CONFIRMED", [], "disagree"],
    ["CONFIRMED", [effect({ status: "failed" })], "disagree"],
    ["CONFIRMED", [effect({ amount: 7800 })], "disagree"],
    ["CONFIRMED", [effect({ currency: "gbp" })], "disagree"],
    ["CONFIRMED", [effect(), effect({ id: "re_2" })], "disagree"],
    ["OUTCOME_UNKNOWN", [], "open"],
    ["OUTCOME_UNKNOWN", [effect()], "open"],
    ["OUTCOME_UNKNOWN", [effect(), effect({ id: "re_2" })], "disagree"],
    ["QUARANTINED", [effect()], "open"],
    ["DENIED", [], "agree"],
    ["DENIED", [effect()], "disagree"],
    ["AWAITING_APPROVAL", [], "agree"],
    ["AWAITING_APPROVAL", [effect()], "disagree"],
    ["REVERSED", [effect({ status: "failed" })], "agree"],
    ["REVERSED", [effect()], "disagree"],
  ])("%s beside %j is: %s", (status, effects, wanted) => {
    expect(verdicts([operation(status)], effects)).toEqual([wanted]);
  });

  describe("what people have closed knowing that the provider made something else", () => {
    const closed = operation("REJECTED", {
      result: { code: "made_differently", detail: "", providerRef: "re_1" },
      settledBy: ["U_ONC1", "U_ONC2"],
    });
    const why = (operations: object[], effects: object[]) =>
      compare(readOperations({ operations }), readEffects({ effects }), (id) => `name of ${id}`)[0];

    it("is a known difference, with both amounts and who settled it", () => {
      expect(why([closed], [effect({ amount: 7800 })])).toMatchObject({
        verdict: "settled",
        why: "A known difference: $78.00 USD instead of $79.00 USD. Settled by name of U_ONC1 and name of U_ONC2; what was made counts as refunded elsewhere.",
      });
    });

    it("settles that one effect alone: another one, or a second, is unexplained", () => {
      expect(verdicts([closed], [effect({ id: "re_2", amount: 7800 })])).toEqual(["disagree"]);
      expect(verdicts([closed], [effect({ amount: 7800 }), effect({ id: "re_2" })])).toEqual(["disagree"]);
      expect(verdicts([operation("REJECTED")], [effect({ amount: 7800 })])).toEqual(["disagree"]);
      expect(verdicts([{ ...closed, status: "CONFIRMED" }], [effect({ amount: 7800 })])).toEqual([
        "disagree",
      ]);
    });
  });

  it("says our state in words", () => {
    const [row] = compare(
      readOperations({ operations: [operation("AWAITING_APPROVAL")] }),
      readEffects({ effects: [effect()] }),
    );
    expect(row?.why).toBe("The provider made the refund; our ledger says awaiting approval.");
  });

  it("does not take a refund made by hand for a fault of an operation", () => {
    expect(verdicts([], [effect({ operationId: null, origin: "dashboard" })])).toEqual(["elsewhere"]);
  });

  it("notices a refund that names an operation which the ledger does not have", () => {
    expect(verdicts([], [effect()])).toEqual(["disagree"]);
  });

  it("does not accuse a refund of an operation that a long list leaves out", () => {
    const many = Array.from({ length: 50 }, (_, index) => operation("DENIED", { id: `op_${index + 100}` }));
    expect(verdicts(many, [effect()]).at(-1)).toBe("elsewhere");
  });

  it("does not look for money where an operation moves none", () => {
    expect(
      verdicts([operation("CONFIRMED", { kind: "cancel_order", amount: null, currency: null })], []),
    ).toEqual(["agree"]);
  });

  it("shows amounts by the currency's own digits, always with the currency", () => {
    expect(money(7900, "USD")).toBe("$79.00 USD");
    expect(money(500, "JPY")).toBe("¥500 JPY");
    expect(money(12_345, "KWD")).toBe("12.345 KWD");
    expect(money(null, "USD")).toBe("");
  });
});
