/** Rules about amounts and currencies of a refund. Each returns what it has to say, in plain sentences. */
import type { RuleVerdict } from "./answer.js";
import type { Facts, OrderFacts, Proposal } from "./facts.js";
import { limitFor } from "./ladder.js";
import type { KindRules } from "./policy.js";
import { amountText } from "./text.js";

export function positiveAmountRule(proposal: Proposal): RuleVerdict[] {
  if (proposal.amountMinor > 0n) return [];
  return [{ rule: "amount", verdict: "refuse", sentence: "A refund must be of more than nothing." }];
}

export function currencyRule(proposal: Proposal, order: OrderFacts): RuleVerdict[] {
  if (proposal.currency === order.currency) return [];
  const sentence = `Order ${order.ref} was paid in ${order.currency}, so it cannot be refunded in ${proposal.currency}.`;
  return [{ rule: "currency", verdict: "refuse", sentence }];
}

export function balanceRule(proposal: Proposal, facts: Facts): RuleVerdict[] {
  const { refundableMinor } = facts;
  if (refundableMinor === null || proposal.amountMinor <= refundableMinor) return [];
  const sentence =
    refundableMinor <= 0n
      ? "Nothing is left to refund on this order."
      : `Only ${amountText(refundableMinor, proposal.currency)} is left to refund on this order, less than ${amountText(proposal.amountMinor, proposal.currency)}.`;
  return [{ rule: "balance", verdict: "refuse", sentence }];
}

/** `never` binds the amount, and what the order would come to with it: splitting does not climb over it. */
export function neverRule(proposal: Proposal, facts: Facts, rules: KindRules): RuleVerdict[] {
  const never = limitFor(rules.never, proposal.currency);
  if (never === undefined || proposal.amountMinor + facts.spentOnOrderMinor <= never) return [];
  const limit = amountText(never, proposal.currency);
  const sentence = `${described(proposal, facts)} is above ${limit}, which the policy never allows.`;
  return [{ rule: "never", verdict: "refuse", sentence }];
}

/** Whether the agent may act alone: only inside a limit that names the currency. */
export function autoRule(proposal: Proposal, facts: Facts, rules: KindRules): RuleVerdict[] {
  const { auto } = rules;
  if (auto === false) {
    return [{ rule: "auto", verdict: "hold", sentence: "The policy asks for an approval of every refund." }];
  }
  const limit = limitFor(auto === true ? rules.never : auto, proposal.currency);
  if (limit === undefined) {
    const sentence = `${proposal.currency} has no limit in the policy, so it is never refunded without an approval.`;
    return [{ rule: "currency", verdict: "hold", sentence }];
  }
  const within = proposal.amountMinor + facts.spentOnOrderMinor <= limit;
  const allowed = amountText(limit, proposal.currency);
  return within
    ? [
        {
          rule: "auto",
          verdict: "allow",
          sentence: `${described(proposal, facts)} is within what may be refunded without an approval (${allowed}).`,
        },
      ]
    : [
        {
          rule: "auto",
          verdict: "hold",
          sentence: `${described(proposal, facts)} is above what may be refunded without an approval (${allowed}).`,
        },
      ];
}

function described(proposal: Proposal, facts: Facts): string {
  const amount = amountText(proposal.amountMinor, proposal.currency);
  if (facts.spentOnOrderMinor === 0n) return amount;
  const sum = amountText(proposal.amountMinor + facts.spentOnOrderMinor, proposal.currency);
  const before = amountText(facts.spentOnOrderMinor, proposal.currency);
  return `${amount} together with ${before} already refunded or reserved on this order (${sum})`;
}
