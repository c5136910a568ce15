import { describe, expect, it } from "vitest";
import {
  APPROVAL_STATES,
  APPROVAL_TRANSITIONS,
  type ApprovalBinding,
  type ApprovalState,
  type WorldSnapshot,
} from "../../src/domain/approval.js";
import {
  materialFieldsHold,
  type PresentAnswer,
  type PresentOperation,
  policyChanges,
  worldChanges,
} from "../../src/domain/approval-drift.js";
import { changeSentence } from "../../src/domain/approval-words.js";
import { bindingOf, cardOf } from "../approvals/decision-situations.js";

const WORLD: WorldSnapshot = {
  customerRef: "CUS-7",
  ticketCustomerRef: "CUS-7",
  order: { ref: "ORD-10042", status: "delivered", currency: "GBP", customerRef: "CUS-7" },
  payment: { capturedMinor: 18000n, refundableMinor: 18000n, currency: "GBP" },
  subscription: { ref: "SUB-1", status: "active", customerRef: "CUS-7" },
};
const BINDING: ApprovalBinding = { ...bindingOf(cardOf("sup180")), world: WORLD };
const OPERATION: PresentOperation = {
  amountMinor: BINDING.amountMinor,
  currency: "GBP",
  occurrence: 1,
  customerRef: "CUS-7",
  fingerprint: BINDING.fingerprint,
  freshFingerprint: BINDING.fingerprint,
};
const ANSWER: Extract<PresentAnswer, { refused: false }> = { refused: false, ...BINDING.policy };

describe("what a card showed is compared with what is so now", () => {
  it("nothing changed: no drift", () => {
    expect(worldChanges(BINDING, OPERATION, WORLD)).toEqual([]);
    expect(policyChanges(BINDING.policy, ANSWER, false)).toEqual([]);
  });

  const order = (change: Partial<NonNullable<WorldSnapshot["order"]>>): WorldSnapshot => ({
    ...WORLD,
    order: WORLD.order === null ? null : { ...WORLD.order, ...change },
  });
  const payment = (change: Partial<NonNullable<WorldSnapshot["payment"]>>): WorldSnapshot => ({
    ...WORLD,
    payment: WORLD.payment === null ? null : { ...WORLD.payment, ...change },
  });
  const subscription = (change: Partial<NonNullable<WorldSnapshot["subscription"]>>): WorldSnapshot => ({
    ...WORLD,
    subscription: WORLD.subscription === null ? null : { ...WORLD.subscription, ...change },
  });

  it.each<[string, Partial<PresentOperation>, WorldSnapshot, string, boolean]>([
    ["the order left", {}, order({ status: "dispatched" }), "order_status", true],
    ["the order moved to another customer", {}, order({ customerRef: "CUS-8" }), "order_customer", false],
    ["the order's currency changed", {}, order({ currency: "EUR" }), "order_currency", false],
    ["less is left to refund", {}, payment({ refundableMinor: 15000n }), "refundable", true],
    ["more is left to refund", {}, payment({ refundableMinor: 18001n }), "refundable", true],
    ["more was refunded than paid", {}, payment({ refundableMinor: -1n }), "refundable", true],
    ["less was paid than was said", {}, payment({ capturedMinor: 17000n }), "captured", true],
    ["the payment is in another currency", {}, payment({ currency: "EUR" }), "order_currency", false],
    [
      "the ticket was bound to another customer",
      {},
      { ...WORLD, ticketCustomerRef: "CUS-8" },
      "customer",
      false,
    ],
    ["the operation names another customer", { customerRef: "CUS-8" }, WORLD, "customer", false],
    ["the amount was altered", { amountMinor: 180_000n }, WORLD, "amount", false],
    ["the currency was altered", { currency: "USD" }, WORLD, "amount", false],
    ["it became a further occurrence", { occurrence: 2 }, WORLD, "occurrence", false],
    [
      "the stored fingerprint was altered",
      { fingerprint: "e".repeat(64), freshFingerprint: "e".repeat(64) },
      WORLD,
      "fingerprint",
      false,
    ],
    ["it would land on another payment", { freshFingerprint: "d".repeat(64) }, WORLD, "fingerprint", false],
    ["the order is gone", {}, { ...WORLD, order: null }, "missing", false],
    ["the payment is gone", {}, { ...WORLD, payment: null }, "missing", false],
    ["the subscription ended", {}, subscription({ status: "canceled" }), "subscription_status", true],
    [
      "the subscription moved to another customer",
      {},
      subscription({ customerRef: "CUS-8" }),
      "subscription_customer",
      false,
    ],
    ["the subscription is gone", {}, { ...WORLD, subscription: null }, "missing", false],
  ])("%s", (_title, operation, world, what, mayAskAgain) => {
    const changes = worldChanges(BINDING, { ...OPERATION, ...operation }, world);
    expect(changes.map((change) => change.what)).toContain(what);
    expect(materialFieldsHold(changes)).toBe(mayAskAgain);
    for (const change of changes) expect(changeSentence(change)).toMatch(/\S.*\.$/);
  });

  it("everything that differs is said, not only the first thing", () => {
    const changes = worldChanges(
      BINDING,
      { ...OPERATION, occurrence: 2 },
      { ...order({ status: "returned" }), payment: null },
    );
    expect(changes.map((change) => change.what)).toEqual(["occurrence", "order_status", "missing"]);
  });

  it("a ticket that has lost its binding says nothing about another customer", () => {
    expect(worldChanges(BINDING, OPERATION, { ...WORLD, ticketCustomerRef: null })).toEqual([]);
  });
});

describe("a changed answer matters, a changed comment does not", () => {
  const other = { ...ANSWER, answerHash: "c".repeat(64) };

  it("the same answer under another file, line number or wording is no drift", () => {
    expect(policyChanges(BINDING.policy, { ...ANSWER, policyHash: "z", line: 7 }, false)).toEqual([]);
  });

  it.each<[string, PresentAnswer]>([
    ["another role", { ...other, role: "finance" }],
    ["more people", { ...other, approvers: 2 }],
    ["the amount repeated", { ...other, confirmAmount: true }],
    ["a longer wait", { ...other, coolingOffMinutes: 10 }],
    ["no approval at all", { ...other, answer: "allow" }],
    ["a refusal", { refused: true, sentence: "It is above £2,000.00 GBP." }],
  ])("%s is drift, and is said", (_title, now) => {
    const changes = policyChanges(BINDING.policy, now, false);
    expect(changes).toHaveLength(1);
    const [change] = changes;
    if (change?.what === "policy") expect(change.from).not.toBe(change.to);
  });

  it("a milder answer because a sibling does not go ahead is covered by what was approved", () => {
    const bound = { ...BINDING.policy, role: "finance", approvers: 2, line: 1, confirmAmount: true };
    const milder = { ...ANSWER, answerHash: "c", role: "supervisor", approvers: 1, line: 0 };
    expect(policyChanges(bound, milder, true)).toEqual([]);
    expect(policyChanges(bound, { ...milder, answer: "allow" }, true)).toEqual([]);
    expect(policyChanges(bound, milder, false)).toHaveLength(1);
    expect(policyChanges(bound, { ...milder, policyHash: "z" }, true)).toHaveLength(1);
  });

  it.each<[string, Partial<typeof ANSWER>]>([
    ["a higher line", { line: 2 }],
    ["more people", { approvers: 3 }],
    ["a longer wait", { coolingOffMinutes: 30 }],
  ])("%s is never milder, whatever became of a sibling", (_title, change) => {
    const bound = { ...BINDING.policy, approvers: 2, line: 1 };
    const now = { ...ANSWER, approvers: 2, line: 1, answerHash: "c", ...change };
    expect(policyChanges(bound, now, true)).toHaveLength(1);
  });
});

describe("approval states", () => {
  it("every state but PENDING is reached, and the ends lead nowhere", () => {
    const reached = new Set(Object.values(APPROVAL_TRANSITIONS).flat() as ApprovalState[]);
    expect([...reached].sort()).toEqual(APPROVAL_STATES.filter((state) => state !== "PENDING").toSorted());
    for (const end of ["DENIED", "EXPIRED", "VOIDED"] as const) expect(APPROVAL_TRANSITIONS[end]).toEqual([]);
  });
});
