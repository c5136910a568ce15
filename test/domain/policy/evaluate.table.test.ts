/** Expected answers written by hand from CONTRACT §8 and DESIGN §4 and §6; no value here is computed by the code under test. */
import { describe, expect, it } from "vitest";
import { type PolicyAnswer, reasons } from "../../../src/domain/policy/answer.js";
import { evaluate } from "../../../src/domain/policy/evaluate.js";
import type { Proposal } from "../../../src/domain/policy/facts.js";
import type { Policy } from "../../../src/domain/policy/policy.js";
import { CONTRACT_FILE, policyOf, withRefund } from "./contract-policy.js";
import { cancelOrder, cancelSubscription, daysAgo, facts, refund, type Situation } from "./situation.js";

const contract = policyOf(CONTRACT_FILE);

/** "allow", "refuse", or "hold supervisor×1"; what else the answer asks for is appended. */
function brief(answer: PolicyAnswer): string {
  const words: string[] = [answer.answer];
  if (answer.answer === "hold") words.push(`${answer.approval.role}×${answer.approval.approvers}`);
  if (answer.answer === "hold" && answer.approval.confirmAmount) words.push("repeat");
  if (answer.answer !== "refuse" && answer.coolingOffMinutes > 0)
    words.push(`cool ${answer.coolingOffMinutes}`);
  return words.join(" ");
}

function ask(proposal: Proposal, situation: Situation = {}, policy: Policy = contract): PolicyAnswer {
  return evaluate(proposal, facts(proposal, policy, situation), policy);
}

type Row = [what: string, proposal: Proposal, situation: Situation, expected: string, why?: RegExp];

const rows: Row[] = [
  // amounts on the ladder
  ["a penny", refund(1n), {}, "allow", /£0.01 GBP is within/],
  ["exactly the automatic limit", refund(5000n), {}, "allow", /£50.00 GBP\)/],
  ["a penny above it", refund(5001n), {}, "hold supervisor×1", /£50.01 GBP is above/],
  ["$20.00", refund(2000n, "USD"), {}, "allow"],
  ["£180.00", refund(18000n), {}, "hold supervisor×1"],
  ["exactly the supervisor's line", refund(50000n), { totals: {} }, "hold supervisor×1"],
  ["a penny above the supervisor's line", refund(50001n), {}, "hold finance×2"],
  ["exactly where the amount need not be repeated", refund(100000n), {}, "hold finance×2"],
  ["a penny above: repeated and cooled off", refund(100001n), {}, "hold finance×2 repeat cool 10"],
  [
    "dollars are neither repeated nor cooled off, no limit names them",
    refund(150000n, "USD"),
    {},
    "hold finance×2",
  ],
  ["exactly never", refund(200000n), {}, "hold finance×2 repeat cool 10"],
  ["a penny above never", refund(200001n), {}, "refuse", /never allows/],
  ["more than a number can be", refund(10n ** 30n), {}, "refuse", /never allows/],
  ["nothing", refund(0n), {}, "refuse", /more than nothing/],
  ["less than nothing", refund(-2000n), {}, "refuse", /more than nothing/],
  // currencies that no limit names
  ["yen, which no limit names (S-PAY-2 b)", refund(9899n, "JPY"), {}, "hold finance×2", /JPY has no limit/],
  ["one yen", refund(1n, "JPY"), {}, "hold finance×2"],
  [
    "another currency than the order's",
    refund(100n, "USD"),
    { order: { currency: "GBP" } },
    "refuse",
    /paid in GBP/,
  ],
  // splitting climbs the same ladder
  ["£30 after £30", refund(3000n), { spentOnOrder: 3000n }, "hold supervisor×1", /£60.00 GBP/],
  ["£20 after £30", refund(2000n), { spentOnOrder: 3000n }, "allow"],
  ["£300 after £300", refund(30000n), { spentOnOrder: 30000n }, "hold finance×2"],
  ["£200 after £300", refund(20000n), { spentOnOrder: 30000n }, "hold supervisor×1"],
  ["£1,000 after £1,500", refund(100000n), { spentOnOrder: 150000n }, "refuse", /£2,500.00 GBP/],
  ["£1,800 after £180 (S-AP-4)", refund(180000n), { spentOnOrder: 18000n }, "hold finance×2 repeat cool 10"],
  // what is left on the payment
  ["exactly what is left", refund(4000n), { refundable: 4000n }, "allow"],
  ["more than is left (S-PAY-6)", refund(7000n), { refundable: 4000n }, "refuse", /Only £40.00 GBP is left/],
  ["anything when nothing is left", refund(1n), { refundable: 0n }, "refuse", /Nothing is left/],
  [
    "anything when more was refunded than captured",
    refund(1n),
    { refundable: -500n },
    "refuse",
    /Nothing is left/,
  ],
  // statuses
  [
    "a placed order",
    refund(1000n),
    { order: { status: "placed" } },
    "refuse",
    /is placed; only an order that is delivered or cancelled/,
  ],
  ["a packed order", refund(1000n), { order: { status: "packed" } }, "refuse"],
  ["a dispatched order", refund(1000n), { order: { status: "dispatched" } }, "refuse"],
  ["a returned order", refund(1000n), { order: { status: "returned" } }, "refuse"],
  [
    "a cancelled order, whatever the amount",
    refund(100n),
    { order: { status: "cancelled", cancelledAt: daysAgo(3) } },
    "hold supervisor×1",
    /always needs an approval/,
  ],
  [
    "a cancelled order: the window runs from the cancellation, not the delivery",
    refund(100n),
    { order: { status: "cancelled", deliveredAt: daysAgo(90), cancelledAt: daysAgo(30) } },
    "hold supervisor×1",
  ],
  [
    "an order cancelled too long ago",
    refund(100n),
    { order: { status: "cancelled", deliveredAt: daysAgo(2), cancelledAt: daysAgo(30.01) } },
    "refuse",
    /was cancelled on 2026-10-21 \(UTC\), more than 30 days ago/,
  ],
  // windows
  ["delivered 30 days ago to the second", refund(100n), { order: { deliveredAt: daysAgo(30) } }, "allow"],
  [
    "delivered a second more than 30 days ago",
    refund(100n),
    { order: { deliveredAt: new Date(daysAgo(30).getTime() - 1000) } },
    "refuse",
    /more than 30 days ago/,
  ],
  ["placed long ago but delivered lately", refund(100n), { order: { placedAt: daysAgo(300) } }, "allow"],
  ["delivered tomorrow, says a wrong clock", refund(100n), { order: { deliveredAt: daysAgo(-1) } }, "allow"],
  [
    "delivered, nobody knows when",
    refund(100n),
    { order: { deliveredAt: null } },
    "hold supervisor×1",
    /not known when order ORD-1 was delivered/,
  ],
  // who and what came before
  [
    "an unconfirmed binding",
    refund(100n),
    { bindingConfirmed: false },
    "hold supervisor×1",
    /customer of this ticket was not confirmed/,
  ],
  ["an unconfirmed binding above the line", refund(60000n), { bindingConfirmed: false }, "hold finance×2"],
  ["a further refund", refund(100n, "GBP", 2), {}, "hold supervisor×1", /number 2/],
  [
    "a request that was denied before",
    refund(100n),
    { denied: { operationId: "op_1", by: "U_SUP1", at: daysAgo(1), note: "no" } },
    "hold supervisor×1",
    /denied before\./,
  ],
  [
    "an order line refunded before",
    refund(100n),
    { linesTaken: ["ORD-1-2", "ORD-1-1"] },
    "hold supervisor×1",
    /ORD-1-1 and ORD-1-2/,
  ],
  // totals: this one counts too
  [
    "the second refund of an order",
    refund(100n),
    { totals: { order: { count: 1 } } },
    "hold supervisor×1",
    /refund number 2 on this order in 30 days/,
  ],
  ["the third refund of a customer", refund(100n), { totals: { customer: { count: 2 } } }, "allow"],
  [
    "the fourth refund of a customer",
    refund(100n),
    { totals: { customer: { count: 3 } } },
    "hold supervisor×1",
    /refund number 4 for this customer/,
  ],
  [
    "a customer's sum exactly at its total",
    refund(2000n),
    { totals: { customer: { amount: 18000n } } },
    "allow",
  ],
  [
    "a customer's sum a penny beyond",
    refund(2001n),
    { totals: { customer: { amount: 18000n } } },
    "hold supervisor×1",
    /£200.01 GBP; more than £200.00 GBP needs/,
  ],
  ["a filer's sum exactly at its total", refund(5000n), { totals: { filer: { amount: 95000n } } }, "allow"],
  [
    "a filer's sum a penny beyond",
    refund(5000n),
    { totals: { filer: { amount: 95001n } } },
    "hold supervisor×1",
  ],
  ["the shop's sum exactly at its total", refund(5000n), { totals: { shop: { amount: 495000n } } }, "allow"],
  [
    "the shop's sum a penny beyond: refused",
    refund(5000n),
    { totals: { shop: { amount: 495001n } } },
    "refuse",
    /£5,000.01 GBP; more than £5,000.00 GBP is refused/,
  ],
  [
    "dollars, whose sums no total names",
    refund(5000n, "USD"),
    { totals: { customer: { amount: 10n ** 9n }, shop: { amount: 10n ** 9n } } },
    "allow",
  ],
  [
    "dollars are still counted by number",
    refund(100n, "USD"),
    { totals: { customer: { count: 3 } } },
    "hold supervisor×1",
  ],
  // cancelling
  ["cancelling a packed order", cancelOrder, {}, "allow", /asks for no approval/],
  ["cancelling a placed order", cancelOrder, { order: { status: "placed" } }, "allow"],
  [
    "cancelling a dispatched order (A-4472)",
    cancelOrder,
    { order: { status: "dispatched" } },
    "refuse",
    /is dispatched; only an order that is placed or packed can be cancelled/,
  ],
  ["cancelling a cancelled order", cancelOrder, { order: { status: "cancelled" } }, "refuse"],
  ["cancelling under an unconfirmed binding", cancelOrder, { bindingConfirmed: false }, "hold supervisor×1"],
  ["cancelling an old order: no window is set", cancelOrder, { order: { placedAt: daysAgo(400) } }, "allow"],
  ["cancelling a subscription", cancelSubscription, {}, "allow"],
  [
    "cancelling a subscription under an unconfirmed binding",
    cancelSubscription,
    { bindingConfirmed: false },
    "hold supervisor×1",
  ],
];

describe("the contract's policy", () => {
  it.each(rows)("%s", (_what, proposal, situation, expected, why) => {
    const answer = ask(proposal, situation);
    expect(brief(answer)).toBe(expected);
    if (why !== undefined) expect(reasons(answer).join("\n")).toMatch(why);
    expect(answer.rules.length).toBeGreaterThan(0);
  });

  it("lets every rule speak, not only the first", () => {
    const answer = ask(refund(300000n, "GBP", 2), {
      bindingConfirmed: false,
      order: { status: "dispatched", placedAt: daysAgo(60) },
      refundable: 100n,
      linesTaken: ["ORD-1-1"],
    });
    expect(answer.rules.map((rule) => rule.rule)).toEqual([
      "order_status",
      "window",
      "balance",
      "never",
      "auto",
      "order_lines",
      "binding",
      "occurrence",
      "total",
      "total",
      "cooling_off",
    ]);
    expect(reasons(answer)).toHaveLength(4);
  });

  it("never answers without the sums that its totals need", () => {
    const proposal = refund(100n);
    const incomplete = { ...facts(proposal, contract), totals: [] };
    expect(() => evaluate(proposal, incomplete, contract)).toThrow(/was not gathered/);
  });
});

describe("keys left out of the refund rules", () => {
  const small = refund(100n);
  const held: [what: string, policy: Policy, expected: string][] = [
    ["auto left out: everything is held on the ladder", withRefund({ auto: undefined }), "hold supervisor×1"],
    ["auto false: the same", withRefund({ auto: false }), "hold supervisor×1"],
    [
      "auto left out with one line: held for the only line",
      withRefund({ auto: undefined, approval: [{ role: "finance", approvers: 2 }] }),
      "hold finance×2",
    ],
    ["auto and approval left out: refused", withRefund({ auto: undefined, approval: undefined }), "refuse"],
    ["approval left out: alone up to the limit", withRefund({ approval: undefined }), "allow"],
    ["auto true: no approval is asked for", withRefund({ auto: true }), "allow"],
    ["the whole kind left out: refused", policyOf({ version: 1, kinds: {} }), "refuse"],
    ["kinds left out: refused", policyOf({}), "refuse"],
  ];
  it.each(held)("%s", (_what, policy, expected) => {
    expect(brief(ask(small, {}, policy))).toBe(expected);
  });

  it("approval left out: what would be held is refused, and says that nobody could approve it", () => {
    const answer = ask(refund(5001n), {}, withRefund({ approval: undefined }));
    expect(answer.answer).toBe("refuse");
    expect(reasons(answer).join()).toMatch(/names nobody who could approve/);
  });

  it("totals left out: nothing is counted", () => {
    const many = { order: { count: 50 }, customer: { count: 50, amount: 10n ** 9n } };
    expect(brief(ask(small, { totals: many }, withRefund({ totals: undefined })))).toBe("allow");
  });

  it("coolingOffMinutes left out: nothing cools off", () => {
    expect(brief(ask(refund(150000n), {}, withRefund({ coolingOffMinutes: undefined })))).toBe(
      "hold finance×2 repeat",
    );
  });

  it("never, statuses, window and confirmAmountAbove left out: the contract's values", () => {
    const policy = withRefund({
      never: undefined,
      orderStatuses: undefined,
      windowDays: undefined,
      confirmAmountAbove: undefined,
    });
    expect(policy).toEqual(contract);
  });

  it("auto true is still bounded by never, and says nothing for a currency that never does not name", () => {
    const policy = withRefund({ auto: true, totals: [] });
    expect(brief(ask(refund(200000n), {}, policy))).toBe("allow cool 10");
    expect(brief(ask(refund(200001n), {}, policy))).toBe("refuse");
    expect(brief(ask(refund(1n, "JPY"), {}, policy))).toBe("hold finance×2");
  });
});

describe("a currency that some limits name", () => {
  it("is allowed alone up to the automatic limit that names it (S-PAY-2 a)", () => {
    const policy = withRefund({ auto: { GBP: 5000, JPY: 20000 } });
    expect(brief(ask(refund(9899n, "JPY"), {}, policy))).toBe("allow");
    expect(reasons(ask(refund(9899n, "JPY"), {}, policy)).join()).toContain("¥9,899 JPY is within");
    expect(brief(ask(refund(20001n, "JPY"), {}, policy))).toBe("hold finance×2");
  });

  it("is held for the last line when the automatic limit does not name it", () => {
    const approval = [
      { upTo: { GBP: 50000, JPY: 50000 }, role: "supervisor", approvers: 1 },
      { upTo: { GBP: 200000, JPY: 90000 }, role: "finance", approvers: 2 },
    ];
    expect(brief(ask(refund(100n, "JPY"), {}, withRefund({ approval })))).toBe("hold finance×2");
    expect(brief(ask(refund(100n, "JPY"), {}, withRefund({ approval, auto: { JPY: 0 } })))).toBe(
      "hold supervisor×1",
    );
    expect(brief(ask(refund(90001n, "JPY"), {}, withRefund({ approval, auto: { JPY: 0 } })))).toBe("refuse");
  });
});

describe("totals of other shapes", () => {
  it("count a calendar day of the whole shop", () => {
    const policy = withRefund({ totals: [{ per: "day", count: 2, then: "refuse" }] });
    expect(brief(ask(refund(1n), { totals: { day: { count: 1 } } }, policy))).toBe("allow");
    const refused = ask(refund(1n), { totals: { day: { count: 2 } } }, policy);
    expect(reasons(refused).join()).toMatch(
      /refund number 3 in the whole shop today \(UTC\); more than 2 is refused/,
    );
  });

  it("take the worst of several filers", () => {
    const proposal = refund(100n);
    const base = facts(proposal, contract);
    const totals = [
      ...base.totals,
      { per: "filer" as const, windowHours: 24, scope: "filer:U2", count: 9, amountMinor: 99_999n },
    ];
    expect(brief(evaluate(proposal, { ...base, totals }, contract))).toBe("hold supervisor×1");
  });
});

describe("what an answer says besides", () => {
  it("an approval of every cancellation, where auto is false", () => {
    const kind = { auto: false, approval: [{ role: "supervisor" }] };
    const policy = policyOf({ ...CONTRACT_FILE, kinds: { cancel_order: kind, cancel_subscription: kind } });
    for (const proposal of [cancelOrder, cancelSubscription]) {
      const answer = ask(proposal, {}, policy);
      expect(brief(answer)).toBe("hold supervisor×1");
      expect(reasons(answer)).toEqual([
        "The policy asks for an approval of this, whatever the case.",
        "It needs the approval of one person in the role supervisor.",
      ]);
    }
  });

  it("which line it is, whether it is the last, and what the order comes to", () => {
    const first = ask(refund(18000n), { spentOnOrder: 2000n });
    expect(first).toMatchObject({ approval: { line: 0, isLastLine: false, ladderMinor: 20000n } });
    const last = ask(refund(50001n));
    expect(last).toMatchObject({ approval: { line: 1, isLastLine: true, ladderMinor: 50001n } });
    expect(reasons(last).at(-1)).toBe("It needs the approval of 2 people in the role finance.");
    expect(ask(refund(1n, "JPY"))).toMatchObject({ approval: { line: 1, isLastLine: true } });
  });

  it("nothing about cooling off when nothing cools off", () => {
    expect(ask(refund(18000n)).rules.map(({ rule }) => rule)).toEqual(["auto", "approval"]);
  });

  it("a refusal by never for the sum, also where the last line covers everything", () => {
    const policy = withRefund({ approval: [{ role: "finance" }], totals: [] });
    expect(brief(ask(refund(100000n), { spentOnOrder: 100000n }, policy))).toBe("hold finance×1");
    expect(brief(ask(refund(100000n), { spentOnOrder: 100001n }, policy))).toBe("refuse");
  });

  it("nothing about orders for a subscription, and its count by customer", () => {
    const totals = [
      { per: "order", windowHours: 24, count: 0, then: "refuse" },
      { per: "customer", windowHours: 24, count: 1, then: "hold" },
    ];
    const kinds = { cancel_subscription: { auto: true, approval: [{ role: "supervisor" }], totals } };
    const policy = policyOf({ ...CONTRACT_FILE, kinds });
    expect(brief(ask(cancelSubscription, {}, policy))).toBe("allow");
    const second = ask(cancelSubscription, { totals: { customer: { count: 1 } } }, policy);
    expect(reasons(second)[0]).toBe(
      "This would be cancellation number 2 for this customer in 24 hours; more than 1 needs an approval.",
    );
  });
});
