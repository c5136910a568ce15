/**
 * The filer has confirmed the customer while writes of the run were held for want of just that: they need no approval any more.
 *
 * Only what nothing else holds, nobody has voted on and nobody else waits for: every other card stands as it is.
 */
import type { Tx } from "../db/connect.js";
import type { OperationId, TurnId } from "../domain/ids.js";
import * as ledger from "../ledger/index.js";
import type { ApprovalsContext } from "./context.js";
import { lockTurn } from "./rows.js";
import { move } from "./transition.js";

const DETAIL =
  "The filer confirmed the customer, and nothing else was holding this: it is within what the agent may do alone, and is judged anew.";

/** SQL: the rules of the policy's answer about `o`; none where somebody made something else of them, and then the card stands. */
const RULES = `jsonb_array_elements(CASE jsonb_typeof(o.decision -> 'rules') WHEN 'array' THEN o.decision -> 'rules' ELSE '[]' END)`;

/** $1 turn. Approvals that only the unconfirmed binding asked for. */
const ONLY_BINDING = `
SELECT a.id FROM approvals a JOIN operations o ON o.id = a.operation_id JOIN tickets t ON t.id = a.ticket_id
WHERE a.turn_id = $1 AND a.state = 'PENDING' AND t.binding = 'confirmed' AND o.status = 'AWAITING_APPROVAL'
  AND NOT EXISTS (SELECT 1 FROM votes v WHERE v.approval_id = a.id)
  AND NOT EXISTS (SELECT 1 FROM operation_waiters w WHERE w.operation_id = o.id AND w.run_id <> a.run_id)
  AND EXISTS (SELECT 1 FROM ${RULES} r
              WHERE r ->> 'verdict' = 'hold' AND r ->> 'rule' = 'binding')
  AND NOT EXISTS (SELECT 1 FROM ${RULES} r
                  WHERE r ->> 'verdict' = 'hold' AND r ->> 'rule' NOT IN ('binding', 'approval'))`;

/**
 * Voids those operations with their approvals and returns them; whoever asked proposes the same again, with a confirmed
 * customer. Joins the caller's transaction, which holds no operation and no run yet (lock order).
 */
export async function bindingWasConfirmed(
  tx: Tx,
  ctx: Pick<ApprovalsContext, "notices" | "ledger">,
  { turnId }: { readonly turnId: TurnId },
): Promise<readonly OperationId[]> {
  const approvals = await lockTurn(tx, turnId);
  const rows = await tx.sql<{ id: string }>("approvals.only_binding", ONLY_BINDING, [turnId]);
  const ids = new Set(rows.map(({ id }) => id));
  const voided: OperationId[] = [];
  for (const approval of approvals.filter(({ id }) => ids.has(id))) {
    const ended = await ledger.voidOperation(tx, ctx.ledger, {
      operationId: approval.operationId,
      actor: "system:approvals",
      code: "binding_confirmed",
      detail: DETAIL,
      approval: { approvalId: approval.id, votes: [] },
    });
    if (!ended.moved) continue;
    await move(tx, ctx, approval, { to: "VOIDED", endCode: "binding_confirmed", endDetail: DETAIL });
    voided.push(approval.operationId);
  }
  // The cards that stand say whether the customer is confirmed now.
  for (const { id, state, binding } of approvals) {
    if (ids.has(id) || state !== "PENDING" || !binding.bindingUnconfirmed) continue;
    await ctx.notices.touch(tx, { kind: "approval", id });
  }
  return voided;
}
