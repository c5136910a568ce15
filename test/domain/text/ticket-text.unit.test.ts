import { describe, expect, test } from "vitest";
import { TICKET_TEXT_MAX_CHARS, takeText } from "../../../src/domain/text/ticket-text.js";

describe("how much of a text is read", () => {
  test("all that a Slack message can hold, and nothing is said", () => {
    const text = "é".repeat(TICKET_TEXT_MAX_CHARS);
    expect(takeText(text)).toEqual({ text, leftOut: null });
  });

  test("the beginning of a longer one in whole characters, and how much is missing", () => {
    const taken = takeText(`${"a".repeat(TICKET_TEXT_MAX_CHARS - 1)}🚀${"b".repeat(1_233)}`);
    expect(taken.text).toBe("a".repeat(TICKET_TEXT_MAX_CHARS - 1));
    expect(taken.leftOut).toMatch(
      /^That text is longer than 40,000 characters: its last 1,235 were not read\./,
    );
  });
});
