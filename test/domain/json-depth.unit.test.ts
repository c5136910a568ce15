import { expect, test } from "vitest";
import { MAX_JSON_DEPTH, nestsDeeperThan } from "../../src/domain/json-depth.js";

const nested = (levels: number): unknown =>
  JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`) as unknown;

test.each([
  ["a text", "x", 0, false],
  ["null", null, 0, false],
  ["an empty object", {}, 0, true],
  ["an empty object where one may be", {}, 1, false],
  ["a list in an object in a list", [{ a: [] }], 2, true],
  ["the same where three may be", [{ a: [] }], 3, false],
  ["many side by side", Array.from({ length: 100_000 }, () => ({})), 2, false],
] as const)("%s", (_what, value, max, deeper) => {
  expect(nestsDeeperThan(value, max)).toBe(deeper);
});

test("as deep as may be, one more, and far more than a stack holds", () => {
  expect(
    [MAX_JSON_DEPTH, MAX_JSON_DEPTH + 1, 1_000_000].map((levels) => nestsDeeperThan(nested(levels))),
  ).toEqual([false, true, true]);
});
