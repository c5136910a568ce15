/**
 * Notices: what other rooms want people to see becomes rows, in the transaction of the change.
 *
 * 1. Rows only. Nothing is rendered and nothing is sent here; the texts are made from the subject's rows when they leave.
 * 2. A key is posted once; a subject has one card a slot. Touching it any number of times before it is sent is one edit.
 * 3. Tickets without a place in Slack (seeded, from the shell) have no thread, and nothing is written for it.
 */
import type { Tx } from "../db/connect.js";
import { assertNever } from "../domain/assert-never.js";
import type { TicketId } from "../domain/ids.js";
import type { Ids } from "../domain/ports/clock.js";
import type {
  ApproversMessage,
  CardSubject,
  Notices,
  OpsMessage,
  ThreadMessage,
} from "../domain/ports/notices.js";
import type { Wake } from "../domain/ports/wake.js";
import { RUN_CARD_INTERVAL_MS, SWITCH_AT_ONCE, SWITCH_INTERVAL_MS } from "./limits.js";
import type { SlackConfig } from "./settings.js";

export interface NoticesContext {
  readonly ids: Ids;
  readonly wake: Wake;
  readonly config: Pick<SlackConfig, "channels">;
}

/** What a waiting post is about; rendered when it is sent. Stored as jsonb. */
export type StoredPost =
  | { readonly place: "thread"; readonly ticketId: TicketId; readonly message: ThreadMessage }
  | { readonly place: "ops"; readonly message: OpsMessage }
  | { readonly place: "approvers"; readonly approvalId: string; readonly message: ApproversMessage };

export function createNotices(ctx: NoticesContext): Notices<Tx> {
  return {
    touch: (tx, subject) => touch(tx, ctx, subject),
    follow: async (tx, { kind, id }) => {
      // A connection knows one text under a name, and both are asked for in one transaction.
      const followed =
        kind === "run"
          ? await tx.sql<TouchedCard>("slack.card.follow_run", FOLLOW_RUN, [kind, id])
          : await tx.sql<TouchedCard>("slack.card.follow", FOLLOW, [kind, id]);
      wakeCards(tx, ctx, followed);
    },
    repost: async (tx, subject) => {
      await tx.sql("slack.card.replace", REPLACE, [subject.kind, subject.id]);
      await touch(tx, ctx, subject);
    },
    switchTurned: async (tx, kind) => {
      const turned = await tx.sql<TouchedCard>("slack.card.switch", SWITCH_TURNED, [
        kind,
        SWITCH_AT_ONCE,
        SWITCH_INTERVAL_MS,
      ]);
      wakeCards(tx, ctx, turned);
    },
    thread: async (tx, { ticketId, key, message }) => {
      const post: StoredPost = { place: "thread", ticketId, message };
      const dedupe = `thread:${ticketId}:${key}`;
      const rows = await tx.sql<{ id: string }>("slack.outbox.thread", THREAD_POST, [
        ctx.ids.next("out_"),
        dedupe,
        ticketId,
        JSON.stringify(post),
      ]);
      wakeOutbox(tx, ctx, rows);
      if (rows.length > 0) await touchTicketMessage(tx, ctx, ticketId);
    },
    ops: async (tx, { key, message }) => {
      const post: StoredPost = { place: "ops", message };
      const channel = ctx.config.channels.ops;
      wakeOutbox(
        tx,
        ctx,
        await channelPost(tx, ctx, { dedupe: `ops:${key}`, channel, post, lane: "normal" }),
      );
    },
    approvers: async (tx, { approvalId, key, message }) => {
      const post: StoredPost = { place: "approvers", approvalId, message };
      const channel = ctx.config.channels.approvals;
      const dedupe = `approvers:${approvalId}:${key}`;
      wakeOutbox(tx, ctx, await channelPost(tx, ctx, { dedupe, channel, post, lane: "urgent" }));
    },
  };
}

// A thread message waits for its ticket's thread; `channel_id` is known when it leaves.
const THREAD_POST = `
  INSERT INTO slack_outbox (id, dedupe_key, method, ticket_id, payload)
  SELECT $1, $2, 'chat.postMessage', t.id, $4::jsonb FROM tickets t WHERE t.id = $3 AND t.source NOT IN ('seed', 'cli')
  ON CONFLICT (dedupe_key) DO NOTHING RETURNING id`;

async function channelPost(
  tx: Tx,
  ctx: NoticesContext,
  {
    dedupe,
    channel,
    post,
    lane,
  }: { dedupe: string; channel: string; post: StoredPost; lane: "normal" | "urgent" },
): Promise<{ id: string }[]> {
  return tx.sql<{ id: string }>(
    "slack.outbox.channel",
    `INSERT INTO slack_outbox (id, dedupe_key, method, channel_id, payload, lane)
     VALUES ($1, $2, 'chat.postMessage', $3, $4::jsonb, $5) ON CONFLICT (dedupe_key) DO NOTHING RETURNING id`,
    [ctx.ids.next("out_"), dedupe, channel, JSON.stringify(post), lane],
  );
}

function wakeOutbox(tx: Tx, ctx: NoticesContext, rows: readonly { id: string }[]): void {
  for (const { id } of rows) tx.afterCommit(() => void ctx.wake("outbox", id));
}

type Slot = "thread" | "ops";
type SlottedSubject = Exclude<CardSubject, { kind: "approval" }>;

function slotsOf(subject: SlottedSubject): readonly Slot[] {
  switch (subject.kind) {
    case "run":
    case "binding":
      return ["thread"];
    case "quarantine":
    case "incident":
    case "resolution":
    case "thaw":
    case "escalation":
      return ["ops"];
    default:
      return assertNever(subject, "card subject");
  }
}

async function touch(tx: Tx, ctx: NoticesContext, subject: CardSubject): Promise<void> {
  // A click waits for what its decision writes: all cards of the approval in one statement.
  if (subject.kind === "approval") return wakeCards(tx, ctx, await approvalCards(tx, ctx, subject.id));
  for (const slot of slotsOf(subject)) {
    const rows =
      slot === "thread"
        ? await threadCard(tx, ctx, subject)
        : await channelCard(tx, ctx, subject, slot, ctx.config.channels[slot]);
    wakeCards(tx, ctx, rows);
  }
  // A card that had to move to another channel has a slot of its own.
  if (subject.kind !== "run" && subject.kind !== "binding") {
    wakeCards(tx, ctx, await tx.sql<TouchedCard>("slack.card.moved", MOVED, [subject.kind, subject.id]));
  }
}

function wakeCards(tx: Tx, ctx: NoticesContext, rows: readonly TouchedCard[]): void {
  for (const { id, due } of rows) if (due) tx.afterCommit(() => void ctx.wake("card", id));
}

const MOVED = `
  UPDATE slack_cards SET wanted_version = wanted_version + 1, updated_at = countersign_now(),
         due_at = CASE WHEN due_at IS NOT NULL AND (paced OR failures > 0) THEN due_at ELSE countersign_now() END
   WHERE kind = $1 AND subject_id = $2 AND slot LIKE '%!moved' AND state = 'live'
  RETURNING id, due_at <= countersign_now() AS due`;

const FOLLOW = MOVED.replace(" AND slot LIKE '%!moved'", "");

// $1 'run', $2 run. What was asked for in the place of an approval that was not needed any more is the run's to tell: those cards follow it.
// Each is looked up by its approval: PostgreSQL before 17 may read every approval's card for a list that is not its index's first column.
const LET_GO = FOLLOW.replace("kind = $1", "$1 = 'run'").replace(
  "subject_id = $2",
  `id = ANY (ARRAY(
     SELECT c.id FROM approvals a CROSS JOIN LATERAL (
       SELECT id FROM slack_cards WHERE kind = 'approval' AND subject_id = a.id OFFSET 0) AS c
      WHERE a.run_id = $2 AND a.end_code = 'binding_confirmed'))`,
);
const FOLLOW_RUN = `WITH of_run AS (${FOLLOW}), let_go AS (${LET_GO})
  SELECT id, due FROM of_run UNION ALL SELECT id, due FROM let_go`;

interface TouchedCard {
  id: string;
  /** Not held back by its interval, a pace or a backoff. */
  due: boolean;
}

// A card that waits for its turn or backs off keeps its time; a run's card is edited once an interval; others at once.
const AGAIN = `
  ON CONFLICT (kind, subject_id, slot) DO UPDATE SET
    wanted_version = slack_cards.wanted_version + 1,
    updated_at = countersign_now(),
    -- a channel that could not be posted to may be open again
    state = CASE WHEN slack_cards.state = 'lost' THEN 'live' ELSE slack_cards.state END,
    failures = CASE WHEN slack_cards.state = 'lost' THEN 0 ELSE slack_cards.failures END,
    due_at = CASE
      WHEN slack_cards.due_at IS NOT NULL AND (slack_cards.paced OR slack_cards.failures > 0) THEN slack_cards.due_at
      WHEN slack_cards.kind = 'run' AND slack_cards.shown_at IS NOT NULL
        THEN greatest(countersign_now(), slack_cards.shown_at + make_interval(secs => ${RUN_CARD_INTERVAL_MS / 1000}))
      ELSE countersign_now() END
  RETURNING id, coalesce(due_at <= countersign_now(), false) AS due`;

function channelCard(
  tx: Tx,
  ctx: NoticesContext,
  subject: CardSubject,
  slot: Slot,
  channel: string,
): Promise<TouchedCard[]> {
  return tx.sql<TouchedCard>(
    "slack.card.channel",
    `INSERT INTO slack_cards (id, kind, subject_id, slot, channel_id, due_at)
     VALUES ($1, $2, $3, $4, $5, countersign_now()) ${AGAIN}`,
    [ctx.ids.next("card_"), subject.kind, subject.id, slot, channel],
  );
}

// $1 id of the thread's card and $2 of the channel's, if they are new; $3 approval, $4 tickets channel, $5 approvals channel. The ticket
// and whether it has a thread stand with the thread's card.
const APPROVAL_CARDS = `
  WITH place AS (
    SELECT t.id, coalesce(t.channel_id, $4) AS channel_id, t.thread_ts FROM approvals a JOIN tickets t ON t.id = a.ticket_id
     WHERE a.id = $3 AND t.source NOT IN ('seed', 'cli')),
  in_thread AS (
    INSERT INTO slack_cards (id, kind, subject_id, slot, channel_id, thread_ts, due_at)
    SELECT $1, 'approval', $3, 'thread', channel_id, thread_ts, countersign_now() FROM place ${AGAIN}),
  in_channel AS (
    INSERT INTO slack_cards (id, kind, subject_id, slot, channel_id, due_at)
    VALUES ($2, 'approval', $3, 'approvals', $5, countersign_now()) ${AGAIN}),
  moved AS (${MOVED.replace("$1", "'approval'").replace("$2", "$3")}),
  escalated AS (${FOLLOW.replace("$1", "'escalation'").replace("$2", "$3")})
  SELECT c.id, c.due, place.id AS ticket_id, place.thread_ts IS NOT NULL AS has_thread FROM in_thread c, place
  UNION ALL SELECT id, due, NULL, NULL FROM in_channel
  UNION ALL SELECT id, due, NULL, NULL FROM moved
  UNION ALL SELECT id, due, NULL, NULL FROM escalated`;

/** Makes the cards of an approval that are missing; what asks on-call to look after it follows where it is there. */
async function approvalCards(tx: Tx, ctx: NoticesContext, id: string): Promise<TouchedCard[]> {
  const { tickets, approvals } = ctx.config.channels;
  const rows = await tx.sql<TouchedCard & { ticket_id: TicketId | null; has_thread: boolean | null }>(
    "slack.card.approval",
    APPROVAL_CARDS,
    [ctx.ids.next("card_"), ctx.ids.next("card_"), id, tickets, approvals],
  );
  for (const { ticket_id, has_thread } of rows) {
    if (ticket_id !== null && has_thread === false) await touchTicketMessage(tx, ctx, ticket_id);
  }
  return rows;
}

async function threadCard(tx: Tx, ctx: NoticesContext, subject: SlottedSubject): Promise<TouchedCard[]> {
  const rows = await tx.sql<TouchedCard & { ticket_id: TicketId | null; has_thread: boolean | null }>(
    "slack.card.thread",
    `WITH place AS (
       SELECT t.id, coalesce(t.channel_id, $4) AS channel_id, t.thread_ts FROM tickets t
        WHERE t.source NOT IN ('seed', 'cli') AND t.id = CASE $2
          WHEN 'binding' THEN $3 ELSE (SELECT ticket_id FROM runs WHERE id = $3) END),
     card AS (
       INSERT INTO slack_cards (id, kind, subject_id, slot, channel_id, thread_ts, due_at)
       SELECT $1, $2, $3, 'thread', channel_id, thread_ts, countersign_now() FROM place ${AGAIN}),
     let_go AS (${LET_GO.replace("$2", "$3").replace("$1", "$2")})
     SELECT card.id, card.due, place.id AS ticket_id, place.thread_ts IS NOT NULL AS has_thread FROM card, place
     UNION ALL SELECT id, due, NULL, NULL FROM let_go`,
    [ctx.ids.next("card_"), subject.kind, subject.id, ctx.config.channels.tickets],
  );
  for (const { ticket_id, has_thread } of rows) {
    if (ticket_id !== null && has_thread === false) await touchTicketMessage(tx, ctx, ticket_id);
  }
  return rows;
}

/** A ticket that came by a form has no message yet: the bot posts one, and its thread is the ticket's. */
async function touchTicketMessage(tx: Tx, ctx: NoticesContext, ticketId: TicketId): Promise<void> {
  const rows = await tx.sql<{ id: string }>(
    "slack.card.ticket",
    `INSERT INTO slack_cards (id, kind, subject_id, slot, channel_id, due_at)
     SELECT $1, 'ticket', t.id, 'channel', $3, countersign_now() FROM tickets t
      WHERE t.id = $2 AND t.thread_ts IS NULL AND t.source NOT IN ('seed', 'cli')
     ON CONFLICT (kind, subject_id, slot) DO NOTHING RETURNING id`,
    [ctx.ids.next("card_"), ticketId, ctx.config.channels.tickets],
  );
  for (const { id } of rows) tx.afterCommit(() => void ctx.wake("card", id));
}

// $1 kind of operation or 'all'; $2 cards that are due at once; $3 milliseconds between the others. Cards of what waits for a decision,
// is parked for a person or may be sent, the ones that expire first before the others and approvals before runs; a card that is due anyway
// keeps its time. Whatever is parked is due at some time, which finds it without reading what has ended.
const SWITCH_TURNED = `
  WITH held AS (
    SELECT o.id, a.id AS approval_id, o.owner_run_id, a.expires_at
      FROM approvals a JOIN operations o ON o.id = a.operation_id
     WHERE a.state IN ('PENDING','APPROVED') AND ($1 = 'all' OR o.kind = $1)
    UNION ALL
    SELECT o.id, o.approval_id, o.owner_run_id, o.due_at FROM operations o
     WHERE o.status = 'PREPARED' AND o.due_at IS NOT NULL AND ($1 = 'all' OR o.kind = $1)),
  subjects AS (
    SELECT kind, id, min(until) AS until FROM (
      SELECT 'approval' AS kind, approval_id AS id, expires_at AS until FROM held
      UNION ALL SELECT 'quarantine', id, due_at FROM operations WHERE status = 'QUARANTINED' AND due_at IS NOT NULL AND ($1 = 'all' OR kind = $1)
      UNION ALL SELECT 'resolution', r.id, r.expires_at FROM resolutions r JOIN operations o ON o.id = r.operation_id
        WHERE r.state = 'proposed' AND r.verb = 'retry' AND ($1 = 'all' OR o.kind = $1)
      UNION ALL SELECT 'run', owner_run_id, expires_at FROM held
      UNION ALL SELECT 'run', w.run_id, held.expires_at FROM held JOIN operation_waiters w ON w.operation_id = held.id) AS each
     WHERE id IS NOT NULL GROUP BY kind, id),
  cards AS (
    SELECT c.id, row_number() OVER (ORDER BY s.kind, s.until, c.id) AS place
      FROM subjects s JOIN slack_cards c ON c.kind = s.kind AND c.subject_id = s.id AND c.state = 'live'),
  -- the pace of all is counted from one instant
  turned AS MATERIALIZED (SELECT countersign_now() AS at)
  UPDATE slack_cards c
     SET wanted_version = c.wanted_version + 1, updated_at = turned.at,
         due_at = coalesce(c.due_at, turned.at + make_interval(secs => greatest(0, place - $2) * $3 / 1000.0))
    FROM cards, turned WHERE c.id = cards.id
  RETURNING c.id, coalesce(c.due_at <= turned.at, false) AS due`;

// The old message keeps its row under a slot of its own, to be told that it was replaced.
const REPLACE = `
  UPDATE slack_cards SET slot = slot || '~' || id, state = 'replaced', wanted_version = wanted_version + 1,
         due_at = countersign_now(), paced = false, updated_at = countersign_now()
   WHERE kind = $1 AND subject_id = $2 AND state = 'live'`;
