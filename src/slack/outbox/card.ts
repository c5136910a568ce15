/**
 * The one writer of a card's message.
 *
 * 1. One writer at a time (lease with token); what it shows is what the rows say when it renders, and the version that it read
 *    before rendering is the version it has shown. Touched meanwhile: due again.
 * 2. A card whose answer was lost is looked for by its metadata before it is posted again.
 * 3. Refused blocks become a plain card with the same buttons; a deleted message is posted anew; a channel that cannot be posted to
 *    sends the card elsewhere and says so.
 * 4. Nothing else ever waits for Slack: a failure here is a later try.
 */

import { sha256Hex } from "../../domain/canonical.js";
import { isTicketId, type TicketId } from "../../domain/ids.js";
import { cutText } from "../../domain/text/cut.js";
import type { Message } from "../blocks/build.js";
import { DECISION_UPDATE_INTERVAL_MS, POST_INTERVAL_MS, TRAJECTORY_UPDATE_INTERVAL_MS } from "../limits.js";
import type { SlackSendContext } from "../types.js";
import { backoffMs } from "./backoff.js";
import {
  findPosted,
  isGone,
  isTooRich,
  isUnreachable,
  postMessage,
  updateMessage,
  type Written,
} from "./call.js";
import type { CardRow } from "./card-row.js";
import { waitForTurn } from "./card-turn.js";
import { hiddenApproval } from "./hidden-card.js";
import { LOOK_LEASE_MS, WRITE_LEASE_MS } from "./lease.js";
import { giveUpCard } from "./lost-card.js";
import { closeKey } from "./pace.js";
import { REPLACED, renderSubject } from "./render-subject.js";
import { untilThread } from "./until-thread.js";

const CLAIM = `
  UPDATE slack_cards
     SET lease_token = lease_token + 1, lease_until = countersign_now() + make_interval(secs => $2 / 1000.0)
   WHERE id = $1 AND state IN ('live', 'replaced') AND due_at <= countersign_now()
     AND (lease_until IS NULL OR lease_until < countersign_now())
  RETURNING id, kind, subject_id, slot, channel_id, thread_ts, message_ts, wanted_version, shown_hash, state, attempt_at, paced,
            plain, failures, lease_token`;

/** Brings one card's message to what its subject's rows say, if it is due. */
export async function renderCard(ctx: SlackSendContext, cardId: string): Promise<void> {
  const [row] = await ctx.db.sql<CardRow>("slack.card.claim", CLAIM, [cardId, LOOK_LEASE_MS]);
  if (row === undefined) return;
  try {
    await write(ctx, row);
  } catch (error) {
    ctx.log.error({ card: cardId, kind: row.kind, error: String(error) }, "a card failed");
    await postponeCard(ctx, row, {
      ms: backoffMs(row.failures, ctx.ids.random()),
      error: String(error),
      failed: true,
    });
  }
}

async function write(ctx: SlackSendContext, row: CardRow): Promise<void> {
  const place = await placeOf(ctx, row);
  if ("waits" in place) {
    const ms = await untilThread(ctx.db, place.waits);
    return postponeCard(ctx, row, { ms, error: "no thread yet", failed: false });
  }
  const wanted = await wantedMessage(ctx, row, place.channel);
  if (wanted === "later")
    return postponeCard(ctx, row, { ms: 5_000, error: "channel unreadable", failed: true });
  if (wanted === null) return shown(ctx, row, place, { ts: row.message_ts, hash: row.shown_hash });
  const hash = sha256Hex(JSON.stringify(wanted.message));
  if (row.message_ts !== null && hash === row.shown_hash) {
    return shown(ctx, row, place, { ts: row.message_ts, hash, again: wanted.again });
  }
  const ts = row.message_ts ?? (await foundBefore(ctx, row, place));
  if (ts === "later") return;
  const { message, urgent, again } = wanted;
  const work: Work = { row, place, message, urgent, hash, again };
  if (ts === null) return post(ctx, work);
  return edit(ctx, work, ts);
}

interface Place {
  readonly channel: string;
  readonly threadTs: string | null;
}

interface Work {
  readonly row: CardRow;
  readonly place: Place;
  readonly message: Message;
  readonly urgent: boolean;
  readonly hash: string;
  readonly again: boolean | undefined;
}

/** Where the card belongs, or the ticket whose thread it waits for. */
async function placeOf(ctx: SlackSendContext, row: CardRow): Promise<Place | { waits: string | null }> {
  if (row.slot.split("~", 1)[0] !== "thread" || row.message_ts !== null) {
    return { channel: row.channel_id, threadTs: row.thread_ts };
  }
  const [ticket] = await ctx.db.sql<{
    id: string;
    channel_id: string | null;
    thread_ts: string | null;
  }>(
    "slack.card.place",
    `SELECT id, channel_id, thread_ts FROM tickets WHERE id = CASE $1 WHEN 'binding' THEN $2
       WHEN 'run' THEN (SELECT ticket_id FROM runs WHERE id = $2) ELSE (SELECT ticket_id FROM approvals WHERE id = $2) END`,
    [row.kind, row.subject_id],
  );
  if (ticket === undefined || ticket.channel_id === null || ticket.thread_ts === null) {
    return { waits: ticket?.id ?? null };
  }
  return { channel: ticket.channel_id, threadTs: ticket.thread_ts };
}

interface Wanted {
  readonly message: Message;
  readonly urgent: boolean;
  /** Looked at again in a while, touched or not. */
  readonly again?: boolean;
}

async function wantedMessage(
  ctx: SlackSendContext,
  row: CardRow,
  channel: string,
): Promise<Wanted | null | "later"> {
  if (row.state === "replaced") return row.message_ts === null ? null : { message: REPLACED, urgent: false };
  if (row.kind === "approval") {
    const hidden = await hiddenApproval(ctx, row, channel);
    if (hidden.hide === "later") return "later";
    if (hidden.hide === "all") return null;
    if (hidden.hide === "behind") return { message: hidden.message, urgent: true, again: hidden.again };
  }
  const rendered = await renderSubject(ctx, row.kind, row.subject_id, row.plain);
  const unseen = row.message_ts === null && row.attempt_at === null;
  return rendered?.onlyEdit === true && unseen ? null : rendered;
}

/** The ts of a post whose answer was lost; null when there is none. */
async function foundBefore(
  ctx: SlackSendContext,
  row: CardRow,
  place: Place,
): Promise<string | null | "later"> {
  if (row.attempt_at === null) return null;
  const lookup = await findPosted(ctx, { channel: place.channel, threadTs: place.threadTs, ref: row.id });
  if (lookup.found !== "unknown") return lookup.found;
  if (row.failures >= 5) return null;
  await postponeCard(ctx, row, {
    ms: backoffMs(row.failures, ctx.ids.random()),
    error: "cannot look",
    failed: true,
  });
  return "later";
}

async function post(ctx: SlackSendContext, work: Work): Promise<void> {
  const { row, place } = work;
  const turn = { key: place.channel, intervalMs: POST_INTERVAL_MS, urgent: work.urgent };
  if (!(await waitForTurn(ctx, row, turn))) return;
  const send = (message: Message): Promise<Written> =>
    whileHeld(ctx, row, "post", () =>
      postMessage(ctx, ctx.web.approvals, {
        channel: place.channel,
        threadTs: place.threadTs,
        message,
        ref: row.id,
      }),
    );
  await settle(ctx, work, turn.key, await withFallbacks(ctx, work, send));
}

async function edit(ctx: SlackSendContext, work: Work, ts: string): Promise<void> {
  const { row, place } = work;
  const trajectory = row.kind === "run";
  const key = trajectory ? "chat.update/trajectory" : "chat.update/decisions";
  const intervalMs = trajectory ? TRAJECTORY_UPDATE_INTERVAL_MS : DECISION_UPDATE_INTERVAL_MS;
  if (!(await waitForTurn(ctx, row, { key, intervalMs, urgent: work.urgent }))) return;
  const client = trajectory ? ctx.web.trajectory : ctx.web.approvals;
  const result = await withFallbacks(ctx, work, (message) =>
    whileHeld(ctx, row, "edit", () => updateMessage(ctx, client, { channel: place.channel, ts, message })),
  );
  if (result.kind === "refused" && isGone(result.code)) return postAnew(ctx, work);
  // The post was found before this edit: what is known of it is kept, whatever became of the edit.
  const kept: Work = row.message_ts === null ? { ...work, row: { ...row, message_ts: ts } } : work;
  await settle(ctx, kept, key, result);
}

/** A person deleted the message, or it is not ours any more: the card is posted as a new one. */
async function postAnew(ctx: SlackSendContext, work: Work): Promise<void> {
  const { row } = work;
  if (row.state === "replaced") return shown(ctx, row, work.place, { ts: row.message_ts, hash: work.hash });
  ctx.log.warn({ card: row.id, kind: row.kind }, "a card's message is gone; posting it anew");
  await ctx.db.sql(
    "slack.card.gone",
    "UPDATE slack_cards SET message_ts = NULL, shown_hash = NULL, attempt_at = NULL, paced = false WHERE id = $1 AND lease_token = $2",
    [row.id, row.lease_token],
  );
  await post(ctx, { ...work, row: { ...row, message_ts: null, attempt_at: null, paced: false } });
}

/** The card as it is; if Slack does not take it, the plain one; if not that either, its text alone. */
async function withFallbacks(
  ctx: SlackSendContext,
  { row, message }: Work,
  send: (message: Message) => Promise<Written>,
): Promise<Written> {
  const first = await send(message);
  if (first.kind !== "refused" || !isTooRich(first.code)) return first;
  const plain = row.plain ? null : await renderSubject(ctx, row.kind, row.subject_id, true);
  if (plain !== null) {
    await ctx.db.sql("slack.card.plain", "UPDATE slack_cards SET plain = true WHERE id = $1", [row.id]);
    const second = await send(plain.message);
    if (second.kind !== "refused" || !isTooRich(second.code)) return second;
  }
  return send({ text: message.text, blocks: [] });
}

/**
 * Sends under a lease that outlasts the call's own time limit: whoever takes over never writes beside it. A post is noted before
 * it leaves, so that it is looked for if its answer is lost.
 */
async function whileHeld(
  ctx: SlackSendContext,
  row: CardRow,
  what: "post" | "edit",
  send: () => Promise<Written>,
): Promise<Written> {
  const held = await ctx.db.sql(
    "slack.card.hold",
    `UPDATE slack_cards SET attempt_at = CASE WHEN $3 THEN countersign_now() ELSE attempt_at END,
            lease_until = countersign_now() + make_interval(secs => $4 / 1000.0)
      WHERE id = $1 AND lease_token = $2 AND lease_until > countersign_now() RETURNING id`,
    [row.id, row.lease_token, what === "post", WRITE_LEASE_MS],
  );
  return held.length === 1
    ? send()
    : { kind: "unknown", detail: "the card's lease ran out before it was written" };
}

async function settle(ctx: SlackSendContext, work: Work, key: string, result: Written): Promise<void> {
  const { row, place } = work;
  switch (result.kind) {
    case "written":
      if (row.kind === "ticket" && isTicketId(row.subject_id)) {
        await threadOpened(ctx, row.subject_id, place.channel, result.ts);
      }
      return shown(ctx, row, place, { ts: result.ts, hash: work.hash, again: work.again });
    case "rate_limited":
      await closeKey(ctx.db, key, result.retryAfterMs);
      return postponeCard(ctx, row, {
        ms: result.retryAfterMs,
        error: "rate limited",
        failed: false,
        closed: true,
      });
    case "refused":
      if (isUnreachable(result.code) || row.failures >= 8)
        return giveUpCard(ctx, row, place.channel, result.code);
      return postponeCard(ctx, row, {
        ms: backoffMs(row.failures, ctx.ids.random()),
        error: result.code,
        failed: true,
        closed: true,
      });
    case "unknown":
      return postponeCard(ctx, row, {
        ms: backoffMs(row.failures, ctx.ids.random()),
        error: result.detail,
        failed: true,
      });
  }
}

async function threadOpened(
  ctx: SlackSendContext,
  ticketId: TicketId,
  channel: string,
  ts: string,
): Promise<void> {
  await ctx.useCases.setTicketThread({ ticketId, channelId: channel, messageTs: ts });
}

/** Shown: due again only if the subject was touched after it was read. */
async function shown(
  ctx: SlackSendContext,
  row: CardRow,
  place: Place,
  { ts, hash, again }: { ts: string | null; hash: string | null; again?: boolean | undefined },
): Promise<void> {
  const [after] = await ctx.db.sql<{ due: boolean }>(
    "slack.card.shown",
    `UPDATE slack_cards SET message_ts = $3, channel_id = $4, thread_ts = $5, shown_version = $6, shown_hash = $7,
            shown_at = countersign_now(), attempt_at = NULL, paced = false, failures = 0, last_error = NULL, lease_until = NULL,
            updated_at = countersign_now(),
            due_at = CASE WHEN wanted_version <= $6 AND $8 THEN countersign_now() + interval '1 minute'
              WHEN wanted_version <= $6 THEN NULL
              WHEN kind = 'run' THEN countersign_now() + interval '2 seconds' ELSE countersign_now() END
      WHERE id = $1 AND lease_token = $2 RETURNING due_at <= countersign_now() AND kind <> 'run' AS due`,
    [row.id, row.lease_token, ts, place.channel, place.threadTs, row.wanted_version, hash, again === true],
  );
  if (after?.due === true) await ctx.wake("card", row.id);
}

interface Postponement {
  readonly ms: number;
  readonly error: string;
  readonly failed: boolean;
  /** Slack answered: nothing was written. */
  readonly closed?: boolean;
}

async function postponeCard(ctx: SlackSendContext, row: CardRow, p: Postponement): Promise<void> {
  await ctx.db.sql(
    "slack.card.postpone",
    `UPDATE slack_cards SET lease_until = NULL, paced = false, last_error = $4, message_ts = coalesce(message_ts, $7),
            due_at = countersign_now() + make_interval(secs => $3 / 1000.0),
            failures = failures + CASE WHEN $5 THEN 1 ELSE 0 END,
            attempt_at = CASE WHEN $6 THEN NULL ELSE attempt_at END
      WHERE id = $1 AND lease_token = $2`,
    [row.id, row.lease_token, p.ms, cutText(p.error, 300), p.failed, p.closed === true, row.message_ts],
  );
}

/** Cards that are due, for the sweeper. */
export async function dueCards(ctx: Pick<SlackSendContext, "db">, limit: number): Promise<readonly string[]> {
  const rows = await ctx.db.sql<{ id: string }>(
    "slack.card.due",
    `SELECT id FROM slack_cards WHERE due_at IS NOT NULL AND due_at <= countersign_now() AND kind <> 'home'
        AND (lease_until IS NULL OR lease_until < countersign_now()) ORDER BY due_at, id LIMIT $1`,
    [limit],
  );
  return rows.map(({ id }) => id);
}
