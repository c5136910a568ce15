/** Stored JSON as a person reads it: labels in words, money with its currency, times with their zone; nothing for what is empty. */

import type { Json, JsonObject } from "../../domain/json.js";
import { formatMoney, isCurrency } from "../../domain/money.js";
import { capital } from "../../domain/text/capital.js";
import { utcTime } from "../../domain/text/utc-time.js";
import { oneLine } from "./safe.js";

export interface ReadableOptions {
  /** Of amounts whose own currency is not named beside them. */
  readonly currency: string | null;
  /** Keys of the outermost object that are told elsewhere. */
  readonly without?: readonly string[];
}

/** One line a fact, nested facts below it; text is literal and has to be escaped. Empty: there is nothing to tell. */
export function readableLines(value: Json, options: ReadableOptions): string[] {
  const currency = currencyIn(value) ?? options.currency;
  return linesOf(value, { currency, without: new Set(options.without ?? []) }, "");
}

interface Context {
  readonly currency: string | null;
  readonly without: ReadonlySet<string>;
}

const DEPTH_MARK = "  ";

function linesOf(value: Json, context: Context, indent: string): string[] {
  if (isEmpty(value)) return [];
  if (Array.isArray(value)) return value.flatMap((item) => itemLines(item, context, indent));
  if (typeof value !== "object" || value === null) return [`${indent}${scalar(value)}`];
  return Object.entries(value)
    .filter(([key, inner]) => !context.without.has(key) && !isEmpty(inner) && !toldBeside(key, value))
    .flatMap(([key, inner]) => entryLines(key, inner, { ...context, without: new Set() }, indent));
}

function entryLines(key: string, inner: Json, context: Context, indent: string): string[] {
  const label = `${indent}${labelOf(key)}`;
  if (!isNested(inner)) return [`${label}: ${amountOrScalar(key, inner, context)}`];
  if (Array.isArray(inner) && inner.every((item) => !isNested(item))) {
    return [`${label}: ${inner.map((item) => scalar(item)).join(", ")}`];
  }
  return [`${label}:`, ...linesOf(inner, context, `${indent}${DEPTH_MARK}`)];
}

/** An item of a list: its facts on one line where they are flat. */
function itemLines(item: Json, context: Context, indent: string): string[] {
  if (!isNested(item)) return [`${indent}• ${scalar(item)}`];
  const [first, ...rest] = linesOf(item, context, "");
  if (first === undefined) return [];
  const flat = [first, ...rest].every((line) => !line.startsWith(DEPTH_MARK) && !line.endsWith(":"));
  return flat
    ? [`${indent}• ${[first, ...rest].join("; ")}`]
    : [`${indent}• ${first}`, ...rest.map((line) => `${indent}${DEPTH_MARK}${line}`)];
}

/** `amountMinor` as `amount_minor`. */
const snake = (key: string): string => key.replace(/([a-z0-9])([A-Z])/gu, "$1_$2").toLowerCase();

const isNested = (value: Json): value is JsonObject | Json[] => typeof value === "object" && value !== null;

function isEmpty(value: Json): boolean {
  if (value === null || value === "") return true;
  if (Array.isArray(value)) return value.every(isEmpty);
  return typeof value === "object" && Object.values(value).every(isEmpty);
}

/** `total_minor` beside `total`, which is the same with its currency. */
function toldBeside(key: string, all: JsonObject): boolean {
  return key.endsWith("_minor") && typeof all[key.slice(0, -"_minor".length)] === "string";
}

function amountOrScalar(key: string, value: Json, { currency }: Context): string {
  const isAmount =
    snake(key).endsWith("_minor") && typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
  if (!isAmount) return scalar(value);
  return currency === null
    ? `${value} (in the smallest unit)`
    : formatMoney({ amountMinor: BigInt(value), currency });
}

const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z$/u;
/** A word of a list of words: `everything_left`. */
const CODE = /^[a-z]+(?:_[a-z]+)+$/u;

function scalar(value: Json): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "string") return JSON.stringify(value);
  const at = INSTANT.test(value) ? new Date(value) : null;
  if (at !== null && !Number.isNaN(at.getTime())) return utcTime(at);
  return CODE.test(value) ? value.replaceAll("_", " ") : oneLine(value);
}

/** "order_reference" and "orderReference" → "Order reference"; the unit is told by the value. */
function labelOf(key: string): string {
  const words = oneLine(
    snake(key)
      .replace(/_minor$/u, "")
      .replaceAll("_", " "),
  );
  return capital(words);
}

/** The currency that the value names somewhere in itself. */
function currencyIn(value: Json): string | null {
  if (!isNested(value)) return null;
  if (!Array.isArray(value)) {
    const named = value["currency"];
    if (typeof named === "string" && isCurrency(named)) return named;
  }
  for (const inner of Array.isArray(value) ? value : Object.values(value)) {
    const found = currencyIn(inner);
    if (found !== null) return found;
  }
  return null;
}
