import type { SqlRunner } from "../../db/connect.js";

const AGAIN_MS = 1_000;
const AGAIN_MAX_MS = 60_000;

/** How long to wait for a ticket's own message, milliseconds: until it is due itself, at least a second, at most a minute. */
export async function untilThread(db: SqlRunner, ticketId: string | null): Promise<number> {
  const [card] = await db.sql<{ ms: number }>(
    "slack.until_thread",
    `SELECT (extract(epoch FROM due_at - countersign_now()) * 1000)::float8 AS ms FROM slack_cards
      WHERE kind = 'ticket' AND subject_id = $1 AND slot = 'channel' AND due_at IS NOT NULL`,
    [ticketId],
  );
  return Math.min(AGAIN_MAX_MS, Math.max(AGAIN_MS, Math.ceil((card?.ms ?? 0) + 500)));
}
