/**
 * Budgets: reserved in the row before the call that uses them, then corrected to what was used.
 *
 * 1. At most one call goes over: nothing is reserved once a budget is used up.
 * 2. The day's spend is one row; its condition is inside the write, so workers cannot pass it together.
 * 3. Amounts are millionths of a US dollar.
 */
import type { Db, SqlRunner, Tx } from "../db/connect.js";
import { LeaseLost } from "./lease.js";
import { ACTIVE_MS_SQL, ACTIVE_SQL } from "./rows.js";
import type { RunLease } from "./types.js";

export type BudgetName = "steps" | "cost" | "deadline" | "daily";

export type Reservation =
  | { ok: true }
  /** `used` and `limit` in the budget's own unit: calls, millionths of a dollar, milliseconds. */
  | { ok: false; budget: BudgetName; used: bigint; limit: bigint };

export interface ReserveCall {
  /** What the call may cost at most. */
  estimateMicroUsd: bigint;
  dailyMaxMicroUsd: bigint | null;
  /** Number of the turn that the call is for. */
  turnSeq: number;
  /** Notes that this call tells for the first time. */
  noteIds: readonly string[];
}

interface BudgetRow {
  steps_used: number;
  steps_max: number;
  cost_used_micro_usd: bigint;
  cost_max_micro_usd: bigint | null;
  active_ms: bigint;
  deadline_ms: bigint;
}

class OverDailyLimit extends Error {}

/** Reserves one model call. Throws `LeaseLost`. */
export async function reserveCall(db: Db, lease: RunLease, call: ReserveCall): Promise<Reservation> {
  try {
    return await db.tx((tx) => reserve(tx, lease, call));
  } catch (error) {
    if (!(error instanceof OverDailyLimit)) throw error;
    const spent = await spentToday(db);
    return {
      ok: false,
      budget: "daily",
      used: spent.spentMicroUsd + spent.reservedMicroUsd,
      limit: call.dailyMaxMicroUsd ?? 0n,
    };
  }
}

async function reserve(tx: Tx, lease: RunLease, call: ReserveCall): Promise<Reservation> {
  const [run] = await tx.sql<BudgetRow>(
    "runs.budget",
    `SELECT r.steps_used, r.steps_max, r.cost_used_micro_usd, r.cost_max_micro_usd, ${ACTIVE_MS_SQL} AS active_ms, r.deadline_ms
     FROM runs r WHERE r.id = $1 AND r.lease_token = $2 AND r.lease_until IS NOT NULL AND r.state IN ${ACTIVE_SQL}
     FOR NO KEY UPDATE`,
    [lease.runId, lease.token],
  );
  if (run === undefined) throw new LeaseLost(lease.runId);
  const over = overspent(run, call.estimateMicroUsd);
  if (over !== null) return over;
  await tx.sql(
    "runs.reserve",
    `UPDATE runs SET steps_used = steps_used + 1, reserved_micro_usd = $2,
       reserved_day = (countersign_now() AT TIME ZONE 'UTC')::date, version = version + 1, updated_at = countersign_now()
     WHERE id = $1`,
    [lease.runId, call.estimateMicroUsd],
  );
  await tx.sql(
    "runs.tell_notes",
    "UPDATE run_notes SET used_in_seq = $2 WHERE run_id = $1 AND used_in_seq IS NULL AND id = ANY ($3)",
    [lease.runId, call.turnSeq, call.noteIds],
  );
  if (call.estimateMicroUsd > 0n) await reserveDay(tx, call);
  return { ok: true };
}

function overspent(run: BudgetRow, estimate: bigint): Reservation | null {
  if (run.active_ms >= run.deadline_ms) {
    return { ok: false, budget: "deadline", used: run.active_ms, limit: run.deadline_ms };
  }
  if (run.steps_used >= run.steps_max) {
    return { ok: false, budget: "steps", used: BigInt(run.steps_used), limit: BigInt(run.steps_max) };
  }
  const costMax = run.cost_max_micro_usd;
  if (costMax !== null && run.cost_used_micro_usd + estimate > costMax) {
    return { ok: false, budget: "cost", used: run.cost_used_micro_usd, limit: costMax };
  }
  return null;
}

async function reserveDay(tx: Tx, { estimateMicroUsd, dailyMaxMicroUsd }: ReserveCall): Promise<void> {
  await tx.sql(
    "runs.day",
    "INSERT INTO spend_days (day) VALUES ((countersign_now() AT TIME ZONE 'UTC')::date) ON CONFLICT DO NOTHING",
  );
  const rows = await tx.sql(
    "runs.reserve_day",
    `UPDATE spend_days SET reserved_micro_usd = reserved_micro_usd + $1
     WHERE day = (countersign_now() AT TIME ZONE 'UTC')::date
       AND ($2::bigint IS NULL OR reserved_micro_usd + spent_micro_usd + $1 <= $2) RETURNING day`,
    [estimateMicroUsd, dailyMaxMicroUsd],
  );
  if (rows.length === 0) throw new OverDailyLimit();
}

/** What the reserved call really used. Part of the transaction that stores its reply. Throws `LeaseLost`. */
export async function settleReservation(
  tx: Tx,
  lease: RunLease,
  used: { costMicroUsd: bigint; inputTokens: number; outputTokens: number },
): Promise<void> {
  const rows = await tx.sql(
    "runs.settle_reservation",
    `WITH mine AS (
       SELECT r.id, r.reserved_micro_usd, r.reserved_day FROM runs r
       WHERE r.id = $1 AND r.lease_token = $2 AND r.lease_until IS NOT NULL AND r.state IN ${ACTIVE_SQL} FOR NO KEY UPDATE
     ), booked AS (
       UPDATE spend_days d SET reserved_micro_usd = greatest(0, d.reserved_micro_usd - mine.reserved_micro_usd),
         spent_micro_usd = d.spent_micro_usd + $3 FROM mine WHERE d.day = mine.reserved_day
     )
     UPDATE runs r SET reserved_micro_usd = 0, reserved_day = NULL, cost_used_micro_usd = r.cost_used_micro_usd + $3,
       input_tokens_used = r.input_tokens_used + $4, output_tokens_used = r.output_tokens_used + $5, model_failures = 0,
       version = r.version + 1, updated_at = countersign_now()
     FROM mine WHERE r.id = mine.id RETURNING r.id`,
    [lease.runId, lease.token, used.costMicroUsd, used.inputTokens, used.outputTokens],
  );
  if (rows.length === 0) throw new LeaseLost(lease.runId);
}

/**
 * The reserved call brought no reply. What may have been billed stays spent and the step stays used; a call that was
 * refused before it ran gives both back. Returns how many failed in a row. Throws `LeaseLost`.
 */
export async function failReservation(
  tx: Tx,
  lease: RunLease,
  { billed }: { billed: boolean },
): Promise<{ failures: number }> {
  const [row] = await tx.sql<{ model_failures: number }>(
    "runs.fail_reservation",
    `WITH mine AS (
       SELECT r.id, r.reserved_micro_usd, r.reserved_day, CASE WHEN $3 THEN r.reserved_micro_usd ELSE 0 END AS spent FROM runs r
       WHERE r.id = $1 AND r.lease_token = $2 AND r.lease_until IS NOT NULL AND r.state IN ${ACTIVE_SQL} FOR NO KEY UPDATE
     ), booked AS (
       UPDATE spend_days d SET reserved_micro_usd = greatest(0, d.reserved_micro_usd - mine.reserved_micro_usd),
         spent_micro_usd = d.spent_micro_usd + mine.spent FROM mine WHERE d.day = mine.reserved_day
     )
     UPDATE runs r SET reserved_micro_usd = 0, reserved_day = NULL, cost_used_micro_usd = r.cost_used_micro_usd + mine.spent,
       steps_used = r.steps_used - CASE WHEN $3 THEN 0 ELSE 1 END, model_failures = r.model_failures + 1,
       version = r.version + 1, updated_at = countersign_now()
     FROM mine WHERE r.id = mine.id RETURNING r.model_failures`,
    [lease.runId, lease.token, billed],
  );
  if (row === undefined) throw new LeaseLost(lease.runId);
  return { failures: row.model_failures };
}

/** The spend of the current day (UTC), all runs together. */
export async function spentToday(
  db: SqlRunner,
): Promise<{ spentMicroUsd: bigint; reservedMicroUsd: bigint }> {
  const [row] = await db.sql<{ spent_micro_usd: bigint; reserved_micro_usd: bigint }>(
    "runs.spent_today",
    `SELECT spent_micro_usd, reserved_micro_usd FROM spend_days WHERE day = (countersign_now() AT TIME ZONE 'UTC')::date`,
  );
  return { spentMicroUsd: row?.spent_micro_usd ?? 0n, reservedMicroUsd: row?.reserved_micro_usd ?? 0n };
}
