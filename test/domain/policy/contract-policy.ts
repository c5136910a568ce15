import type { Policy } from "../../../src/domain/policy/policy.js";
import { parsePolicyFile } from "../../../src/domain/policy/policy-file.js";

/** The policy file of CONTRACT §8, word for word, as its YAML parses. */
export const CONTRACT_FILE = {
  version: 1,
  kinds: {
    refund: {
      orderStatuses: ["delivered", "cancelled"],
      windowDays: 30,
      auto: { GBP: 5000, USD: 5000 },
      never: { GBP: 200000, USD: 200000 },
      approval: [
        { upTo: { GBP: 50000, USD: 50000 }, role: "supervisor", approvers: 1 },
        { upTo: { GBP: 200000, USD: 200000 }, role: "finance", approvers: 2 },
      ],
      confirmAmountAbove: { GBP: 100000 },
      totals: [
        { per: "order", windowHours: 720, count: 1, then: "hold" },
        { per: "customer", windowHours: 720, amount: { GBP: 20000 }, count: 3, then: "hold" },
        { per: "filer", windowHours: 24, amount: { GBP: 100000 }, then: "hold" },
        { per: "shop", windowHours: 24, amount: { GBP: 500000 }, then: "refuse" },
      ],
      coolingOffMinutes: { GBP: { above: 100000, minutes: 10 } },
    },
    cancel_order: {
      orderStatuses: ["placed", "packed"],
      auto: true,
      approval: [{ role: "supervisor", approvers: 1 }],
    },
    cancel_subscription: { auto: true, approval: [{ role: "supervisor", approvers: 1 }] },
  },
  approvals: {
    selfApproval: false,
    expireAfterMinutes: 1440,
    remindAfterMinutes: [30, 240],
    escalateTo: ["finance", "oncall"],
  },
  resolution: { resolverMayBeApprover: false, secondPersonAbove: { GBP: 20000 } },
  freeze: { thawByAnotherPerson: true, tripOn: { unknownPerHour: 20, duplicates: 1, orphans: 1 } },
  roles: {
    filer: {},
    supervisor: { usergroups: ["S_SUP"], users: ["U_SUP1", "U_SUP2"], limit: { GBP: 50000, USD: 50000 } },
    finance: { users: ["U_FIN1", "U_FIN2"] },
    oncall: { usergroups: ["S_ONC"] },
  },
};

/** Parses file content that must be valid. */
export function policyOf(content: unknown): Policy {
  const parsed = parsePolicyFile(content);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.policy;
}

/** The contract's policy with changes to its refund rules. A key set to undefined is left out of the file. */
export function withRefund(changes: Record<string, unknown>): Policy {
  const refund = Object.fromEntries(
    Object.entries({ ...CONTRACT_FILE.kinds.refund, ...changes }).filter(([, value]) => value !== undefined),
  );
  return policyOf({ ...CONTRACT_FILE, kinds: { ...CONTRACT_FILE.kinds, refund } });
}
