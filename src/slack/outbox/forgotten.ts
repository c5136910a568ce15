/**
 * What nobody would be shown any more, because somebody deleted its row, or took away when it is due. A click on what was shown before
 * is judged by the approval's own rows, whatever stands here.
 */
import type { Db, Tx } from "../../db/connect.js";
import type { Logger } from "../../domain/ports/logger.js";
import type { CardSubject, Notices } from "../../domain/ports/notices.js";
import type { Wake } from "../../domain/ports/wake.js";

interface Ctx {
  readonly db: Db;
  readonly wake: Wake;
  readonly log: Logger;
}

/** SQL: subject `id` of that kind has a card in a slot of this name, moved or not. */
const hasCard = (kind: string, id: string, slot = ""): string =>
  `EXISTS (SELECT 1 FROM slack_cards c WHERE c.kind = '${kind}' AND c.subject_id = ${id} AND c.slot LIKE '${slot}%')`;

/** $1 rows. What waits for a person and has no card: by those alone who look where it stands does anybody hear of it. */
const WITHOUT_CARD = `
(SELECT 'approval' AS kind, a.id FROM approvals a LEFT JOIN tickets t ON t.id = a.ticket_id
 WHERE a.state = 'PENDING' AND (NOT ${hasCard("approval", "a.id", "approvals")}
   OR t.source NOT IN ('seed', 'cli') AND NOT ${hasCard("approval", "a.id", "thread")}) LIMIT $1::int)
UNION ALL
(SELECT 'incident', i.id FROM incidents i WHERE i.status = 'open' AND NOT ${hasCard("incident", "i.id")} LIMIT $1::int)
UNION ALL
(SELECT 'quarantine', o.id FROM operations o
 WHERE o.status = 'QUARANTINED' AND o.due_at IS NOT NULL AND NOT ${hasCard("quarantine", "o.id")} LIMIT $1::int)
UNION ALL
(SELECT 'resolution', r.id FROM resolutions r WHERE r.state = 'proposed' AND NOT ${hasCard("resolution", "r.id")} LIMIT $1::int)`;

/** Makes cards anew that were lost. Returns how many things had none. */
export async function showUnshown(
  ctx: Ctx,
  notices: Pick<Notices<Tx>, "touch">,
  limit: number,
): Promise<number> {
  const rows = await ctx.db.sql<CardSubject & Record<string, unknown>>("slack.card.without", WITHOUT_CARD, [
    limit,
  ]);
  for (const { kind, id } of rows) await ctx.db.tx((tx) => notices.touch(tx, { kind, id } as CardSubject));
  if (rows.length > 0)
    ctx.log.error(
      { subjects: rows.map(({ kind, id }) => `${kind} ${id}`) },
      "the cards of these were deleted in the database; they are made anew",
    );
  return rows.length;
}

/** What was touched and is shown by nobody, and posts that wait for ever: behind one of them every later one of its ticket waits. */
const CARDS = `
UPDATE slack_cards SET due_at = countersign_now()
WHERE due_at IS NULL AND state IN ('live', 'replaced') AND wanted_version > shown_version RETURNING id`;
const POSTS = `
UPDATE slack_outbox SET due_at = countersign_now()
WHERE state = 'waiting' AND (due_at IS NULL OR due_at > countersign_now() + interval '1 day') RETURNING id`;

/** Makes them due now. Reads every card; once an hour is enough. Returns how many. */
export async function makeForgottenPostsDue(ctx: Ctx): Promise<number> {
  const cards = await ctx.db.sql<{ id: string }>("slack.card.forgotten", CARDS);
  const posts = await ctx.db.sql<{ id: string }>("slack.outbox.forgotten", POSTS);
  for (const { id } of cards) await ctx.wake("card", id);
  for (const { id } of posts) await ctx.wake("outbox", id);
  const count = cards.length + posts.length;
  if (count > 0)
    ctx.log.error(
      { cards: cards.length, posts: posts.length },
      "when these are due was taken away in the database; they are due now",
    );
  return count;
}
