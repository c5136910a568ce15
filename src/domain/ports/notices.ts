/**
 * How rooms that know nothing of Slack make people see things: inside the transaction of the change, as data.
 * The texts are made by whoever implements this, from rows.
 */
import type { ApprovalId, OperationId, RunId, TicketId } from "../ids.js";
import type { OperationKind } from "../operation.js";

/** Something that has cards. Touching it re-renders every card of it from its rows, and makes those that are missing. */
export type CardSubject =
  | { kind: "approval"; id: ApprovalId }
  /** On-call is asked to look after an approval that nobody decides. Follows the approval once it is there. */
  | { kind: "escalation"; id: ApprovalId }
  | { kind: "run"; id: RunId }
  | { kind: "binding"; id: TicketId }
  | { kind: "quarantine"; id: OperationId }
  | { kind: "incident"; id: string }
  | { kind: "resolution"; id: string }
  | { kind: "thaw"; id: string };

/** One post in a ticket's thread. Sentences about effects name an operation and are rendered from its row alone. */
export type ThreadMessage =
  /** `was`: the end that had been told there and does not hold any more. */
  | { type: "operation_outcome"; operationId: OperationId; was?: "CONFIRMED" | "REJECTED" }
  | { type: "operation_being_checked"; operationId: OperationId }
  | { type: "operation_replayed"; operationId: OperationId }
  /** Model prose: always posted under a marker that says whose it is. */
  | { type: "model_says"; text: string; planner: string }
  | { type: "ask"; question: string; candidates: readonly string[] }
  | { type: "escalated"; runId: RunId; summary: string }
  | { type: "run_ended"; runId: RunId }
  /** Nobody could decide this approval; `sentence` says what to do. */
  | { type: "gate_unsatisfiable"; approvalId: ApprovalId; role: string; sentence: string }
  /** The approval died because the world moved on; the new card stands in the same thread when there is one. */
  | { type: "approval_voided"; approvalId: ApprovalId; successorId: ApprovalId | null }
  /** A plain sentence made by code. */
  | { type: "sentence"; text: string };

/** One post in the ops channel. */
export type OpsMessage =
  | { type: "frozen"; kind: string; by: string; reason: string }
  /** A request for a second person no longer stands: nobody answered in time, or the operation moved meanwhile. */
  | {
      type: "proposal_ended";
      operationId: OperationId;
      verb: string;
      by: string;
      how: "expired" | "superseded";
    }
  /** `refusedBy` null: nobody answered in time. */
  | { type: "thaw_request_ended"; kind: string; by: string; refusedBy: string | null }
  | { type: "incident_closed"; incidentId: string; kind: string; by: string; reason: string }
  /** `stillFrozen`: kinds that have a switch of their own which is on. `askedBy`: `by` agreed to what this person had asked for. */
  | {
      type: "thawed";
      kind: string;
      by: string;
      askedBy?: string | null;
      stillFrozen?: readonly string[];
    }
  | {
      type: "resolved";
      operationId: OperationId;
      verb: string;
      by: string;
      /** Who agreed, where two people were needed. */
      second?: string | null;
      reason: string;
      evidence: string;
    }
  | { type: "chain_head"; seq: string; hash: string }
  | { type: "sentence"; text: string };

/** One post in the approvals channel, in the thread of the approval's card there. */
export type ApproversMessage =
  | {
      type: "approval_reminder";
      /** 1 for the first. */
      number: number;
      role: string;
      /** The role that is asked to look after it from now on; null: only the role itself is reminded. */
      escalatedTo: string | null;
    }
  | { type: "gate_unsatisfiable"; role: string; sentence: string };

export interface Notices<Tx> {
  touch(tx: Tx, subject: CardSubject): Promise<void>;
  /** As `touch`, for cards that are there; makes none. */
  follow(tx: Tx, subject: CardSubject): Promise<void>;
  /** Posts the subject's cards again as new messages; the old ones are replaced by a line that says so. Never piles up. */
  repost(tx: Tx, subject: CardSubject): Promise<void>;
  /** A freeze switch has turned: every card of what it holds back is rendered again, however many there are. */
  switchTurned(tx: Tx, kind: OperationKind | "all"): Promise<void>;
  /** At most once for each key. */
  thread(tx: Tx, post: { ticketId: TicketId; key: string; message: ThreadMessage }): Promise<void>;
  /** At most once for each key. */
  ops(tx: Tx, post: { key: string; message: OpsMessage }): Promise<void>;
  /** At most once for each key. */
  approvers(tx: Tx, post: { approvalId: ApprovalId; key: string; message: ApproversMessage }): Promise<void>;
}
