/** What a ticket's words ask for, by simple rules. Pure; knows nothing of the shop. */
import { currencyExponent, isCurrency } from "../../domain/money.js";
import { findReferences, plainSpelling } from "../../domain/text/references.js";

export interface NamedAmount {
  /** As written: "180.00", "1250". */
  digits: string;
  /** ISO codes that the sign or word may mean; empty: any. */
  currencies: readonly string[];
}

export interface Wishes {
  complaint: boolean;
  refund: boolean;
  cancelOrder: boolean;
  cancelSubscription: boolean;
  atPeriodEnd: boolean;
  whereIsIt: boolean;
  chargedTwice: boolean;
  /** "in full", "everything", "all of it" */
  everything: boolean;
  /** "£20.00 each" */
  each: boolean;
  /** Set where amounts cannot be told apart by order. */
  unclearAmounts: boolean;
  /** Distinct amounts of money in the text. */
  amounts: readonly NamedAmount[];
  /** Words that look like references, in capitals. */
  references: readonly string[];
  emails: readonly string[];
  text: string;
}

const COMPLAINT =
  /\b(formal(?:ly)? complain\w*|formal complaint|official complaint|lawyer|solicitor|legal action|ombudsman|sue|court|injur\w+|press enquiry|journalist)\b/i;
const REFUND =
  /\b(refund\w*|reimburse\w*|money back|cash back|(?:pay|give|send) (?:it |that |them )?back)\b/i;
const AMOUNT_BACK =
  /(?:[£$€¥]\s?\d[\d.,]*|\d[\d.,]*\s?(?:GBP|USD|EUR|JPY|pounds?|dollars?|euros?|yen))\s+back\b/i;
const NO_REFUND =
  /\b(?:no|not|don'?t|doesn'?t|does not|do not|without)\b(?:\s+\w+){0,3}\s+(?:a\s+|any\s+)?(?:refund\w*|money back)\b/i;
/** "wants all of ORD-1002 back", but not "wants a call back". */
const WANTS_BACK =
  /\b(?:wants?|would like|asks? for)\b(?:(?!\b(?:calls?|called|ring|phoned?|writes?|hears?|comes?|goes|go)\b).){0,60}?\bback\b/i;
/** A wish, not what has happened already: "was cancelled" asks for nothing. */
const CANCEL =
  /(?<!\b(?:was|were|is|are|been|already|got|gets|being) )\b(cancel\w*|call(?:ed)? off|stop the order)\b/i;
const SUBSCRIPTION = /\b(subscription|membership|SUB-\w+)\b/i;
const PERIOD_END =
  /\bend of (?:the |its |this |their )?(?:paid |billing |current )?(?:period|month|year|term)\b|\bruns? out\b/i;
const WHERE =
  /\b(where(?:'s| is| are)?\b.{0,60}\b(?:parcel|package|order|delivery|it|shipment|[a-z]{1,12}-?\d[\w-]*)|track(?:ing)?|has(?:n'?t| not) arrived|not (?:yet )?arrived|when will .{0,40}(?:arrive|come|be delivered)|shipping status|delivery status|still waiting for)\b/i;
const TWICE = /\b(charged twice|double charge\w*|duplicate charge\w*|billed twice|paid twice|two charges)\b/i;
const EVERYTHING =
  /\b(in full|full (?:refund|amount)|fully|everything|all of (?:it|them|ORD\S*|[A-Z]+-\S+)|the (?:whole|entire) (?:order|amount|sum)|whatever is left|all that is left|the rest)\b/i;

const SIGNS: Readonly<Record<string, readonly string[]>> = {
  "£": ["GBP"],
  $: ["USD", "CAD", "AUD", "NZD", "SGD", "HKD"],
  "€": ["EUR"],
  "¥": ["JPY", "CNY"],
};
const WORDS: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^pounds?$/i, ["GBP"]],
  [/^(?:us )?dollars?$/i, SIGNS["$"] ?? []],
  [/^euros?$/i, ["EUR"]],
  [/^yen$/i, ["JPY"]],
];
const NUMBER = String.raw`\d{1,3}(?:,\d{3})+(?:\.\d{1,3})?|\d{1,9}(?:\.\d{1,3})?`;
const SIGNED = new RegExp(String.raw`([£$€¥])\s?(${NUMBER})(?![\d.,]*\d)`, "gu");
const CODED = new RegExp(
  String.raw`(?<![\w.,-])(${NUMBER})\s?([A-Z]{3}|pounds?|(?:US )?dollars?|euros?|yen)\b`,
  "gu",
);
const CODE_FIRST = new RegExp(String.raw`\b([A-Z]{3})\s?(${NUMBER})(?![\d.,]*\d)`, "gu");

/** A reference without a digit, where its beginning says that it is one. */
const NAMED = /\b(?:ORD|ORDER|SUB)-[A-Z0-9]{2,32}(?:-[A-Z0-9]{1,32}){0,4}\b/gu;
/** "Please refund £1,500.00" names no order REFUND-1. */
const withoutAmounts = (text: string): string =>
  [SIGNED, CODED, CODE_FIRST].reduce((rest, amount) => rest.replaceAll(amount, " ; "), text);

export function readWishes(raw: string): Wishes {
  const text = plainSpelling(raw);
  const { emails, lookalikes } = findReferences(text);
  const { candidates } = findReferences(withoutAmounts(text));
  const cancels = CANCEL.test(text);
  const aboutSubscription = SUBSCRIPTION.test(text);
  const spelled = candidates.filter((word) => /^[A-Z]{1,12}-\d[A-Z0-9-]*$/.test(word));
  const named = [...lookalikes, ...(text.match(NAMED) ?? [])];
  const references = [...new Set(named.length === 0 ? spelled : named)];
  return {
    complaint: COMPLAINT.test(text),
    refund: (REFUND.test(text) || AMOUNT_BACK.test(text) || WANTS_BACK.test(text)) && !NO_REFUND.test(text),
    cancelOrder: cancels && (!aboutSubscription || references.some((ref) => !ref.startsWith("SUB-"))),
    cancelSubscription: cancels && aboutSubscription,
    atPeriodEnd: PERIOD_END.test(text),
    whereIsIt: WHERE.test(text),
    chargedTwice: TWICE.test(text),
    everything: EVERYTHING.test(text),
    each: /\b(?:each|apiece|per order|on both|for both)\b/i.test(text),
    unclearAmounts: false,
    amounts: namedAmounts(text),
    references,
    emails,
    text,
  };
}

function namedAmounts(text: string): NamedAmount[] {
  const found = new Map<string, NamedAmount>();
  const add = (number: string, currencies: readonly string[]): void => {
    const digits = number.replaceAll(",", "");
    found.set(`${digits}:${currencies[0] ?? ""}`, { digits, currencies });
  };
  for (const [, sign = "", number = ""] of text.matchAll(SIGNED)) add(number, SIGNS[sign] ?? []);
  for (const [, number = "", word = ""] of text.matchAll(CODED)) {
    const byWord = WORDS.find(([pattern]) => pattern.test(word));
    if (byWord !== undefined) add(number, byWord[1]);
    else if (isCurrency(word)) add(number, [word]);
  }
  for (const [, code = "", number = ""] of text.matchAll(CODE_FIRST))
    if (isCurrency(code)) add(number, [code]);
  return [...found.values()];
}

/** Minor units of the order's currency, exactly; null: another currency, or more decimals than it has. */
export function inMinorUnits(amount: NamedAmount, currency: string): number | null {
  if (amount.currencies.length > 0 && !amount.currencies.includes(currency)) return null;
  const exponent = currencyExponent(currency);
  const [whole = "0", fraction = ""] = amount.digits.split(".");
  const extra = fraction.slice(exponent);
  if (/[1-9]/.test(extra)) return null;
  const minor = Number(`${whole}${fraction.slice(0, exponent).padEnd(exponent, "0")}`);
  return Number.isSafeInteger(minor) ? minor : null;
}
