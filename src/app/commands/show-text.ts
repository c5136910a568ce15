/** One operation as lines of text: all that `/ops show` says, and what only whoever sits at the machine needs. */
import { frozenReason } from "../../domain/frozen.js";
import { formatMoney } from "../../domain/money.js";
import { isOfBefore, referenceLabel, wordAlone } from "../../domain/named-evidence.js";
import { isTakenBack, type Operation } from "../../domain/operation.js";
import { unknownSinceLabel } from "../../domain/quarantine-words.js";
import { peopleIn } from "../../domain/text/counted.js";
import { utcSecond } from "../../domain/text/utc-time.js";
import {
  type AttemptRun,
  attemptRuns,
  elsewhereWords,
  evidenceTold,
  noEvidenceWords,
  nothingSentWords,
  type OperationView,
  type VerbView,
} from "../../ops/index.js";

const LABEL_WIDTH = 18;

/** "refund £180.00 GBP on ORD-10042": what it is, as lists and heads say it. */
export function subjectOf(
  operation: Pick<Operation, "kind" | "amountMinor" | "currency" | "orderRef" | "subscriptionRef">,
): string {
  const amount = operation.amountMinor === 0n ? "" : ` ${formatMoney(operation)}`;
  const on = operation.orderRef ?? operation.subscriptionRef;
  return `${operation.kind}${amount}${on === null ? "" : ` on ${on}`}`;
}

/** "CONFIRMED by on-call's word alone": what only a person vouches for says so. */
export function standingOf({ status, result }: Pick<Operation, "status" | "result">): string {
  const word = wordAlone(result);
  if (isTakenBack({ result })) return `${status} (approval taken back)`;
  return word === null ? status : `${status} ${word}`;
}

/** "refund £180.00 GBP on ORD-10042, CONFIRMED (op_…)" */
export const againText = (next: Operation): string => `${subjectOf(next)}, ${standingOf(next)} (${next.id})`;

/** Lines for a terminal; times in UTC, people by their Slack ids. */
export function showText(view: OperationView): string[] {
  const { operation } = view;
  return [
    `${operation.id}  ${standingOf(operation)}  ${subjectOf(operation)}`,
    ...facts(view).map(([label, value]) => `${label.padEnd(LABEL_WIDTH)}${value}`),
    ...part("Still open", pending(view)),
    ...part(
      "What was sent",
      attemptRuns(view.attempts, operation).map(attemptText),
      nothingSentWords(view, againText),
    ),
    ...part("Evidence so far", evidence(view), noEvidenceWords(view)),
    ...(view.notAsked === null ? [] : [`  ${view.notAsked} What stands here is from before.`]),
    ...part("What recovery is allowed, and why", view.recovery),
    ...part(
      "What a person may do now, in Slack",
      view.safe.map((verb) => verbText(operation, verb)),
    ),
  ];
}

function facts({
  operation,
  customerName,
  referenceGiven,
  refundedElsewhere,
  target,
  nextLookAt,
  frozen,
}: OperationView): [string, string][] {
  const all: [string, string | null][] = [
    ["customer", `${customerName} (${operation.customerRef})`],
    ["filed by", operation.filers.join(", ")],
    ["approved by", operation.approvedBy.join(", ")],
    ["approval", operation.approvalId],
    ["run", operation.ownerRunId],
    ["ticket", operation.ticketId],
    ["occurrence", operation.occurrence === 1 ? null : String(operation.occurrence)],
    [
      operation.providerRef === null
        ? "provider reference"
        : referenceLabel(operation.providerRef, referenceGiven).toLowerCase(),
      isOfBefore(operation.status, referenceGiven) ? null : operation.providerRef,
    ],
    ["refunded elsewhere", refundedElsewhere === null ? null : elsewhereWords(refundedElsewhere)],
    ["look it up by", target],
    ["idempotency key", operation.idempotencyKey],
    ["key", operation.key],
    ["fingerprint", operation.fingerprint],
    ["created", utcSecond(operation.createdAt)],
    ["updated", utcSecond(operation.updatedAt)],
    [
      unknownSinceLabel(operation.quarantineReason).toLowerCase(),
      operation.unknownSince === null ? null : utcSecond(operation.unknownSince),
    ],
    ["next look", nextLookAt === null ? null : utcSecond(nextLookAt)],
    ["frozen by", frozen === null ? null : `${frozen.by ?? "nobody known"}. ${frozenReason(frozen)}`],
  ];
  return all.flatMap(([label, value]) =>
    value === null || value === "" ? [] : [[label, ` ${value}`] as [string, string]],
  );
}

/** Empty and without a word for that: the part is left out. */
function part(title: string, lines: readonly string[], otherwise?: string): string[] {
  const said = lines.length === 0 && otherwise !== undefined ? [otherwise] : lines;
  return said.length === 0 ? [] : ["", title, ...said.map((line) => `  ${line}`)];
}

function pending({ operation, openIncidents, openResolution, approval }: OperationView): string[] {
  const asked =
    openResolution === null
      ? []
      : [
          `${openResolution.verb} was asked for by ${openResolution.by}, ${utcSecond(openResolution.createdAt)}, and waits for a second person${
            openResolution.expiresAt === null ? "" : ` until ${utcSecond(openResolution.expiresAt)}`
          }: ${openResolution.reason}`,
        ];
  const waits =
    approval === null || operation.status !== "AWAITING_APPROVAL"
      ? []
      : [
          `waits for the approval of ${peopleIn(approval.approversNeeded, approval.role)} until ${utcSecond(approval.expiresAt)}`,
        ];
  const findings = openIncidents.map(({ id, kind, operationId, target, amount, references }) => {
    const facts = [kind, target, amount, ...references].filter((fact) => fact !== null).join(", ");
    return `incident ${id}: ${facts}${operationId === operation.id ? "" : ` (on the same payment${operationId === null ? "" : `, about ${operationId}`})`}`;
  });
  return [...findings, ...asked, ...waits];
}

function attemptText({ first, last, which, what }: AttemptRun): string {
  const until = first === last ? "" : ` to ${utcSecond(last.startedAt)}`;
  return `${which}, ${utcSecond(first.startedAt)}${until}: ${what}`;
}

function evidence(view: OperationView): string[] {
  return evidenceTold(view).map(({ at, how, sentence }) => `${utcSecond(at)}, ${how}: ${sentence}`);
}

function verbText({ id }: Operation, { verb, possible, people, sentence }: VerbView): string {
  const takes = possible ? (people === 2 ? "two people" : "one person") : "not now";
  return `/ops ${verb} ${id} (${takes}): ${sentence}`;
}
