/** An operation that was voided after its turn was released has a successor: the calls that waited for it wait for that one. */
import type { Tx } from "../db/connect.js";
import type { OperationId, RunId } from "../domain/ids.js";
import { wakeRun } from "./wakeups.js";

/**
 * Points unanswered calls at the successor and holds their turns again. Returns the runs, to be woken after commit.
 * Joins the caller's transaction; locks calls, then turns, then runs.
 */
export async function followSuccessor(
  tx: Tx,
  change: { from: OperationId; to: OperationId },
): Promise<RunId[]> {
  const calls = await tx.sql<{ turn_id: string; run_id: RunId }>(
    "runs.follow_successor",
    `UPDATE tool_calls SET operation_id = $2, state = 'held', decision = 'held'
      WHERE operation_id = $1 AND state <> 'done' RETURNING turn_id, run_id`,
    [change.from, change.to],
  );
  if (calls.length === 0) return [];
  await tx.sql(
    "runs.hold_again",
    `UPDATE turns SET state = 'held', updated_at = countersign_now() WHERE id = ANY ($1) AND state IN ('released', 'recorded')`,
    [[...new Set(calls.map((call) => call.turn_id))]],
  );
  const runs = [...new Set(calls.map((call) => call.run_id))].sort();
  for (const run of runs) wakeRun(tx, run);
  return runs;
}
