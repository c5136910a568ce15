import { expect, test } from "vitest";
import { standingOf } from "../../../src/app/commands/show-text.js";
import { counted, peopleIn } from "../../../src/domain/text/counted.js";

test("numbers stand with what they count", () => {
  expect([counted(1, "step"), counted(2n, "step"), counted(0, "step")]).toEqual([
    "1 step",
    "2 steps",
    "0 steps",
  ]);
  expect([peopleIn(1, "supervisor"), peopleIn(2, "finance")]).toEqual([
    "one person in the role supervisor",
    "2 people in the role finance",
  ]);
});

test("what was taken back is told apart from what was denied", () => {
  expect(standingOf({ status: "DENIED", result: { code: "undone", detail: "" } })).toBe(
    "DENIED (approval taken back)",
  );
  expect(standingOf({ status: "DENIED", result: { code: "denied", detail: "" } })).toBe("DENIED");
});
