/** Reads: one run, one ticket, a run with everything in it, lists by keyset. */
import type { SqlRunner } from "../db/connect.js";
import { utcMicros } from "../db/connect.js";
import { decodeCursor, encodeCursor, NEWEST } from "../domain/cursor.js";
import type { OperationId, RunId, TicketId } from "../domain/ids.js";
import type { OperationKind, OperationStatus } from "../domain/operation.js";
import {
  ACTIVE_SQL,
  CALL_COLUMNS,
  type CallRow,
  NOTE_COLUMNS,
  type NoteRow,
  RUN_COLUMNS,
  type RunRow,
  TICKET_COLUMNS,
  TICKET_FROM,
  type TicketRow,
  TURN_COLUMNS,
  type TurnRow,
  toCall,
  toNote,
  toRun,
  toTicket,
  toTurn,
} from "./rows.js";
import type { Run, RunView, Ticket } from "./types.js";

/** Null when there is none. */
export async function getRun(db: SqlRunner, runId: RunId): Promise<Run | null> {
  const [row] = await db.sql<RunRow>("runs.get", `SELECT ${RUN_COLUMNS} FROM runs r WHERE r.id = $1`, [
    runId,
  ]);
  return row === undefined ? null : toRun(row);
}

/** Null when there is none. */
export async function getTicket(db: SqlRunner, ticketId: TicketId): Promise<Ticket | null> {
  const [row] = await db.sql<TicketRow>(
    "runs.ticket",
    `SELECT ${TICKET_COLUMNS} FROM ${TICKET_FROM} WHERE t.id = $1`,
    [ticketId],
  );
  return row === undefined ? null : toTicket(row);
}

/** By id or by reference (TCK-2001). */
export async function findTicket(db: SqlRunner, idOrRef: string): Promise<Ticket | null> {
  const [row] = await db.sql<TicketRow>(
    "runs.ticket_find",
    `SELECT ${TICKET_COLUMNS} FROM ${TICKET_FROM} WHERE t.id = $1 OR t.ref = $1 LIMIT 1`,
    [idOrRef],
  );
  return row === undefined ? null : toTicket(row);
}

/** The ticket whose thread begins with this message. */
export async function ticketOfThread(
  db: SqlRunner,
  thread: { channelId: string; threadTs: string },
): Promise<Ticket | null> {
  const [row] = await db.sql<TicketRow>(
    "runs.ticket_of_thread",
    `SELECT ${TICKET_COLUMNS} FROM ${TICKET_FROM} WHERE t.channel_id = $1 AND t.message_ts = $2`,
    [thread.channelId, thread.threadTs],
  );
  return row === undefined ? null : toTicket(row);
}

/** The run under way of a ticket, if any; else the newest one. */
export async function currentRun(db: SqlRunner, ticketId: TicketId): Promise<Run | null> {
  const [row] = await db.sql<RunRow>(
    "runs.current",
    `SELECT ${RUN_COLUMNS} FROM runs r WHERE r.ticket_id = $1
     ORDER BY (r.state IN ${ACTIVE_SQL}) DESC, r.created_at DESC, r.id DESC LIMIT 1`,
    [ticketId],
  );
  return row === undefined ? null : toRun(row);
}

/** Runs whose id begins with `prefix` (at least the id's kind and 4 more characters); at most 5. */
export async function findRuns(db: SqlRunner, prefix: string): Promise<Run[]> {
  if (!/^run_[0-9a-f]{4,32}$/.test(prefix)) return [];
  const rows = await db.sql<RunRow>(
    "runs.find",
    `SELECT ${RUN_COLUMNS} FROM runs r WHERE r.id >= $1 AND r.id < $2 ORDER BY r.id LIMIT 5`,
    [prefix, `${prefix}g`],
  );
  return rows.map(toRun);
}

/** A run with its ticket, turns, calls and notes, oldest first. Null when there is none. */
export async function viewRun(db: SqlRunner, runId: RunId): Promise<RunView | null> {
  const [run, tickets, turns, calls, notes] = await Promise.all([
    getRun(db, runId),
    db.sql<TicketRow>(
      "runs.ticket_of_run",
      `SELECT ${TICKET_COLUMNS} FROM ${TICKET_FROM} WHERE t.id = (SELECT ticket_id FROM runs WHERE id = $1)`,
      [runId],
    ),
    db.sql<TurnRow>("runs.turns", `SELECT ${TURN_COLUMNS} FROM turns WHERE run_id = $1 ORDER BY seq`, [
      runId,
    ]),
    db.sql<CallRow>(
      "runs.calls",
      `SELECT ${CALL_COLUMNS.replace(/\w+/g, "k.$&")} FROM tool_calls k JOIN turns t ON t.id = k.turn_id
       WHERE k.run_id = $1 ORDER BY t.seq, k.position`,
      [runId],
    ),
    db.sql<NoteRow>(
      "runs.notes",
      `SELECT ${NOTE_COLUMNS} FROM run_notes WHERE run_id = $1 ORDER BY created_at, id`,
      [runId],
    ),
  ]);
  if (run === null) return null;
  const [ticket] = tickets;
  if (ticket === undefined) throw new Error(`run ${runId} has no ticket`);
  return {
    run,
    ticket: toTicket(ticket),
    turns: turns.map(toTurn),
    calls: calls.map(toCall),
    notes: notes.map(toNote),
  };
}

export interface ListedRun {
  run: Run;
  /** Beginning of the ticket's text, at most 200 characters. */
  excerpt: string;
  filer: string;
  /** The ticket's message in Slack; null: it has none (yet). */
  message: { channelId: string; ts: string } | null;
}

/** What a run asked for, as far as it takes to recognise it. Amount in minor units, 0 where no money moves. */
export interface AskedFor {
  operationId: OperationId;
  kind: OperationKind;
  status: OperationStatus;
  amountMinor: bigint;
  currency: string;
  orderRef: string | null;
  subscriptionRef: string | null;
}

// $1 runs. In the order of their calls.
const ASKED_BY = `
SELECT k.run_id AS "runId", o.id AS "operationId", o.kind, o.status, o.amount_minor AS "amountMinor", o.currency,
       o.order_ref AS "orderRef", o.subscription_ref AS "subscriptionRef"
FROM (SELECT run_id, operation_id, min(created_at) AS at FROM tool_calls
  WHERE run_id = ANY ($1) AND operation_id IS NOT NULL GROUP BY run_id, operation_id) k
JOIN operations o ON o.id = k.operation_id ORDER BY k.at, o.id`;

/** What each of these runs asked for; of one that asked for nothing there is no entry. */
export async function askedBy(
  db: SqlRunner,
  runIds: readonly RunId[],
): Promise<ReadonlyMap<RunId, readonly AskedFor[]>> {
  const asked = new Map<RunId, AskedFor[]>();
  if (runIds.length === 0) return asked;
  const rows = await db.sql<AskedFor & { runId: RunId }>("runs.asked_by", ASKED_BY, [[...runIds]]);
  for (const { runId, ...row } of rows) asked.set(runId, [...(asked.get(runId) ?? []), row]);
  return asked;
}

export interface RunList {
  runs: readonly ListedRun[];
  /** Hand it back to go on; null at the end. */
  next: string | null;
}

type ListedRow = RunRow &
  Pick<TicketRow, "filer" | "channel_id" | "message_ts"> & { excerpt: string; created_us: string };

const LISTED = `${RUN_COLUMNS}, left(t.text, 200) AS excerpt, t.filer, t.channel_id, t.message_ts, ${utcMicros("r.created_at")} AS created_us
     FROM runs r JOIN tickets t ON t.id = r.ticket_id`;

/** Newest first, by keyset. `cursor` is `next` of the page before. @throws `bad_cursor` */
export async function listRuns(
  db: SqlRunner,
  query: { limit?: number; cursor?: string | null },
): Promise<RunList> {
  const limit = Math.min(Math.max(query.limit ?? 50, 1), 200);
  const after = decodeCursor(query.cursor ?? null) ?? NEWEST;
  const rows = await db.sql<ListedRow>(
    "runs.list",
    `SELECT ${LISTED}
     WHERE (r.created_at, r.id) < ($1::timestamptz, $2) ORDER BY r.created_at DESC, r.id DESC LIMIT $3`,
    [after.at, after.id, limit + 1],
  );
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    runs: page.map(listed),
    next:
      rows.length > limit && last !== undefined ? encodeCursor({ at: last.created_us, id: last.id }) : null,
  };
}

const listed = (row: ListedRow): ListedRun => ({
  run: toRun(row),
  excerpt: row.excerpt,
  filer: row.filer,
  message:
    row.channel_id === null || row.message_ts === null
      ? null
      : { channelId: row.channel_id, ts: row.message_ts },
});

/**
 * $1 Slack id, $2 rows. The newest tickets that they filed, and those that they only asked for with others, each by an index of its own;
 * one condition over both would read every ticket.
 */
const RUNS_OF_FILER = `
WITH filed AS MATERIALIZED (SELECT id FROM tickets WHERE filer = $1 ORDER BY created_at DESC, id DESC LIMIT $2::int),
  joined AS MATERIALIZED (SELECT id FROM tickets WHERE filers @> ARRAY[$1] AND cardinality(filers) > 1),
  asked AS MATERIALIZED (SELECT ${LISTED} WHERE t.id = ANY (ARRAY(SELECT id FROM filed UNION SELECT id FROM joined)))
SELECT * FROM asked ORDER BY created_us DESC, id DESC LIMIT $2::int`;

/** Runs of the tickets that this person asked for, the newest ones first. */
export async function runsOfFiler(
  db: SqlRunner,
  filer: string,
  limit: number,
): Promise<readonly ListedRun[]> {
  return (await db.sql<ListedRow>("runs.of_filer", RUNS_OF_FILER, [filer, limit])).map(listed);
}

/** $1 rows. At work, and due at no time: somebody took that away in the database. */
const FORGOTTEN = `
UPDATE runs r SET due_at = countersign_now()
FROM (SELECT f.id FROM runs f WHERE f.due_at IS NULL AND f.state IN ('queued', 'running') LIMIT $1::int) x
WHERE r.id = x.id RETURNING r.id`;

/** Makes such runs due now, and returns them. */
export async function makeForgottenRunsDue(db: SqlRunner, limit: number): Promise<RunId[]> {
  return (await db.sql<{ id: RunId }>("runs.forgotten", FORGOTTEN, [limit])).map((row) => row.id);
}

/** Runs that somebody must look at now, longest due first. */
export async function dueRuns(db: SqlRunner, limit: number): Promise<RunId[]> {
  const rows = await db.sql<{ id: RunId }>(
    "runs.due",
    "SELECT id FROM runs WHERE due_at <= countersign_now() ORDER BY due_at, id LIMIT $1",
    [limit],
  );
  return rows.map((row) => row.id);
}
