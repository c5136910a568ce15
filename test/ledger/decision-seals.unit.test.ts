/** A seal holds for what it was made of, and for nothing that differs in any part. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ApprovalId, OperationId } from "../../src/domain/ids.js";
import { NO_SEALS, type Seals, sealsWith } from "../../src/domain/seals.js";
import {
  answerHolds,
  resolutionHolds,
  type SealedResolution,
  type SealedVote,
  sealAnswer,
  sealResolution,
  sealVote,
  voteHolds,
} from "../../src/ledger/decision-seals.js";
import { sealOf } from "../../src/slack/inbox/seal.js";

const SEALS = sealsWith({ secret: "one" });
const text = fc.string({ maxLength: 12 });
const count = fc.integer({ min: 0, max: 1_000 });

const votes = fc.record<SealedVote>({
  approvalId: text,
  operationId: text,
  fingerprint: text,
  bindingHash: text,
  approvers: count,
  userId: text,
  person: text,
  role: text,
  cardVersion: count,
});
const resolutions = fc.record<SealedResolution>({
  id: text,
  operationId: text.map((id) => id as OperationId),
  verb: fc.constantFrom("confirm", "reject", "retry", "reopen"),
  state: fc.constantFrom("proposed", "applied"),
  operationVersion: fc.bigInt({ min: 0n, max: 1_000n }),
  by: text,
  reason: text,
  evidenceRef: text,
  secondBy: fc.option(text),
});
const operations = fc.record({
  id: text.map((id) => id as OperationId),
  fingerprint: text,
  policyHash: text,
  approvalId: fc.option(text.map((id) => id as ApprovalId)),
});

/** One value with some of its fields taken from another one of its kind. */
const mixed = <T extends object>(
  values: fc.Arbitrary<T>,
): fc.Arbitrary<{ one: T; other: T; differ: boolean }> =>
  fc
    .tuple(values, values, fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }))
    .map(([one, from, take]) => {
      const names = Object.keys(one) as (keyof T)[];
      const other = { ...one };
      names.forEach((name, index) => {
        if (take[index] === true) other[name] = from[name];
      });
      return { one, other, differ: names.some((name) => one[name] !== other[name]) };
    });

describe("a seal", () => {
  it("of a vote holds for that vote alone: any part changed, it does not", () => {
    fc.assert(
      fc.property(mixed(votes), ({ one, other, differ }) => {
        expect(voteHolds(SEALS, other, sealVote(SEALS, one))).toBe(!differ);
      }),
    );
  });

  it("of a decision of on-call holds for that decision alone", () => {
    fc.assert(
      fc.property(mixed(resolutions), ({ one, other, differ }) => {
        expect(resolutionHolds(SEALS, { ...other, seal: sealResolution(SEALS, one) })).toBe(!differ);
      }),
    );
  });

  it("of the policy's answer holds for that operation and its approval alone", () => {
    fc.assert(
      fc.property(mixed(operations), ({ one, other, differ }) => {
        expect(answerHolds(SEALS, other, sealAnswer(SEALS, one))).toBe(!differ);
      }),
    );
  });

  it("of each field by itself: one letter more, one more, or somebody instead of nobody", () => {
    const [vote] = fc.sample(votes, 1);
    const [decision] = fc.sample(resolutions, 1);
    if (vote === undefined || decision === undefined) throw new Error("no sample");
    const changed = (value: unknown): unknown =>
      typeof value === "number" ? value + 1 : typeof value === "bigint" ? value + 1n : `${String(value)}x`;
    for (const [name, value] of Object.entries(vote)) {
      const other = { ...vote, [name]: changed(value) };
      expect(voteHolds(SEALS, other, sealVote(SEALS, vote)), name).toBe(false);
    }
    for (const [name, value] of Object.entries(decision)) {
      const other = { ...decision, [name]: changed(value), seal: sealResolution(SEALS, decision) };
      expect(resolutionHolds(SEALS, other), name).toBe(false);
    }
  });

  it("of one kind is none of another, whatever it was made of", () => {
    const parts = ["a", "b", "c"];
    expect(SEALS.holds("vote", parts, SEALS.make("resolution", parts))).toBe(false);
    expect(SEALS.holds("operation", parts, SEALS.make("vote", parts))).toBe(false);
    const click = sealOf({ botToken: "one" }, { id: "a", key: "b", kind: "action", body: {} });
    expect(SEALS.holds("vote", ["a", "b", "action", {}], click)).toBe(false);
    expect(SEALS.holds("arrival", ["a", "b", "action", {}], click)).toBe(true);
  });

  it("that is missing, cut off or in other letters does not hold", () => {
    const seal = SEALS.make("vote", ["a"]);
    for (const given of [null, "", seal.slice(1), `${seal}0`, seal.toUpperCase(), "é".repeat(64)])
      expect(SEALS.holds("vote", ["a"], given)).toBe(false);
    expect(SEALS.holds("vote", ["a"], seal)).toBe(true);
  });

  it("of an accepted secret holds, one of another does not; made is with the one alone", () => {
    const both: Seals = sealsWith({ secret: "two", accepted: ["one"] });
    expect(both.holds("vote", ["a"], SEALS.make("vote", ["a"]))).toBe(true);
    expect(SEALS.holds("vote", ["a"], both.make("vote", ["a"]))).toBe(false);
    expect(both.holds("vote", ["a"], sealsWith({ secret: "three" }).make("vote", ["a"]))).toBe(false);
  });

  it("is not made where there is no secret, and none holds there", () => {
    expect(() => NO_SEALS.make("vote", ["a"])).toThrow(/no secret/u);
    expect(NO_SEALS.holds("vote", ["a"], SEALS.make("vote", ["a"]))).toBe(false);
  });
});
