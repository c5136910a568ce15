/** Cards of what a freeze switch holds back say so, and say it no longer after the thaw. */
import type { ApprovalId, RunId } from "../domain/ids.js";
import type { OpsContext } from "./context.js";
import type { FreezeKind } from "./types.js";

/** The ones due first; more than this many cards nobody reads during a freeze, and each is rendered anew when it moves. */
const SHOWN_MAX = 300;

/** $1 kind. */
const HELD = `
SELECT o.approval_id AS "approvalId",
       ARRAY(SELECT o.owner_run_id WHERE o.owner_run_id IS NOT NULL
             UNION SELECT w.run_id FROM operation_waiters w WHERE w.operation_id = o.id) AS "runIds"
FROM operations o
WHERE o.status = 'PREPARED' AND o.due_at IS NOT NULL AND ($1 = 'all' OR o.kind = $1)
ORDER BY o.due_at, o.id LIMIT ${SHOWN_MAX}`;

/**
 * Call after the switch has turned. Each card in a transaction of its own: the turn itself waits for no card, and holds none that
 * a claim waits for. What cannot be written is logged: the switch has turned, and the cards converge with the next change.
 */
export async function showSwitch(
  ctx: Pick<OpsContext, "db" | "ledger" | "log">,
  kind: FreezeKind,
): Promise<void> {
  try {
    const held = await ctx.db.sql<{ approvalId: ApprovalId | null; runIds: RunId[] }>("ops.held", HELD, [
      kind,
    ]);
    const approvals = new Set(held.flatMap(({ approvalId }) => (approvalId === null ? [] : [approvalId])));
    const runs = new Set(held.flatMap(({ runIds }) => runIds));
    for (const id of approvals)
      await ctx.db.tx((tx) => ctx.ledger.notices.touch(tx, { kind: "approval", id }));
    for (const id of runs) await ctx.db.tx((tx) => ctx.ledger.notices.touch(tx, { kind: "run", id }));
  } catch (error) {
    ctx.log.error({ kind, err: error }, "the switch has turned, but not every card says so yet");
  }
}
