/** Rows of `approvals` and `votes` become values here and nowhere else; a row that fits no shape throws. */
import type { SqlRunner, Tx } from "../db/connect.js";
import {
  APPROVAL_STATES,
  type Approval,
  type ApprovalEndCode,
  type ApprovalState,
  type Vote,
} from "../domain/approval.js";
import type { ApprovalId, OperationId, RunId, TicketId, TurnId } from "../domain/ids.js";
import { bindingFromJson, changesFromJson } from "./binding-json.js";

export interface ApprovalRow {
  id: string;
  operation_id: string;
  run_id: string | null;
  turn_id: string | null;
  ticket_id: string | null;
  state: string;
  version: bigint;
  binding: unknown;
  binding_hash: string;
  role: string;
  approvers_needed: number;
  confirm_amount: boolean;
  card_version: number;
  predecessor_id: string | null;
  changes: unknown;
  gate: { satisfiable: boolean; sentence?: string } | null;
  released_with: string[];
  expires_at: Date;
  reminders_sent: number;
  due_at: Date | null;
  decided_at: Date | null;
  end_code: string | null;
  end_detail: string | null;
  deny_note: string | null;
  suggested_minor: bigint | null;
  created_at: Date;
  updated_at: Date;
  votes: VoteJson[];
}

interface VoteJson {
  user_id: string;
  person: string;
  verdict: string;
  note: string | null;
  role: string;
  granted_by: string | null;
  card_version: number;
  at: string;
  seal: string | null;
}

/** Every column that `approvalFromRow` reads, of table alias `a`, the votes in the order in which they were given. */
export const APPROVAL_COLUMNS = `a.id, a.operation_id, a.run_id, a.turn_id, a.ticket_id, a.state, a.version, a.binding,
  a.binding_hash, a.role, a.approvers_needed, a.confirm_amount, a.card_version, a.predecessor_id, a.changes, a.gate,
  a.released_with, a.expires_at, a.reminders_sent, a.due_at, a.decided_at, a.end_code, a.end_detail, a.deny_note,
  a.suggested_minor, a.created_at, a.updated_at,
  coalesce((SELECT jsonb_agg(jsonb_build_object('user_id', v.user_id, 'person', v.person, 'verdict', v.verdict,
      'note', v.note, 'role', v.role, 'granted_by', v.role_evidence ->> 'by', 'card_version', v.card_version, 'at', v.at,
      'seal', v.seal) ORDER BY v.at, v.id)
    FROM votes v WHERE v.approval_id = a.id), '[]') AS votes`;

export function approvalFromRow(row: ApprovalRow): Approval {
  return {
    id: row.id as ApprovalId,
    operationId: row.operation_id as OperationId,
    runId: row.run_id as RunId | null,
    turnId: row.turn_id as TurnId | null,
    ticketId: row.ticket_id as TicketId | null,
    state: stateOf(row),
    version: row.version,
    cardVersion: row.card_version,
    binding: bindingFromJson(row.binding),
    bindingHash: row.binding_hash,
    role: row.role,
    approversNeeded: row.approvers_needed,
    confirmAmount: row.confirm_amount,
    predecessorId: row.predecessor_id as ApprovalId | null,
    changes: changesFromJson(row.changes),
    gate: gateOf(row),
    expiresAt: row.expires_at,
    remindersSent: row.reminders_sent,
    decidedAt: row.decided_at,
    endCode: row.end_code as ApprovalEndCode | null,
    endDetail: row.end_detail,
    denyNote: row.deny_note,
    suggestedMinor: row.suggested_minor,
    votes: row.votes.map(voteOf),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

function stateOf(row: ApprovalRow): ApprovalState {
  const state = APPROVAL_STATES.find((known) => known === row.state);
  if (state === undefined) throw new Error(`approval ${row.id} has the unknown state ${row.state}`);
  return state;
}

function gateOf({ gate }: ApprovalRow): Approval["gate"] {
  if (gate === null) return null;
  return gate.satisfiable ? { satisfiable: true } : { satisfiable: false, sentence: gate.sentence ?? "" };
}

function voteOf(vote: VoteJson): Vote {
  if (vote.verdict !== "approve" && vote.verdict !== "deny") {
    throw new Error(`a vote has the unknown verdict ${vote.verdict}`);
  }
  return {
    userId: vote.user_id,
    person: vote.person,
    verdict: vote.verdict,
    note: vote.note,
    role: vote.role,
    grantedBy: vote.granted_by,
    cardVersion: vote.card_version,
    at: new Date(vote.at),
    seal: vote.seal,
  };
}

/** One approval; null: there is none. Takes no lock. */
export async function getApproval(on: SqlRunner, id: ApprovalId): Promise<Approval | null> {
  const [row] = await on.sql<ApprovalRow>(
    "approvals.get",
    `SELECT ${APPROVAL_COLUMNS} FROM approvals a WHERE a.id = $1`,
    [id],
  );
  return row === undefined ? null : approvalFromRow(row);
}

/**
 * Locks an approval together with its siblings of the same turn, in the order of their ids, and reads them after the lock:
 * whoever decides the last one knows that it is the last. Empty: there is no such approval.
 */
export async function lockWithSiblings(tx: Tx, id: ApprovalId): Promise<readonly Approval[]> {
  tx.later(
    "approvals.lock_siblings",
    `SELECT 1 FROM approvals WHERE id = $1
       OR turn_id = (SELECT turn_id FROM approvals WHERE id = $1) ORDER BY id FOR NO KEY UPDATE`,
    [id],
  );
  const rows = await tx.sql<ApprovalRow>(
    "approvals.read_siblings",
    `SELECT ${APPROVAL_COLUMNS} FROM approvals a WHERE a.id = $1
       OR a.turn_id = (SELECT turn_id FROM approvals WHERE id = $1) ORDER BY a.id`,
    [id],
  );
  return rows.map(approvalFromRow);
}

/** Locks every approval of a turn, in the order of their ids, and reads them after the lock. */
export async function lockTurn(tx: Tx, turnId: TurnId): Promise<readonly Approval[]> {
  tx.later(
    "approvals.lock_turn",
    "SELECT 1 FROM approvals WHERE turn_id = $1 ORDER BY id FOR NO KEY UPDATE",
    [turnId],
  );
  return readTurn(tx, turnId);
}

/** Every approval of a turn, oldest first, those that were replaced included. */
export async function readTurn(on: SqlRunner, turnId: TurnId): Promise<readonly Approval[]> {
  const rows = await on.sql<ApprovalRow>(
    "approvals.read_turn",
    `SELECT ${APPROVAL_COLUMNS} FROM approvals a WHERE a.turn_id = $1 ORDER BY a.id`,
    [turnId],
  );
  return rows.map(approvalFromRow);
}
