/** Expected values by hand from CONTRACT §4, §8 and DESIGN §7. */
import { describe, expect, it } from "vitest";
import {
  canBeDecided,
  type Decision,
  type May,
  mayAgree,
  mayDecide,
  mayFile,
  mayFreeze,
  mayResolve,
  mayThaw,
  resolversNeeded,
  rolesOf,
} from "../../../src/domain/policy/people.js";
import type { Policy } from "../../../src/domain/policy/policy.js";
import type { Person, PersonReading } from "../../../src/domain/ports/directory.js";
import { CONTRACT_FILE, policyOf } from "./contract-policy.js";

const contract = policyOf(CONTRACT_FILE);
const withRoles = (roles: Record<string, unknown>): Policy =>
  policyOf({ ...CONTRACT_FILE, roles: { ...CONTRACT_FILE.roles, ...roles } });

const GROUPS: Record<string, readonly string[] | "unreadable"> = {
  S_SUP: ["U_SUP3"],
  S_ONC: ["U_ONC1", "U_ONC2"],
};

interface Who {
  ids?: string[];
  standing?: Person["standing"];
  groups?: typeof GROUPS;
  policy?: Policy;
}

function human(id: string, options: Who = {}): Person {
  const ids = options.ids ?? [id];
  const groups = options.groups ?? GROUPS;
  return {
    userId: ids[0] ?? id,
    ids,
    personKey: id,
    teamId: "T_HOME",
    displayName: id,
    standing: options.standing ?? "member",
    fetchedAt: new Date(0),
    ...rolesOf(options.policy ?? contract, ids, (group) => groups[group] ?? "unreadable"),
  };
}
const person = (id: string, options: Who = {}): PersonReading => ({ ok: true, person: human(id, options) });

const decision = (
  amountMinor: bigint,
  changes: Partial<Omit<Decision, "need">> & { need?: Partial<Decision["need"]> } = {},
): Decision => ({
  amountMinor,
  currency: "GBP",
  filers: ["U_AGENT"],
  voters: [],
  ...changes,
  need: {
    role: "supervisor",
    isLastLine: false,
    ladderMinor: amountMinor,
    selfApproval: false,
    ...changes.need,
  },
});
const said = (may: May): string => (may.may ? "yes" : may.reason);

describe("who may decide", () => {
  it.each<[who: string, person: PersonReading, decision: Decision, expected: string]>([
    ["a supervisor by list", person("U_SUP1"), decision(18000n), "yes"],
    ["a supervisor by user group", person("U_SUP3"), decision(18000n), "yes"],
    [
      "a supervisor under another of their ids",
      person("W1", { ids: ["W1", "U_SUP1"] }),
      decision(18000n),
      "yes",
    ],
    ["exactly at the role's limit", person("U_SUP1"), decision(50000n), "yes"],
    ["a penny above the role's limit", person("U_SUP1"), decision(50001n), "over_limit"],
    [
      "a small part whose sum on the order is above it",
      person("U_SUP1"),
      decision(100n, { need: { ladderMinor: 50001n } }),
      "over_limit",
    ],
    ["finance on a supervisor's card", person("U_FIN1"), decision(18000n), "not_in_role"],
    ["on-call on a supervisor's card", person("U_ONC1"), decision(18000n), "not_in_role"],
    ["an agent who did not file it", person("U_OTHER"), decision(18000n), "not_in_role"],
    [
      "finance, which has no limit, on its own card",
      person("U_FIN1"),
      decision(200000n, { need: { role: "finance", isLastLine: true } }),
      "yes",
    ],
    [
      "a supervisor on finance's card",
      person("U_SUP1"),
      decision(60000n, { need: { role: "finance", isLastLine: true } }),
      "not_in_role",
    ],
    [
      "the filer, although a supervisor",
      person("U_SUP1"),
      decision(6000n, { filers: ["U_SUP1"] }),
      "is_filer",
    ],
    [
      "the filer under another id",
      person("W1", { ids: ["W1", "U_SUP1"] }),
      decision(6000n, { filers: ["W1"] }),
      "is_filer",
    ],
    [
      "one of several filers",
      person("U_SUP1"),
      decision(6000n, { filers: ["U_AGENT", "U_SUP1"] }),
      "is_filer",
    ],
    [
      "the filer where the policy allows it",
      person("U_SUP1"),
      decision(6000n, { filers: ["U_SUP1"], need: { selfApproval: true } }),
      "yes",
    ],
    [
      "somebody who voted already",
      person("U_SUP1"),
      decision(6000n, { voters: ["U_SUP1"] }),
      "already_voted",
    ],
    ["somebody after another's vote", person("U_SUP2"), decision(6000n, { voters: ["U_SUP1"] }), "yes"],
    [
      "a limit that does not name the currency",
      person("U_SUP1"),
      decision(6000n, { currency: "JPY" }),
      "over_limit",
    ],
    [
      "the same on the last line",
      person("U_SUP1"),
      decision(6000n, { currency: "JPY", need: { isLastLine: true } }),
      "yes",
    ],
    ["no money moves: no limit counts", person("U_SUP1"), decision(0n, { currency: "" }), "yes"],
    [
      "a role that the policy does not know",
      person("U_SUP1"),
      decision(1n, { need: { role: "constructor" } }),
      "not_in_role",
    ],
  ])("%s", (_who, who, what, expected) => {
    expect(said(mayDecide(who, what, contract))).toBe(expected);
  });

  it("nobody whose standing is not that of an active full member, in any role", () => {
    for (const standing of ["guest", "bot", "deactivated", "invited", "stranger", "external"] as const) {
      const may = mayDecide(person("U_SUP1", { standing }), decision(100n), contract);
      expect(said(may)).toBe("standing");
      expect(said(mayFile(person("U_AGENT", { standing }), contract))).toBe("standing");
      expect(said(mayFreeze(person("U_ONC1", { standing })))).toBe("standing");
    }
  });

  it("nobody whom Slack could not name just now", () => {
    const unknown: PersonReading = { ok: false, reason: "ratelimited" };
    for (const may of [
      mayDecide(unknown, decision(100n), contract),
      mayFile(unknown, contract),
      mayFreeze(unknown),
    ]) {
      expect(may).toMatchObject({ may: false, reason: "unreadable" });
    }
  });

  it("fails closed when the user group cannot be read, and says so; a listed person does not need the group", () => {
    const groups = { S_SUP: "unreadable" as const };
    const may = mayDecide(person("U_SUP3", { groups }), decision(100n), contract);
    expect(may).toMatchObject({
      may: false,
      reason: "unreadable",
      sentence: expect.stringMatching(/nothing was changed/),
    });
    expect(said(mayDecide(person("U_SUP1", { groups }), decision(100n), contract))).toBe("yes");
  });
});

describe("a gate that nobody could satisfy is found when it is armed", () => {
  const people = [human("U_SUP1"), human("U_FIN1"), human("U_FIN2"), human("U_AGENT")];
  it.each<[string, Decision, number, RegExp | "possible"]>([
    ["one supervisor for one", decision(18000n), 1, "possible"],
    ["one supervisor for two", decision(18000n), 2, /needs 2 people of the role supervisor .* there is 1/],
    [
      "the only supervisor filed it",
      decision(18000n, { filers: ["U_SUP1"] }),
      1,
      /needs 1 person of the role supervisor .* there are 0/,
    ],
    [
      "two of finance for two",
      decision(60000n, { need: { role: "finance", isLastLine: true } }),
      2,
      "possible",
    ],
    ["nobody in the role", decision(1n, { need: { role: "oncall" } }), 1, /Nobody is in the role oncall/],
  ])("%s", (_what, what, approvers, expected) => {
    const answer = canBeDecided(people, what, approvers, contract);
    if (expected === "possible") expect(answer).toEqual({ possible: true });
    else expect(answer).toMatchObject({ possible: false, sentence: expect.stringMatching(expected) });
  });

  it("counts one person once, whatever their ids", () => {
    const twice = [human("P1", { ids: ["U_FIN1"] }), human("P1", { ids: ["U_FIN2"] })];
    const what = decision(60000n, { need: { role: "finance", isLastLine: true } });
    expect(canBeDecided(twice, what, 2, contract).possible).toBe(false);
  });
});

describe("what made somebody a member", () => {
  it("is kept with the role: the list, or the user group", () => {
    expect(human("U_SUP1").roleEvidence).toEqual({ supervisor: "list, as U_SUP1" });
    expect(human("U_SUP3").roleEvidence).toEqual({ supervisor: "user group S_SUP" });
    expect(human("U_ANY")).toMatchObject({ roles: [], rolesUnreadable: [], roleEvidence: {} });
  });
});

describe("who may file", () => {
  it("every active full member, when the role is empty", () => {
    expect(said(mayFile(person("U_ANY"), contract))).toBe("yes");
  });
  it("only the role's members, when somebody is in it", () => {
    const policy = withRoles({ filer: { users: ["U_AGENT"] } });
    expect(said(mayFile(person("U_AGENT", { policy }), policy))).toBe("yes");
    expect(said(mayFile(person("U_ANY", { policy }), policy))).toBe("not_in_role");
  });
  it("nobody new while the role's user group cannot be read", () => {
    const policy = withRoles({ filer: { usergroups: ["S_FIL"] } });
    expect(said(mayFile(person("U_ANY", { policy, groups: {} }), policy))).toBe("unreadable");
  });
});

describe("who may resolve", () => {
  const resolution = { filers: ["U_AGENT"], approvedBy: ["U_SUP1"] };
  it.each<[string, PersonReading, typeof resolution, Policy, string]>([
    ["on-call", person("U_ONC1"), resolution, contract, "yes"],
    ["a supervisor", person("U_SUP2"), resolution, contract, "not_in_role"],
    ["on-call who filed it", person("U_ONC1"), { ...resolution, filers: ["U_ONC1"] }, contract, "is_filer"],
    [
      "on-call who approved it",
      person("U_ONC1"),
      { ...resolution, approvedBy: ["U_ONC1"] },
      contract,
      "is_approver",
    ],
    [
      "on-call who approved it, where the policy allows that",
      person("U_ONC1"),
      { ...resolution, approvedBy: ["U_ONC1"] },
      policyOf({ ...CONTRACT_FILE, resolution: { resolverMayBeApprover: true } }),
      "yes",
    ],
    [
      "on-call who filed it, even where self-approval is allowed",
      person("U_ONC1"),
      { ...resolution, filers: ["U_ONC1"] },
      policyOf({ ...CONTRACT_FILE, approvals: { selfApproval: true } }),
      "is_filer",
    ],
  ])("%s", (_what, who, what, policy, expected) => {
    expect(said(mayResolve(who, what, policy))).toBe(expected);
  });

  it("the second of two is somebody else, who might have been the first", () => {
    expect(said(mayAgree(person("U_ONC2"), "U_ONC1", resolution, contract))).toBe("yes");
    expect(said(mayAgree(person("U_ONC1"), "U_ONC1", resolution, contract))).toBe("same_person");
    expect(said(mayAgree(person("U_SUP2"), "U_ONC1", resolution, contract))).toBe("not_in_role");
    expect(said(mayAgree(person("U_ONC2"), "U_ONC1", { ...resolution, filers: ["U_ONC2"] }, contract))).toBe(
      "is_filer",
    );
  });

  it.each<
    [
      verb: "confirm" | "reject" | "retry",
      amountMinor: bigint,
      currency: string,
      noBound: boolean,
      people: 1 | 2,
    ]
  >([
    ["confirm", 2000n, "USD", true, 1],
    ["reject", 2000n, "USD", true, 2],
    ["retry", 2000n, "USD", true, 2],
    ["confirm", 20000n, "GBP", false, 1],
    ["confirm", 20001n, "GBP", false, 2],
    ["reject", 20000n, "GBP", false, 1],
    ["reject", 20001n, "GBP", false, 2],
    ["reject", 1n, "JPY", false, 2],
    ["retry", 0n, "", false, 1],
    ["retry", 0n, "", true, 2],
  ])("%s of %s %s (no bound: %s) takes %s", (verb, amountMinor, currency, noBound, people) => {
    expect(resolversNeeded({ verb, amountMinor, currency, noBound }, contract)).toBe(people);
  });
});

describe("who may freeze and thaw", () => {
  it.each<[string, May, string]>([
    ["on-call freezes", mayFreeze(person("U_ONC1")), "yes"],
    ["a supervisor does not", mayFreeze(person("U_SUP1")), "not_in_role"],
    ["another on-call thaws", mayThaw(person("U_ONC2"), "U_ONC1", contract), "yes"],
    ["whoever froze does not thaw alone", mayThaw(person("U_ONC1"), "U_ONC1", contract), "same_person"],
    ["anybody on-call thaws what tripped by itself", mayThaw(person("U_ONC1"), null, contract), "yes"],
    [
      "whoever froze thaws, where the policy allows it",
      mayThaw(
        person("U_ONC1"),
        "U_ONC1",
        policyOf({ ...CONTRACT_FILE, freeze: { thawByAnotherPerson: false } }),
      ),
      "yes",
    ],
  ])("%s", (_what, may, expected) => {
    expect(said(may)).toBe(expected);
  });
});
