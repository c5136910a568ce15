import { expect, test } from "vitest";
import { asSentence } from "../../../src/domain/text/sentence.js";

test.each([
  ["Wear and tear", "Wear and tear."],
  ["Wear and tear. ", "Wear and tear."],
  ['Denied by Sam: "offer 2,000."', 'Denied by Sam: "offer 2,000."'],
  ['Denied by Sam: "offer 2,000"', 'Denied by Sam: "offer 2,000".'],
  ["Denied by Sam: “really?”", "Denied by Sam: “really?”"],
  ["(see the policy.)", "(see the policy.)"],
  ["was cut…", "Was cut…"],
  ["nothing is listed", "Nothing is listed."],
  ["re_1A failed", "re_1A failed."],
  ["http_500: it broke", "http_500: it broke."],
  ["  ", ""],
])("%s is the sentence %s", (text, right) => {
  expect(asSentence(text)).toBe(right);
});
