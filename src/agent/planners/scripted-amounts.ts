/**
 * Amounts of money in a ticket's words. Pure; knows nothing of the shop.
 *
 * 1. Every number in the text is read as something: part of a reference, an amount with its currency, a date, time, duration, phone or post
 *    code, or else a doubt: something that may be an amount and cannot be read as one.
 * 2. Whoever asks for a refund while there is a doubt must be asked: without this, "Refund ORD-1 5" would be everything left.
 */
import { currencyExponent, isCurrency } from "../../domain/money.js";
import { type Doubt, notAskedFor, wordDoubts } from "./scripted-doubts.js";

export interface NamedAmount {
  /** As written: "180.00", "1250". */
  digits: string;
  /** ISO codes that the sign or word may mean; empty: any. */
  currencies: readonly string[];
}

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
const NUMBER = String.raw`\d{1,3}(?:,\d{3})+(?:\.\d{1,12})?|\d{1,9}(?:\.\d{1,12})?`;
const SIGNED = new RegExp(String.raw`([£$€¥])\s?(${NUMBER})(?![\d.,]*\d)`, "gu");
const CODED = new RegExp(
  String.raw`(?<![\w.,-])(${NUMBER})\s?([A-Z]{3}|pounds?|(?:US )?dollars?|euros?|yen)\b`,
  "gu",
);
const CODE_FIRST = new RegExp(String.raw`\b([A-Z]{3})\s?(${NUMBER})(?![\d.,]*\d)`, "gu");

/** The text without its amounts: "Please refund £1,500.00" names no order REFUND-1. */
export const withoutAmounts = (text: string): string =>
  [SIGNED, CODED, CODE_FIRST].reduce((rest, amount) => rest.replaceAll(amount, " ; "), text);

/** Stands for what is read already; as long as that, so that places stay. */
const READ = "·";
const blank = (found: string): string => READ.repeat(found.length);

/** Amounts in the order of the text, each once, and every number that is neither one nor clearly something else. */
export function readAmounts(
  raw: string,
  references: readonly string[],
): { amounts: NamedAmount[]; doubts: Doubt[] } {
  const text = withoutReferences(raw.replaceAll(READ, " "), references);
  const spans = amountSpans(text);
  const doubts = spans.flatMap((span) => doubtOf(text, span, spans));
  const amounts = new Map(
    spans.map(({ digits, currencies }) => [`${digits}:${currencies[0] ?? ""}`, { digits, currencies }]),
  );
  const rest = OTHER_NUMBERS.reduce(
    (left, other) => left.replaceAll(other, blank),
    withoutSpans(text, spans),
  );
  return {
    amounts: [...amounts.values()],
    doubts: [...doubts, ...strayNumbers(rest), ...wordDoubts(rest, amounts.size)],
  };
}

/** "ORD-1001", and "ORD 1001" where that is how a reference was spelled. */
function withoutReferences(text: string, references: readonly string[]): string {
  const known = new Set(references);
  return text
    .replace(/[\p{L}\p{N}]+(?:[_-]+[\p{L}\p{N}]+)*/gu, (word) => {
      const upper = word.toUpperCase();
      const glued = upper.replace(/^(\p{L}{1,12})(?=\p{N})/u, "$1-");
      return known.has(upper) || known.has(glued) ? blank(word) : word;
    })
    .replace(/(?<![\p{L}\p{N}-])(\p{L}{1,12})\s+#?(\p{N}[\p{L}\p{N}-]*)/gu, (pair, word, number) =>
      known.has(`${word}-${number}`.toUpperCase()) ? blank(pair) : pair,
    );
}

interface Span extends NamedAmount {
  at: number;
  end: number;
}

function amountSpans(text: string): Span[] {
  const spans: Span[] = [];
  const add = (match: RegExpMatchArray, number: string, currencies: readonly string[]): void => {
    const at = match.index ?? 0;
    spans.push({ at, end: at + match[0].length, digits: number.replaceAll(",", ""), currencies });
  };
  for (const match of text.matchAll(SIGNED)) add(match, match[2] ?? "", SIGNS[match[1] ?? ""] ?? []);
  for (const match of text.matchAll(CODED)) {
    const word = match[2] ?? "";
    const byWord = WORDS.find(([pattern]) => pattern.test(word));
    if (byWord !== undefined) add(match, match[1] ?? "", byWord[1]);
    else if (isCurrency(word)) add(match, match[1] ?? "", [word]);
  }
  for (const match of text.matchAll(CODE_FIRST))
    if (isCurrency(match[1] ?? "")) add(match, match[2] ?? "", [match[1] ?? ""]);
  return spans.sort((a, b) => a.at - b.at);
}

const MINUS = /(?:-|(?:\p{Sc}|GBP|USD|EUR|JPY)\s?-\s{0,3}|\b(?:minus|negative|less)\s{0,3})$/iu;
const wordsBefore = (text: string, at: number): string => text.slice(Math.max(0, at - 12), at);

/** "-£5.00" is none of £5.00, and "£5k" is not £5. */
function doubtOf(text: string, span: Span, spans: readonly Span[]): Doubt[] {
  const minus = MINUS.exec(wordsBefore(text, span.at))?.[0] ?? "";
  const written = minus + text.slice(span.at, span.end);
  if (minus !== "") return [{ text: written, kind: "negative" }];
  const other = notAskedFor(text.slice(Math.max(0, span.at - 40), span.at));
  if (other !== null) return [{ text: other + written, kind: "no_wish" }];
  const behind = text.slice(span.end, span.end + 12);
  const glued =
    /^(?:[\p{L}\p{N}%]{1,12}|\s(?:k|m|mn|bn|hundred|thousand|million|grand)\b)/iu.exec(behind)?.[0] ?? "";
  if (glued === "") return [];
  const longer = spans.some((other) => other.at < span.end && other.end > span.end);
  return longer ? [] : [{ text: written + glued, kind: "unreadable" }];
}

function withoutSpans(text: string, spans: readonly Span[]): string {
  const letters = text.split("");
  for (const { at, end } of spans) letters.fill(READ, at, end);
  return letters.join("");
}

const MONTH =
  "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)";
const YEAR = String.raw`(?:,?\s(?:19|20)\d\d)?`;
const DAY = String.raw`(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?`;
/** Not behind a sign, a letter or another part of a number, nor before one. */
const alone = (pattern: string, flags = "giu"): RegExp =>
  new RegExp(
    String.raw`(?<![\p{Sc}\p{L}\p{N}.,:/+-]|\p{Sc}\s)(?:${pattern})(?![\p{L}\p{N}%]|[.,:/-]\p{N})`,
    flags,
  );

/** Numbers that are clearly no amount. What is not certain does not belong here. */
const OTHER_NUMBERS: readonly RegExp[] = [
  // Dates and times: 2026-05-03T14:30:00Z, 3/5/2026, 3 May 2026, 3rd of May, May 3rd, the 3rd, 14:30, 2 pm, 24/7.
  alone(String.raw`(?:19|20)\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?`),
  alone(String.raw`\d{1,2}([./-])\d{1,2}\1(?:19|20)\d\d`),
  alone(String.raw`${DAY}(?:\sof)?[\s-]${MONTH}${YEAR}`),
  alone(String.raw`${MONTH}\s${DAY}${YEAR}`, "gu"),
  alone(String.raw`\d{1,2}(?:st|nd|rd|th)`),
  alone(String.raw`(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?:\s?[ap]\.?m)?`),
  alone(String.raw`(?:0?[1-9]|1[0-2])\s?[ap]\.?m`),
  alone("24/7"),
  // Durations: 30 days, a 30-day window, 3-5 working days, 2 weeks ago.
  alone(
    String.raw`\d{1,4}(?:\s?-\s?\d{1,4}|\sto\s\d{1,4})?[\s-]?(?:(?:working|business|calendar)\s)?(?:minute|min|hour|hr|day|week|month|year)s?`,
  ),
  // Phone numbers, post codes, long codes of carriers, the end of a card number.
  /(?<![\p{Sc}\p{L}\p{N}.,:/+-]|\p{Sc}\s)(?:\+[1-9]|0[1-9])(?:[\s().-]{0,2}\d){8,13}(?![\p{L}\p{N}%]|[.,:/-]\p{N})/gu,
  alone(String.raw`[A-Z]{1,2}\d[A-Z\d]?\s?\d[A-Z]{2}`, "gu"),
  alone(String.raw`(?:zip|post)(?:\s?code)?:?\s\d{4,5}`),
  /(?<![\p{L}\p{N}-])(?=[A-Z]{2})(?!(?:GBP|USD|EUR|JPY)\d)[A-Z]{2,4}\d{8,20}[A-Z]{0,2}(?![\p{L}\p{N}.,%-])/gu,
  alone(String.raw`(?:ends|ending)\s(?:in\s|with\s)?\d{4}`),
  // What says that it is a number of something: "order number 10050", "ticket no. 7".
  alone(
    String.raw`(?:order|ticket|customer|case|invoice|account|tracking|parcel)\s(?:number|no\.?|id)\s?[:#]?\s?\d{1,20}`,
  ),
];

/** Numbers and currency signs that nothing has read. */
function strayNumbers(rest: string): Doubt[] {
  const found: Doubt[] = [];
  for (const match of rest.matchAll(/(?:\p{Sc}\s?(?:[-+]\s?)?)?[^\s·]+/gu)) {
    const chunk = match[0].replace(/^["'([{<]+|["')\]}>.,;:!?]+$/gu, "");
    if (!/[\p{N}\p{Sc}]/u.test(chunk) || /^[^@]+@[^@]+\.\p{L}|^@\p{L}|:\/\//u.test(chunk)) continue;
    const at = match.index;
    const before = /\b([A-Z]{3})\s?$/.exec(wordsBefore(rest, at))?.[1] ?? "";
    const end = at + match[0].length;
    const after = /^\s?([A-Z]{3}|pounds?|dollars?|euros?|yen)\b/.exec(rest.slice(end, end + 10))?.[1] ?? "";
    const [code = "", word = ""] = [before, after].map((name) =>
      isCurrency(name) || WORDS.some(([pattern]) => pattern.test(name)) ? name : "",
    );
    const text = [code, chunk, word].filter((part) => part !== "").join(" ");
    const negative = /^(?:\p{Sc}\s?)?-/u.test(chunk) || MINUS.test(wordsBefore(rest, at));
    const named = code !== "" || word !== "" || /\p{Sc}/u.test(chunk);
    found.push({
      text: text.slice(0, 40),
      kind: negative ? "negative" : named ? "unreadable" : "no_currency",
    });
  }
  return found;
}

export type Minor =
  | { ok: true; minor: number }
  | { ok: false; problem: "other_currency" | "too_many_decimals" | "too_large" };

/** Minor units of the order's currency, exactly, or why there are none. */
export function inMinorUnits(amount: NamedAmount, currency: string): Minor {
  if (amount.currencies.length > 0 && !amount.currencies.includes(currency))
    return { ok: false, problem: "other_currency" };
  const exponent = currencyExponent(currency);
  const [whole = "0", fraction = ""] = amount.digits.split(".");
  if (/[1-9]/.test(fraction.slice(exponent))) return { ok: false, problem: "too_many_decimals" };
  const minor = Number(`${whole}${fraction.slice(0, exponent).padEnd(exponent, "0")}`);
  return Number.isSafeInteger(minor) ? { ok: true, minor } : { ok: false, problem: "too_large" };
}
