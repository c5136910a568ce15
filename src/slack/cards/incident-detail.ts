/** The facts of an incident as label and value: money with its currency, lists as people read them, each said once. Pure. */

import { z } from "zod";
import { assertNever } from "../../domain/assert-never.js";
import type { JsonObject } from "../../domain/json.js";
import { formatMoney, isCurrency } from "../../domain/money.js";
import { stateWords } from "../../domain/operation.js";
import { capital } from "../../domain/text/capital.js";
import { type IncidentKind, LEFT_THEN, POLICY_LABEL } from "./incident-card.js";

/** Keys whose values are minor units. */
const MONEY = new Set([
  "amount",
  "before",
  "captured",
  "capturedBefore",
  "left",
  "refunded",
  "refundedElsewhere",
  "reserved",
  "tooMuch",
]);

/** Keys whose values are states of operations, as the database spells them. */
const STATES = new Set(["operationStatus", "status", "was"]);

/** What a key is called where its own words do not say it. */
const LABELS: Readonly<Record<string, string>> = {
  amounts: "Provider shows",
  askedBy: "Asked for on another payment by",
  askedOn: "Asked for on payment",
  before: "Refunded elsewhere before",
  captured: "Paid",
  capturedBefore: "Paid before the import",
  code: "Provider's reason",
  detail: "Details",
  effect: "Provider reference",
  effects: "Provider shows",
  kind: "Frozen",
  known: "Known effect",
  left: LEFT_THEN,
  names: "Carries the id",
  operationStatus: "It was then",
  policy: POLICY_LABEL,
  providerRef: "Provider reference",
  ref: "Provider reference",
  reserved: "Set aside",
  says: "Provider says",
  second: "Second effect",
  status: "It was then",
  target: "Look it up by",
  tooMuch: "Too much by",
  was: "It was",
};

/** The order in which they are read: what was found, then what was meant, then the balance. What is not named here comes between. */
const FIRST = [
  "effect",
  "ref",
  "providerRef",
  "known",
  "second",
  "amounts",
  "refundedElsewhere",
  "left",
  "tooMuch",
  "effects",
  "payment",
  "made",
  "amount",
];
const LAST = ["capturedBefore", "captured", "reserved", "refunded", "before"];

const Effect = z.object({
  ref: z.string(),
  amountMinor: z.number().int(),
  currency: z.string(),
  status: z.string(),
});

/** `currency`: of the payment that it is about, for findings that name none of their own. */
export function incidentDetail(
  kind: IncidentKind,
  detail: JsonObject,
  currency: string | null,
): [label: string, value: string][] {
  const own = detail["currency"];
  const known = typeof own === "string" ? own : currency;
  const told = toldOf(kind, detail);
  const hasMoney = Object.keys(told).some((key) => MONEY.has(key));
  return Object.entries(told)
    .filter(([key, value]) => value !== null && value !== "" && !(key === "currency" && hasMoney))
    .filter(([key, value]) => !(key === "detail" && value === told["code"]))
    .sort(([one], [other]) => placeOf(one) - placeOf(other))
    .map(([key, value]) => [LABELS[key] ?? words(key), valueText(key, value, known)]);
}

/** What is worth a row: the numbers that were found, and what they mean for this payment instead of how they come about. */
function toldOf(kind: IncidentKind, detail: JsonObject): JsonObject {
  const minor = (key: string): number => (typeof detail[key] === "number" ? detail[key] : 0);
  const left = minor("captured") - minor("reserved") - minor("refunded") - minor("refundedElsewhere");
  switch (kind) {
    case "refunded_elsewhere": {
      const { captured: _, reserved: _set, refunded: _done, before: _before, ...rest } = detail;
      return {
        ...rest,
        refundedElsewhere: minor("refundedElsewhere") - minor("before"),
        left: Math.max(0, left),
      };
    }
    case "overdrawn": {
      const { before: _, ...rest } = detail;
      return { ...rest, tooMuch: Math.max(0, -left) };
    }
    case "other_currency": {
      // The amounts name references and currencies.
      const { effects: _, shownIn: _shown, paidIn: _paid, ...rest } = detail;
      return rest;
    }
    case "import_below_reserved": {
      const { order: _, ...rest } = detail;
      return rest;
    }
    case "made_differently": {
      // The operation has a row of its own.
      const { asked: _, ...rest } = detail;
      return rest;
    }
    case "missing_effect":
    case "contradiction": {
      // The person's decision is told in its own words.
      const { resolution: _, ...rest } = detail;
      return rest;
    }
    case "orphan_effect":
    case "duplicate_effect":
    case "reversed":
    case "late_effect":
    case "freeze_tripped":
    case "row_changed":
      return detail;
    default:
      return assertNever(kind, "incident kind");
  }
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
  if (STATES.has(key)) return stateWords(String(value));
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
  return capital(spaced);
}
