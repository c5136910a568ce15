/**
 * Runs that wait are made due inside the transaction of what they waited for. A run that is leased meanwhile is marked, so
 * that its holder looks again before it lets go: no order of the two loses the news.
 */
import type { Tx } from "../db/connect.js";
import type { OperationId, RunId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import { RUN_ENDS } from "../domain/run.js";

const WAKE_SET = `SET woken = true, updated_at = countersign_now(),
  due_at = CASE WHEN lease_until > countersign_now() THEN due_at ELSE countersign_now() END`;

/**
 * The run has something to look at: a decision, a binding. A run that waits to repeat a model call is left waiting. Written with the
 * next statement of the transaction, or with its commit.
 */
export function wakeRun(tx: Tx, runId: RunId): void {
  tx.later(
    "runs.wake",
    `UPDATE runs ${WAKE_SET}
     WHERE id = $1 AND state IN ('running','awaiting_binding','awaiting_approval','waiting')`,
    [runId],
  );
}

/** Every run with an unanswered call on this operation; their ids, to be woken after commit. */
export async function wakeWaitingRuns(tx: Tx, operationId: OperationId): Promise<RunId[]> {
  const rows = await tx.sql<{ id: RunId }>(
    "runs.wake_waiting",
    `UPDATE runs ${WAKE_SET}
     WHERE id IN (
       SELECT r.id FROM runs r WHERE r.state IN ('running','awaiting_approval','waiting')
         AND EXISTS (SELECT 1 FROM tool_calls k WHERE k.operation_id = $1 AND k.run_id = r.id AND k.state <> 'done')
       ORDER BY r.id FOR NO KEY UPDATE)
     RETURNING id`,
    [operationId],
  );
  return rows.map((row) => row.id);
}

/**
 * $1 operation, $2 its owner, $3 whether only runs that have ended. Whoever asked for it shows it, as its owner or by a call; by two
 * indexes.
 */
const SHOWING = `
SELECT r.id FROM runs r
WHERE r.id IN (SELECT $2::text UNION SELECT run_id FROM tool_calls WHERE operation_id = $1)
  AND (NOT $3::boolean OR r.state IN (${RUN_ENDS.map((state) => `'${state}'`).join(", ")}))
ORDER BY r.id`;

/** Runs whose card shows this operation. Takes no lock. */
export async function runsShowing(
  tx: Tx,
  { id, ownerRunId }: Pick<Operation, "id" | "ownerRunId">,
  which: "all" | "ended",
): Promise<readonly RunId[]> {
  const rows = await tx.sql<{ id: RunId }>("runs.showing", SHOWING, [id, ownerRunId, which === "ended"]);
  return rows.map(({ id }) => id);
}
