/**
 * Ends of runs. What the planner said and what the database shows are kept apart: `verified_success` and
 * `constraints_kept` are computed here, from rows, in the transaction of the end.
 */
import type { SqlRunner, Tx } from "../db/connect.js";
import type { RunId } from "../domain/ids.js";
import { type RunEnd, runStatesBefore } from "../domain/run.js";
import { LeaseLost } from "./lease.js";
import { ACTIVE_MS_SQL, ACTIVE_SQL } from "./rows.js";
import { CUSTOMER_FOUND } from "./start.js";
import type { RunLease } from "./types.js";
import { verifyRun } from "./verify.js";

export interface EndRun {
  state: RunEnd;
  /** Machine word, stable: end_turn, refusal, steps, stuck … */
  code: string;
  /** A sentence by code. */
  detail: string;
  /** The planner ended of its own accord, with an answer. */
  plannerSuccess: boolean;
  /** Do not end while the filer has said something that nobody has told the planner. */
  unlessNotes?: boolean;
}

/** Ends the run that the lease is on. `has_notes`: nothing changed, go on. Throws `LeaseLost`. */
export async function endRun(tx: Tx, lease: RunLease, end: EndRun): Promise<"ended" | "has_notes"> {
  const held = await tx.sql(
    "runs.end_fence",
    `SELECT 1 FROM runs WHERE id = $1 AND lease_token = $2 AND lease_until IS NOT NULL AND state = ANY ($3) FOR NO KEY UPDATE`,
    [lease.runId, lease.token, runStatesBefore(end.state)],
  );
  if (held.length === 0) throw new LeaseLost(lease.runId);
  if (end.unlessNotes === true && (await hasNotes(tx, lease.runId))) return "has_notes";
  await writeEnd(tx, lease.runId, end);
  return "ended";
}

/** Ends a run under way whoever drives it: the driver's token dies with it. False when it had ended. */
export async function endRunByForce(tx: Tx, runId: RunId, end: EndRun): Promise<boolean> {
  const held = await tx.sql(
    "runs.end_force",
    `SELECT 1 FROM runs WHERE id = $1 AND state IN ${ACTIVE_SQL} FOR NO KEY UPDATE`,
    [runId],
  );
  if (held.length === 0) return false;
  await writeEnd(tx, runId, end);
  return true;
}

async function hasNotes(tx: Tx, runId: RunId): Promise<boolean> {
  const rows = await tx.sql(
    "runs.untold_notes",
    "SELECT 1 FROM run_notes WHERE run_id = $1 AND used_in_seq IS NULL AND (author = $2 OR author NOT LIKE 'system:%') LIMIT 1",
    [runId, CUSTOMER_FOUND],
  );
  return rows.length > 0;
}

async function writeEnd(tx: Tx, runId: RunId, end: EndRun): Promise<void> {
  const verdict = await verifyRun(tx, runId, end.state);
  await bookReservation(tx, runId);
  await tx.sql(
    "runs.end",
    `UPDATE runs r SET state = $2, end_code = $3, end_detail = $4, planner_success = $5, verified_success = $6,
       constraints_kept = $7, active_ms = ${ACTIVE_MS_SQL}, active_since = NULL, lease_until = NULL, lease_holder = NULL,
       lease_token = r.lease_token + 1, due_at = NULL, reserved_micro_usd = 0, reserved_day = NULL,
       version = r.version + 1, updated_at = countersign_now()
     WHERE r.id = $1 AND r.state IN ${ACTIVE_SQL}`,
    [
      runId,
      end.state,
      end.code,
      end.detail,
      end.plannerSuccess,
      verdict.verifiedSuccess,
      verdict.constraintsKept,
    ],
  );
}

/** A call that was under way when the run was ended may have been billed. */
async function bookReservation(tx: SqlRunner, runId: RunId): Promise<void> {
  await tx.sql(
    "runs.end_book",
    `WITH mine AS (SELECT reserved_micro_usd, reserved_day FROM runs WHERE id = $1 AND reserved_micro_usd > 0),
     own AS (UPDATE runs SET cost_used_micro_usd = cost_used_micro_usd + reserved_micro_usd
             WHERE id = $1 AND reserved_micro_usd > 0)
     UPDATE spend_days d SET reserved_micro_usd = greatest(0, d.reserved_micro_usd - mine.reserved_micro_usd),
       spent_micro_usd = d.spent_micro_usd + mine.reserved_micro_usd FROM mine WHERE d.day = mine.reserved_day`,
    [runId],
  );
}
