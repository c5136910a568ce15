/** What a planner is told to do next is not told to people. */
import { expect, test } from "vitest";
import { outOfScope } from "../../src/agent/scope.js";
import { ADVICE, factsOnly } from "../../src/domain/text/advice.js";

test.each(Object.values(ADVICE))("people are not told: %s", (advice) => {
  expect(factsOnly(`Denied by a person. Note: wait. ${advice}`)).toBe("Denied by a person. Note: wait.");
  expect(factsOnly(`Not done. ${advice} Nothing moved.`)).toBe("Not done. Nothing moved.");
});

test("people are told an amount once, not in the unit of the tools, too", () => {
  expect(factsOnly("Only £54.00 GBP (5400 in minor units) is left. Nothing was done.")).toBe(
    "Only £54.00 GBP is left. Nothing was done.",
  );
});

test("an order out of reach is named once, in words that are true of any ticket", () => {
  expect(factsOnly(outOfScope("ORD-99999"))).toBe("There is no order ORD-99999 that this ticket may touch.");
});
