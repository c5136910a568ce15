/**
 * From a click to the resumed run, beside the same queue's bare pick-up in the same minutes. Both ends of the first are times that
 * the database wrote: the vote, and the event that released its operation.
 */
import type { OpenDb } from "../../../db/connect.js";
import { type Spread, spreadOf } from "../shared/spread.js";

export interface HeldRun {
  readonly approvalId: string;
  readonly cardVersion: number;
  readonly operationId: string;
}

export interface ResumePorts {
  readonly db: OpenDb;
  /** Clicks Approve until the vote is recorded; milliseconds until the acknowledgement of the click that was. */
  click(held: HeldRun): Promise<number>;
  /** Milliseconds from handing the bare queue a job until a worker of its own has it. */
  barePickUpMs(): Promise<number>;
  /** One commit of one changed row. */
  commitMs(): Promise<number>;
  until(what: string, look: () => Promise<boolean>): Promise<void>;
}

export interface ResumeReport {
  readonly acknowledged: Spread;
  readonly resumed: Spread;
  readonly bare: Spread;
  readonly commit: Spread;
  /** p50 of the resumed run over twice the bare pick-up plus one commit: the goal is at most 1. */
  readonly ratio: number;
  /** p99 over p50 of the resumed run: the goal is at most 3. */
  readonly tail: number;
}

/** Runs that wait for an approval of this benchmark, oldest first. */
export const heldRuns = (db: OpenDb): Promise<HeldRun[]> =>
  db.sql<HeldRun>(
    "bench.held_runs",
    `SELECT a.id AS "approvalId", a.card_version AS "cardVersion", a.operation_id AS "operationId"
     FROM approvals a JOIN runs r ON r.id = a.run_id
     WHERE a.state = 'PENDING' AND a.turn_id IS NOT NULL AND r.state = 'awaiting_approval' ORDER BY a.created_at`,
  );

/** $1 operations. Milliseconds between the vote and the release, one row for each that was released. */
const RESUMED = `
SELECT extract(epoch FROM (e.at - v.at))::float8 * 1000 AS ms FROM operation_events e
JOIN approvals a ON a.operation_id = e.operation_id JOIN votes v ON v.approval_id = a.id
WHERE e.operation_id = ANY ($1::text[]) AND e.type = 'release'`;

/** One click after the other, a bare job and a bare commit beside each. */
export async function measureResume(ports: ResumePorts, runs: readonly HeldRun[]): Promise<ResumeReport> {
  const ids = runs.map(({ operationId }) => operationId);
  const read = async (upTo: number): Promise<number[]> =>
    (await ports.db.sql<{ ms: number }>("bench.resumed", RESUMED, [ids.slice(0, upTo)])).map(({ ms }) => ms);
  const acknowledged: number[] = [];
  const bare: number[] = [];
  const commit: number[] = [];
  for (const [index, run] of runs.entries()) {
    acknowledged.push(await ports.click(run));
    await ports.until(`run ${index + 1} to be resumed`, async () => (await read(index + 1)).length > index);
    bare.push(await ports.barePickUpMs());
    commit.push(await ports.commitMs());
  }
  const resumed = spreadOf(await read(runs.length));
  const [bareSpread, commitSpread] = [spreadOf(bare), spreadOf(commit)];
  return {
    acknowledged: spreadOf(acknowledged),
    resumed,
    bare: bareSpread,
    commit: commitSpread,
    ratio: resumed.p50 / (2 * bareSpread.p50 + commitSpread.p50),
    tail: resumed.p99 / resumed.p50,
  };
}

/** What is left after a while of killing: nothing may be. `stuck` rows are due or leased, or a run has not ended. */
export async function leftOver(db: OpenDb, operations: readonly string[]): Promise<string[]> {
  const [row] = await db.sql<{ open: number; runs: number; due: number }>(
    "bench.left_over",
    `SELECT (SELECT count(*)::int FROM operations WHERE id = ANY ($1::text[]) AND status <> 'CONFIRMED') AS open,
       (SELECT count(*)::int FROM runs r JOIN operations o ON o.owner_run_id = r.id
         WHERE o.id = ANY ($1::text[]) AND r.state <> 'resolved') AS runs,
       (SELECT count(*)::int FROM operations WHERE id = ANY ($1::text[]) AND (due_at IS NOT NULL OR reserved_minor <> 0)) AS due`,
    [operations],
  );
  if (row === undefined) throw new Error("the database did not count");
  return [
    ...(row.open === 0 ? [] : [`${row.open} operations are not confirmed`]),
    ...(row.runs === 0 ? [] : [`${row.runs} runs have not ended`]),
    ...(row.due === 0 ? [] : [`${row.due} operations are still due or hold money`]),
  ];
}
