import { describe, expect, it } from "vitest";
import { answerFingerprint } from "../../../src/domain/policy/answer.js";
import { evaluate } from "../../../src/domain/policy/evaluate.js";
import type { Policy } from "../../../src/domain/policy/policy.js";
import { CONTRACT_FILE, policyOf, withRefund } from "./contract-policy.js";
import { facts, refund, type Situation } from "./situation.js";

const contract = policyOf(CONTRACT_FILE);
const of = (policy: Policy, amountMinor: bigint, situation: Situation = {}): string => {
  const proposal = refund(amountMinor);
  return answerFingerprint(evaluate(proposal, facts(proposal, policy, situation), policy));
};
const withApprovals = (changes: Record<string, unknown>): Policy =>
  policyOf({ ...CONTRACT_FILE, approvals: { ...CONTRACT_FILE.approvals, ...changes } });

describe("an answer that an approval is bound to", () => {
  const held = of(contract, 18000n);

  it.each<[string, Policy]>([
    ["limits that leave it held for the same people", withRefund({ auto: { GBP: 6000, USD: 5000 } })],
    ["another reminder", withApprovals({ remindAfterMinutes: [5] })],
    ["another expiry", withApprovals({ expireAfterMinutes: 10 })],
    [
      "a line put in front that does not cover it",
      withRefund({
        approval: [{ upTo: { GBP: 100 }, role: "oncall" }, ...CONTRACT_FILE.kinds.refund.approval],
      }),
    ],
  ])("does not change by %s", (_what, policy) => {
    expect(of(policy, 18000n)).toBe(held);
  });

  it("does not change because it is held for one more reason", () => {
    expect(of(contract, 18000n, { totals: { customer: { count: 3 } } })).toBe(held);
  });

  it.each<[string, string]>([
    ["allowed now", of(withRefund({ auto: { GBP: 18000 } }), 18000n)],
    ["refused now", of(withRefund({ never: { GBP: 17999 } }), 18000n)],
    ["another role", of(withRefund({ approval: [{ role: "finance" }] }), 18000n)],
    ["more people", of(withRefund({ approval: [{ role: "supervisor", approvers: 2 }] }), 18000n)],
    ["the amount is repeated", of(withRefund({ confirmAmountAbove: { GBP: 100 } }), 18000n)],
    ["it cools off", of(withRefund({ coolingOffMinutes: { GBP: { above: 100, minutes: 1 } } }), 18000n)],
    ["the filer may approve", of(withApprovals({ selfApproval: true }), 18000n)],
    ["more was spent on the order", of(contract, 18000n, { spentOnOrder: 40000n })],
  ])("changes when: %s", (_what, fingerprint) => {
    expect(fingerprint).not.toBe(held);
  });
});
