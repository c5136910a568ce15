/** The sentence that answers a click on an approval: the reason, and how things stand now. Mrkdwn, everything foreign escaped. */

import type { ApprovalStanding, DecideOutcome, DecisionWhoWhen } from "../../approvals/index.js";
import type { Approval } from "../../domain/approval.js";
import { missingVotes } from "../../domain/approval-click.js";
import { assertNever } from "../../domain/assert-never.js";
import type { Frozen } from "../../domain/frozen.js";
import { formatMoney } from "../../domain/money.js";
import { uncapital } from "../../domain/text/capital.js";
import { listOf } from "../../domain/text/list-of.js";
import { isTriedAgain, nothingDone, timesTried } from "../../domain/tried.js";
import { escapeWithin, mentionUser, oneLine } from "../text/safe.js";
import { localTime } from "../text/time.js";
import { voidedBecause, voidedWords } from "./approval-card.js";
import { frozenSince } from "./frozen.js";
import { done, isMadeDifferently, whatOf } from "./sentences.js";

const what = (approval: Approval): string => escapeWithin(oneLine(whatOf(approval.binding)), 400).text;
const said = (text: string | null | undefined, max = 500): string =>
  escapeWithin(oneLine(text ?? ""), max).text;
const MS_PER_MINUTE = 60_000;
const people = (count: number): string => (count === 1 ? "One more person is" : `${count} more people are`);

export function decideSentence(outcome: DecideOutcome): string {
  switch (outcome.outcome) {
    case "recorded":
      return `Your approval is recorded: ${what(outcome.approval)}. ${people(outcome.missing)} needed before anything is sent.${held(outcome.frozen)}`;
    case "approved":
      if (outcome.approval.state === "VOIDED") {
        return `Your approval is recorded, and nothing was sent: ${what(outcome.approval)} no longer holds. ${said(voidedBecause(outcome.approval))}${outcome.successorId === null ? "" : " A newer card asks again."}`;
      }
      if (outcome.waitsFor === 0) {
        return `Approved: ${what(outcome.approval)}. ${outcome.frozen === null ? whenSent(outcome.approval) : `Not sent.${held(outcome.frozen)}`}`;
      }
      return `Approved: ${what(outcome.approval)}. It waits for ${others(outcome.waitsFor)} of the same step; nothing is sent before.${held(outcome.frozen)}`;
    case "denied":
      if (outcome.approval.endCode === "undone")
        return `Taken back: ${what(outcome.approval)} had been approved, and is stopped ${stoppedWhen(outcome.attempts)}.`;
      return outcome.late
        ? `Denied in time: ${what(outcome.approval)} had been approved, and is stopped ${stoppedWhen(outcome.attempts)}.`
        : `Denied: ${what(outcome.approval)}. Nothing is sent.`;
    case "not_found":
      return "This card is no longer active; nothing was changed.";
    case "ended":
      return endedSentence(
        outcome.approval,
        outcome.decision,
        outcome.standing,
        outcome.successorId !== null,
      );
    case "already_sent":
      return `Too late to deny: ${what(outcome.approval)} was ${approvedBy(outcome.decision)} and ${standing(outcome.standing)}. Nothing was changed.`;
    case "already_voted":
      return `You approved this already, ${localTime(outcome.at)}. ${people(outcome.missing)} needed: ${what(outcome.approval)}.`;
    case "stale_card":
      return `This is an older card of ${what(outcome.approval)}; please use the newest one. Nothing was changed. ${stateOf(outcome.approval)}`;
    case "refused":
      return `${said(outcome.sentence)} ${what(outcome.approval)}: ${uncapital(stateOf(outcome.approval))}`;
    // Said under the field that is to be mended: how the approval stands has not changed and is not asked there.
    case "repeat_amount":
      return `This needs the amount typed again: ${amountOf(outcome.approval)}.`;
    case "bad_suggestion":
      return said(outcome.sentence);
    case "try_again":
      return said(outcome.sentence);
    default:
      return assertNever(outcome, "outcome of a click");
  }
}

/** What becomes of a complete approval that nothing holds back. The time runs from its release, which is never before its last vote. */
function whenSent({ binding, decidedAt, updatedAt }: Approval): string {
  const minutes = binding.policy.coolingOffMinutes;
  if (minutes === 0) return "It is checked once more and then sent.";
  const notBefore = new Date((decidedAt ?? updatedAt).getTime() + minutes * MS_PER_MINUTE);
  return `It is not sent before ${localTime(notBefore)}, and checked once more then. Until then it can be undone; what was undone cannot be approved again.`;
}

export const amountOf = ({ binding }: Approval): string => formatMoney(binding);

/** The end that a click came after, with who, when and why. */
function endedSentence(
  approval: Approval,
  decision: DecisionWhoWhen,
  now: ApprovalStanding,
  successor: boolean,
): string {
  const note =
    decision.note === null || decision.note.trim() === "" ? "" : ` Note: ${said(decision.note, 300)}`;
  const subject = what(approval);
  switch (decision.state) {
    case "PENDING":
      return stateOf(approval);
    case "APPROVED":
    case "RELEASED": {
      const waits = now.waitsFor > 0 ? ` It waits for ${others(now.waitsFor)} of the same step.` : "";
      const cooling =
        now.notBefore === null || isTried(now) ? "" : ` It is not sent before ${localTime(now.notBefore)}.`;
      return `Already ${approvedBy(decision)}: ${subject}. It ${standing(now)}.${waits}${cooling}${isUnsent(now) ? held(now.frozen) : ""}${note}`;
    }
    case "DENIED":
      return `Already ${decision.endCode === "undone" ? "taken back" : "denied"}${byAndWhen(decision)}: ${subject}. ${nothingDone(now.attempts)}${note}`;
    case "EXPIRED":
      return `Too late: this expired ${localTime(approval.expiresAt)} because nobody had decided. Nothing was sent: ${subject}.`;
    case "VOIDED":
      return `${voidedWords(decision)}: ${subject}. ${said(voidedBecause({ ...approval, endCode: decision.endCode, endDetail: decision.detail }))}${
        successor
          ? " A newer card asks again."
          : decision.endCode === "binding_confirmed"
            ? ""
            : ` ${nothingDone(now.attempts)}`
      }`;
    default:
      return assertNever(decision.state, "approval state");
  }
}

/** How an approval stands that a click did not change. */
function stateOf(approval: Approval): string {
  switch (approval.state) {
    case "PENDING": {
      const missing = missingVotes(approval);
      return `It still waits for ${missing === 1 ? "one person" : `${missing} people`} in the role ${said(approval.role, 60)}, until ${localTime(approval.expiresAt)}.`;
    }
    case "APPROVED":
    case "RELEASED":
      return "It is approved.";
    case "DENIED":
      return approval.endCode === "undone" ? "Its approval was taken back." : "It is denied.";
    case "EXPIRED":
      return "It has expired.";
    case "VOIDED":
      return "It is no longer valid.";
    default:
      return assertNever(approval.state, "approval state");
  }
}

const others = (count: number): string => (count === 1 ? "one other decision" : `${count} other decisions`);

function byAndWhen(decision: DecisionWhoWhen): string {
  const by = decision.by.length === 0 ? "" : ` by ${listOf(decision.by.map(mentionUser))}`;
  return `${by}, ${localTime(decision.at)}`;
}

const approvedBy = (decision: DecisionWhoWhen): string => `approved${byAndWhen(decision)}`;

const isUnsent = ({ operationStatus: status }: ApprovalStanding): boolean =>
  status === "AWAITING_APPROVAL" || status === "PREPARED";

/** Since when, by whom and why nothing is sent, as the card says it; nothing where nothing holds it back. */
const held = (frozen: Frozen | null): string => (frozen === null ? "" : ` ${frozenSince(frozen)}`);

const isTried = ({ operationStatus: status, attempts }: ApprovalStanding): boolean =>
  isTriedAgain({ status, attempts });

const stoppedWhen = (attempts: number): string =>
  attempts === 0
    ? "before it was sent"
    : `after ${attempts === 1 ? "one try" : `${attempts} tries`}; nothing was carried out`;

function standing(now: ApprovalStanding): string {
  const { operationStatus: status, resultCode, attempts } = now;
  const result = resultCode === null ? null : { code: resultCode };
  switch (status) {
    case "AWAITING_APPROVAL":
    case "PREPARED":
      return isTried(now)
        ? `was ${timesTried(attempts)}, certainly nothing was carried out, and is tried again`
        : "has not been sent yet";
    case "DISPATCHED":
      return "has been sent";
    case "OUTCOME_UNKNOWN":
    case "RECONCILING":
      return "has been sent; its outcome is being checked";
    case "QUARANTINED":
      return "has been sent; its outcome is with on-call";
    case "CONFIRMED":
      return done("has been carried out", result);
    case "REJECTED":
      return isMadeDifferently({ result })
        ? "was not carried out as asked, closed by on-call"
        : done("was not carried out", result);
    case "DENIED":
    case "EXPIRED":
    case "VOIDED":
      return `was stopped ${stoppedWhen(attempts)}`;
    case "REVERSED":
      return "was carried out and later taken back by the provider";
    default:
      return assertNever(status, "operation status");
  }
}
