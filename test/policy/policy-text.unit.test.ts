import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { policyNotices } from "../../src/domain/policy/notices.js";
import { checkPolicyFile, PolicyFileError, readPolicyText } from "../../src/policy/index.js";
import { CONTRACT_FILE, policyOf } from "../domain/policy/contract-policy.js";

function problem(text: string): string {
  try {
    readPolicyText(text, "policy.yaml");
    return "valid";
  } catch (error) {
    if (error instanceof PolicyFileError) return error.message;
    throw error;
  }
}
const file = (name: string): string => readFileSync(name, "utf8");

/** CONTRACT §8, as it stands there. */
const CONTRACT_TEXT = `version: 1
kinds:
  refund:
    orderStatuses: [delivered, cancelled]   # cancelled: the window runs from the cancellation, always held
    windowDays: 30
    auto:  { GBP: 5000, USD: 5000 }         # up to here the agent acts alone
    never: { GBP: 200000, USD: 200000 }     # above here: refused, whoever asks
    approval:                               # the first line that covers this amount
      - { upTo: { GBP: 50000, USD: 50000 }, role: supervisor, approvers: 1 }
      - { upTo: { GBP: 200000, USD: 200000 }, role: finance, approvers: 2 }
    confirmAmountAbove: { GBP: 100000 }     # the approver repeats the amount
    totals:                                 # beyond a total: hold, or refuse
      - { per: order, windowHours: 720, count: 1, then: hold }
      - { per: customer, windowHours: 720, amount: { GBP: 20000 }, count: 3, then: hold }
      - { per: filer, windowHours: 24, amount: { GBP: 100000 }, then: hold }
      - { per: shop, windowHours: 24, amount: { GBP: 500000 }, then: refuse }
    coolingOffMinutes: { GBP: { above: 100000, minutes: 10 } }
  cancel_order: { orderStatuses: [placed, packed], auto: true, approval: [{ role: supervisor, approvers: 1 }] }
  cancel_subscription: { auto: true, approval: [{ role: supervisor, approvers: 1 }] }
approvals: { selfApproval: false, expireAfterMinutes: 1440, remindAfterMinutes: [30, 240], escalateTo: [finance, oncall] }
resolution: { resolverMayBeApprover: false, secondPersonAbove: { GBP: 20000 } }
freeze: { thawByAnotherPerson: true, tripOn: { unknownPerHour: 20, duplicates: 1, orphans: 1 } }
roles:
  filer:      {}                                          # empty: every active full member
  supervisor: { usergroups: [S_SUP], users: [U_SUP1, U_SUP2], limit: { GBP: 50000, USD: 50000 } }
  finance:    { users: [U_FIN1, U_FIN2] }                             # no limit named: up to \`never\`
  oncall:     { usergroups: [S_ONC] }
`;

describe("the text of a policy file", () => {
  it("of CONTRACT §8 is the policy that the tests of the gate use", () => {
    expect(readPolicyText(CONTRACT_TEXT, "policy.yaml").policy).toEqual(policyOf(CONTRACT_FILE));
  });

  it("keeps its identity under another comment, and not its text's hash", () => {
    const a = readPolicyText(CONTRACT_TEXT, "a");
    const b = readPolicyText(`# reviewed\n${CONTRACT_TEXT}`, "b");
    expect(b.hash).toBe(a.hash);
    expect(b.textHash).not.toBe(a.textHash);
    expect(readPolicyText(CONTRACT_TEXT.replace("GBP: 5000,", "GBP: 5001,"), "c").hash).not.toBe(a.hash);
  });

  it("may be JSON", () => {
    expect(readPolicyText(JSON.stringify(CONTRACT_FILE), "p.json").policy).toEqual(policyOf(CONTRACT_FILE));
  });

  it.each<[string, string, RegExp]>([
    ["empty", "", /^policy.yaml: the policy file is empty$/],
    ["only a comment", "# nothing\n", /the policy file is empty/],
    ["broken YAML", "kinds:\n  refund: { auto: \n", /^policy.yaml, line [23]: /],
    ["a tab", "kinds:\n\trefund: {}\n", /^policy.yaml, line 2: /],
    ["a key twice", "version: 1\nversion: 1\n", /^policy.yaml, line 2: .*unique/],
    ["two documents", "version: 1\n---\nversion: 1\n", /multiple documents/],
    [
      "a misspelt key",
      CONTRACT_TEXT.replace("windowDays", "windowDay"),
      /^policy.yaml, line 5: kinds.refund.windowDay /,
    ],
    [
      "a negative limit",
      CONTRACT_TEXT.replace("GBP: 200000, USD: 200000 }     #", "GBP: -1, USD: 1 }  #"),
      /^policy.yaml, line 7: kinds.refund.never.GBP must not be negative; it is -1$/,
    ],
    [
      "a decimal",
      CONTRACT_TEXT.replace("GBP: 5000,", "GBP: 50.00001,"),
      /^policy.yaml, line 6: kinds.refund.auto.GBP must be a whole number of minor units/,
    ],
    [
      "an unknown role in a line",
      CONTRACT_TEXT.replace("role: finance", "role: boss"),
      /^policy.yaml, line 10: kinds.refund.approval.1.role must be one of the roles that the file names; it is "boss"$/,
    ],
    [
      "a word for a number",
      CONTRACT_TEXT.replace("windowDays: 30", "windowDays: thirty"),
      /^policy.yaml, line 5: kinds.refund.windowDays /,
    ],
    [
      "a role left empty",
      CONTRACT_TEXT.replace(/filer: {6}\{\}/, "filer:"),
      /^policy.yaml, line 24: roles.filer /,
    ],
    ["an unknown tag", "version: !!js/function 1\n", /^policy.yaml, line 1: /],
    [
      "an alias bomb",
      `a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c]\n`,
      /alias/i,
    ],
  ])("%s: the line and the reason are named", (_what, text, expected) => {
    expect(problem(text)).toMatch(expected);
  });
});

describe("a file with many mistakes", () => {
  const MISTAKEN = `version: 1
kinds:
  refund:
    windowDay: 30
    auto: { GBP: 50.5, USD: -1 }
    approval:
      - { upTo: { GBP: 50000 }, role: suprvisor, approvers: 0 }
    totals:
      - { per: moon, then: hold }
  cancel_order: { auto: maybe, approval: [{ role: boss }], atuo: true }
approvals: { escalateTo: [finance, oncal] }
version: 1
roles:
  supervisor: { users: ["@sam", U_SUP1, S_SUP, "Anna Smith"], usergroups: [U_SUP1] }
`;

  it("has each of them named once, in the order of its lines, with the value that is wrong", () => {
    expect(problem(MISTAKEN).replaceAll("policy.yaml, line ", "").split("\n")).toEqual([
      "4: kinds.refund.windowDay is not a key of the policy file here",
      "5: kinds.refund.auto.GBP must be a whole number of minor units (5000 for 50.00); it is 50.5",
      "5: kinds.refund.auto.USD must not be negative; it is -1",
      '7: kinds.refund.approval.0.role must be one of the roles that the file names; it is "suprvisor"',
      "7: kinds.refund.approval.0.approvers must be at least 1 person; it is 0",
      '9: kinds.refund.totals.0 needs a count or an amount; it is {"per":"moon","then":"hold"}',
      "9: kinds.refund.totals.0.windowHours is needed",
      '9: kinds.refund.totals.0.per must be one of order, customer, filer, shop, day; it is "moon"',
      '10: kinds.cancel_order.auto must be true or false: this kind moves no money; it is "maybe"',
      '10: kinds.cancel_order.approval.0.role must be one of the roles that the file names; it is "boss"',
      "10: kinds.cancel_order.atuo is not a key of the policy file here",
      '11: approvals.escalateTo.1 must be one of the roles that the file names; it is "oncal"',
      "12: Map keys must be unique; there twice: version",
      '14: roles.supervisor.users.0 must be a Slack user id (U… or W…); it is "@sam"',
      '14: roles.supervisor.users.2 must be a Slack user id (U… or W…); it is "S_SUP"',
      '14: roles.supervisor.users.3 must be a Slack id without spaces; it is "Anna Smith"',
      '14: roles.supervisor.usergroups.0 must be the Slack id of a user group (S…); it is "U_SUP1"',
    ]);
  });

  it("and a valid one that probably meant something else has the line with each note", async () => {
    const checked = await checkPolicyFile("test/policy/noted-policy.yaml");
    if (!checked.ok) throw new Error("valid");
    expect(checked.notices.map(({ line, text }) => `${line}: ${text}`)).toEqual([
      "5: kinds.refund.auto: £3,000.00 GBP is above never (£2,000.00 GBP)",
      "6: kinds.refund.approval: the last line ends at £50.00 GBP, so what lies between that and never (£2,000.00 GBP) is refused",
      "8: kinds.refund.approval[1]: a line before it covers £50.00 GBP already, so it is never reached in GBP",
      "12: roles.finance: 2 people must approve, but only U_FIN1 is in it",
    ]);
  });
});

describe("the files that come with the product", () => {
  it.each(["policy.yaml", "policies/default.yaml", "policies/strict.yaml"])(
    "%s is valid and means what it says",
    (name) => {
      expect(policyNotices(readPolicyText(file(name), name).policy)).toEqual([]);
    },
  );

  it("the default's rules are the contract's, only its people are the demo's", () => {
    for (const name of ["policy.yaml", "policies/default.yaml"]) {
      const { roles: _people, ...rules } = readPolicyText(file(name), name).policy;
      const { roles: _others, ...contract } = policyOf(CONTRACT_FILE);
      expect(rules).toEqual(contract);
    }
  });
});

describe("what a valid file probably did not mean", () => {
  const notices = (changes: Record<string, unknown>): string =>
    policyNotices(
      policyOf({
        ...CONTRACT_FILE,
        kinds: { ...CONTRACT_FILE.kinds, refund: { ...CONTRACT_FILE.kinds.refund, ...changes } },
      }),
    ).join("\n");

  it.each<[string, Record<string, unknown>, RegExp]>([
    [
      "a line after one that covers everything",
      { approval: [{ role: "supervisor" }, { role: "finance" }] },
      /approval\[0\]: it covers everything/,
    ],
    [
      "a line that an earlier one covers",
      {
        approval: [
          { upTo: { GBP: 200000 }, role: "finance" },
          { upTo: { GBP: 50000 }, role: "finance" },
        ],
      },
      /approval\[1\]: a line before it covers £500.00 GBP/,
    ],
    ["a currency that auto forgets", { auto: { GBP: 1 } }, /auto: it does not name USD/],
    ["a currency that never forgets", { auto: { GBP: 1, USD: 1, JPY: 1 } }, /never: it does not name JPY/],
    ["a gap under never", { never: { GBP: 300000 } }, /the last line ends at £2,000.00 GBP/],
    [
      "a line above its role's limit",
      { approval: [{ upTo: { GBP: 200000, USD: 200000 }, role: "supervisor" }] },
      /role supervisor may sign only up to £500.00 GBP/,
    ],
    ["auto above never", { auto: { GBP: 200001, USD: 1 } }, /auto: £2,000.01 GBP is above never/],
    [
      "more approvers than there are",
      { approval: [{ upTo: { GBP: 200000, USD: 200000 }, role: "finance", approvers: 3 }] },
      /roles.finance: 3 people must approve, but only U_FIN1 and U_FIN2 are in it/,
    ],
  ])("%s", (_what, changes, expected) => {
    expect(notices(changes)).toMatch(expected);
  });

  it("nothing, for the contract's file", () => {
    expect(policyNotices(policyOf(CONTRACT_FILE))).toEqual([]);
    expect(policyNotices(policyOf({})).join("\n")).toMatch(
      /kinds.refund: without auto and approval everything of this kind is refused/,
    );
  });
});
