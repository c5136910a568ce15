/** "What changed since the last card", one sentence a change, in plain text. */
import type { Change } from "../../domain/approval.js";
import { assertNever } from "../../domain/assert-never.js";
import { formatMoney } from "../../domain/money.js";

const money = (amountMinor: bigint, currency: string): string => formatMoney({ amountMinor, currency });

export function changeSentence(change: Change): string {
  switch (change.what) {
    case "order_status":
      return `Order status: ${change.from} → ${change.to}`;
    case "refundable":
      return `Left to refund before this: ${money(change.fromMinor, change.currency)} → ${money(change.toMinor, change.currency)}`;
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
