/**
 * What a click on an approval does: decided purely from the row, the person, the policy and the database's time; carried
 * out by `src/approvals/decide.ts` under the row's lock.
 *
 * The questions are asked in this order, and the first that stops the click answers it:
 *  1. may this account act at all (a full, active member of our workspace whom Slack could describe)?
 *  2. has the approval ended?  3. is the deadline past?  4. is it the present card?
 *  5. may this person decide this (role, limit, not the filer, one vote)?  6. is what was typed complete?
 */
import type { Approval } from "./approval.js";
import { assertNever } from "./assert-never.js";
import { formatMoney, repeatsAmount } from "./money.js";
import type { OperationStatus } from "./operation.js";
import { type May, mayDecide } from "./policy/people.js";
import type { Policy } from "./policy/policy.js";
import type { PersonReading } from "./ports/directory.js";

export interface Click {
  readonly cardVersion: number;
  readonly verdict: "approve" | "deny";
  readonly repeatedAmount: string | null;
  readonly suggestedMinor: bigint | null;
}

export interface ClickSituation {
  readonly approval: Approval;
  readonly operationStatus: OperationStatus;
  /** Slack user ids that count as filer now; whoever joined later counts too. */
  readonly filers: readonly string[];
  readonly reading: PersonReading;
  readonly policy: Policy;
  /** The database's time, read after the row was locked. */
  readonly now: Date;
}

export type ClickDecision =
  | { readonly act: "vote"; readonly completes: boolean; readonly missing: number }
  | { readonly act: "deny"; readonly late: boolean }
  /** The deadline is past: the click itself ends the approval, and is told so. */
  | { readonly act: "expire" }
  | { readonly act: "none"; readonly because: "ended" | "already_sent" | "stale_card" | "repeat_amount" }
  | { readonly act: "none"; readonly because: "already_voted"; readonly at: Date; readonly missing: number }
  | { readonly act: "none"; readonly because: "refused"; readonly reason: string; readonly sentence: string }
  | { readonly act: "none"; readonly because: "bad_suggestion"; readonly sentence: string };

/** States of an operation in which a no can still stop it. */
const STOPPABLE: ReadonlySet<OperationStatus> = new Set(["AWAITING_APPROVAL", "PREPARED"]);

/** True when the approval is not refused, and its operation has not left: a no would still win. */
export function canBeStopped(approval: Pick<Approval, "state">, operationStatus: OperationStatus): boolean {
  return isOpen(approval.state) && STOPPABLE.has(operationStatus);
}

/** Answers one click. Pure and total. */
export function decideClick(click: Click, situation: ClickSituation): ClickDecision {
  const { approval, operationStatus, now } = situation;
  const account = mayAct(situation);
  if (!account.may) return refused(account);
  if (!isOpen(approval.state)) return none("ended");
  if (approval.state === "PENDING" && now >= approval.expiresAt) return { act: "expire" };
  if (
    click.verdict === "approve" &&
    (approval.state !== "PENDING" || operationStatus !== "AWAITING_APPROVAL")
  ) {
    return none("ended");
  }
  if (click.verdict === "deny" && !STOPPABLE.has(operationStatus)) return none("already_sent");
  if (click.cardVersion !== approval.cardVersion) return none("stale_card");
  return click.verdict === "approve" ? approve(click, situation) : deny(click, situation);
}

function approve(click: Click, situation: ClickSituation): ClickDecision {
  const { approval, reading } = situation;
  const missing = missingVotes(approval);
  const own = reading.ok
    ? approval.votes.find((vote) => vote.person === reading.person.personKey)
    : undefined;
  if (own !== undefined) return { act: "none", because: "already_voted", at: own.at, missing };
  const may = mayVote(situation, voters(approval));
  if (!may.may) return refused(may);
  if (approval.confirmAmount && !repeated(click, approval)) return none("repeat_amount");
  return { act: "vote", completes: missing <= 1, missing: Math.max(0, missing - 1) };
}

/** A person who said yes may still say no: their vote is replaced, so the one-vote rule does not stand in the way. */
function deny(click: Click, situation: ClickSituation): ClickDecision {
  const may = mayVote(situation, []);
  if (!may.may) return refused(may);
  const problem = suggestionProblem(click.suggestedMinor, situation.approval);
  if (problem !== null) return { act: "none", because: "bad_suggestion", sentence: problem };
  return { act: "deny", late: situation.approval.state !== "PENDING" };
}

/** Distinct people still needed. */
export function missingVotes(approval: Pick<Approval, "votes" | "approversNeeded">): number {
  return Math.max(0, approval.approversNeeded - new Set(voters(approval)).size);
}

const voters = (approval: Pick<Approval, "votes">): string[] =>
  approval.votes.filter((vote) => vote.verdict === "approve").map((vote) => vote.person);

/**
 * Whether this person may vote on this approval under the present policy. The self-approval rule is the stricter of the
 * bound and the present one, so that a change of policy between card and click never widens who may decide.
 */
export function mayVote(
  situation: Pick<ClickSituation, "approval" | "filers" | "reading" | "policy">,
  alreadyVoted: readonly string[],
): May {
  const { approval, filers, reading, policy } = situation;
  const { binding } = approval;
  return mayDecide(
    reading,
    {
      need: {
        role: approval.role,
        isLastLine: binding.policy.isLastLine,
        ladderMinor: binding.policy.ladderMinor,
        selfApproval: binding.policy.selfApproval && policy.approvals.selfApproval,
      },
      amountMinor: binding.amountMinor,
      currency: binding.currency,
      filers: [...binding.filers, ...filers],
      voters: alreadyVoted,
    },
    policy,
  );
}

/** The account alone: role, limit and filing are asked later, so that a late click by anybody is told what happened. */
function mayAct(situation: ClickSituation): May {
  const may = mayVote(situation, []);
  if (may.may || may.reason === "standing") return may;
  return may.reason === "unreadable" && !situation.reading.ok ? may : { may: true };
}

function repeated(click: Click, { binding }: Approval): boolean {
  const { amountMinor, currency } = binding;
  return click.repeatedAmount !== null && repeatsAmount(click.repeatedAmount, { amountMinor, currency });
}

function suggestionProblem(suggestedMinor: bigint | null, { binding }: Approval): string | null {
  if (suggestedMinor === null) return null;
  const { amountMinor, currency, kind } = binding;
  if (kind !== "refund") return "Only a refund can be suggested with another amount.";
  if (suggestedMinor <= 0n) return "The suggested amount must be more than nothing.";
  if (suggestedMinor < amountMinor) return null;
  return `The suggested amount must be less than ${formatMoney({ amountMinor, currency })}.`;
}

function isOpen(state: Approval["state"]): boolean {
  switch (state) {
    case "PENDING":
    case "APPROVED":
    case "RELEASED":
      return true;
    case "DENIED":
    case "EXPIRED":
    case "VOIDED":
      return false;
    default:
      return assertNever(state, "approval state");
  }
}

const none = (because: "ended" | "already_sent" | "stale_card" | "repeat_amount"): ClickDecision => ({
  act: "none",
  because,
});

const refused = (may: Exclude<May, { may: true }>): ClickDecision => ({
  act: "none",
  because: "refused",
  reason: may.reason,
  sentence: may.sentence,
});
