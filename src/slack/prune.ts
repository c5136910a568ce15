/**
 * What the Slack planes may forget. Ids are kept longer than Slack repeats itself (25 hours with delayed events), and the words of
 * people no longer than that.
 */
import type { Db } from "../db/connect.js";

const INBOX_HOURS = 48;
const OUTBOX_DAYS = 30;
const PACE_HOURS = 24;
const BATCH = 5_000;

/** Deletes at most a batch of each; call it again while it answers more than 0. */
export async function pruneSlack(ctx: { readonly db: Db }): Promise<number> {
  const inbox = await ctx.db.sql(
    "slack.prune.inbox",
    `DELETE FROM slack_inbox WHERE id IN (SELECT id FROM slack_inbox
       WHERE processed_at < countersign_now() - make_interval(hours => $1) LIMIT $2) RETURNING 1`,
    [INBOX_HOURS, BATCH],
  );
  const outbox = await ctx.db.sql(
    "slack.prune.outbox",
    `DELETE FROM slack_outbox WHERE id IN (SELECT id FROM slack_outbox
       WHERE state <> 'waiting' AND created_at < countersign_now() - make_interval(days => $1) LIMIT $2) RETURNING 1`,
    [OUTBOX_DAYS, BATCH],
  );
  await ctx.db.sql(
    "slack.prune.pace",
    `DELETE FROM slack_pace WHERE next_at < countersign_now() - make_interval(hours => $1)
       AND coalesce(blocked_until, '-infinity') < countersign_now()`,
    [PACE_HOURS],
  );
  return inbox.length + outbox.length;
}
