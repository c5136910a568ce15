/** Incident cards that say how an operation stands: they are rendered anew as it becomes open or is decided. */
import type { Tx } from "../db/connect.js";
import type { Operation, OperationStatus } from "../domain/operation.js";
import type { LedgerCtx } from "./context.js";

const UNDECIDED: ReadonlySet<OperationStatus> = new Set(["OUTCOME_UNKNOWN", "RECONCILING", "QUARANTINED"]);
/** Ends that come from no open outcome. */
const ENDS_APART: ReadonlySet<OperationStatus> = new Set(["REVERSED", "VOIDED", "DENIED", "EXPIRED"]);

/** $1 operation. Open findings about it, and about money on its payment that left it elsewhere. */
const BESIDE = `
SELECT id FROM incidents WHERE status = 'open' AND operation_id = $1
UNION
SELECT i.id FROM incidents i JOIN operations o ON o.payment_id = i.payment_id
WHERE o.id = $1 AND o.kind = 'refund' AND i.status = 'open' AND i.kind IN ('refunded_elsewhere', 'overdrawn')`;

/** What was refunded elsewhere may be an operation of ours as long as its outcome is open. */
export async function touchBeside(
  tx: Tx,
  ctx: Pick<LedgerCtx, "notices">,
  { operation, from }: { operation: Operation; from: OperationStatus },
): Promise<void> {
  if (UNDECIDED.has(operation.status) === UNDECIDED.has(from) && !ENDS_APART.has(operation.status)) return;
  const told = await tx.sql<{ id: string }>("ledger.told_beside", BESIDE, [operation.id]);
  for (const { id } of told) await ctx.notices.touch(tx, { kind: "incident", id });
}
