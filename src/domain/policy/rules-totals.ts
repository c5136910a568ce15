/** Rolling totals and counts. What may have been spent counts as spent; this proposal counts too. */
import { CountersignError } from "../errors.js";
import type { OperationKind } from "../operation.js";
import type { RuleVerdict } from "./answer.js";
import type { Facts, Proposal, TotalFact } from "./facts.js";
import { limitFor } from "./ladder.js";
import type { KindRules, TotalPer, TotalRule } from "./policy.js";
import { amountText, durationText } from "./text.js";

/** One verdict for each total that this proposal would pass. Throws when the sum for a rule was not gathered. */
export function totalRules(proposal: Proposal, facts: Facts, rules: KindRules): RuleVerdict[] {
  return rules.totals.flatMap((rule) => {
    if (rule.per === "order" && facts.order === null) return [];
    const sums = facts.totals.filter(
      (fact) => fact.per === rule.per && fact.windowHours === rule.windowHours,
    );
    if (sums.length === 0) {
      throw new CountersignError(
        "policy_facts_missing",
        `the policy needs the total per ${rule.per} over ${rule.windowHours} hours, which was not gathered`,
      );
    }
    const sentences = sums.flatMap((sum) => beyond(proposal, rule, sum));
    const [sentence] = sentences;
    return sentence === undefined ? [] : [{ rule: "total", verdict: rule.then, sentence } as const];
  });
}

function beyond(proposal: Proposal, rule: TotalRule, sum: TotalFact): string[] {
  const where = `${SCOPE[rule.per]}${rule.per === "day" ? "" : ` in ${durationText(rule.windowHours)}`}`;
  const consequence = rule.then === "hold" ? "needs an approval" : "is refused";
  const said: string[] = [];
  if (rule.count !== undefined && sum.count + 1 > rule.count) {
    const noun = NOUN[proposal.kind];
    said.push(
      `This would be ${noun} number ${sum.count + 1} ${where}; more than ${rule.count} ${consequence}.`,
    );
  }
  const limit = rule.amount === undefined ? undefined : limitFor(rule.amount, proposal.currency);
  const after = sum.amountMinor + proposal.amountMinor;
  if (limit !== undefined && after > limit) {
    const total = amountText(after, proposal.currency);
    const allowed = amountText(limit, proposal.currency);
    said.push(`With this, refunds ${where} come to ${total}; more than ${allowed} ${consequence}.`);
  }
  return said;
}

const SCOPE: Readonly<Record<TotalPer, string>> = {
  order: "on this order",
  customer: "for this customer",
  filer: "by this filer",
  shop: "in the whole shop",
  day: "in the whole shop today (UTC)",
};
const NOUN: Readonly<Record<OperationKind, string>> = {
  refund: "refund",
  cancel_order: "cancellation",
  cancel_subscription: "cancellation",
};
