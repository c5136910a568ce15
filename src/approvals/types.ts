/** Parameters and outcomes of the room's functions. Outcomes are values: losing a race is an ordinary answer. */
import type { Approval, ApprovalEndCode, ApprovalState, Change } from "../domain/approval.js";
import type { Frozen } from "../domain/frozen.js";
import type { ApprovalId, CallId, OperationId, RunId, TicketId, TurnId } from "../domain/ids.js";
import type { Operation, OperationStatus } from "../domain/operation.js";
import type { PersonReading } from "../domain/ports/directory.js";
import type { Judgement } from "../domain/ports/judge.js";

export interface ApprovalRequest {
  readonly operation: Operation;
  /** Held; or allowed where an approval that died asks again: then the predecessor's demand stands. */
  readonly judgement: Judgement;
  readonly runId: RunId | null;
  readonly turnId: TurnId | null;
  readonly ticketId: TicketId | null;
  /** The approval that died and is asked for again. */
  readonly predecessor?: Approval;
  readonly changes?: readonly Change[];
}

/** A click on Approve, or the submitted form behind Deny. Carries ids and what the person typed; all facts are re-read. */
export interface DecideClick {
  readonly approvalId: string;
  readonly cardVersion: number;
  /** Slack user id, from a verified interaction only. */
  readonly userId: string;
  readonly verdict: "approve" | "deny";
  readonly note?: string | null;
  /** What the approver typed where the amount must be repeated. */
  readonly repeatedAmount?: string | null;
  /** Deny may suggest a smaller amount, in minor units of the operation's currency. */
  readonly suggestedMinor?: bigint | null;
  /** Where the card was that was clicked; App Home has no message. Recorded only. */
  readonly seen?: { readonly channelId: string; readonly messageTs: string } | { readonly home: true };
  /** Begun when the click arrived; counts only for the person that it is about. */
  readonly ahead?: PersonAhead;
}

/** A person who is being read for a click that is not recorded yet, so that both go on at once. Made by `readAhead`. */
export interface PersonAhead {
  readonly userId: string;
  /** Before the question, in milliseconds. */
  readonly readAt: number;
  readonly reading: Promise<PersonReading>;
}

export type UndoClick = Pick<DecideClick, "approvalId" | "userId" | "seen" | "ahead">;

/** Who decided and when. `by` holds Slack user ids in the order of the votes; empty: nobody (expired, voided). */
export interface DecisionWhoWhen {
  readonly state: ApprovalState;
  readonly endCode: ApprovalEndCode | null;
  readonly by: readonly string[];
  readonly at: Date;
  readonly note: string | null;
  readonly detail: string | null;
}

/** Where the approved operation stands for whoever reads the card: "waits for 2 others", "not sent yet", "sent". */
export interface ApprovalStanding {
  readonly operationStatus: OperationStatus;
  /** Code of the operation's result, once it has one. */
  readonly resultCode: string | null;
  /** Undecided siblings of the same turn. */
  readonly waitsFor: number;
  /** End of cooling-off, while it runs. */
  readonly notBefore: Date | null;
  /** What keeps its kind from being sent now; null: nothing does. */
  readonly frozen: Frozen | null;
  /** How often its operation was begun. */
  readonly attempts: number;
  /** A person may still stop it. */
  readonly canBeStopped: boolean;
}

/** Nothing stands in the way of a no of this person; the approval as it stood when it was looked at. */
export interface MayDeny {
  readonly outcome: "may_deny";
  readonly approval: Approval;
}

export type DecideOutcome =
  /** The vote counts; more people are needed. */
  | {
      readonly outcome: "recorded";
      readonly approval: Approval;
      readonly missing: number;
      readonly frozen: Frozen | null;
    }
  /** The vote completed the approval. Nothing is sent yet. `frozen`: nor will it be before the freeze switch is turned back. */
  | {
      readonly outcome: "approved";
      readonly approval: Approval;
      readonly waitsFor: number;
      readonly frozen: Frozen | null;
      /** Where its release found that it no longer holds: the approval that asks again; null: none does. */
      readonly successorId: ApprovalId | null;
    }
  /** The no counts. `late`: it overtook a complete approval. `attempts`: how often that had been tried by then, each time for nothing. */
  | {
      readonly outcome: "denied";
      readonly approval: Approval;
      readonly late: boolean;
      readonly attempts: number;
    }
  | { readonly outcome: "not_found" }
  /** Decided, expired or void before this click. */
  | {
      readonly outcome: "ended";
      readonly approval: Approval;
      readonly decision: DecisionWhoWhen;
      readonly standing: ApprovalStanding;
      /** The approval that asks again, if there is one. */
      readonly successorId: ApprovalId | null;
    }
  /** The operation left before this no: it can no longer be stopped. */
  | {
      readonly outcome: "already_sent";
      readonly approval: Approval;
      readonly decision: DecisionWhoWhen;
      readonly standing: ApprovalStanding;
    }
  /** This person voted before, and the approval still waits for others. */
  | {
      readonly outcome: "already_voted";
      readonly approval: Approval;
      readonly at: Date;
      readonly missing: number;
    }
  /** An older card of an approval that has been shown anew. */
  | { readonly outcome: "stale_card"; readonly approval: Approval }
  /** Who clicked may not decide. `sentence` is the policy's, ready to show. */
  | {
      readonly outcome: "refused";
      readonly reason: string;
      readonly sentence: string;
      readonly approval: Approval;
    }
  /** The amount must be typed and was not, or differently. */
  | {
      readonly outcome: "repeat_amount";
      readonly approval: Approval;
      readonly typed: string | null;
    }
  /** The database or the directory kept this click from being decided; nothing was recorded that is not shown. Click again. */
  | { readonly outcome: "try_again"; readonly sentence: string }
  /** The suggested amount is not smaller than the one asked for, not positive, or not about money. */
  | { readonly outcome: "bad_suggestion"; readonly approval: Approval; readonly sentence: string };

/** One write call of a held turn, in the order of the turn. */
export type TurnCall<Proposal> =
  /** It has an operation: held, or the same as one that exists. */
  | { readonly callId: CallId; readonly operationId: OperationId }
  /** Allowed when it was judged and waiting for its siblings; the proposal as stored then. */
  | { readonly callId: CallId; readonly proposal: Proposal };

export type ReleaseOutcome<PerCall> =
  /** Prepared together, once. `calls` answers every call of the turn in its order. */
  | { readonly outcome: "released"; readonly calls: readonly PerCall[] }
  /** Undecided approvals, those armed anew by this very call included. */
  | {
      readonly outcome: "still_held";
      readonly waiting: readonly ApprovalId[];
      readonly rearmed: readonly ApprovalId[];
    }
  /** A voter's standing cannot be read now; nothing was changed. Try again later. */
  | { readonly outcome: "voters_unreadable"; readonly reason: string };

/** Readings of everybody who voted yes, by user id, made before a transaction. */
export type VoterReadings = ReadonlyMap<string, PersonReading>;

/** People as they were read, and how old that is. */
export interface ReadPeople {
  readonly readings: VoterReadings;
  /** Milliseconds of the process clock when reading began. */
  readonly readAt: number;
}

/** A held turn in which nobody is undecided any more. `people`: who was read for the click that decided it. */
export interface DecidedTurn {
  readonly runId: RunId;
  readonly turnId: TurnId;
  readonly people: ReadPeople | null;
}

/** Whether the operation may still be sent under its approval. */
export type Holds =
  | { readonly holds: true }
  | {
      readonly holds: false;
      readonly code: "drift" | "not_released" | "voters_unreadable";
      readonly changes: readonly Change[];
    };

/** A row of a list, with what a person needs to tell it from its neighbours. */
export interface ListedApproval {
  readonly approval: Approval;
  readonly missing: number;
}
