/**
 * What the planner is told of an operation: sentences by code, from the operation's row alone. Never "done" for anything that
 * the row does not show as done.
 */

import { assertNever } from "../domain/assert-never.js";
import type { Json } from "../domain/json.js";
import { formatMoney, money } from "../domain/money.js";
import { onWord } from "../domain/named-evidence.js";
import { isTakenBack, type Operation } from "../domain/operation.js";
import { ADVICE } from "../domain/text/advice.js";
import { asSentence } from "../domain/text/sentence.js";
import { utcTime } from "../domain/text/utc-time.js";

export interface ToolResult {
  result: string;
  resultJson: Json;
  isError: boolean;
}

export type OperationAnswer =
  | ({ state: "ended" } & ToolResult)
  /** Nobody knows yet, or somebody still has to decide: no result. */
  | { state: "open"; waitsFor: "approval" | "outcome" };

/** "a refund of £20.00 GBP on order ORD-1001", "the cancellation of order A-4471" */
export function nameOf(operation: Operation): string {
  switch (operation.kind) {
    case "refund":
      return `a refund of ${amountOf(operation)} on order ${operation.orderRef ?? "?"}`;
    case "cancel_order":
      return `the cancellation of order ${operation.orderRef ?? "?"}`;
    case "cancel_subscription":
      return `the cancellation of subscription ${operation.subscriptionRef ?? "?"}${
        operation.atPeriodEnd === true ? " at the end of its period" : ""
      }`;
    default:
      return assertNever(operation.kind, "operation kind");
  }
}

/** "£20.00 GBP"; bare minor units if the currency is unknown to this machine. */
export function amountOf(operation: Pick<Operation, "amountMinor" | "currency">): string {
  try {
    return formatMoney(money(operation.amountMinor, operation.currency));
  } catch {
    return `${operation.amountMinor} ${operation.currency} (minor units)`;
  }
}

/**
 * @param replayed the operation was asked for before, and this is its stored result
 */
export function answerOf(operation: Operation, { replayed }: { replayed: boolean }): OperationAnswer {
  switch (operation.status) {
    case "AWAITING_APPROVAL":
      return { state: "open", waitsFor: "approval" };
    case "PREPARED":
    case "DISPATCHED":
    case "OUTCOME_UNKNOWN":
    case "RECONCILING":
    case "QUARANTINED":
      return { state: "open", waitsFor: "outcome" };
    case "CONFIRMED":
      return told(operation, replayed ? alreadyDone(operation) : doneSentence(operation), false, replayed);
    case "REJECTED":
      return told(operation, `${notDone(operation)} ${ADVICE.noUse}`, true, replayed);
    case "DENIED":
      return told(
        operation,
        `${isTakenBack(operation) ? "Stopped" : "Denied"} by a person: ${nameOf(operation)} was not done. ${why(operation)} ${ADVICE.notAgain} ${ADVICE.newTicket}`,
        true,
        replayed,
      );
    case "EXPIRED":
      return told(
        operation,
        `Expired: nobody decided on ${nameOf(operation)} in time, so it was not done. ${ADVICE.againOrPerson}`,
        true,
        replayed,
      );
    case "VOIDED":
      return told(
        operation,
        `Called off before anything was carried out: ${nameOf(operation)}. ${why(operation)}`,
        true,
        replayed,
      );
    case "REVERSED":
      return told(
        operation,
        `Done and later taken back by the provider: ${nameOf(operation)}. ${why(operation)} ${ADVICE.toPerson}`,
        true,
        replayed,
      );
    default:
      return assertNever(operation.status, "operation status");
  }
}

function notDone(operation: Operation): string {
  if (!operation.resolvedByPerson) return `Not done: ${nameOf(operation)} was refused. ${why(operation)}`;
  const word = onWord(operation.result);
  return word === null
    ? `Not done: ${nameOf(operation)} was closed by a person. ${why(operation)}`
    : `Not done, ${word}: ${nameOf(operation)} was closed by a person as not carried out.`;
}

function doneSentence(operation: Operation): string {
  const word = onWord(operation.result);
  const reference =
    operation.providerRef === null
      ? ""
      : word === null
        ? ` Reference ${operation.providerRef}.`
        : ` Reference given: ${asSentence(operation.providerRef)}`;
  const by = word === null ? "" : `, ${word}`;
  switch (operation.kind) {
    case "refund":
      return `Refunded ${amountOf(operation)} on order ${operation.orderRef ?? "?"}${by}.${reference}`;
    case "cancel_order":
      return `Order ${operation.orderRef ?? "?"} is cancelled${by}. This returned no money: if the order was paid, a refund is a request of its own.`;
    case "cancel_subscription":
      return `Subscription ${operation.subscriptionRef ?? "?"} ${
        operation.atPeriodEnd === true ? "ends with its paid period" : "is cancelled at once"
      }${by}.${reference}`;
    default:
      return assertNever(operation.kind, "operation kind");
  }
}

function alreadyDone(operation: Operation): string {
  const when = utcTime(operation.updatedAt);
  const word = onWord(operation.result);
  return operation.kind === "refund"
    ? `Already refunded: ${amountOf(operation)} on order ${operation.orderRef ?? "?"}, ${when} (reference${word === null ? "" : " given"} ${
        operation.providerRef ?? "?"
      }${word === null ? "" : `, ${word}`}). Nothing was sent again. A further refund of the same amount can only be asked for by the person who filed the ticket.`
    : `Already done, ${when}: ${doneSentence(operation)} Nothing was done again.`;
}

const why = (operation: Operation): string => asSentence(operation.result?.detail ?? "");

function told(operation: Operation, sentence: string, isError: boolean, replayed: boolean): OperationAnswer {
  return {
    state: "ended",
    result: sentence.replace(/ {2,}/g, " ").trim(),
    resultJson: {
      operation: operation.id,
      status: operation.status,
      code: operation.result?.code ?? null,
      provider_ref: operation.providerRef,
      replayed,
    },
    isError,
  };
}
