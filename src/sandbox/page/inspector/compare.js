/**
 * Our ledger beside the provider's own list. Pure: two lists in, rows and disagreements out.
 *
 * 1. A refund of the provider counts as money when it neither failed nor was canceled.
 * 2. An operation whose outcome is open agrees with either; one that ended without effect agrees with none.
 * 3. Where people have closed an operation knowing that the provider made something else, that one effect is a settled difference.
 * 4. What the provider has and no operation names was made elsewhere: told, and no disagreement of an operation.
 */
import { isObject, list, num, str } from "../json.js";

/**
 * @typedef {object} Operation
 * @property {string} id
 * @property {string} kind
 * @property {string} status
 * @property {string} order
 * @property {number | null} amount minor units
 * @property {string} currency upper case
 * @property {number} attempts
 * @property {string} providerRef
 * @property {string} madeInstead what the provider made in its place, where people closed it knowing that; else empty
 * @property {string[]} settledBy ids of the people who did
 */
/**
 * @typedef {object} Effect
 * @property {string} id
 * @property {string} paymentIntent
 * @property {number} amount minor units
 * @property {string} currency upper case
 * @property {string} status
 * @property {string} operationId empty when it carries none
 * @property {string} origin
 */
/** @typedef {{ operation: Operation | null, effects: Effect[], verdict: "agree" | "open" | "disagree" | "settled" | "elsewhere", why: string }} Row */

/** Operations that the product hands out at most. */
const LISTED_MOST = 50;
const OPEN = new Set(["DISPATCHED", "OUTCOME_UNKNOWN", "RECONCILING", "QUARANTINED"]);
const NOT_SENT = new Set(["AWAITING_APPROVAL", "PREPARED"]);
const NO_EFFECT = new Set(["REJECTED", "VOIDED", "DENIED", "EXPIRED"]);

/** @param {unknown} raw what the sandbox passes on from the product @returns {Operation[]} */
export function readOperations(raw) {
  const inner = isObject(raw) ? (raw["operations"] ?? raw) : raw;
  const found = isObject(inner) ? inner["operations"] : inner;
  return list(found).map((o) => ({
    id: str(o["id"]),
    kind: str(o["kind"]),
    status: str(o["status"]),
    order: str(o["order"]) || str(o["subscription"]),
    amount: o["amount"] === null || o["amount"] === undefined ? null : Number(o["amount"]),
    currency: str(o["currency"]).toUpperCase(),
    attempts: num(o["attempts"], Array.isArray(o["attempts"]) ? o["attempts"].length : 0),
    providerRef: str(o["providerRef"]),
    madeInstead: madeInstead(o["result"]),
    settledBy: Array.isArray(o["settledBy"]) ? o["settledBy"].map(str) : [],
  }));
}

/** @param {unknown} result @returns {string} */
const madeInstead = (result) =>
  isObject(result) && result["code"] === "made_differently" ? str(result["providerRef"]) : "";

/** @param {unknown} raw @returns {Effect[]} */
export function readEffects(raw) {
  return list(isObject(raw) ? raw["effects"] : raw).map((e) => ({
    id: str(e["id"]),
    paymentIntent: str(e["paymentIntent"]),
    amount: num(e["amount"], 0),
    currency: str(e["currency"]).toUpperCase(),
    status: str(e["status"]),
    operationId: str(e["operationId"]),
    origin: str(e["origin"]),
  }));
}

/** @param {Effect} effect */
const isMoney = (effect) => effect.status !== "failed" && effect.status !== "canceled";

/**
 * @param {Operation[]} operations @param {Effect[]} effects @param {(id: string) => string} [nameOf] of a person
 * @returns {Row[]}
 */
export function compare(operations, effects, nameOf = (id) => id) {
  const rows = operations.map((operation) => {
    const own = effects.filter(
      (e) => e.operationId === operation.id || (e.operationId === "" && e.id === operation.providerRef),
    );
    return { operation, effects: own, ...judge(operation, own, nameOf) };
  });
  const named = new Set(rows.flatMap((row) => row.effects.map((e) => e.id)));
  // A long ledger is shown in part: a refund of an operation that is not on the list is then no disagreement.
  const whole = operations.length < LISTED_MOST;
  /** @type {Row[]} */
  const elsewhere = effects
    .filter((e) => !named.has(e.id))
    .map((effect) => ({ operation: null, effects: [effect], ...unlisted(effect, whole) }));
  return [...rows, ...elsewhere];
}

/** @param {Effect} effect @param {boolean} whole @returns {{ verdict: Row["verdict"], why: string }} */
function unlisted(effect, whole) {
  if (effect.operationId === "")
    return { verdict: "elsewhere", why: "Made at the provider, by no operation of ours." };
  if (!whole) return { verdict: "elsewhere", why: "Of an older operation that is not on this list." };
  return { verdict: "disagree", why: "It names an operation that our ledger does not list." };
}

/**
 * @param {Operation} operation @param {Effect[]} effects @param {(id: string) => string} nameOf
 * @returns {{ verdict: Row["verdict"], why: string }}
 */
function judge(operation, effects, nameOf) {
  if (operation.kind !== "refund") return { verdict: "agree", why: "Moves no money at the provider." };
  const money = effects.filter(isMoney);
  const { status } = operation;
  if (money.length > 1)
    return { verdict: "disagree", why: `The provider made ${money.length} refunds for this one operation.` };
  const [only] = money;
  if (only !== undefined && status === "REJECTED" && only.id === operation.madeInstead)
    return { verdict: "settled", why: settledWords(operation, only, nameOf) };
  if (only !== undefined && (only.amount !== operation.amount || only.currency !== operation.currency)) {
    return { verdict: "disagree", why: "Amount or currency differ." };
  }
  if (OPEN.has(status))
    return {
      verdict: "open",
      why:
        only === undefined
          ? "Not known yet; the provider has nothing at the moment."
          : "Not known yet; the provider has it.",
    };
  if (status === "CONFIRMED")
    return only === undefined
      ? { verdict: "disagree", why: "Our ledger says confirmed; the provider has no such refund." }
      : { verdict: "agree", why: "Both have it once." };
  if (only === undefined)
    return { verdict: "agree", why: NOT_SENT.has(status) ? "Not sent yet." : "Neither has it." };
  if (NO_EFFECT.has(status) || NOT_SENT.has(status) || status === "REVERSED") {
    return {
      verdict: "disagree",
      why: `The provider made the refund; our ledger says ${stateWords(status)}.`,
    };
  }
  return { verdict: "open", why: "A state that this page does not know." };
}

/**
 * @param {Operation} operation @param {Effect} made @param {(id: string) => string} nameOf
 * @returns {string}
 */
function settledWords(operation, made, nameOf) {
  const asked = money(operation.amount, operation.currency);
  const by = operation.settledBy.length === 0 ? "on-call" : operation.settledBy.map(nameOf).join(" and ");
  return `A known difference: ${money(made.amount, made.currency)} instead of ${asked}. Settled by ${by}; what was made counts as refunded elsewhere.`;
}

/** @param {string} status @returns {string} as people read it */
export const stateWords = (status) => status.replaceAll("_", " ").toLowerCase();

/** @param {number | null} amount minor units @param {string} currency */
export function money(amount, currency) {
  if (amount === null || currency === "") return "";
  try {
    const format = new Intl.NumberFormat("en-GB", {
      style: "currency",
      currency,
      currencyDisplay: "narrowSymbol",
    });
    const digits = format.resolvedOptions().maximumFractionDigits ?? 2;
    const shown = format.format(amount / 10 ** digits);
    // A currency without a sign of its own is written with its code, which stands behind already.
    return `${shown.replace(currency, "").trim()} ${currency}`;
  } catch {
    return `${amount} ${currency} (minor units)`;
  }
}
