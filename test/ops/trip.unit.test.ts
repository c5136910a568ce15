import { describe, expect, it } from "vitest";
import { type TripCounts, tripsOf } from "../../src/ops/trip.js";

const LINES = { unknownPerHour: 20, duplicates: 1, orphans: 1 };
const counts = (change: Partial<TripCounts> = {}): TripCounts => ({
  unknownLastHour: { refund: 0, cancel_order: 0, cancel_subscription: 0 },
  duplicates: 0,
  orphans: 0,
  ...change,
});
const unknown = (refund: number) =>
  counts({ unknownLastHour: { refund, cancel_order: 0, cancel_subscription: 0 } });

describe("the switch trips when the policy's line is reached", () => {
  it.each<[string, TripCounts, string[]]>([
    ["nothing happened", counts(), []],
    ["19 unknown refunds", unknown(19), []],
    ["20 unknown refunds", unknown(20), ["refund"]],
    ["one duplicate", counts({ duplicates: 1 }), ["all"]],
    ["one orphan", counts({ orphans: 1 }), ["all"]],
    ["a duplicate among many unknown", { ...unknown(50), duplicates: 1 }, ["all"]],
  ])("%s", (_title, seen, kinds) => {
    expect(tripsOf(seen, LINES, new Set()).map((trip) => trip.kind)).toEqual(kinds);
  });

  it("says what was counted and where the line is", () => {
    expect(tripsOf(unknown(23), LINES, new Set())[0]?.reason).toBe(
      "23 unknown outcomes in an hour (the policy's line is 20)",
    );
  });

  it("what is frozen already is not frozen again", () => {
    expect(tripsOf(unknown(20), LINES, new Set(["refund"]))).toEqual([]);
    expect(tripsOf(counts({ duplicates: 3 }), LINES, new Set(["all"]))).toEqual([]);
    expect(tripsOf(counts({ duplicates: 3 }), LINES, new Set(["refund"]))).toHaveLength(1);
  });

  it("a line of nothing trips at the first one, never at none", () => {
    const none = { unknownPerHour: 0, duplicates: 0, orphans: 0 };
    expect(tripsOf(counts(), none, new Set())).toEqual([]);
    expect(tripsOf(unknown(1), none, new Set()).map((trip) => trip.kind)).toEqual(["refund"]);
  });
});
