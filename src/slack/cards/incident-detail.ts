/** The facts of an incident as label and value: money with its currency, lists as people read them. Pure. */
import { z } from "zod";
import type { JsonObject } from "../../domain/json.js";
import { formatMoney, isCurrency } from "../../domain/money.js";

/** Keys whose values are minor units. */
const MONEY = new Set([
  "amount",
  "before",
  "captured",
  "capturedBefore",
  "refunded",
  "refundedElsewhere",
  "reserved",
]);

/** What a key is called where its own words do not say it. */
const LABELS: Readonly<Record<string, string>> = {
  before: "Refunded elsewhere before",
  detail: "Details",
  effect: "Provider reference",
  effects: "Provider shows",
  kind: "Frozen",
  known: "Confirmed by",
  names: "Carries the id",
  operationStatus: "Operation is",
  paidIn: "Paid in",
  providerRef: "Provider reference",
  ref: "Provider reference",
  reserved: "Set aside",
  says: "Provider says",
  second: "Second effect",
  shownIn: "Provider shows",
  was: "It was",
};

/** The order in which they are read: what was found, then what was meant, then the balance. What is not named here comes between. */
const FIRST = [
  "effect",
  "ref",
  "providerRef",
  "known",
  "second",
  "effects",
  "payment",
  "asked",
  "made",
  "amount",
];
const LAST = ["capturedBefore", "captured", "reserved", "refunded", "before", "refundedElsewhere"];

const Effect = z.object({
  ref: z.string(),
  amountMinor: z.number().int(),
  currency: z.string(),
  status: z.string(),
});

/** `currency`: of the payment that it is about, for findings that name none of their own. */
export function incidentDetail(
  detail: JsonObject,
  currency: string | null,
): [label: string, value: string][] {
  const own = detail["currency"];
  const known = typeof own === "string" ? own : currency;
  const hasMoney = Object.keys(detail).some((key) => MONEY.has(key));
  return Object.entries(detail)
    .filter(([key, value]) => value !== null && value !== "" && !(key === "currency" && hasMoney))
    .filter(([key, value]) => !(key === "detail" && value === detail["code"]))
    .sort(([one], [other]) => placeOf(one) - placeOf(other))
    .map(([key, value]) => [LABELS[key] ?? words(key), valueText(key, value, known)]);
}

/** Rows come out of the database in an order of its own. */
function placeOf(key: string): number {
  const first = FIRST.indexOf(key);
  return first < 0 ? FIRST.length + 1 + LAST.indexOf(key) : first;
}

function valueText(key: string, value: JsonObject[string], currency: string | null): string {
  if (typeof value === "number" && MONEY.has(key)) return amountText(value, currency);
  if (Array.isArray(value)) return value.map((member) => memberText(member)).join("; ");
  if (key === "kind")
    return value === "all" ? "everything" : `${String(value).replaceAll("_", " ")} operations`;
  return typeof value === "string" ? value : JSON.stringify(value);
}

function memberText(member: JsonObject[string]): string {
  if (typeof member === "string") return member;
  const effect = Effect.safeParse(member);
  if (!effect.success) return JSON.stringify(member);
  const { ref, amountMinor, currency, status } = effect.data;
  return `${ref} of ${amountText(amountMinor, currency)} (${status})`;
}

const amountText = (amountMinor: number, currency: string | null): string =>
  currency !== null && isCurrency(currency)
    ? formatMoney({ amountMinor: BigInt(amountMinor), currency })
    : `${amountMinor} minor units`;

/** "amountMinor" and "amount_minor" as a label. */
function words(key: string): string {
  const spaced = key
    .replace(/_/gu, " ")
    .replace(/([a-z])([A-Z])/gu, (_all, a: string, b: string) => `${a} ${b.toLowerCase()}`);
  return `${spaced.charAt(0).toUpperCase()}${spaced.slice(1)}`;
}
