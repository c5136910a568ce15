/** "What changed", one sentence a change, in plain text: since the last card, and since this one was made. */
import type { KnownBlock } from "@slack/types";
import type { Change } from "../../domain/approval.js";
import { beyondWords, leftWords } from "../../domain/approval-words.js";
import { assertNever } from "../../domain/assert-never.js";
import { formatMoney } from "../../domain/money.js";
import { ours, theirs } from "../blocks/build.js";
import { escapeWithin, oneLine } from "../text/safe.js";

const CHANGES_MAX = 8;
const TEXT_MAX = 400;

/** One line each, plain. */
export const changeLines = (changes: readonly Change[]): string =>
  changes
    .slice(0, CHANGES_MAX)
    .map((change) => `• ${oneLine(changeSentence(change))}`)
    .join("\n");

/** On a card that still waits: it was made of a world that is not so any more, and its approval would be compared with that. */
export function changedSinceBlocks(changes: readonly Change[]): KnownBlock[] {
  if (changes.length === 0) return [];
  return [
    ours("*Changed since this card was made*"),
    theirs(changeLines(changes)),
    ours(
      "*As long as this is so, approving sends nothing.* What still holds is asked for again on a new card.",
    ),
  ];
}

/** The same for notifications and screen readers; escaped, and nothing where nothing changed. */
export function changedSinceText(changes: readonly Change[]): string {
  const [first] = changes;
  if (first === undefined) return "";
  const said = escapeWithin(oneLine(changeSentence(first)), TEXT_MAX).text;
  return `Changed since this card was made: ${said}. As long as this is so, approving sends nothing.`;
}

const money = (amountMinor: bigint, currency: string): string => formatMoney({ amountMinor, currency });

export function changeSentence(change: Change): string {
  switch (change.what) {
    case "order_status":
      return `Order status: ${change.from} → ${change.to}`;
    case "refundable":
      return `Left to refund before this: ${leftWords(change.fromMinor, change.currency)} → ${leftWords(change.toMinor, change.currency)}${beyondWords(change.toMinor, change.currency)}`;
    case "captured":
      return `Paid: ${money(change.fromMinor, change.currency)} → ${money(change.toMinor, change.currency)}`;
    case "amount":
      return `Amount: ${money(change.fromMinor, change.currency)} → ${money(change.toMinor, change.currency)}`;
    case "order_customer":
      return `The order's customer: ${change.from} → ${change.to}`;
    case "order_currency":
      return `The order's currency: ${change.from} → ${change.to}`;
    case "customer":
      return `The ticket's customer: ${change.from} → ${change.to}`;
    case "subscription_status":
      return `Subscription status: ${change.from} → ${change.to}`;
    case "subscription_customer":
      return `The subscription's customer: ${change.from} → ${change.to}`;
    case "missing":
      return `The ${change.thing} is no longer there`;
    case "fingerprint":
      return "What would be sent is no longer what the card showed";
    case "occurrence":
      return `Occurrence: ${change.from} → ${change.to}`;
    case "policy":
      return `Policy: ${change.from} → ${change.to}`;
    case "policy_refuses":
      return `The policy now refuses it: ${change.sentence}`;
    case "voter":
      return `A vote no longer counts: ${change.sentence}`;
    case "votes":
      return `Votes: ${change.given} of the ${change.needed} that it takes`;
    default:
      return assertNever(change, "change");
  }
}
