/** The limits of the policy in force as plain sentences for the planner. Help only: nothing depends on its obeying them. */
import type { Db } from "../../db/connect.js";
import { formatMoney, money } from "../../domain/money.js";
import { OPERATION_KINDS, type OperationKind } from "../../domain/operation.js";
import type { KindRules, Limit } from "../../domain/policy/policy.js";
import { activePolicy } from "../../policy/index.js";

const WORDS: Readonly<Record<OperationKind, string>> = {
  refund: "Refunds",
  cancel_order: "Cancelling an order",
  cancel_subscription: "Cancelling a subscription",
};

/** One line for each kind of effect. */
export async function policyHelp(db: Db): Promise<string> {
  const { policy } = await activePolicy(db);
  return OPERATION_KINDS.map((kind) => `- ${WORDS[kind]}: ${sentence(policy.kinds[kind])}`).join("\n");
}

function sentence(rules: KindRules): string {
  const parts: string[] = [];
  if (rules.auto === true) parts.push("done at once");
  else if (rules.auto === false) parts.push("always waits for a person");
  else parts.push(`done at once up to ${limitText(rules.auto)}, above that a person decides`);
  if (Object.keys(rules.never).length > 0) parts.push(`refused above ${limitText(rules.never)}`);
  if (rules.orderStatuses.length > 0)
    parts.push(`only for orders that are ${rules.orderStatuses.join(" or ")}`);
  if (rules.windowDays !== null) parts.push(`within ${rules.windowDays} days`);
  return `${parts.join("; ")}.`;
}

const limitText = (limit: Limit): string =>
  Object.entries(limit)
    .map(([currency, minor]) => formatMoney(money(minor, currency)))
    .join(" or ");
