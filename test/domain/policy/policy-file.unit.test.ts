import { describe, expect, it } from "vitest";
import { parsePolicyFile, policyHash, policyToFile } from "../../../src/domain/policy/policy-file.js";
import { CONTRACT_FILE, policyOf } from "./contract-policy.js";

/** The first problem as "path: message". */
function problem(content: unknown): string {
  const parsed = parsePolicyFile(content);
  if (parsed.ok) return "valid";
  return parsed.problems.map(({ path, message }) => `${path.join(".")}: ${message}`).join("\n");
}
const refund = (changes: Record<string, unknown>): unknown => ({ kinds: { refund: changes } });

describe("a policy file", () => {
  it("that says only what CONTRACT §8 shows is the same as one that leaves the defaults out", () => {
    const { auto, approval, totals, coolingOffMinutes } = CONTRACT_FILE.kinds.refund;
    const short = {
      kinds: {
        refund: { auto, approval, totals, coolingOffMinutes },
        cancel_order: { auto: true, approval: [{ role: "supervisor" }] },
        cancel_subscription: { auto: true, approval: [{ role: "supervisor" }] },
      },
      roles: CONTRACT_FILE.roles,
    };
    expect(policyOf(short)).toEqual(policyOf(CONTRACT_FILE));
    expect(policyHash(policyOf(short))).toBe(policyHash(policyOf(CONTRACT_FILE)));
  });

  it("has another identity as soon as one limit differs", () => {
    const other = structuredClone(CONTRACT_FILE);
    other.kinds.refund.auto.GBP = 5001;
    expect(policyHash(policyOf(other))).not.toBe(policyHash(policyOf(CONTRACT_FILE)));
  });

  it("reads back from storage to the same policy", () => {
    const stored = policyToFile(policyOf(CONTRACT_FILE));
    expect(policyOf(JSON.parse(JSON.stringify(stored)))).toEqual(policyOf(CONTRACT_FILE));
  });

  it.each<[string, unknown, string]>([
    ["is empty", null, ": the policy file is empty"],
    ["is a list", [], ": must be keys with values"],
    ["is of another version", { version: 2 }, "version: must be 1"],
    ["misspells a key", refund({ atuo: { GBP: 1 } }), "kinds.refund.atuo: is not a key"],
    ["names an unknown kind", { kinds: { payout: {} } }, "kinds.payout: is not a key"],
    [
      "has a decimal amount",
      refund({ never: { GBP: 50.5 } }),
      "kinds.refund.never.GBP: must be a whole number of minor units",
    ],
    [
      "has a decimal automatic amount",
      refund({ auto: { GBP: 50.5 } }),
      "kinds.refund.auto.GBP: must be a whole number",
    ],
    [
      "has several wrong automatic amounts, of which none hides another",
      refund({ auto: { GBP: "5000", USD: -1 } }),
      "kinds.refund.auto.USD: must not be negative",
    ],
    [
      "has an automatic amount that is none",
      refund({ auto: 5000 }),
      "kinds.refund.auto: must be true, false",
    ],
    ["has a negative amount", refund({ never: { GBP: -1 } }), "kinds.refund.never.GBP: must not be negative"],
    ["has an amount as text", refund({ never: { GBP: "100" } }), "kinds.refund.never.GBP:"],
    ["has an amount beyond a safe integer", refund({ never: { GBP: 2 ** 53 } }), "kinds.refund.never.GBP:"],
    [
      "has a currency in lower case",
      refund({ never: { gbp: 1 } }),
      "kinds.refund.never.gbp: is not a currency code",
    ],
    ["has an unknown currency", refund({ auto: { POUND: 1 } }), "is not a currency code"],
    ["has an unknown status", refund({ orderStatuses: ["lost"] }), "kinds.refund.orderStatuses.0:"],
    [
      "allows no status at all",
      refund({ orderStatuses: [] }),
      "kinds.refund.orderStatuses: must name at least one",
    ],
    [
      "asks nobody",
      refund({ approval: [{ role: "supervisor", approvers: 0 }] }),
      "kinds.refund.approval.0.approvers: must be at least 1",
    ],
    [
      "asks a role that is not there",
      refund({ approval: [{ role: "boss" }] }),
      'kinds.refund.approval.0.role: must be one of the roles that the file names; it is "boss"',
    ],
    [
      "asks a role named like a built-in",
      refund({ approval: [{ role: "constructor" }] }),
      'must be one of the roles that the file names; it is "constructor"',
    ],
    [
      "escalates to a role that is not there",
      { approvals: { escalateTo: ["boss"] } },
      "approvals.escalateTo.0:",
    ],
    [
      "has a total of nothing",
      refund({ totals: [{ per: "order", windowHours: 1, then: "hold" }] }),
      "kinds.refund.totals.0: needs a count or an amount",
    ],
    [
      "has a total without a window",
      refund({ totals: [{ per: "order", count: 1, then: "hold" }] }),
      "kinds.refund.totals.0.windowHours: is needed",
    ],
    [
      "has a total that allows",
      refund({ totals: [{ per: "order", windowHours: 1, count: 1, then: "allow" }] }),
      "kinds.refund.totals.0.then:",
    ],
    [
      "gives cancelling an amount",
      { kinds: { cancel_order: { auto: { GBP: 1 } } } },
      "kinds.cancel_order.auto: must be true or false",
    ],
    [
      "sums money of cancellations",
      {
        kinds: {
          cancel_order: { totals: [{ per: "shop", windowHours: 1, amount: { GBP: 1 }, then: "hold" }] },
        },
      },
      "moves no money",
    ],
    [
      "expires at once",
      { approvals: { expireAfterMinutes: 0 } },
      "approvals.expireAfterMinutes: must be more than 0",
    ],
    [
      "never expires",
      { approvals: { expireAfterMinutes: Number.POSITIVE_INFINITY } },
      "approvals.expireAfterMinutes:",
    ],
    ["says yes as text", { approvals: { selfApproval: "yes" } }, "approvals.selfApproval:"],
    [
      "has a member that is not an id",
      { roles: { supervisor: { users: ["Anna Smith"] } } },
      "roles.supervisor.users.0: must be a Slack id",
    ],
    ["has a role without content", { roles: { supervisor: null } }, "roles.supervisor:"],
  ])("that %s is refused, with the place", (_what, content, expected) => {
    expect(problem(content)).toContain(expected);
  });

  it("names every problem at once", () => {
    const said = problem({
      version: 3,
      kinds: { refund: { windowDays: -1 } },
      approvals: { expireAfterMinutes: -1 },
    });
    expect(said.split("\n")).toHaveLength(3);
  });

  it("takes minutes as decimals, for tests that cannot wait", () => {
    const policy = policyOf({ approvals: { expireAfterMinutes: 0.05, remindAfterMinutes: [0.02, 0.01] } });
    expect(policy.approvals.expireAfterMinutes).toBe(0.05);
    expect(policy.approvals.remindAfterMinutes).toEqual([0.01, 0.02]);
  });

  it("that leaves a role out leaves it without members, and a limit left out is no limit", () => {
    const policy = policyOf({ roles: { supervisor: { users: ["U1"] } } });
    expect(policy.roles["finance"]).toEqual({ usergroups: [], users: [] });
    expect(policy.roles["supervisor"]).toEqual({ usergroups: [], users: ["U1"] });
  });
});
