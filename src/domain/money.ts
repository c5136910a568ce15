/**
 * Money: a whole number of minor units and an ISO 4217 code.
 *
 * Invariants
 * 1. An amount is a non-negative `bigint` of minor units, at most `MAX_AMOUNT_MINOR`, so that every amount can be
 *    written as an exact JSON integer. No function here touches a floating point number on the way.
 * 2. Two amounts meet only in the same currency; everything else throws `MoneyError`.
 * 3. What arrives from outside is accepted as an integer or refused, never rounded and never multiplied.
 */
import { CountersignError } from "./errors.js";

/** An exact amount. `amountMinor` counts minor units (pence, cents, whole yen, fils); `currency` is upper-case ISO 4217. */
export interface Money {
  readonly amountMinor: bigint;
  readonly currency: string;
}

/** Largest amount we hold: the largest integer that JSON readers agree on (2^53 − 1 minor units). */
export const MAX_AMOUNT_MINOR = BigInt(Number.MAX_SAFE_INTEGER);

export type MoneyProblem =
  | "bad_currency"
  | "negative"
  | "too_large"
  | "currency_mismatch"
  | "below_zero"
  | "not_an_integer";

/** Programming error or unreadable input around money; repeating the same call never helps. */
export class MoneyError extends CountersignError {
  declare readonly code: MoneyProblem;

  constructor(code: MoneyProblem, message: string) {
    super(code, message);
    this.name = "MoneyError";
  }
}

/**
 * Minor unit digits where the ICU data behind `Intl` says something else than the payment provider's wire
 * (docs.stripe.com/currencies): ICU follows everyday cash use where the wire counts ISO 4217 minor units, and ISK and
 * UGX have no minor unit any more but are still sent in hundredths. Without this table a card would show an amount a
 * hundred times too large. Pinning the difference also keeps a newer ICU from changing what a stored amount means.
 */
const WIRE_DIGITS_WHERE_ICU_DIFFERS: Readonly<Record<string, number>> = {
  AFN: 2,
  ALL: 2,
  COP: 2,
  HUF: 2,
  IDR: 2,
  IQD: 3,
  IRR: 2,
  ISK: 2,
  KPW: 2,
  LAK: 2,
  LBP: 2,
  MMK: 2,
  PKR: 2,
  SLL: 2,
  SOS: 2,
  SYP: 2,
  UGX: 2,
  YER: 2,
};

interface CurrencyFacts {
  readonly exponent: number;
  /** Empty where the symbol is only letters: then the code says everything. */
  readonly symbol: string;
}

const KNOWN_CURRENCIES: ReadonlySet<string> = new Set(Intl.supportedValuesOf("currency"));
const factsByCurrency = new Map<string, CurrencyFacts>();

function currencyFacts(currency: string): CurrencyFacts {
  const known = factsByCurrency.get(currency);
  if (known !== undefined) return known;
  if (!KNOWN_CURRENCIES.has(currency)) {
    throw new MoneyError(
      "bad_currency",
      `"${currency}" is not a currency code (three capital letters, ISO 4217).`,
    );
  }
  const format = new Intl.NumberFormat("en", {
    style: "currency",
    currency,
    currencyDisplay: "narrowSymbol",
  });
  const symbol = format.formatToParts(0).find((part) => part.type === "currency")?.value ?? "";
  const exponent =
    WIRE_DIGITS_WHERE_ICU_DIFFERS[currency] ?? format.resolvedOptions().maximumFractionDigits ?? 2;
  const facts = { exponent, symbol: /[\p{L}.]$/u.test(symbol) ? "" : symbol };
  factsByCurrency.set(currency, facts);
  return facts;
}

/** True for an upper-case ISO 4217 code that this machine knows. */
export function isCurrency(code: string): boolean {
  return KNOWN_CURRENCIES.has(code);
}

/** Digits after the decimal point: JPY 0, GBP 2, KWD 3. Throws `MoneyError('bad_currency')`. */
export function currencyExponent(currency: string): number {
  return currencyFacts(currency).exponent;
}

/** Builds an amount. Throws `MoneyError` for an unknown currency, a negative amount, or one above `MAX_AMOUNT_MINOR`. */
export function money(amountMinor: bigint, currency: string): Money {
  currencyFacts(currency);
  if (amountMinor < 0n) throw new MoneyError("negative", "An amount of money cannot be negative.");
  if (amountMinor > MAX_AMOUNT_MINOR) throw new MoneyError("too_large", "The amount is too large.");
  return { amountMinor, currency };
}

function requireSameCurrency(a: Money, b: Money): void {
  if (a.currency !== b.currency) {
    throw new MoneyError("currency_mismatch", `${a.currency} and ${b.currency} cannot be combined.`);
  }
}

/** Sum of two amounts of one currency. */
export function addMoney(a: Money, b: Money): Money {
  requireSameCurrency(a, b);
  return money(a.amountMinor + b.amountMinor, a.currency);
}

/** Difference of two amounts of one currency; throws `MoneyError('below_zero')` rather than going negative. */
export function subtractMoney(a: Money, b: Money): Money {
  requireSameCurrency(a, b);
  if (b.amountMinor > a.amountMinor) {
    throw new MoneyError("below_zero", `${formatMoney(b)} is more than ${formatMoney(a)}.`);
  }
  return money(a.amountMinor - b.amountMinor, a.currency);
}

/** −1, 0 or 1 as `a` is less than, equal to or more than `b`; one currency only. */
export function compareMoney(a: Money, b: Money): -1 | 0 | 1 {
  requireSameCurrency(a, b);
  if (a.amountMinor === b.amountMinor) return 0;
  return a.amountMinor < b.amountMinor ? -1 : 1;
}

/** True when currency and amount are equal. Unlike `compareMoney` it answers for two currencies too: false. */
export function sameMoney(a: Money, b: Money): boolean {
  return a.currency === b.currency && a.amountMinor === b.amountMinor;
}

/** The number alone in major units with its exact decimals and no grouping: "180.00", "9899", "1.234". */
export function formatMajorUnits(amount: Money): string {
  const exponent = currencyExponent(amount.currency);
  const digits = amount.amountMinor.toString().padStart(exponent + 1, "0");
  if (exponent === 0) return digits;
  return `${digits.slice(0, -exponent)}.${digits.slice(-exponent)}`;
}

/**
 * What people read: symbol where there is one, grouped exact number, code. "£180.00 GBP", "¥9,899 JPY", "1.234 KWD".
 * The code is always there, because ¥, $ and kr belong to several currencies.
 */
export function formatMoney(amount: Money): string {
  const [whole = "0", fraction] = formatMajorUnits(amount).split(".");
  const grouped = whole.replace(/\B(?=(?:\d{3})+$)/g, ",");
  const exact = fraction === undefined ? grouped : `${grouped}.${fraction}`;
  return `${currencyFacts(amount.currency).symbol}${exact} ${amount.currency}`;
}

/** Minor units as a JSON integer. Throws `MoneyError('too_large')` instead of losing a digit. */
export function amountToJson(amountMinor: bigint): number {
  if (amountMinor > MAX_AMOUNT_MINOR || amountMinor < -MAX_AMOUNT_MINOR) {
    throw new MoneyError("too_large", "The amount is too large for a JSON integer.");
  }
  return Number(amountMinor);
}

export interface MoneyJson {
  readonly amount: number;
  readonly currency: string;
}

/** `{ amount, currency }` with the amount as an integer of minor units. */
export function moneyToJson(amount: Money): MoneyJson {
  return { amount: amountToJson(amount.amountMinor), currency: amount.currency };
}

export type ParsedAmount =
  | { readonly ok: true; readonly amountMinor: bigint }
  | { readonly ok: false; readonly problem: MoneyProblem; readonly sentence: string };

/**
 * Reads an integer of minor units out of parsed JSON. Strings (also "100" and "1e3"), decimals, negative and unsafe
 * numbers are refused with a sentence that says what to send instead; nothing is rounded (S-PAY-8).
 *
 * JSON's `1e3` and `1000` are one number after parsing; `parseAmountText` tells them apart where the text is at hand.
 */
export function parseAmountMinor(value: unknown): ParsedAmount {
  if (typeof value === "bigint") return boundedAmount(value);
  if (typeof value !== "number" || !Number.isInteger(value)) {
    return refusedAmount(
      "not_an_integer",
      "The amount must be a whole number of minor units (for example 14505 for 145.05), not a decimal and not text.",
    );
  }
  if (!Number.isSafeInteger(value)) return refusedAmount("too_large", "The amount is too large.");
  return boundedAmount(BigInt(value));
}

/** Reads digits only: "14505". Signs, spaces, separators, decimals and exponents are refused. */
export function parseAmountText(text: string): ParsedAmount {
  if (!/^\d{1,16}$/.test(text)) {
    return refusedAmount("not_an_integer", "The amount must be a whole number of minor units, digits only.");
  }
  return boundedAmount(BigInt(text));
}

function boundedAmount(amountMinor: bigint): ParsedAmount {
  if (amountMinor < 0n) return refusedAmount("negative", "The amount cannot be negative.");
  if (amountMinor > MAX_AMOUNT_MINOR) return refusedAmount("too_large", "The amount is too large.");
  return { ok: true, amountMinor };
}

function refusedAmount(problem: MoneyProblem, sentence: string): ParsedAmount {
  return { ok: false, problem, sentence };
}

/**
 * True when a person typed exactly this amount in major units: for `£1,250.00` also "1250", "1,250.00", "£1250.00 GBP".
 * Used where an approver repeats the amount; anything ambiguous is false.
 */
export function repeatsAmount(typed: string, amount: Money): boolean {
  const { symbol } = currencyFacts(amount.currency);
  let text = typed.normalize("NFKC").replace(/\s+/gu, "");
  if (text.toUpperCase().endsWith(amount.currency)) text = text.slice(0, -amount.currency.length);
  else if (text.toUpperCase().startsWith(amount.currency)) text = text.slice(amount.currency.length);
  const plainSymbol = symbol.normalize("NFKC");
  if (plainSymbol !== "" && text.startsWith(plainSymbol)) text = text.slice(plainSymbol.length);
  if (!/^(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?$/.test(text)) return false;
  const exact = formatMajorUnits(amount);
  const plain = text.replaceAll(",", "");
  return (
    plain === exact ||
    (!plain.includes(".") && exact === `${plain}.${"0".repeat(currencyExponent(amount.currency))}`)
  );
}
