/**
 * What may be said about an operation: from its row alone, in plain text (escape it where it is shown).
 *
 * 1. A sentence says "refunded" or "cancelled" only of a CONFIRMED row.
 * 2. What on-call confirmed and the provider did not show, or rejected without proof, is told as on-call's word.
 * 3. Money has its currency, exactly; times have their zone.
 */

import { assertNever } from "../../domain/assert-never.js";
import type { Frozen } from "../../domain/frozen.js";
import type { OperationId } from "../../domain/ids.js";
import { formatMoney } from "../../domain/money.js";
import { onWord } from "../../domain/named-evidence.js";
import {
  isTakenBack,
  type OperationKind,
  type OperationStatus,
  type RefundScope,
} from "../../domain/operation.js";
import { quarantineKnown, quarantineTitle } from "../../domain/quarantine-words.js";
import { MADE_DIFFERENTLY } from "../../domain/resolving.js";
import { capital, uncapital } from "../../domain/text/capital.js";
import { asSentence } from "../../domain/text/sentence.js";
import { utcTime } from "../../domain/text/utc-time.js";
import { isTriedAgain, nothingDone, timesTried, triedPart, triedSentences } from "../../domain/tried.js";
import type { TicketPlace } from "../text/link.js";
import { withRef } from "../text/safe.js";

/** An operation as cards and threads show it. Amounts in minor units. */
export interface OperationFacts {
  readonly id: OperationId;
  readonly kind: OperationKind;
  readonly status: OperationStatus;
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly occurrence: number;
  readonly customerRef: string;
  readonly customerName: string;
  readonly orderRef: string | null;
  readonly subscriptionRef: string | null;
  readonly atPeriodEnd: boolean | null;
  readonly refundScope: RefundScope | null;
  /** What is left to refund on its order's payment, in minor units; 0 without a payment. */
  readonly leftMinor: bigint;
  readonly items: readonly { readonly ref: string; readonly name: string | null }[];
  /** The planner's words. Never shown without saying so. */
  readonly reason: string;
  /** What it is looked up by at the provider: the payment, or the provider's own id of the subscription. */
  readonly providerTarget: string | null;
  readonly providerRef: string | null;
  readonly providerStatus: string | null;
  readonly result: { readonly code: string; readonly detail: string } | null;
  readonly quarantineReason: string | null;
  readonly notBefore: Date | null;
  /** How often it was begun. */
  readonly attempts: number;
  /** The provider answered the newest of them with "slow down". */
  readonly slowedDown: boolean;
  /** Sending of its kind is frozen now; null: it is not. */
  readonly frozen: Frozen | null;
  readonly approvedBy: readonly string[];
  readonly filers: readonly string[];
  /** Whose it is: asked for it first, or was left it. */
  readonly ticket: TicketPlace | null;
  readonly unknownSince: Date | null;
  /** Its end was decided by a person. */
  readonly resolvedByPerson: boolean;
  /** Who of on-call confirmed or rejected it, as long as that is its end. */
  readonly settledBy: readonly string[];
  /** Its reference is only what a person named: the provider has not shown it. */
  readonly referenceGiven: boolean;
  /** Effects beside its own that the provider has shown for it, "£180.00 GBP (re_2)" each. */
  readonly duplicates: readonly string[];
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

type What = Pick<
  OperationFacts,
  "kind" | "amountMinor" | "currency" | "orderRef" | "subscriptionRef" | "atPeriodEnd"
>;

/** "Refund", "Cancel order", "Cancel subscription". */
export function kindName(kind: OperationKind): string {
  switch (kind) {
    case "refund":
      return "Refund";
    case "cancel_order":
      return "Cancel order";
    case "cancel_subscription":
      return "Cancel subscription";
    default:
      return assertNever(kind, "operation kind");
  }
}

/** "£180.00 GBP"; null for effects that move no money. */
export function amountOf(
  operation: Pick<OperationFacts, "kind" | "amountMinor" | "currency">,
): string | null {
  return operation.kind === "refund" ? formatMoney(operation) : null;
}

/** "Refund of £180.00 GBP on order ORD-10042": one operation in half a line. */
export function whatOf(operation: What): string {
  switch (operation.kind) {
    case "refund":
      return `Refund of ${formatMoney(operation)} on order ${operation.orderRef ?? "?"}`;
    case "cancel_order":
      return `Cancellation of order ${operation.orderRef ?? "?"}`;
    case "cancel_subscription":
      return `Cancellation of subscription ${operation.subscriptionRef ?? "?"}${
        operation.atPeriodEnd === true ? " at the end of its period" : ""
      }`;
    default:
      return assertNever(operation.kind, "operation kind");
  }
}

/** What pressing Approve leads to. */
export function consequenceOf(operation: Pick<OperationFacts, "kind" | "atPeriodEnd">): string {
  switch (operation.kind) {
    case "refund":
      return "The amount goes back to the customer's original payment method, once.";
    case "cancel_order":
      return "The order is cancelled and will not be shipped. No money goes back by this: a refund is its own operation.";
    case "cancel_subscription":
      return operation.atPeriodEnd === true
        ? "The subscription runs to the end of the paid period and then ends."
        : "The subscription ends at once.";
    default:
      return assertNever(operation.kind, "operation kind");
  }
}

/** Of what only the freeze switch holds back. */
export const FROZEN = "Not sent: sending is frozen until on-call turns it on again.";

/** Frozen, and something may still come to be sent. */
export const isHeldBack = ({ frozen, status }: Pick<OperationFacts, "frozen" | "status">): boolean =>
  frozen !== null && (status === "AWAITING_APPROVAL" || status === "PREPARED");

/** Where it stands, as a short state: "sent, not answered yet". */
export function standingOf(operation: OperationFacts): string {
  const { status } = operation;
  switch (status) {
    case "AWAITING_APPROVAL":
      return "waits for an approval, nothing sent";
    case "PREPARED":
      return `${operation.approvedBy.length > 0 ? "approved" : "allowed"}, ${waiting(operation)}`;
    case "DISPATCHED":
      return "sent, not answered yet";
    case "OUTCOME_UNKNOWN":
    case "RECONCILING":
      return "sent, outcome not known yet, being checked";
    case "QUARANTINED":
      return `${uncapital(quarantineTitle(operation.quarantineReason))}, with on-call`;
    case "CONFIRMED":
      return done("done", operation.result);
    case "REJECTED":
      if (!operation.resolvedByPerson) return "refused by the provider";
      return onWord(operation.result) === null
        ? "not carried out, closed by on-call"
        : done("not carried out", operation.result);
    case "DENIED":
      return isTakenBack(operation) ? "approval taken back, nothing done" : "denied";
    case "EXPIRED":
      return "expired, nobody decided";
    case "VOIDED":
      return isLetGo(operation) ? "needs no approval any more" : uncapital(withdrawn(operation)).slice(0, -1);
    case "REVERSED":
      return "taken back by the provider";
    default:
      return assertNever(status, "operation status");
  }
}

/** The whole sentence for a thread or the end of a card. */
export function outcomeOf(operation: OperationFacts): string {
  const { status } = operation;
  const what = whatOf(operation);
  switch (status) {
    case "AWAITING_APPROVAL":
      return `${what}: waits for an approval. Nothing has been sent.`;
    case "PREPARED":
      return operation.frozen === null && !isTriedAgain(operation)
        ? `${what}: not sent${whenSent(operation)}.`
        : `${what}: ${uncapital(unsent(operation))}`;
    case "DISPATCHED":
      return `${what}: sent, the answer is not there yet.`;
    case "OUTCOME_UNKNOWN":
    case "RECONCILING":
      return `${what}: sent, but the outcome is not known yet. It is being checked${countsAsSpent(operation)}.`;
    case "QUARANTINED": {
      const known = quarantineKnown(operation.quarantineReason);
      return `${what}: ${uncapital(known ?? "The outcome cannot be established automatically.")} On-call has the case${countsAsSpent(operation)}.`;
    }
    case "CONFIRMED":
      return confirmed(operation);
    case "REJECTED":
      // Of what the provider made instead, the detail speaks, and it begins with what was not done.
      if (isMadeDifferently(operation))
        return `${what}: ${uncapital(detailOf(operation) ?? "not carried out as asked.")}`;
      // What rests on people's word proves nothing of the money.
      if (onWord(operation.result) !== null) return `${done(`${what}: not carried out`, operation.result)}.`;
      return join([
        `${what}: not carried out.`,
        detailOf(operation) ?? "The provider refused it.",
        operation.kind === "refund" ? "No money moved." : null,
      ]);
    case "DENIED":
      return isTakenBack(operation)
        ? join([
            `${what}: not carried out.`,
            detailOf(operation),
            operation.attempts === 0 ? null : nothingDone(operation.attempts),
          ])
        : join([`${what}: denied.`, detailOf(operation), nothingDone(operation.attempts)]);
    case "EXPIRED":
      return `${what}: nobody decided in time. Nothing was sent.`;
    case "VOIDED":
      return isLetGo(operation)
        ? join([`${what}: needs no approval any more.`, detailOf(operation)])
        : join([`${what}: ${uncapital(withdrawn(operation))}`, detailOf(operation)]);
    case "REVERSED":
      return `${what}: the provider took it back after confirming it. The customer does not have the money.`;
    default:
      return assertNever(status, "operation status");
  }
}

/**
 * What whoever filed it can do after an end without an effect; null: it has no such end. In its ticket a no is final; a new ticket that
 * asks for the same is held whatever the policy would allow, and names the no. What nobody decided, or was called off, is free.
 */
export function askAgain({
  status,
  occurrence,
}: Pick<OperationFacts, "status" | "occurrence">): string | null {
  // The same once more is told its stored result there first, and the button stands below it.
  const press = occurrence > 1 ? " and press “This is a further refund” there" : "";
  switch (status) {
    case "DENIED":
      return `To ask for this again, file a new ticket${press}. It waits for an approval then, and its card names who said no.`;
    case "EXPIRED":
    case "VOIDED":
      return `If it is still needed, file a new ticket${press}. It is judged anew.`;
    default:
      return null;
  }
}

/** Of what is allowed and waits, as part of a line. */
function waiting(operation: OperationFacts): string {
  if (!isTriedAgain(operation))
    return `not sent${operation.frozen === null ? whenSent(operation) : ": sending is frozen"}`;
  return operation.frozen === null
    ? triedPart(operation, operation.slowedDown)
    : `${timesTried(operation.attempts)}, certainly nothing carried out: sending is frozen`;
}

/** The same as sentences, and without the time of what cools off. */
export function unsent(operation: OperationFacts): string {
  if (!isTriedAgain(operation)) return operation.frozen !== null ? FROZEN : "Not sent yet.";
  return operation.frozen === null
    ? triedSentences(operation, operation.slowedDown)
    : `${capital(timesTried(operation.attempts))}, certainly nothing carried out. ${FROZEN.replace("Not sent", "Not tried again")}`;
}

const withdrawn = ({ attempts }: Pick<OperationFacts, "attempts">): string =>
  attempts === 0
    ? "Withdrawn before it was sent."
    : `Withdrawn; ${timesTried(attempts)}, nothing was carried out.`;

/** Of what is allowed and was not sent: " yet", or the time before which it rests. */
const whenSent = ({ notBefore }: OperationFacts): string =>
  notBefore === null ? " yet" : ` before ${utcTime(notBefore)} (cooling off)`;

const countsAsSpent = ({ kind }: Pick<OperationFacts, "kind">): string =>
  kind === "refund" ? "; until it is settled, the amount counts as spent" : "";

function confirmed(operation: OperationFacts): string {
  const { result, orderRef } = operation;
  const whom = withRef(operation.customerName, operation.customerRef);
  const reference = referenceOf(operation);
  switch (operation.kind) {
    case "refund":
      return join([
        operation.duplicates.length === 0 ? null : "More was refunded than was asked for.",
        `${done(`Refunded ${formatMoney(operation)} on order ${orderRef ?? "?"} to ${whom}`, result)}.`,
        reference,
        duplicatesOf(operation),
      ]);
    case "cancel_order":
      return `${done(`Order ${orderRef ?? "?"} of ${whom} is cancelled`, result)}. No money has gone back by this; a refund is its own operation.`;
    case "cancel_subscription":
      return join([
        `${done(
          `Subscription ${operation.subscriptionRef ?? "?"} of ${whom} ${operation.atPeriodEnd === true ? "will end with its paid period" : "is cancelled"}`,
          result,
        )}.`,
        reference,
      ]);
    default:
      return assertNever(operation.kind, "operation kind");
  }
}

/** What was done, without its full stop, and whether only on-call's word says so. */
export function done(what: string, result: { readonly code: string } | null): string {
  const word = onWord(result);
  return word === null ? what : `${what}, ${word}`;
}

/** Its own amount is not all that the customer has: whoever reads that it was refunded reads that, too. */
function duplicatesOf({ kind, duplicates }: OperationFacts): string | null {
  if (kind !== "refund" || duplicates.length === 0) return null;
  const what = duplicates.length === 1 ? "a second refund" : "more refunds";
  return `The provider has shown ${what} for it: ${duplicates.join(", ")}. On-call knows.`;
}

function referenceOf({ providerRef, result }: OperationFacts): string | null {
  if (providerRef === null) return null;
  return onWord(result) === null
    ? `Reference ${providerRef}.`
    : `Reference given: ${asSentence(providerRef)}`;
}

/**
 * What came of it, where what it is, with its amount, stands beside it already (a card's rows): the whole sentence is the thread's, so
 * that nothing is told there twice.
 */
export function resultOf(operation: OperationFacts): string {
  const { status, kind } = operation;
  const detail = detailOf(operation);
  switch (status) {
    case "AWAITING_APPROVAL":
    case "PREPARED":
      return unsent(operation);
    case "DISPATCHED":
      return "Sent; the answer is not there yet.";
    case "OUTCOME_UNKNOWN":
    case "RECONCILING":
      return "Sent; the outcome is not known yet and is being checked.";
    case "QUARANTINED":
      return `${quarantineKnown(operation.quarantineReason) ?? "Sent; the outcome is not known."} On-call has the case.`;
    case "CONFIRMED": {
      const what = kind === "refund" ? "Refunded" : CANCELLED[kind](operation);
      return join([
        `${done(what, operation.result)}.`,
        kind === "cancel_order" ? "No money has gone back by this." : null,
        referenceOf(operation),
        duplicatesOf(operation),
      ]);
    }
    case "REJECTED":
      if (isMadeDifferently(operation)) return detail ?? "Not carried out as asked.";
      if (onWord(operation.result) !== null) return `${done("Not carried out", operation.result)}.`;
      return join(["Not carried out.", detail ?? "The provider refused it."]);
    case "DENIED":
    case "EXPIRED":
      return nothingDone(operation.attempts);
    case "VOIDED":
      return isLetGo(operation)
        ? join(["Needs no approval any more.", detail])
        : join([withdrawn(operation), detail]);
    case "REVERSED":
      return "Taken back by the provider after it had confirmed it.";
    default:
      return assertNever(status, "operation status");
  }
}

const CANCELLED = {
  cancel_order: () => "Cancelled",
  cancel_subscription: ({ atPeriodEnd }: Pick<OperationFacts, "atPeriodEnd">) =>
    atPeriodEnd === true ? "Cancelled; it ends with its paid period" : "Cancelled",
} as const;

export const isMadeDifferently = ({
  result,
}: {
  readonly result: { readonly code: string } | null;
}): boolean => result?.code === MADE_DIFFERENTLY;

/** Who vouches for an end that the provider did not show. */
export const vouchedBy = ({ result, settledBy }: OperationFacts): readonly string[] =>
  onWord(result) === null ? [] : settledBy;

/** Nothing had failed: the filer's word alone was missing, and the same is done without an approval. */
export const isLetGo = ({ result }: Pick<OperationFacts, "result">): boolean =>
  result?.code === "binding_confirmed";

/** "A further refund, asked for by U…": written by code for a person, not by a planner. The person, or null. */
export const furtherAskedBy = (reason: string): string | null =>
  /^A further refund, asked for by ([UW][A-Z0-9_]+)\.$/u.exec(reason)?.[1] ?? null;

/** The stored detail as a sentence; null when there is none. */
function detailOf(operation: OperationFacts): string | null {
  const detail = asSentence(operation.result?.detail ?? "");
  return detail === "" ? null : detail;
}

const join = (parts: readonly (string | null)[]): string => parts.filter((part) => part !== null).join(" ");
