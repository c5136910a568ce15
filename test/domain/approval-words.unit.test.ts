import { expect, test } from "vitest";
import type { Change } from "../../src/domain/approval.js";
import { changesText } from "../../src/domain/approval-words.js";

const less: Change = { what: "refundable", fromMinor: 18_000n, toMinor: 9_000n, currency: "GBP" };

test.each<[string, Change[], string]>([
  ["alone", [less], "£180.00 GBP was left to refund, £90.00 GBP is left now."],
  [
    "to nothing, and below it",
    [
      { ...less, toMinor: 0n },
      { ...less, fromMinor: -1n, toMinor: -7_000n },
    ],
    "£180.00 GBP was left to refund, nothing is left now. Nothing was left to refund, nothing is left now: £70.00 GBP more than was paid is refunded or set aside.",
  ],
  [
    "beside the policy's own sentence about it",
    [
      less,
      {
        what: "policy_refuses",
        sentence: "Only £90.00 GBP is left to refund on this order, less than £180.00 GBP.",
      },
    ],
    "The policy no longer allows it: only £90.00 GBP is left to refund on this order, less than £180.00 GBP.",
  ],
  [
    "beside another refusal",
    [less, { what: "policy_refuses", sentence: "ORD-1 is too old." }],
    "£180.00 GBP was left to refund, £90.00 GBP is left now. The policy no longer allows it: ORD-1 is too old.",
  ],
])("a balance that shrank, %s", (_where, changes, text) => {
  expect(changesText(changes)).toBe(text);
});
