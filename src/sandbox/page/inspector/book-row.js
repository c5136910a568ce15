/** One line of both books, and what a person could do with a refund in the provider's own dashboard. */
/** @import { Effect, Operation, Row } from "./compare.js" */
/** @import { Item } from "../ui/menu.js" */
import { send } from "../api.js";
import { h, iconButton } from "../dom.js";
import { openMenu } from "../ui/menu.js";
import { toast } from "../ui/toasts.js";
import { money, stateWords } from "./compare.js";

/** @param {Row} row */
export function bookRow({ operation, effects, verdict, why }) {
  const none = operation !== null && operation.kind !== "refund" ? "Not a payment" : "No refund";
  return h(
    "div",
    { class: `book-row book-${verdict}`, data: { verdict, operation: operation?.id } },
    h(
      "div",
      { class: "book-side" },
      operation === null ? h("div", { class: "book-empty" }, "No operation") : ours(operation),
    ),
    h(
      "div",
      { class: "book-side" },
      effects.length === 0 ? h("div", { class: "book-empty" }, none) : effects.map(theirs),
    ),
    h("div", { class: "book-why" }, why),
  );
}

/** @param {Operation} operation */
function ours(operation) {
  const attempts = operation.attempts === 1 ? "1 attempt" : `${operation.attempts} attempts`;
  return h(
    "div",
    { class: "book-entry" },
    h("div", null, `${operation.kind.replaceAll("_", " ")} ${operation.order}`),
    operation.kind === "refund"
      ? h("div", { class: "book-money" }, money(operation.amount, operation.currency))
      : h("div", { class: "book-empty" }, "No money involved"),
    h("div", null, h("span", { class: "state" }, stateWords(operation.status)), `, ${attempts}`),
    h("div", { class: "book-id" }, operation.id),
  );
}

/** @param {Effect} effect */
function theirs(effect) {
  const more = iconButton("more", "In the provider's dashboard", { "aria-haspopup": "menu" });
  more.addEventListener("click", () => openMenu(more, byHand(effect)));
  return h(
    "div",
    { class: "book-entry" },
    more,
    h("div", null, effect.paymentIntent, effect.origin === "dashboard" ? ", by hand" : ""),
    h("div", { class: "book-money" }, money(effect.amount, effect.currency)),
    h("div", null, h("span", { class: "state" }, effect.status.replaceAll("_", " "))),
    h("div", { class: "book-id" }, effect.id),
  );
}

/** @param {Effect} effect @returns {Item[]} */
function byHand(effect) {
  /** @param {string} status @param {Record<string, string>} [reason] */
  const advance =
    (status, reason = {}) =>
    () =>
      void tell(send(`payments/refunds/${effect.id}/advance`, { status, ...reason }));
  return [
    { label: "Let it succeed", run: advance("succeeded") },
    {
      label: "Let it fail",
      detail: "The bank gives the money back to us.",
      run: advance("failed", { failureReason: "declined" }),
    },
    "line",
    {
      label: "Refund the same amount again",
      detail: "By hand, without our knowledge.",
      run: () =>
        void tell(
          send("payments/dashboard/refunds", { paymentIntent: effect.paymentIntent, amount: effect.amount }),
        ),
    },
  ];
}

/** @param {Promise<unknown>} call */
async function tell(call) {
  try {
    await call;
    toast("Done at the provider. Its webhook is on the way.");
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), { kind: "error" });
  }
}
