/**
 * Filing: a request becomes one ticket, however often its message is delivered.
 *
 * 1. One origin (`dedupe_key`) is one ticket, one run, one greeting.
 * 2. A text without anything to read starts no run; the thread asks.
 * 3. Whom the ticket is about is found by code. Exactly one customer: bound, unconfirmed. Several or none: not bound, never guessed.
 */
import type { Tx } from "../db/connect.js";
import { sha256Hex } from "../domain/canonical.js";
import { failpoint } from "../domain/failpoints.js";
import type { TicketId } from "../domain/ids.js";
import { type TextTaken, takeText } from "../domain/text/ticket-text.js";
import type { FiledTicket, FileTicket } from "./api.js";
import { currentRun, getTicket } from "./read.js";
import { isBlank, startRunIn } from "./start.js";
import type { BindingCandidate, RunsCtx, Ticket } from "./types.js";

/** Files a ticket and starts its run. Idempotent by `dedupeKey`. */
export async function fileTicket(ctx: RunsCtx, filing: FileTicket): Promise<FiledTicket> {
  const { text, leftOut } = takeText(filing.text);
  const candidates = await ctx.identify(ctx.db, text);
  const filed = await ctx.db.tx((tx) => fileIn(tx, ctx, { ...filing, text, leftOut }, candidates));
  await failpoint("runs.after_ticket_filed");
  if (filed.outcome !== "asked" && filed.run !== null) await ctx.wake("run", filed.run.id);
  return filed;
}

async function fileIn(
  tx: Tx,
  ctx: RunsCtx,
  filing: FileTicket & Pick<TextTaken, "leftOut">,
  candidates: readonly BindingCandidate[],
): Promise<FiledTicket> {
  const id = ctx.ids.next("tkt_");
  if (!(await insertTicket(tx, id, filing, candidates))) return knownTicket(tx, filing);
  const ticket = await ticketOrThrow(tx, id);
  if (isBlank(filing.text)) {
    await askWhatIsWanted(tx, ctx, ticket);
    return { outcome: "asked", ticket };
  }
  await ctx.notices.touch(tx, { kind: "binding", id });
  if (filing.leftOut !== null) await tellLeftOut(tx, ctx, id, filing.leftOut);
  const run = filing.start === false ? null : await startRunIn(tx, ctx, { ticketId: id });
  return { outcome: "filed", ticket, run };
}

async function insertTicket(
  tx: Tx,
  id: TicketId,
  filing: FileTicket,
  candidates: readonly BindingCandidate[],
): Promise<boolean> {
  const { customerId, binding } = bindingOf(filing.customerId ?? null, candidates);
  const rows = await tx.sql(
    "runs.ticket_insert",
    `INSERT INTO tickets (id, ref, source, team_id, channel_id, message_ts, thread_ts, filer, filers, text, text_hash, files,
       customer_id, binding, binding_candidates, bound_by, dedupe_key)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::jsonb, $13, $14, $15::jsonb, $16, $17)
     ON CONFLICT DO NOTHING RETURNING id`,
    [
      id,
      filing.ref ?? null,
      filing.source,
      filing.teamId ?? null,
      filing.channelId ?? null,
      filing.messageTs ?? null,
      filing.threadTs ?? filing.messageTs ?? null,
      filing.filer,
      [...new Set([filing.filer, ...(filing.filers ?? [])])],
      filing.text,
      sha256Hex(filing.text),
      JSON.stringify(filing.files ?? []),
      customerId,
      binding,
      JSON.stringify(candidates),
      binding === "confirmed" ? filing.filer : null,
      filing.dedupeKey,
    ],
  );
  return rows.length > 0;
}

/** What candidates mean: one is a binding that waits for its confirmation; several are a question. */
export function bindingOf(
  chosen: string | null,
  candidates: readonly BindingCandidate[],
): { customerId: string | null; binding: "none" | "unconfirmed" | "confirmed" } {
  if (chosen !== null) return { customerId: chosen, binding: "confirmed" };
  const customers = new Set(candidates.map((candidate) => candidate.customerId));
  const [only] = candidates;
  return customers.size === 1 && only !== undefined
    ? { customerId: only.customerId, binding: "unconfirmed" }
    : { customerId: null, binding: "none" };
}

/** The same origin again. Whoever asks now counts as filer too: nobody approves what they asked for. */
async function knownTicket(tx: Tx, filing: FileTicket): Promise<FiledTicket> {
  const asking = [filing.filer, ...(filing.filers ?? [])];
  const [row] = await tx.sql<{ id: TicketId }>(
    "runs.ticket_again",
    `UPDATE tickets SET filers = filers || ARRAY(SELECT f FROM unnest($4::text[]) f WHERE f <> ALL (filers)),
       updated_at = countersign_now()
     WHERE dedupe_key = $1 OR (channel_id = $2 AND message_ts = $3) RETURNING id`,
    [filing.dedupeKey, filing.channelId ?? null, filing.messageTs ?? null, asking],
  );
  if (row === undefined) throw new Error(`ticket ${filing.dedupeKey} collides with another by its reference`);
  const ticket = await ticketOrThrow(tx, row.id);
  return { outcome: "duplicate", ticket, run: await currentRun(tx, row.id) };
}

async function ticketOrThrow(tx: Tx, id: TicketId): Promise<Ticket> {
  const ticket = await getTicket(tx, id);
  if (ticket === null) throw new Error(`ticket ${id} is gone`);
  return ticket;
}

async function askWhatIsWanted(tx: Tx, ctx: RunsCtx, ticket: Ticket): Promise<void> {
  const named = ticket.files.map((file) => file.name).join(", ");
  const question =
    named === ""
      ? "What should be done? Answer here with the order reference and the request."
      : `I see ${named}, but no text. What should be done? Answer here with the order reference and the request.`;
  await ctx.notices.thread(tx, {
    ticketId: ticket.id,
    key: `ask-what:${ticket.id}`,
    message: { type: "ask", question, candidates: [] },
  });
}

/** Says in the thread that the end of a text was not read: once for the ticket, or for the reply that `occasion` names. */
export async function tellLeftOut(
  tx: Tx,
  ctx: Pick<RunsCtx, "notices">,
  ticketId: TicketId,
  text: string,
  occasion: string = ticketId,
): Promise<void> {
  await ctx.notices.thread(tx, {
    ticketId,
    key: `text-left-out:${occasion}`,
    message: { type: "sentence", text },
  });
}

/** Tells the ticket where its thread is, once its first message is posted (tickets filed by a form). */
export async function setTicketThread(
  tx: Tx,
  { ticketId, channelId, messageTs }: { ticketId: TicketId; channelId: string; messageTs: string },
): Promise<void> {
  await tx.sql(
    "runs.ticket_thread",
    `UPDATE tickets SET channel_id = $2, message_ts = $3, thread_ts = $3, version = version + 1, updated_at = countersign_now()
     WHERE id = $1 AND message_ts IS NULL`,
    [ticketId, channelId, messageTs],
  );
}
