/** A channel that we cannot post to: its card goes where somebody who can act on it sees it, and the ops channel hears of it once. */
import type { StoredPost } from "../notices.js";
import { linkChannel } from "../text/safe.js";
import type { SlackSendContext } from "../types.js";
import type { CardRow } from "./card-row.js";

type Slot = "thread" | "approvals" | "ops";

/** Where a card goes instead. A thread's card does not move: the approval has its other card, a run its ticket in Home. */
const INSTEAD: Readonly<Record<Slot, Exclude<Slot, "thread"> | null>> = {
  thread: null,
  approvals: "ops",
  ops: "approvals",
};

export async function giveUpCard(
  ctx: SlackSendContext,
  row: CardRow,
  channel: string,
  code: string,
): Promise<void> {
  ctx.log.error({ card: row.id, kind: row.kind, channel, code }, "a card cannot be shown where it belongs");
  const [given] = await ctx.db.sql<{ id: string }>(
    "slack.card.lost",
    `UPDATE slack_cards SET state = 'lost', due_at = NULL, lease_until = NULL, attempt_at = NULL, paced = false, last_error = $3,
            updated_at = countersign_now() WHERE id = $1 AND lease_token = $2 RETURNING id`,
    [row.id, row.lease_token, code],
  );
  if (given === undefined || row.state !== "live") return;
  const to = INSTEAD[(row.slot.split("!", 1)[0] ?? "thread") as Slot] ?? null;
  if (to !== null && !row.slot.includes("!") && ctx.config.channels[to] !== channel) {
    await moveCard(ctx, row, ctx.config.channels[to]);
  }
  await tellOps(ctx, channel, code);
}

/** The moved card has a slot of its own, so that it is touched with the others and never moved a second time. */
export async function moveCard(
  ctx: SlackSendContext,
  row: Pick<CardRow, "kind" | "subject_id" | "slot">,
  channel: string,
): Promise<void> {
  const id = ctx.ids.next("card_");
  const rows = await ctx.db.sql(
    "slack.card.move",
    `INSERT INTO slack_cards (id, kind, subject_id, slot, channel_id, due_at)
     VALUES ($1, $2, $3, $4, $5, countersign_now()) ON CONFLICT (kind, subject_id, slot) DO NOTHING RETURNING id`,
    [id, row.kind, row.subject_id, `${row.slot}!moved`, channel],
  );
  if (rows.length > 0) await ctx.wake("card", id);
}

async function tellOps(ctx: SlackSendContext, channel: string, code: string): Promise<void> {
  if (channel === ctx.config.channels.ops) return;
  const text = `Countersign cannot post in ${channel} (${code}). Invite the app there, or unarchive the channel; its cards go on in Home.`;
  await sayInOps(ctx, `lost:${linkChannel(channel)}:${code}`, text);
}

/** One sentence in the ops channel, once for each key. */
export async function sayInOps(ctx: SlackSendContext, key: string, text: string): Promise<void> {
  const { ops } = ctx.config.channels;
  const post: StoredPost = { place: "ops", message: { type: "sentence", text } };
  const id = ctx.ids.next("out_");
  const rows = await ctx.db.sql(
    "slack.outbox.lost",
    `INSERT INTO slack_outbox (id, dedupe_key, method, channel_id, payload) VALUES ($1, $2, 'chat.postMessage', $3, $4::jsonb)
     ON CONFLICT (dedupe_key) DO NOTHING RETURNING id`,
    [id, key, ops, JSON.stringify(post)],
  );
  if (rows.length > 0) await ctx.wake("outbox", id);
}
