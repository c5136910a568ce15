/** Sentences about approvals that threads, cards and tool results share. Money always with its currency. */

import type { Change } from "./approval.js";
import { assertNever } from "./assert-never.js";
import { formatMoney } from "./money.js";
import { capital } from "./text/capital.js";
import { counted } from "./text/counted.js";

/** What changed, as one plain sentence. Names of people stay user ids: whoever shows it renders them. */
export function changeSentence(change: Change): string {
  switch (change.what) {
    case "order_status":
      return `The order was ${change.from} and is now ${change.to}.`;
    case "refundable":
      return `${capital(leftWords(change.fromMinor, change.currency))} was left to refund, ${leftWords(change.toMinor, change.currency)} is left now${beyondWords(change.toMinor, change.currency)}.`;
    case "captured":
      return `${amounts(change, "was")} was paid when this was asked, ${amounts(change, "is")} is recorded as paid now.`;
    case "order_customer":
      return `The order belonged to ${change.from} and now belongs to ${change.to}.`;
    case "order_currency":
      return `The order was in ${change.from} and is now in ${change.to}.`;
    case "customer":
      return `This was about customer ${change.from} and is now about ${change.to}.`;
    case "subscription_status":
      return `The subscription was ${change.from} and is now ${change.to}.`;
    case "subscription_customer":
      return `The subscription belonged to ${change.from} and now belongs to ${change.to}.`;
    case "missing":
      return `The ${change.thing} is no longer there.`;
    case "fingerprint":
      return "Where the money would go, or another detail that was approved, is no longer the same.";
    case "amount":
      return `The amount was ${amounts(change, "was")} and is now ${amounts(change, "is")}.`;
    case "occurrence":
      return `This was number ${change.from} of its kind and is now number ${change.to}.`;
    case "policy":
      return `The policy asked for: ${change.from}. It now asks for: ${change.to}.`;
    case "policy_refuses":
      return `The policy no longer allows it: ${goingOn(change.sentence)}`;
    case "voter":
      return `The approval of <@${change.userId}> no longer counts: ${change.sentence}`;
    case "votes":
      return `It takes ${counted(change.needed, "vote")}, and has ${change.given}.`;
    default:
      return assertNever(change, "change");
  }
}

/** What is left of a payment: an amount, or "nothing"; never less than that. */
export const leftWords = (leftMinor: bigint, currency: string): string =>
  leftMinor > 0n ? formatMoney({ amountMinor: leftMinor, currency }) : "nothing";

/** Where more than all of it is spoken for, by how much; as the rest of a sentence. */
export const beyondWords = (leftMinor: bigint, currency: string): string =>
  leftMinor < 0n
    ? `: ${formatMoney({ amountMinor: -leftMinor, currency })} more than was paid is refunded or set aside`
    : "";

/** All changes in one text; empty for none. A balance that the policy's own sentence tells is not told beside it. */
export function changesText(changes: readonly Change[]): string {
  const told = changes.some((change) => change.what === "policy_refuses" && LEFT.test(change.sentence));
  return changes
    .filter(({ what }) => !told || what !== "refundable")
    .map(changeSentence)
    .join(" ");
}

/** As rules about the balance say it. */
const LEFT = /\bis left to refund\b/u;

/** A sentence behind a colon; names in capitals stay as they are. */
const goingOn = (sentence: string): string =>
  sentence.replace(/^[A-Z](?=[a-z ])/u, (first) => first.toLowerCase());

function amounts(
  change: { readonly fromMinor: bigint; readonly toMinor: bigint; readonly currency: string },
  which: "was" | "is",
): string {
  const minor = which === "was" ? change.fromMinor : change.toMinor;
  const { currency } = change;
  return minor < 0n
    ? `minus ${formatMoney({ amountMinor: -minor, currency })}`
    : formatMoney({ amountMinor: minor, currency });
}
