/**
 * App Home: published when a person opens it and after each click of theirs in it, and again while they may have it open.
 *
 * 1. A person who opened Home has a row among the cards (kind `home`). Until half an hour after they last opened or used it, it is
 *    due again and again: what Home would show is read anew, and published only if it differs from what was published.
 * 2. The answer to a click stands on top for a while before anything may take its place.
 * 3. One writer at a time (lease with token); publishing by itself keeps well below Slack's hundred a minute, and never asks Slack
 *    about people as often as clicks do: those readings are left for decisions.
 */
import { sha256Hex } from "../../domain/canonical.js";
import { type CallFailure, callFailure } from "../call-failure.js";
import { type HomeFacts, homeView } from "../cards/home.js";
import { HOME_PUBLISH_INTERVAL_MS } from "../limits.js";
import type { SlackContext } from "../types.js";
import { readHome } from "../views/home.js";
import { waitForTurn } from "./card-turn.js";
import { closeKey } from "./pace.js";

/** As old as a reading may be when somebody looks (the same as at a click), and when Home is looked at by itself. */
const OPENED_MAX_AGE_MS = 5_000;
const LIVE_MAX_AGE_MS = 120_000;

const LOOK_EVERY_MS = 3_000;
const NOTICE_STAYS_MS = 30_000;
const LIVE_FOR_MINUTES = 30;
const AFTER_FAILURE_MS = 30_000;
const LEASE_MS = 30_000;
/** Homes looked at in one pass. */
const PASS_MAX = 20;
const PACE_KEY = "views.publish/home";

/** Publishes what is so now, with the answer to a click on top; from now on this Home is kept up to date for a while. */
export async function publishHome(ctx: SlackContext, userId: string, notice: string | null): Promise<void> {
  // First, so that a pass that looks at this Home just now does not publish over the answer.
  const [opened] = await ctx.db.sql<Pick<HomeRow, "id" | "lease_token">>("slack.home.opened", OPENED, [
    ctx.ids.next("card_"),
    userId,
    notice === null ? LOOK_EVERY_MS : NOTICE_STAYS_MS,
  ]);
  const facts = await readHome(ctx, userId, OPENED_MAX_AGE_MS);
  const failure = await publish(ctx, userId, facts, notice);
  if (failure !== null) {
    ctx.log.warn({ failure }, "Home could not be published");
    return;
  }
  await ctx.db.sql(
    "slack.home.published",
    "UPDATE slack_cards SET shown_hash = $3, shown_at = countersign_now() WHERE id = $1 AND lease_token = $2",
    [opened?.id, opened?.lease_token, hashOf(facts)],
  );
}

// $1 row id, $2 person, $3 milliseconds until it is looked at again. `updated_at`: last used. What stands there is not known until it
// is published.
const OPENED = `
  INSERT INTO slack_cards (id, kind, subject_id, slot, channel_id, due_at)
  VALUES ($1, 'home', $2, 'home', $2, countersign_now() + make_interval(secs => $3 / 1000.0))
  ON CONFLICT (kind, subject_id, slot) DO UPDATE SET
    shown_hash = NULL, due_at = excluded.due_at, updated_at = excluded.updated_at,
    failures = 0, last_error = NULL, paced = false, lease_until = NULL, lease_token = slack_cards.lease_token + 1
  RETURNING id, lease_token`;

interface HomeRow {
  readonly id: string;
  readonly user_id: string;
  readonly shown_hash: string | null;
  readonly paced: boolean;
  readonly wanted_version: bigint;
  readonly lease_token: bigint;
}

// $1 lease in milliseconds, $2 rows, $3 minutes after which nobody is expected to look any more.
const CLAIM = `
  UPDATE slack_cards
     SET lease_token = lease_token + 1, lease_until = countersign_now() + make_interval(secs => $1 / 1000.0)
   WHERE id IN (SELECT id FROM slack_cards
                 WHERE due_at IS NOT NULL AND due_at <= countersign_now() AND kind = 'home'
                   AND updated_at > countersign_now() - make_interval(mins => $3)
                   AND (lease_until IS NULL OR lease_until < countersign_now())
                 ORDER BY due_at, id LIMIT $2 FOR UPDATE SKIP LOCKED)
  RETURNING id, subject_id AS user_id, shown_hash, paced, wanted_version, lease_token`;

const LEFT = `
  UPDATE slack_cards SET due_at = NULL
   WHERE due_at IS NOT NULL AND due_at <= countersign_now() AND kind = 'home'
     AND updated_at <= countersign_now() - make_interval(mins => $1)`;

/** One pass over the Homes that may be open: those that no longer show what is so are published again. Returns how many were looked at. */
export async function refreshHomes(ctx: SlackContext): Promise<number> {
  await ctx.db.sql("slack.home.left", LEFT, [LIVE_FOR_MINUTES]);
  const rows = await ctx.db.sql<HomeRow>("slack.home.claim", CLAIM, [LEASE_MS, PASS_MAX, LIVE_FOR_MINUTES]);
  for (const row of rows) {
    try {
      await refresh(ctx, row);
    } catch (error) {
      ctx.log.error({ home: row.id, error: String(error) }, "a Home could not be brought up to date");
      await lookAgain(ctx, row, AFTER_FAILURE_MS, row.shown_hash);
    }
  }
  return rows.length;
}

async function refresh(ctx: SlackContext, row: HomeRow): Promise<void> {
  const facts = await readHome(ctx, row.user_id, LIVE_MAX_AGE_MS);
  const hash = hashOf(facts);
  // What cannot be read now is no reason to take away what stands there.
  if (!facts.approvals.ok || hash === row.shown_hash) {
    return lookAgain(ctx, row, LOOK_EVERY_MS, row.shown_hash);
  }
  const turn = { key: PACE_KEY, intervalMs: HOME_PUBLISH_INTERVAL_MS, urgent: false };
  if (!(await waitForTurn(ctx, row, turn)) || !(await stillOurs(ctx, row))) return;
  const failure = await publish(ctx, row.user_id, facts, null);
  if (failure === null) return lookAgain(ctx, row, LOOK_EVERY_MS, hash);
  ctx.log.warn({ failure }, "Home could not be brought up to date");
  if (failure.kind !== "rate_limited") return lookAgain(ctx, row, AFTER_FAILURE_MS, row.shown_hash);
  await closeKey(ctx.db, PACE_KEY, failure.retryAfterMs);
  return lookAgain(ctx, row, failure.retryAfterMs, row.shown_hash);
}

/** Nobody used this Home, and no other process took it over, since it was claimed. */
async function stillOurs(ctx: SlackContext, row: HomeRow): Promise<boolean> {
  const ours = await ctx.db.sql(
    "slack.home.ours",
    "SELECT 1 FROM slack_cards WHERE id = $1 AND lease_token = $2 AND lease_until > countersign_now()",
    [row.id, row.lease_token],
  );
  return ours.length === 1;
}

async function lookAgain(
  ctx: SlackContext,
  row: HomeRow,
  afterMs: number,
  hash: string | null,
): Promise<void> {
  await ctx.db.sql(
    "slack.home.again",
    `UPDATE slack_cards SET lease_until = NULL, paced = false, shown_hash = $3,
            shown_at = CASE WHEN shown_hash IS DISTINCT FROM $3 THEN countersign_now() ELSE shown_at END,
            due_at = countersign_now() + make_interval(secs => $4 / 1000.0)
      WHERE id = $1 AND lease_token = $2`,
    [row.id, row.lease_token, hash, afterMs],
  );
}

type Facts = Omit<HomeFacts, "notice" | "now">;

/** Of what is so; not of the time at which it was looked at. */
const hashOf = (facts: Facts): string =>
  sha256Hex(JSON.stringify(homeView({ ...facts, notice: null, now: new Date(0) })));

/** Null: published. */
async function publish(
  ctx: SlackContext,
  userId: string,
  facts: Facts,
  notice: string | null,
): Promise<CallFailure | null> {
  try {
    const view = homeView({ ...facts, notice, now: ctx.clock.now() });
    await ctx.web.interactive.views.publish({ user_id: userId, view });
    return null;
  } catch (error) {
    return callFailure(error);
  }
}
