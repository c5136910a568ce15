/** A run ends early: its open approvals follow their operations to whoever waits for them, or end because nobody does. */
import type { Tx } from "../db/connect.js";
import type { Approval } from "../domain/approval.js";
import type { RunId, TurnId } from "../domain/ids.js";
import type { Actor, Operation } from "../domain/operation.js";
import * as ledger from "../ledger/index.js";
import type { ApprovalsContext } from "./context.js";
import { APPROVAL_COLUMNS, type ApprovalRow, approvalFromRow, getApproval } from "./rows.js";
import { move, tellTurn } from "./transition.js";

/**
 * Gives up what the run had not sent (`ledger.abandon`) together with its approvals. Joins the caller's transaction, which
 * must not hold operations yet (lock order) and ends the run itself afterwards.
 */
export async function ownerGone(
  tx: Tx,
  ctx: Pick<ApprovalsContext, "notices" | "hooks" | "wake" | "ledger">,
  gone: { readonly runId: RunId; readonly actor: Actor },
): Promise<readonly Operation[]> {
  const open = await lockOfRun(tx, gone.runId);
  const operations = await ledger.abandon(tx, ctx.ledger, gone);
  for (const approval of open) {
    const operation = operations.find((each) => each.id === approval.operationId);
    if (operation === undefined) continue;
    if (operation.ownerRunId !== null && operation.ownerRunId !== gone.runId) {
      await follow(tx, ctx, approval, operation, operation.ownerRunId);
    } else if (operation.status === "VOIDED") {
      const endDetail = "The request was stopped and nobody else waits for it.";
      await move(tx, ctx, approval, { to: "VOIDED", endCode: "nobody_waits", endDetail });
    }
  }
  return operations;
}

async function lockOfRun(tx: Tx, runId: RunId): Promise<readonly Approval[]> {
  await tx.sql(
    "approvals.lock_run",
    "SELECT 1 FROM approvals WHERE run_id = $1 AND state IN ('PENDING', 'APPROVED', 'RELEASED') ORDER BY id FOR NO KEY UPDATE",
    [runId],
  );
  const rows = await tx.sql<ApprovalRow>(
    "approvals.read_run",
    `SELECT ${APPROVAL_COLUMNS} FROM approvals a
     WHERE a.run_id = $1 AND a.state IN ('PENDING', 'APPROVED', 'RELEASED') ORDER BY a.id`,
    [runId],
  );
  return rows.map(approvalFromRow);
}

/** The approval now stands in the new owner's turn; its votes and its card stay as they are. */
async function follow(
  tx: Tx,
  ctx: Pick<ApprovalsContext, "notices" | "hooks" | "wake">,
  approval: Approval,
  operation: Operation,
  runId: RunId,
): Promise<void> {
  const [call] = await tx.sql<{ turn_id: TurnId }>(
    "approvals.new_turn",
    "SELECT turn_id FROM tool_calls WHERE run_id = $1 AND operation_id = $2 ORDER BY id DESC LIMIT 1",
    [runId, operation.id],
  );
  await tx.sql(
    "approvals.follow",
    `UPDATE approvals SET run_id = $2, turn_id = $3, ticket_id = $4, updated_at = countersign_now() WHERE id = $1`,
    [approval.id, runId, call?.turn_id ?? null, operation.ticketId],
  );
  await ctx.notices.touch(tx, { kind: "approval", id: approval.id });
  const moved = await getApproval(tx, approval.id);
  if (moved !== null && moved.state !== "PENDING") await tellTurn(tx, ctx, moved);
}
