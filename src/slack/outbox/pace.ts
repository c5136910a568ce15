/**
 * When a call may leave, agreed between all processes in one row a key: posts by channel, edits by lane.
 *
 * 1. A turn is taken once and kept: whoever has to wait notes the time and comes back, in the order in which turns were taken.
 * 2. Urgent calls do not stand behind a backlog of others; on average the pace holds all the same.
 * 3. Retry-After closes the key for everybody.
 */
import type { SqlRunner } from "../../db/connect.js";

export interface Turn {
  /** Milliseconds from now until the call may leave; 0: now. */
  readonly waitMs: number;
}

// $1 key, $2 interval in ms, $3 urgent.
const TAKE = `
  INSERT INTO slack_pace AS p (key, next_at, urgent_at)
  SELECT $1, n + i, n + CASE WHEN $3 THEN i ELSE interval '0' END
    FROM (SELECT countersign_now() AS n, make_interval(secs => $2 / 1000.0) AS i) c
  ON CONFLICT (key) DO UPDATE SET
    next_at = greatest(p.next_at, countersign_now()) + make_interval(secs => $2 / 1000.0),
    urgent_at = CASE WHEN NOT $3 THEN p.urgent_at
      -- no backlog: behind the one before; else past the backlog, behind the last urgent one
      WHEN p.next_at <= countersign_now() + make_interval(secs => $2 / 1000.0)
        THEN greatest(p.next_at, countersign_now()) + make_interval(secs => $2 / 1000.0)
      ELSE greatest(p.urgent_at, countersign_now()) + make_interval(secs => $2 / 1000.0) END
  RETURNING greatest(0, extract(epoch FROM
    greatest(CASE WHEN $3 THEN urgent_at ELSE next_at END - make_interval(secs => $2 / 1000.0), coalesce(blocked_until, '-infinity'))
    - countersign_now()) * 1000)::float8 AS wait_ms`;

/** Takes the next turn for `key`. `intervalMs` apart from the one before. */
export async function takeTurn(
  db: SqlRunner,
  { key, intervalMs, urgent }: { key: string; intervalMs: number; urgent: boolean },
): Promise<Turn> {
  const [row] = await db.sql<{ wait_ms: number }>("slack.pace.take", TAKE, [key, intervalMs, urgent]);
  return { waitMs: Math.ceil(row?.wait_ms ?? 0) };
}

/** Slack said Retry-After: nothing of this key leaves for `ms`. */
export async function closeKey(db: SqlRunner, key: string, ms: number): Promise<void> {
  await db.sql(
    "slack.pace.close",
    `INSERT INTO slack_pace (key, next_at, urgent_at, blocked_until)
     SELECT $1, n + i, n + i, n + i FROM (SELECT countersign_now() AS n, make_interval(secs => $2 / 1000.0) AS i) c
     ON CONFLICT (key) DO UPDATE SET
       blocked_until = greatest(slack_pace.blocked_until, excluded.blocked_until),
       next_at = greatest(slack_pace.next_at, excluded.next_at),
       urgent_at = greatest(slack_pace.urgent_at, excluded.urgent_at)`,
    [key, ms],
  );
}

/** How long the key is still closed, milliseconds; 0: open. */
export async function closedFor(db: SqlRunner, key: string): Promise<number> {
  const [row] = await db.sql<{ ms: number }>(
    "slack.pace.closed",
    `SELECT greatest(0, extract(epoch FROM blocked_until - countersign_now()) * 1000)::float8 AS ms
       FROM slack_pace WHERE key = $1 AND blocked_until > countersign_now()`,
    [key],
  );
  return Math.ceil(row?.ms ?? 0);
}
