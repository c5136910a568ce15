/**
 * From a click to the resumed run, beside the same queue's bare pick-up in the same minutes.
 *
 * 1. A run is resumed when its turn is released: the first step of the run after the click, in one commit with its operation and, where
 *    nobody else voted, with the vote. From the click the database tells of it, at that commit; from the vote it is between two times
 *    that the database wrote, without that commit.
 * 2. It goes on when a worker has picked it up and claimed the operation, again by the database's time.
 * 3. One click after the other: each when the run before has ended.
 * 4. The goal is judged from the click, whatever that takes. How much of it is Slack's answer to who clicked, which no queue's pick-up
 *    has, is shown apart and changes nothing: clicks for which Slack was asked stand beside those for which it was known.
 * 5. The first clicks meet a process that has just started: connections are made, statements planned, code compiled. They and the first
 *    bare jobs beside them stand apart, and the tail is given without and with them.
 */
import type { OpenDb } from "../../../db/connect.js";
import { type Spread, spreadOf } from "../shared/spread.js";

export interface HeldRun {
  readonly approvalId: string;
  readonly cardVersion: number;
  readonly operationId: string;
  readonly turnId: string;
}

/** Times of the steady clock, in milliseconds. */
export interface Clicked {
  readonly at: number;
  readonly acknowledgedAt: number;
  readonly resumedAt: number;
}

export interface ResumePorts {
  readonly db: OpenDb;
  /** Clicks Approve until the run is resumed; when the click was that did it. */
  click(held: HeldRun): Promise<Clicked>;
  /** Milliseconds from handing the bare queue a job until a worker of its own has it. */
  barePickUpMs(): Promise<number>;
  /** One commit of one changed row. */
  commitMs(): Promise<number>;
  /** Looks every `everyMs`. */
  until(what: string, look: () => Promise<boolean>, everyMs: number): Promise<void>;
  /** How often the workspace was asked about people since the last time this was called. */
  askedSince(): number;
}

export interface ResumeReport {
  readonly acknowledged: Spread;
  /** The first clicks, which are in no other number but `tailFromStart`. */
  readonly first: Spread | null;
  /** From the click until its run is seen resumed. */
  readonly resumed: Spread;
  /** The same of the clicks for which Slack had to be asked who clicked, and of those for which that was known. Null: there were none. */
  readonly resumedAsking: Spread | null;
  readonly resumedKnowing: Spread | null;
  /** From the arrival's row until the vote, both by the database. */
  readonly judged: Spread;
  /** From the vote until the release, both by the database. */
  readonly released: Spread;
  /** From the vote until a worker has claimed the operation. */
  readonly claimed: Spread;
  readonly bare: Spread;
  readonly commit: Spread;
  /** p50 from the click over twice the bare pick-up plus one commit: the goal is at most 1. */
  readonly ratio: number;
  /** The same from the vote. */
  readonly ratioFromVote: number;
  /** p99 over p50 from the click: the goal is at most 3. */
  readonly tail: number;
  /** The same with the first clicks. */
  readonly tailFromStart: number;
  /** p99 over p50 of the bare pick-up: what the machine does to anything in these minutes. */
  readonly bareTail: number;
}

const LOOK_MS = 10;

/** Runs that wait for an approval of this benchmark, oldest first. */
export const heldRuns = (db: OpenDb): Promise<HeldRun[]> =>
  db.sql<HeldRun>(
    "bench.held_runs",
    `SELECT a.id AS "approvalId", a.card_version AS "cardVersion", a.operation_id AS "operationId", a.turn_id AS "turnId"
     FROM approvals a JOIN runs r ON r.id = a.run_id
     WHERE a.state = 'PENDING' AND a.turn_id IS NOT NULL AND r.state = 'awaiting_approval' ORDER BY a.created_at`,
  );

/**
 * $1 operations. Milliseconds from the arrival to the vote, and from the vote to the release and to the claim, one row for each that was
 * claimed. Of several clicks the last before the vote is the one that was judged.
 */
const AFTER_VOTE = `
SELECT extract(epoch FROM (r.at - v.at))::float8 * 1000 AS released, extract(epoch FROM (d.at - v.at))::float8 * 1000 AS claimed,
  extract(epoch FROM (v.at - (SELECT max(i.received_at) FROM slack_inbox i WHERE i.kind = 'action' AND i.received_at <= v.at
    AND split_part(i.body #>> '{actions,0,value}', '.', 1) = a.id)))::float8 * 1000 AS judged
FROM operation_events r JOIN operation_events d ON d.operation_id = r.operation_id AND d.type = 'claim' AND d.attempt = 1
JOIN approvals a ON a.operation_id = r.operation_id JOIN votes v ON v.approval_id = a.id
WHERE r.operation_id = ANY ($1::text[]) AND r.type = 'release'`;

/** One click after the other, a bare job and a bare commit beside each. */
export async function measureResume(
  ports: ResumePorts,
  runs: readonly HeldRun[],
  firstClicks: number,
): Promise<ResumeReport> {
  const { db } = ports;
  const acknowledged: number[] = [];
  const resumed: number[] = [];
  const bare: number[] = [];
  const commit: number[] = [];
  const asking: number[] = [];
  const knowing: number[] = [];
  for (const [index, run] of runs.entries()) {
    ports.askedSince();
    const { at, acknowledgedAt, resumedAt } = await ports.click(run);
    const took = resumedAt - at;
    resumed.push(took);
    const asked = ports.askedSince() > 0;
    if (index >= firstClicks) (asked ? asking : knowing).push(took);
    acknowledged.push(acknowledgedAt - at);
    await ports.until(`run ${index + 1} to end`, () => hasEnded(db, run), LOOK_MS);
    bare.push(await ports.barePickUpMs());
    commit.push(await ports.commitMs());
  }
  const after = await db.sql<{ released: number; claimed: number; judged: number }>(
    "bench.after_vote",
    AFTER_VOTE,
    [runs.slice(firstClicks).map(({ operationId }) => operationId)],
  );
  const spreads = {
    acknowledged: spreadOf(acknowledged.slice(firstClicks)),
    first: firstClicks === 0 ? null : spreadOf(resumed.slice(0, firstClicks)),
    resumed: spreadOf(resumed.slice(firstClicks)),
    resumedAsking: asking.length === 0 ? null : spreadOf(asking),
    resumedKnowing: knowing.length === 0 ? null : spreadOf(knowing),
    judged: spreadOf(after.map(({ judged }) => judged)),
    released: spreadOf(after.map(({ released }) => released)),
    claimed: spreadOf(after.map(({ claimed }) => claimed)),
    bare: spreadOf(bare.slice(firstClicks)),
    commit: spreadOf(commit.slice(firstClicks)),
  };
  const goal = 2 * spreads.bare.p50 + spreads.commit.p50;
  return {
    ...spreads,
    ratio: spreads.resumed.p50 / goal,
    ratioFromVote: spreads.released.p50 / goal,
    tail: spreads.resumed.p99 / spreads.resumed.p50,
    tailFromStart: spreadOf(resumed).p99 / spreadOf(resumed).p50,
    bareTail: spreads.bare.p99 / spreads.bare.p50,
  };
}

async function hasEnded(db: OpenDb, { approvalId }: HeldRun): Promise<boolean> {
  const rows = await db.sql(
    "bench.ended",
    "SELECT 1 FROM approvals a JOIN runs r ON r.id = a.run_id WHERE a.id = $1 AND r.state = 'resolved'",
    [approvalId],
  );
  return rows.length > 0;
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
