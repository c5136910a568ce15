import { fc, test } from "@fast-check/vitest";
import { describe, expect } from "vitest";
import { cutText, headOf } from "../../../src/domain/text/cut.js";

const FAMILY = "👩‍👩‍👧‍👦";

describe("text made shorter", () => {
  test.each([
    ["short", 10, "short"],
    ["exactly 10", 10, "exactly 10"],
    ["a long longer text", 10, "a long lo…"],
    ["🚀🚀🚀", 4, "🚀…"],
    ["🚀🚀🚀", 5, "🚀🚀…"],
    [`ab${FAMILY}c`, 10, "ab…"],
    ["e\u0301e\u0301e\u0301", 4, "e\u0301…"],
    ["🇬🇧🇬🇧", 7, "🇬🇧…"],
    ["one two", 5, "one…"],
  ])("%s within %i", (text, max, right) => {
    expect(cutText(text, max)).toBe(right);
  });

  test("a heap of marks on one letter is cut all the same", () => {
    const heap = `x${"\u0301".repeat(5_000)}`;
    expect(cutText(heap, 100)).toBe(`x${"\u0301".repeat(98)}…`);
  });

  test.prop([fc.string({ unit: "grapheme", maxLength: 60 }), fc.integer({ min: 1, max: 60 })])(
    "never longer than asked, never half a character, and it begins as the text does",
    (text, max) => {
      const head = headOf(text, max);
      expect(head.length).toBeLessThanOrEqual(max);
      expect(text.startsWith(head)).toBe(true);
      const cut = cutText(text, max);
      expect(cut.length).toBeLessThanOrEqual(max);
      expect(cut.isWellFormed()).toBe(true);
      expect(cut.endsWith("…") || cut === text).toBe(true);
      expect(cutText(cut, max)).toBe(cut);
    },
  );
});
