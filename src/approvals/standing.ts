/** Where an approval and its operation stand, for sentences and cards. Reads only. */
import type { SqlRunner } from "../db/connect.js";
import type { Approval } from "../domain/approval.js";
import { canBeStopped } from "../domain/approval-click.js";
import type { ApprovalId } from "../domain/ids.js";
import type { OperationStatus } from "../domain/operation.js";
import { FROZEN_COLUMNS, FROZEN_JOIN, type FrozenRow, frozenOf } from "../ledger/index.js";
import type { ApprovalStanding, DecisionWhoWhen } from "./types.js";

/** The operation's state, how many siblings are undecided, and whether a person may still stop it. */
export async function standingOf(on: SqlRunner, approval: Approval): Promise<ApprovalStanding> {
  const [row] = await on.sql<
    FrozenRow & {
      status: OperationStatus;
      code: string | null;
      not_before: Date | null;
      waits_for: number;
      attempts: number;
    }
  >(
    "approvals.standing",
    `SELECT o.status, o.attempts, o.result->>'code' AS code, CASE WHEN o.status = 'PREPARED' AND o.not_before > countersign_now() THEN o.not_before END AS not_before,
       ${FROZEN_COLUMNS},
       (SELECT count(*)::int FROM approvals s WHERE s.turn_id = $2 AND s.id <> $3 AND s.state = 'PENDING') AS waits_for
     FROM operations o ${FROZEN_JOIN} WHERE o.id = $1`,
    [approval.operationId, approval.turnId, approval.id],
  );
  if (row === undefined) throw new Error(`operation ${approval.operationId} is gone`);
  return {
    operationStatus: row.status,
    resultCode: row.code,
    waitsFor: row.waits_for,
    notBefore: row.not_before,
    frozen: frozenOf(row),
    attempts: row.attempts,
    canBeStopped: canBeStopped(approval, row.status),
  };
}

/** The approval that asks again after this one died; null: none. */
export async function successorOf(on: SqlRunner, id: ApprovalId): Promise<ApprovalId | null> {
  const [row] = await on.sql<{ id: ApprovalId }>(
    "approvals.successor",
    `SELECT s.id FROM approvals a JOIN approvals s ON s.predecessor_id = a.id
     WHERE a.id = $1 ORDER BY s.id DESC LIMIT 1`,
    [id],
  );
  return row?.id ?? null;
}

/** Who decided and when, as far as it is decided: the deciding votes, or nobody for an end without a person. */
export function decisionOf(approval: Approval): DecisionWhoWhen {
  const verdict = approval.state === "DENIED" ? "deny" : "approve";
  const votes = approval.votes.filter((vote) => vote.verdict === verdict);
  const byPeople = approval.state !== "EXPIRED" && approval.state !== "VOIDED";
  return {
    state: approval.state,
    endCode: approval.endCode,
    by: byPeople ? votes.map((vote) => vote.userId) : [],
    at: approval.decidedAt ?? votes.at(-1)?.at ?? approval.updatedAt,
    note: approval.denyNote ?? votes.findLast((vote) => vote.note !== null)?.note ?? null,
    detail: approval.endDetail,
  };
}
