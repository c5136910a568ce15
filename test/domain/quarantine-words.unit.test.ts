import { expect, test } from "vitest";
import { quarantineTitle, quarantineWords } from "../../src/domain/quarantine-words.js";

test.each([
  [
    "unknown_too_long: http_500: The provider answered with HTTP 500.",
    "The outcome is still unknown after the time set for that. When it was asked last, the provider answered with HTTP 500.",
  ],
  [
    "pending_too_long: insufficient_funds",
    "The provider still has it pending after the time set for that: insufficient_funds.",
  ],
  ["unknown_too_long: ", "The outcome is still unknown after the time set for that."],
  ["duplicate_effect", "The provider shows more than one effect of this operation."],
  ["something else: x", "something else: x"],
  ["ended_before: ", "It had ended before, so it is not sent again unless a person authorises that."],
  [
    "duplicate_effect: re_1A, re_2B",
    "The provider shows more than one effect of this operation: re_1A, re_2B.",
  ],
  [
    "postcondition_failed: re_1A differs in amount",
    "The provider made something else than was asked for: re_1A (differs in amount).",
  ],
  [
    "key_conflict: the provider holds another request under this operation's key. Differing: amount.",
    "The provider holds another request under this operation's key. Differing: amount.",
  ],
])("%s", (stored, words) => {
  expect(quarantineWords(stored)).toBe(words);
});

test.each([
  ["postcondition_failed: re_1A differs in amount", "Not what was asked for"],
  ["duplicate_effect: re_1, re_2", "More than one effect"],
  ["pending_too_long: processing", "Still pending at the provider"],
  ["evidence_contradicts: re_1 turned up", "Evidence against how it ended"],
  ["opened_again: It had been settled as done.", "Opened again"],
  ["ended_before: ", "Outcome not known"],
  ["shown_otherwise: re_1 of £1.00 GBP is succeeded", "Shown otherwise than before"],
  ["unknown_too_long: ", "Outcome not known"],
  ["unattributed_effect: re_9", "Outcome not known"],
  [null, "Outcome not known"],
])("%s is called %s", (stored, title) => {
  expect(quarantineTitle(stored)).toBe(title);
});
