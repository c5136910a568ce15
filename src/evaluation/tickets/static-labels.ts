/** Whether the labels contradict themselves, the shop or the policy. Pure: nothing is run. */
import type { Policy } from "../../domain/policy/policy.js";
import type { ShopFile } from "../../shop/index.js";
import type { Label, LabelledOperation } from "./label.js";

const EFFECT_TOOL = {
  refund: "issue_refund",
  cancel_order: "cancel_order",
  cancel_subscription: "cancel_subscription",
} as const;

/** Sentences, each with the label's id in front; empty: the set is coherent. */
export function labelProblems(
  labels: readonly Label[],
  shop: Pick<ShopFile, "orders" | "subscriptions" | "customers">,
  policy: Policy,
): string[] {
  return labels.flatMap((label) =>
    problemsOf(label, shop, policy).map((problem) => `${label.id}: ${problem}`),
  );
}

function problemsOf(
  label: Label,
  shop: Pick<ShopFile, "orders" | "subscriptions" | "customers">,
  policy: Policy,
): string[] {
  const { expect } = label;
  const both = expect.must_call.filter((tool) => expect.must_not_call.includes(tool));
  const order = expect.must_precede.flatMap(([first, second]) =>
    [first, second].filter((tool) => expect.must_not_call.includes(tool)),
  );
  const held = expect.ledger.some(({ status }) => status === "AWAITING_APPROVAL" || status === "DENIED");
  return [
    ...both.map((tool) => `${tool} must be called and must not be called`),
    ...order.map((tool) => `${tool} has a place in an order of calls and must not be called`),
    ...(held && !expect.expect_hold ? ["an operation waits or was denied, but nothing is held"] : []),
    ...(expect.expect_hold &&
    label.decide === "nothing" &&
    !expect.expect_status.includes("awaiting_approval")
      ? ["something is held, nobody decides, and the run does not wait"]
      : []),
    ...(label.customer !== undefined && !shop.customers.some(({ ref }) => ref === label.customer)
      ? [`there is no customer ${label.customer}`]
      : []),
    ...expect.ledger.flatMap((operation) => operationProblems(label, operation, shop, policy)),
  ];
}

function operationProblems(
  label: Label,
  operation: LabelledOperation,
  shop: Pick<ShopFile, "orders" | "subscriptions">,
  policy: Policy,
): string[] {
  const tool = EFFECT_TOOL[operation.kind];
  const problems = label.expect.must_not_call.includes(tool)
    ? [`${tool} must not be called, and the ledger holds a ${operation.kind}`]
    : [];
  if (operation.kind === "cancel_subscription") {
    return shop.subscriptions.some(({ ref }) => ref === operation.subscription)
      ? problems
      : [...problems, `there is no subscription ${operation.subscription}`];
  }
  const order = shop.orders.find(({ ref }) => ref === operation.order);
  if (order === undefined) return [...problems, `there is no order ${operation.order}`];
  if (operation.kind !== "refund") return problems;
  const { amount, currency } = operation;
  if (amount === undefined || currency === undefined) return [...problems, "a refund without its money"];
  const captured = Number(order.payment?.captured ?? 0);
  return [
    ...problems,
    ...(currency === order.currency ? [] : [`${order.ref} is in ${order.currency}, not ${currency}`]),
    ...(amount <= captured ? [] : [`${amount} is more than ${order.ref} has captured`]),
    ...limitProblems(label, operation, policy),
  ];
}

/** A refund over the automatic limit is held, and one under it is held only for another reason that the label names. */
function limitProblems(label: Label, operation: LabelledOperation, policy: Policy): string[] {
  const rules = policy.kinds.refund;
  const amount = BigInt(operation.amount ?? 0);
  const currency = operation.currency ?? "";
  const auto = typeof rules.auto === "object" ? rules.auto[currency] : undefined;
  const never = rules.never[currency];
  return [
    ...(auto !== undefined && amount > auto && !label.expect.expect_hold
      ? [`${amount} ${currency} is above the automatic limit of ${auto}, and nothing is held`]
      : []),
    ...(auto === undefined && !label.expect.expect_hold
      ? [`no automatic limit names ${currency}, and nothing is held`]
      : []),
    ...(never !== undefined && amount > never
      ? [`${amount} ${currency} is above what may ever be done`]
      : []),
  ];
}
