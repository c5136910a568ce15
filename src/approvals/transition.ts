/** The one place that moves an approval's state: conditional on the state and version that were read under its lock. */
import type { Tx } from "../db/connect.js";
import type { Approval, ApprovalEndCode, ApprovalState } from "../domain/approval.js";
import type { ApprovalsContext } from "./context.js";
import { getApproval } from "./rows.js";

export interface Move {
  readonly to: Exclude<ApprovalState, "PENDING">;
  readonly endCode?: ApprovalEndCode;
  readonly endDetail?: string | null;
  readonly denyNote?: string | null;
  readonly suggestedMinor?: bigint | null;
  /** With RELEASED: operations prepared in the same turn. */
  readonly releasedWith?: readonly string[];
}

/**
 * Moves an approval that the caller has locked and read. Throws when the row is not as it was read: then the lock was not
 * held, which is a defect and must not become a decision.
 */
export async function move(
  tx: Tx,
  ctx: Pick<ApprovalsContext, "notices">,
  approval: Approval,
  change: Move,
): Promise<Approval> {
  const [, moved] = await Promise.all([moveUnread(tx, ctx, approval, change), getApproval(tx, approval.id)]);
  if (moved === null) throw new Error(`approval ${approval.id} is gone`);
  return moved;
}

/** As `move`, for a caller that does not look at the row again. */
export async function moveUnread(
  tx: Tx,
  ctx: Pick<ApprovalsContext, "notices">,
  approval: Approval,
  change: Move,
): Promise<void> {
  await Promise.all([
    moveUntold(tx, approval, change),
    ctx.notices.touch(tx, { kind: "approval", id: approval.id }),
  ]);
}

/** As `moveUnread`, for a caller that touches its cards later: they are locked after the operations. */
export async function moveUntold(tx: Tx, approval: Approval, change: Move): Promise<void> {
  const rows = await tx.sql("approvals.move", MOVE, [
    approval.id,
    approval.state,
    approval.version,
    change.to,
    change.endCode ?? null,
    change.endDetail ?? null,
    change.denyNote ?? null,
    change.suggestedMinor ?? null,
    change.releasedWith === undefined ? null : [...change.releasedWith],
  ]);
  if (rows.length !== 1) throw new Error(`approval ${approval.id} moved although its lock was held`);
}

// $1 id, $2 state and $3 version as read, $4 new state, $5 code, $6 sentence, $7 note, $8 suggestion, $9 siblings.
// Nobody has to look at it again: due_at is cleared. decided_at is when people (or the deadline) decided, so a release keeps it.
const MOVE = `
UPDATE approvals SET state = $4, version = version + 1, due_at = NULL, updated_at = countersign_now(),
  decided_at = CASE WHEN $4 = 'RELEASED' THEN decided_at ELSE countersign_now() END,
  end_code = coalesce($5, end_code), end_detail = coalesce($6, end_detail), deny_note = coalesce($7, deny_note),
  suggested_minor = coalesce($8, suggested_minor), released_with = coalesce($9::text[], released_with)
WHERE id = $1 AND state = $2 AND version = $3 RETURNING id`;

/**
 * After a decision that left nobody of the turn undecided: the run is due now and woken after commit. The decision may travel with this,
 * asked for before it.
 */
export async function tellTurn(
  tx: Tx,
  ctx: Pick<ApprovalsContext, "hooks" | "wake">,
  approval: Approval,
): Promise<number> {
  const { runId, turnId } = approval;
  const [row] = await tx.sql<{ undecided: number }>(
    "approvals.undecided",
    "SELECT count(*)::int AS undecided FROM approvals WHERE turn_id = $1 AND state = 'PENDING'",
    [turnId],
  );
  const undecided = row?.undecided ?? 0;
  if (runId !== null && turnId !== null && undecided === 0) {
    await ctx.hooks.onTurnDecided(tx, { runId, turnId });
    const { afterTurnDecided } = ctx.hooks;
    tx.afterCommit(() =>
      afterTurnDecided === undefined
        ? void ctx.wake("run", runId)
        : afterTurnDecided({ runId, turnId, people: null }),
    );
  }
  return undecided;
}
