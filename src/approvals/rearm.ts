/** Drift: the approval dies; where the wish itself still stands, one new card in the same thread shows what changed. */
import type { Tx } from "../db/connect.js";
import type { Approval, Change } from "../domain/approval.js";
import { materialFieldsHold } from "../domain/approval-drift.js";
import { changesText } from "../domain/approval-words.js";
import type { ApprovalId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import type { Judgement } from "../domain/ports/judge.js";
import * as ledger from "../ledger/index.js";
import { changesForAudit, voteFacts } from "./audit.js";
import type { ApprovalsContext } from "./context.js";
import { type RequestContext, request } from "./request.js";
import { move } from "./transition.js";

export type RearmContext = RequestContext & Pick<ApprovalsContext, "ledger">;

/** Result code of an operation that ended because the world no longer was as approved. */
export const DRIFT_CODE = "drift";

/**
 * Kills a complete approval whose binding no longer holds. The operation, which nothing was sent for, waits for a new
 * approval where its material fields and the policy allow that; otherwise it is VOIDED with a sentence that says why.
 *
 * Expects approval and operation locked, the operation AWAITING_APPROVAL. Returns the new approval, or null.
 */
export async function rearm(
  tx: Tx,
  ctx: RearmContext,
  drifted: {
    readonly approval: Approval;
    readonly operation: Operation;
    readonly judgement: Judgement;
    readonly changes: readonly Change[];
  },
): Promise<Approval | null> {
  const { approval, operation, judgement, changes } = drifted;
  const detail = changesText(changes);
  const mayAskAgain = materialFieldsHold(changes) && judgement.answer !== "refuse";
  const fact = {
    approvalId: approval.id,
    votes: voteFacts(approval),
    changes: changesForAudit(changes),
  };
  if (mayAskAgain) await ledger.noteApprovalVoided(tx, operation, fact);
  else {
    await ledger.voidOperation(tx, ctx.ledger, {
      operationId: operation.id,
      actor: "system:approvals",
      code: DRIFT_CODE,
      detail: `What was approved no longer holds, so nothing was done. ${detail}`,
      approval: fact,
    });
  }
  await move(tx, ctx, approval, { to: "VOIDED", endCode: "drift", endDetail: detail });
  const next = mayAskAgain
    ? await request(tx, ctx, {
        operation,
        judgement,
        runId: approval.runId,
        turnId: approval.turnId,
        ticketId: approval.ticketId,
        predecessor: approval,
        changes,
      })
    : null;
  await tellThread(tx, ctx, approval, next?.id ?? null);
  return next;
}

/** One post in the ticket's thread for an approval that died. */
export async function tellThread(
  tx: Tx,
  ctx: Pick<ApprovalsContext, "notices">,
  approval: Approval,
  successorId: ApprovalId | null,
): Promise<void> {
  if (approval.ticketId === null) return;
  await ctx.notices.thread(tx, {
    ticketId: approval.ticketId,
    key: `approval_voided:${approval.id}`,
    message: { type: "approval_voided", approvalId: approval.id, successorId },
  });
}
