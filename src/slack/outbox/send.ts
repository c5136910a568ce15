/**
 * Sending one row of the outbox.
 *
 * 1. One sender a row at a time (lease with token); posts of one ticket leave in the order in which they were written.
 * 2. `ok: false` is never delivered. An answer that is lost leaves `attempt_at`, and the next sender looks for the post first.
 * 3. Pace and Retry-After are kept for the channel, not for the row.
 */

import { setTimeout as delay } from "node:timers/promises";
import { cutText } from "../../domain/text/cut.js";
import { POST_INTERVAL_MS } from "../limits.js";
import type { StoredPost } from "../notices.js";
import type { SlackSendContext } from "../types.js";
import { answerPerson, type StoredAnswer } from "./answer.js";
import { backoffMs, FAILURES_MAX, WAIT_IN_PLACE_MS } from "./backoff.js";
import { findPosted, isTooRich, isUnreachable, type Post, postMessage, type Written } from "./call.js";
import { LOOK_LEASE_MS, WRITE_LEASE_MS } from "./lease.js";
import { closedFor, closeKey, takeTurn } from "./pace.js";
import { renderPost } from "./render-post.js";
import { mayShowApprovals } from "./sharing.js";
import { untilThread } from "./until-thread.js";

export interface OutboxRow {
  readonly id: string;
  readonly method: string;
  readonly channel_id: string | null;
  readonly user_id: string | null;
  readonly payload: unknown;
  readonly lane: string;
  readonly ticket_id: string | null;
  readonly attempt_at: Date | null;
  readonly paced: boolean;
  readonly failures: number;
  readonly lease_token: bigint;
}

// $1 id, $2 lease. Zero rows: nothing to do, somebody else has it, or an earlier post of the ticket goes first.
const CLAIM = `
  UPDATE slack_outbox o
     SET lease_token = lease_token + 1, lease_until = countersign_now() + make_interval(secs => $2 / 1000.0)
   WHERE id = $1 AND state = 'waiting' AND due_at <= countersign_now()
     AND (lease_until IS NULL OR lease_until < countersign_now())
     AND NOT EXISTS (SELECT 1 FROM slack_outbox e WHERE e.ticket_id = o.ticket_id AND e.id < o.id AND e.state = 'waiting')
  RETURNING id, method, channel_id, user_id, payload, lane, ticket_id, attempt_at, paced, failures, lease_token`;

/** Sends one waiting row, if it is due and its turn. Anything that happens is in the row afterwards; throws only for the database. */
export async function sendOutbox(ctx: SlackSendContext, id: string): Promise<void> {
  const [row] = await ctx.db.sql<OutboxRow>("slack.outbox.claim", CLAIM, [id, LOOK_LEASE_MS]);
  if (row === undefined) return queueUp(ctx, id);
  try {
    if (row.method === "answer") await sendAnswer(ctx, row);
    else await sendPost(ctx, row);
  } catch (error) {
    ctx.log.error({ outbox: id, error: String(error) }, "a post failed");
    await postpone(ctx, row, {
      ms: backoffMs(row.failures, ctx.ids.random()),
      error: String(error),
      failed: true,
    });
  }
}

/**
 * A post that stands behind an earlier one of its ticket comes back when that one is due, not at every sweep: a long backlog of
 * rows that cannot leave yet must not hide those that can.
 */
async function queueUp(ctx: SlackSendContext, id: string): Promise<void> {
  await ctx.db.sql(
    "slack.outbox.queue",
    `UPDATE slack_outbox o SET due_at = e.due_at + interval '10 milliseconds'
       FROM (SELECT w.due_at FROM slack_outbox m JOIN slack_outbox w ON w.ticket_id = m.ticket_id AND w.id < m.id AND w.state = 'waiting'
              WHERE m.id = $1 ORDER BY w.id LIMIT 1) e
      WHERE o.id = $1 AND o.state = 'waiting' AND o.due_at < e.due_at`,
    [id],
  );
}

async function sendPost(ctx: SlackSendContext, row: OutboxRow): Promise<void> {
  const rendered = await renderPost(ctx, row.payload as StoredPost);
  if (!rendered.ready) {
    if (rendered.why === "moot") return drop(ctx, row, "moot");
    const ms = await untilThread(ctx.db, row.ticket_id);
    return postpone(ctx, row, { ms, error: "no thread yet", failed: false });
  }
  const { channel, threadTs, message } = rendered;
  if ((row.payload as StoredPost).place === "approvers") {
    const shown = await mayShowApprovals(ctx, channel);
    if (shown.is === "shared") return drop(ctx, row, "externally shared channel");
    if (shown.is === "closed") return drop(ctx, row, `channel cannot be examined: ${shown.code}`);
    if (shown.is === "unknown")
      return postpone(ctx, row, { ms: 5_000, error: "channel unreadable", failed: false });
  }
  const post: Post = { channel, threadTs, message, ref: row.id };
  if (row.attempt_at !== null && (await settledBefore(ctx, row, post))) return;
  if (!(await waitForTurn(ctx, row, channel))) return;
  if (!(await beginAttempt(ctx, row))) return;
  let result = await postMessage(ctx, ctx.web.approvals, post);
  if (result.kind === "refused" && isTooRich(result.code)) {
    if (!(await beginAttempt(ctx, row))) return;
    result = await postMessage(ctx, ctx.web.approvals, { ...post, message: { ...message, blocks: [] } });
  }
  await settle(ctx, row, channel, result);
}

/** True when the post of an earlier try was found, or cannot be looked for now: then there is nothing to post. */
async function settledBefore(ctx: SlackSendContext, row: OutboxRow, post: Post): Promise<boolean> {
  const lookup = await findPosted(ctx, post);
  if (lookup.found === null) return false;
  if (lookup.found !== "unknown") {
    await sent(ctx, row, lookup.found);
    return true;
  }
  // A workspace in which we may not read would never let us look: after some tries a second copy is the smaller harm.
  if (row.failures >= 5) return false;
  await postpone(ctx, row, {
    ms: backoffMs(row.failures, ctx.ids.random()),
    error: "cannot look",
    failed: true,
  });
  return true;
}

async function waitForTurn(ctx: SlackSendContext, row: OutboxRow, channel: string): Promise<boolean> {
  const waitMs = row.paced
    ? await closedFor(ctx.db, channel)
    : (await takeTurn(ctx.db, { key: channel, intervalMs: POST_INTERVAL_MS, urgent: row.lane === "urgent" }))
        .waitMs;
  if (waitMs <= 0) return true;
  if (waitMs <= WAIT_IN_PLACE_MS) {
    await delay(waitMs);
    return true;
  }
  await ctx.db.sql(
    "slack.outbox.turn",
    `UPDATE slack_outbox SET paced = true, lease_until = NULL, due_at = countersign_now() + make_interval(secs => $3 / 1000.0)
      WHERE id = $1 AND lease_token = $2`,
    [row.id, row.lease_token, waitMs],
  );
  return false;
}

async function beginAttempt(ctx: SlackSendContext, row: OutboxRow): Promise<boolean> {
  const begun = await ctx.db.sql(
    "slack.outbox.begin",
    `UPDATE slack_outbox SET attempt_at = countersign_now(), lease_until = countersign_now() + make_interval(secs => $3 / 1000.0)
      WHERE id = $1 AND lease_token = $2 AND lease_until > countersign_now() RETURNING id`,
    [row.id, row.lease_token, WRITE_LEASE_MS],
  );
  return begun.length === 1;
}

async function settle(
  ctx: SlackSendContext,
  row: OutboxRow,
  channel: string,
  result: Written,
): Promise<void> {
  switch (result.kind) {
    case "written":
      return sent(ctx, row, result.ts);
    case "rate_limited":
      await closeKey(ctx.db, channel, result.retryAfterMs);
      return postpone(ctx, row, {
        ms: result.retryAfterMs,
        error: "rate limited",
        failed: false,
        closed: true,
      });
    case "refused":
      if (isUnreachable(result.code) || row.failures >= 5) return drop(ctx, row, result.code);
      return postpone(ctx, row, {
        ms: backoffMs(row.failures, ctx.ids.random()),
        error: result.code,
        failed: true,
        closed: true,
      });
    case "unknown":
      if (row.failures >= FAILURES_MAX) return drop(ctx, row, result.detail);
      return postpone(ctx, row, {
        ms: backoffMs(row.failures, ctx.ids.random()),
        error: result.detail,
        failed: true,
      });
  }
}

async function sendAnswer(ctx: SlackSendContext, row: OutboxRow): Promise<void> {
  const outcome = await answerPerson(ctx, row.payload as StoredAnswer);
  switch (outcome.kind) {
    case "written":
      return sent(ctx, row, null);
    case "rate_limited":
      return postpone(ctx, row, {
        ms: outcome.retryAfterMs,
        error: "rate limited",
        failed: true,
        closed: true,
      });
    default:
      // An answer is for somebody who looks at the screen now: it is tried a few times, not for ever.
      if (outcome.kind === "refused" || row.failures >= 3) return drop(ctx, row, outcome.kind);
      return postpone(ctx, row, {
        ms: backoffMs(row.failures, ctx.ids.random()),
        error: outcome.detail,
        failed: true,
      });
  }
}

async function sent(ctx: SlackSendContext, row: OutboxRow, ts: string | null): Promise<void> {
  await ctx.db.sql(
    "slack.outbox.sent",
    `UPDATE slack_outbox SET state = 'sent', message_ts = $3, sent_at = countersign_now(), due_at = NULL, lease_until = NULL,
            attempt_at = NULL, last_error = NULL WHERE id = $1 AND lease_token = $2 AND state = 'waiting'`,
    [row.id, row.lease_token, ts],
  );
  await wakeNext(ctx, row);
}

async function drop(ctx: SlackSendContext, row: OutboxRow, why: string): Promise<void> {
  if (why !== "moot") ctx.log.warn({ outbox: row.id, why }, "a post was given up");
  await ctx.db.sql(
    "slack.outbox.drop",
    `UPDATE slack_outbox SET state = 'dropped', due_at = NULL, lease_until = NULL, last_error = $3
      WHERE id = $1 AND lease_token = $2 AND state = 'waiting'`,
    [row.id, row.lease_token, cutText(why, 300)],
  );
  await wakeNext(ctx, row);
}

interface Postponement {
  readonly ms: number;
  readonly error: string;
  readonly failed: boolean;
  /** Slack answered: nothing was written, so there is nothing to look for. */
  readonly closed?: boolean;
}

async function postpone(ctx: SlackSendContext, row: OutboxRow, p: Postponement): Promise<void> {
  await ctx.db.sql(
    "slack.outbox.postpone",
    `UPDATE slack_outbox SET lease_until = NULL, paced = false, last_error = $4,
            due_at = countersign_now() + make_interval(secs => $3 / 1000.0),
            failures = failures + CASE WHEN $5 THEN 1 ELSE 0 END,
            attempt_at = CASE WHEN $6 THEN NULL ELSE attempt_at END
      WHERE id = $1 AND lease_token = $2 AND state = 'waiting'`,
    [row.id, row.lease_token, p.ms, cutText(p.error, 300), p.failed, p.closed === true],
  );
}

/** The next post of the same ticket stood behind this one. */
async function wakeNext(ctx: SlackSendContext, row: OutboxRow): Promise<void> {
  if (row.ticket_id === null) return;
  const [next] = await ctx.db.sql<{ id: string }>(
    "slack.outbox.next",
    `UPDATE slack_outbox SET due_at = least(due_at, countersign_now())
      WHERE id = (SELECT id FROM slack_outbox WHERE ticket_id = $1 AND state = 'waiting' AND id > $2 ORDER BY id LIMIT 1)
        AND NOT paced AND failures = 0 RETURNING id`,
    [row.ticket_id, row.id],
  );
  if (next !== undefined) await ctx.wake("outbox", next.id);
}

/** Waiting rows that are due, for the sweeper. */
export async function dueOutbox(
  ctx: Pick<SlackSendContext, "db">,
  limit: number,
): Promise<readonly string[]> {
  const rows = await ctx.db.sql<{ id: string }>(
    "slack.outbox.due",
    `SELECT id FROM slack_outbox WHERE due_at IS NOT NULL AND due_at <= countersign_now()
        AND (lease_until IS NULL OR lease_until < countersign_now()) ORDER BY due_at, id LIMIT $1`,
    [limit],
  );
  return rows.map(({ id }) => id);
}
