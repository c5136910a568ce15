/**
 * The right to drive one run.
 *
 * 1. A lease takes a new token; every write of its holder carries the token, and a write under a lost one changes nothing.
 * 2. Time is the database's. An expired lease may be taken by anybody; until then it may be renewed.
 * 3. What the holder had reserved for a model call when it died counts as spent: the call may have been billed.
 * 4. Active time runs while a run is leased, and while it waits to repeat a failed model call; never while people decide.
 */
import type { SqlRunner, Tx } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { RunId } from "../domain/ids.js";
import { type RunEnd, type RunState, runStatesBefore } from "../domain/run.js";
import { ACTIVE_MS_SQL, ACTIVE_SQL } from "./rows.js";
import type { RunLease } from "./types.js";

/** Somebody else drives the run now, or it has ended: stop without writing anything. */
export class LeaseLost extends CountersignError {
  constructor(runId: RunId) {
    super("run_lease_lost", `the lease on ${runId} is lost`, { ids: { runId } });
    this.name = "LeaseLost";
  }
}

/**
 * Takes the run if it is due and nobody holds it. A queued run is then running; one that waits keeps its state until its
 * holder has looked. Null: nothing to do here.
 */
export async function leaseRun(
  db: SqlRunner,
  { runId, holder, leaseMs }: { runId: RunId; holder: string; leaseMs: number },
): Promise<RunLease | null> {
  const [row] = await db.sql<{ lease_token: bigint }>(
    "runs.lease",
    `WITH due AS (
       SELECT r.id, r.reserved_micro_usd, r.reserved_day, ${ACTIVE_MS_SQL} AS active_now FROM runs r
       WHERE r.id = $1 AND r.state IN ${ACTIVE_SQL} AND r.due_at <= countersign_now()
         AND (r.lease_until IS NULL OR r.lease_until <= countersign_now())
       FOR UPDATE SKIP LOCKED
     ), booked AS (
       UPDATE spend_days d SET reserved_micro_usd = greatest(0, d.reserved_micro_usd - due.reserved_micro_usd),
         spent_micro_usd = d.spent_micro_usd + due.reserved_micro_usd
       FROM due WHERE d.day = due.reserved_day AND due.reserved_micro_usd > 0
     )
     UPDATE runs r SET lease_token = r.lease_token + 1, lease_holder = $2, woken = false,
       lease_until = countersign_now() + make_interval(secs => $3::float8 / 1000),
       due_at = countersign_now() + make_interval(secs => $3::float8 / 1000),
       state = CASE WHEN r.state = 'queued' THEN 'running' ELSE r.state END,
       active_ms = due.active_now, active_since = countersign_now(),
       cost_used_micro_usd = r.cost_used_micro_usd + due.reserved_micro_usd, reserved_micro_usd = 0, reserved_day = NULL,
       version = r.version + 1, updated_at = countersign_now()
     FROM due WHERE r.id = due.id RETURNING r.lease_token`,
    [runId, holder, leaseMs],
  );
  return row === undefined ? null : { runId, token: row.lease_token };
}

/** Extends the lease. `lost`: stop at once. */
export async function renewLease(
  db: SqlRunner,
  lease: RunLease,
  leaseMs: number,
): Promise<"held" | "cancel_requested" | "lost"> {
  const [row] = await db.sql<{ cancel_requested_by: string | null }>(
    "runs.renew",
    `UPDATE runs SET lease_until = countersign_now() + make_interval(secs => $3::float8 / 1000),
       due_at = countersign_now() + make_interval(secs => $3::float8 / 1000)
     WHERE id = $1 AND lease_token = $2 AND lease_until IS NOT NULL AND state IN ${ACTIVE_SQL}
     RETURNING cancel_requested_by`,
    [lease.runId, lease.token, leaseMs],
  );
  if (row === undefined) return "lost";
  return row.cancel_requested_by === null ? "held" : "cancel_requested";
}

export interface GiveBack {
  to: Exclude<RunState, RunEnd>;
  /** Milliseconds until somebody should look again; null: only when woken. */
  dueInMs: number | null;
  /** Time goes on counting (backoff of a model call) or stops (people, outcomes). */
  clock: "runs" | "stops";
}

/**
 * Gives the lease back. If the run was woken meanwhile it is due at once, whatever `dueInMs` says.
 * Returns whether it is due now. Throws `LeaseLost`.
 */
export async function giveBack(
  db: SqlRunner,
  lease: RunLease,
  { to, dueInMs, clock }: GiveBack,
): Promise<{ dueNow: boolean }> {
  const [row] = await db.sql<{ due_now: boolean }>(
    "runs.give_back",
    `UPDATE runs r SET state = $3, lease_until = NULL, lease_holder = NULL,
       due_at = CASE WHEN r.woken THEN countersign_now()
                     ELSE countersign_now() + make_interval(secs => $4::float8 / 1000) END,
       active_ms = CASE WHEN $5 THEN r.active_ms ELSE ${ACTIVE_MS_SQL} END,
       active_since = CASE WHEN $5 THEN r.active_since ELSE NULL END,
       version = r.version + 1, updated_at = countersign_now()
     WHERE r.id = $1 AND r.lease_token = $2 AND r.lease_until IS NOT NULL AND r.state = ANY ($6)
     RETURNING (r.due_at <= countersign_now()) IS TRUE AS due_now`,
    [lease.runId, lease.token, to, dueInMs, clock === "runs", runStatesBefore(to)],
  );
  if (row === undefined) throw await whyNot(db, lease, to);
  return { dueNow: row.due_now };
}

/** A guarded write found no row: the lease is gone, or the table of states does not know this step, which is a defect. */
async function whyNot(db: SqlRunner, lease: RunLease, to: RunState): Promise<Error> {
  const [row] = await db.sql<{ state: string }>(
    "runs.why_not",
    "SELECT state FROM runs WHERE id = $1 AND lease_token = $2 AND lease_until IS NOT NULL",
    [lease.runId, lease.token],
  );
  return row === undefined
    ? new LeaseLost(lease.runId)
    : new CountersignError("illegal_run_step", `run ${lease.runId}: ${row.state} to ${to} is no step`, {
        ids: { runId: lease.runId },
      });
}

/** The holder says that the run goes on: from waiting for somebody to running. Throws `LeaseLost`. */
export async function setRunning(tx: SqlRunner, lease: RunLease): Promise<void> {
  const rows = await tx.sql(
    "runs.set_running",
    `UPDATE runs SET state = 'running', version = version + 1, updated_at = countersign_now()
     WHERE id = $1 AND lease_token = $2 AND lease_until IS NOT NULL AND state = ANY ($3) RETURNING id`,
    [lease.runId, lease.token, runStatesBefore("running")],
  );
  if (rows.length === 0) throw new LeaseLost(lease.runId);
}

/** Locks the run for the rest of the transaction and proves that the lease is still ours. Throws `LeaseLost`. */
export async function fence(tx: Tx, lease: RunLease): Promise<void> {
  const rows = await tx.sql(
    "runs.fence",
    `SELECT 1 FROM runs WHERE id = $1 AND lease_token = $2 AND lease_until IS NOT NULL AND state IN ${ACTIVE_SQL}
     FOR NO KEY UPDATE`,
    [lease.runId, lease.token],
  );
  if (rows.length === 0) throw new LeaseLost(lease.runId);
}

/** Something unexpected broke while the run was driven. Returns how often in a row, failed model calls included. */
export async function countTrouble(db: SqlRunner, lease: RunLease): Promise<number> {
  const [row] = await db.sql<{ model_failures: number }>(
    "runs.trouble",
    `UPDATE runs SET model_failures = model_failures + 1, version = version + 1, updated_at = countersign_now()
     WHERE id = $1 AND lease_token = $2 AND lease_until IS NOT NULL AND state IN ${ACTIVE_SQL} RETURNING model_failures`,
    [lease.runId, lease.token],
  );
  if (row === undefined) throw new LeaseLost(lease.runId);
  return row.model_failures;
}
