/**
 * The policy gate: a pure function between the planner and the ledger.
 *
 * 1. It reads arguments and facts, never wording: no free text of a planner or a ticket reaches it.
 * 2. Every rule that has something to say speaks; one refusal refuses, else one hold holds, else it is allowed.
 * 3. Money is allowed without an approval only inside a limit that names its currency.
 * 4. A larger amount, or more already spent on the order, never gets a milder answer.
 */
import { assertNever } from "../assert-never.js";
import { CountersignError } from "../errors.js";
import type { ApprovalNeed, PolicyAnswer, RuleVerdict, Verdict } from "./answer.js";
import type { Facts, Proposal } from "./facts.js";
import { chooseLine, limitFor } from "./ladder.js";
import type { KindRules, Policy } from "./policy.js";
import { autoRule, balanceRule, currencyRule, neverRule, positiveAmountRule } from "./rules-money.js";
import { bindingRule, deniedRule, linesRule, occurrenceRule, statusRule, windowRule } from "./rules-order.js";
import { totalRules } from "./rules-totals.js";
import { durationText } from "./text.js";

/** Answers a proposal. Throws `CountersignError('policy_facts_missing')` when a fact that a rule needs was not gathered. */
export function evaluate(proposal: Proposal, facts: Facts, policy: Policy): PolicyAnswer {
  const rules = policy.kinds[proposal.kind];
  const spoke = [
    ...kindVerdicts(proposal, facts, rules),
    ...bindingRule(facts),
    ...occurrenceRule(proposal),
    ...deniedRule(facts),
    ...totalRules(proposal, facts, rules),
  ];
  const coolingOffMinutes = coolingOff(proposal, rules);
  if (coolingOffMinutes > 0) {
    spoke.push({
      rule: "cooling_off",
      verdict: "allow",
      sentence: `It waits ${durationText(coolingOffMinutes / 60)} before it is sent, and can be undone until then.`,
    });
  }
  switch (strictest(spoke)) {
    case "refuse":
      return { answer: "refuse", rules: spoke };
    case "allow":
      return { answer: "allow", rules: spoke, coolingOffMinutes };
    case "hold":
      return held(proposal, facts, policy, spoke, coolingOffMinutes);
  }
}

function kindVerdicts(proposal: Proposal, facts: Facts, rules: KindRules): RuleVerdict[] {
  const { kind } = proposal;
  switch (kind) {
    case "refund": {
      const order = orderOf(facts);
      return [
        ...positiveAmountRule(proposal),
        ...currencyRule(proposal, order),
        ...statusRule(kind, order, rules),
        ...windowRule(kind, order, facts, rules),
        ...balanceRule(proposal, facts),
        ...neverRule(proposal, facts, rules),
        ...autoRule(proposal, facts, rules),
        ...linesRule(facts),
      ];
    }
    case "cancel_order": {
      const order = orderOf(facts);
      return [
        ...statusRule(kind, order, rules),
        ...windowRule(kind, order, facts, rules),
        ...plainAutoRule(rules),
      ];
    }
    case "cancel_subscription":
      return plainAutoRule(rules);
    default:
      return assertNever(kind, "operation kind");
  }
}

function plainAutoRule(rules: KindRules): RuleVerdict[] {
  return rules.auto === true
    ? [{ rule: "auto", verdict: "allow", sentence: "The policy asks for no approval of this." }]
    : [
        {
          rule: "auto",
          verdict: "hold",
          sentence: "The policy asks for an approval of this, whatever the case.",
        },
      ];
}

function held(
  proposal: Proposal,
  facts: Facts,
  policy: Policy,
  spoke: readonly RuleVerdict[],
  coolingOffMinutes: number,
): PolicyAnswer {
  const rules = policy.kinds[proposal.kind];
  const ladderMinor = proposal.kind === "refund" ? proposal.amountMinor + facts.spentOnOrderMinor : 0n;
  const choice = chooseLine(rules, proposal.currency, ladderMinor);
  if (!choice.found) {
    return {
      answer: "refuse",
      rules: [...spoke, { rule: "approval", verdict: "refuse", sentence: choice.sentence }],
    };
  }
  const { line, index, isLastLine } = choice;
  const confirmAbove = limitFor(rules.confirmAmountAbove, proposal.currency);
  const approval: ApprovalNeed = {
    role: line.role,
    approvers: line.approvers,
    line: index,
    isLastLine,
    ladderMinor,
    confirmAmount: confirmAbove !== undefined && proposal.amountMinor > confirmAbove,
    selfApproval: policy.approvals.selfApproval,
    expireAfterMinutes: policy.approvals.expireAfterMinutes,
    remindAfterMinutes: policy.approvals.remindAfterMinutes,
    escalateTo: policy.approvals.escalateTo,
  };
  const people = line.approvers === 1 ? "one person" : `${line.approvers} people`;
  const sentence = `It needs the approval of ${people} in the role ${line.role}.`;
  return {
    answer: "hold",
    rules: [...spoke, { rule: "approval", verdict: "hold", sentence }],
    coolingOffMinutes,
    approval,
  };
}

function coolingOff(proposal: Proposal, rules: KindRules): number {
  const rule = Object.hasOwn(rules.coolingOffMinutes, proposal.currency)
    ? rules.coolingOffMinutes[proposal.currency]
    : undefined;
  return rule !== undefined && proposal.amountMinor > rule.above ? rule.minutes : 0;
}

function strictest(spoke: readonly RuleVerdict[]): Verdict {
  if (spoke.some((rule) => rule.verdict === "refuse")) return "refuse";
  return spoke.some((rule) => rule.verdict === "hold") ? "hold" : "allow";
}

function orderOf(facts: Facts): NonNullable<Facts["order"]> {
  if (facts.order === null) {
    throw new CountersignError(
      "policy_facts_missing",
      "the policy was asked about an order without its facts",
    );
  }
  return facts.order;
}
