/**
 * Which refund a ticket's words ask for on one order. Pure.
 *
 * 1. Never more than the ticket names: what may be an amount and is not certain is asked about, not guessed.
 * 2. Everything left is proposed only where the ticket names no amount.
 */

import { assertNever } from "../../domain/assert-never.js";
import type { Json } from "../../domain/json.js";
import { currencyExponent, formatMoney, money } from "../../domain/money.js";
import { cutText } from "../../domain/text/cut.js";
import { inMinorUnits, type NamedAmount } from "./scripted-amounts.js";
import type { Doubt } from "./scripted-doubts.js";
import type { SeenOrder } from "./scripted-reading.js";
import type { Wishes } from "./scripted-wishes.js";

export interface WantedCall {
  name: string;
  input: { [key: string]: Json };
}

export interface OrderAmongOthers extends SeenOrder {
  /** All orders that the ticket is taken to name, this one too. */
  others: readonly string[];
  /** Those of them that the shop does not show. */
  unknown: readonly string[];
}

type Order = SeenOrder["order"];
type Asked = { scope: string; items?: string[]; minor?: number };

export const reasonOf = (wishes: Wishes): string => `Asked for in the ticket: ${cutText(wishes.text, 200)}`;

/** The refund that the words ask for on this order, or a sentence that says why none is asked for. */
export function refundOf(wishes: Wishes, among: OrderAmongOthers): WantedCall | string {
  const asked = askedFor(wishes, among);
  return typeof asked === "string"
    ? asked
    : {
        name: "issue_refund",
        input: {
          order_reference: among.order.reference,
          scope: asked.scope,
          item_references: asked.items ?? [],
          amount_minor: asked.minor ?? 0,
          reason: reasonOf(wishes),
        },
      };
}

function askedFor(wishes: Wishes, among: OrderAmongOthers): Asked | string {
  const { order } = among;
  if (wishes.unclearAmounts)
    return `The ticket does not say how much of what it names is for ${order.reference}.`;
  const open = wishes.doubts.filter((one) => !settled(one, wishes, among));
  const doubt = open.find(({ kind }) => kind !== "no_wish");
  if (doubt !== undefined) return aboutDoubt(doubt, order);
  const [amount, ...others] = wishes.amounts;
  if (others.length > 0)
    return `The ticket names several amounts: please say which one is to be refunded on ${order.reference}.`;
  const [noWish] = open;
  if (noWish !== undefined) return aboutDoubt(noWish, order);
  const lines = linesNamed(wishes, order);
  const items = lines.map((line) => line.reference);
  if (amount !== undefined) {
    const minor = exactly(amount, order);
    if (typeof minor === "string" || lines.length === 0)
      return typeof minor === "string" ? minor : { scope: "amount", minor };
    const total = lines.reduce((sum, line) => sum + (line.line_total_minor ?? Number.NaN), 0);
    return total === minor
      ? { scope: "items", items }
      : `The ticket names ${items.join(", ")} and ${formatMoney(money(BigInt(minor), order.currency))}, which is not what that costs: please say which one is to be refunded on ${order.reference}.`;
  }
  const [strange] = strangeReferences(wishes, among);
  if (strange !== undefined)
    return `The ticket says "${strange}", which is nothing on ${order.reference} and may be an amount: please ${howTo(order)}.`;
  if (items.length > 0) return { scope: "items", items };
  const byName = wishes.everything ? [] : linesByName(wishes, order);
  if (byName.length > 0 && byName.length < order.lines.length) return { scope: "items", items: byName };
  const thing = byName.length > 0 ? null : wishes.thing;
  return thing === null
    ? { scope: "everything_left" }
    : `The ticket says "${cutText(thing, 60)}", which is no line of ${order.reference} by its name: please name the lines, or ${howTo(order)}.`;
}

/** "5" beside "£5.00" says the same again, a shop may number its orders: 10050, and "only the jacket" names its line. */
function settled(doubt: Doubt, wishes: Wishes, { order, others }: OrderAmongOthers): boolean {
  if (doubt.kind === "only") return linesNamed(wishes, order).length + linesByName(wishes, order).length > 0;
  if (doubt.kind !== "no_currency") return false;
  if (others.some((ref) => ref.replace(/^#/, "") === doubt.text.replace(/^#/, ""))) return true;
  const [amount, ...more] = wishes.amounts;
  return (
    amount !== undefined &&
    more.length === 0 &&
    /^\d{1,9}(?:\.\d{1,3})?$/.test(doubt.text) &&
    Number(amount.digits) === Number(doubt.text)
  );
}

/** Ten units of the currency show how it is written. */
const howTo = ({ currency }: Order): string => {
  const ten = money(10n ** BigInt(1 + currencyExponent(currency)), currency);
  return `write an amount with its currency, like ${formatMoney(ten)}`;
};

function aboutDoubt({ text, kind }: Doubt, order: Order): string {
  const read = `The ticket says "${text}"`;
  switch (kind) {
    case "no_currency":
      return `${read} without a currency, which may be the amount for ${order.reference}: please ${howTo(order)}.`;
    case "negative":
      return `${read}, which reads as a negative amount; a refund on ${order.reference} must be above zero: please ${howTo(order)}.`;
    case "unreadable":
      return `${read}, which may be the amount for ${order.reference} and cannot be read for certain: please ${howTo(order)}.`;
    case "narrowed":
    case "only":
      return `${read}, which may mean less than everything on ${order.reference}: please name the lines, or ${howTo(order)}.`;
    case "no_wish":
      return `${read}, which may not be what is to be refunded on ${order.reference}: please say how much is.`;
    default:
      return assertNever(kind, "doubt");
  }
}

function exactly(amount: NamedAmount, order: Order): number | string {
  const read = inMinorUnits(amount, order.currency);
  if (read.ok) {
    return read.minor > 0
      ? read.minor
      : `The amount of a refund must be above zero; the ticket names ${formatMoney(money(0n, order.currency))} on ${order.reference}.`;
  }
  switch (read.problem) {
    case "other_currency":
      return `The amount in the ticket is not one in ${order.currency}, the currency of ${order.reference}: please name it in that currency.`;
    case "too_many_decimals":
      return `The amount ${amount.digits} in the ticket has more decimals than ${order.currency}, the currency of ${order.reference}, has: please ${howTo(order)}.`;
    case "too_large":
      return `The amount ${cutText(amount.digits, 40)} in the ticket is larger than any amount can be: please ${howTo(order)}.`;
    default:
      return assertNever(read.problem, "amount");
  }
}

/**
 * What is spelled like a reference and names nothing: "ORD-1001-5" where there is no such line, "GBP-5". An order that is not there or
 * not theirs is no such thing where its prefix is one of the shop's.
 */
function strangeReferences(wishes: Wishes, { order, others, unknown }: OrderAmongOthers): string[] {
  const prefix = (ref: string): string => ref.split("-", 1)[0]?.toUpperCase() ?? "";
  const known = new Set(["ORD", "ORDER", ...others.filter((ref) => !unknown.includes(ref)).map(prefix)]);
  const lines = new Set(order.lines.map((line) => line.reference.toUpperCase()));
  const own = order.reference.toUpperCase();
  return [
    ...wishes.references.filter(
      (ref) => ref.startsWith(`${own}-`) && !lines.has(ref) && !others.includes(ref),
    ),
    ...unknown.filter((ref) => !known.has(prefix(ref))),
  ];
}

const linesNamed = (wishes: Wishes, order: Order): Order["lines"] =>
  order.lines.filter((line) => wishes.references.includes(line.reference.toUpperCase()));

/** Words of a line's name that name no thing. */
const NO_THING = /^(?:and|for|the|with|set|new|old|one|two|pack|size|order|refund|please|back|full)$/;
const wordsOf = (text: string): string[] =>
  (text.toLowerCase().match(/\p{L}{3,}/gu) ?? [])
    .filter((word) => !NO_THING.test(word))
    .map((word) => word.replace(/s$/, ""));

/** Lines whose name shares a word with the ticket. */
function linesByName(wishes: Wishes, order: Order): string[] {
  const words = new Set(wordsOf(wishes.text));
  return order.lines
    .filter((line) => wordsOf(line.name).some((word) => words.has(word)))
    .map((line) => line.reference);
}
