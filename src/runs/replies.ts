/** What the filer says in the thread after the ticket: information for the run, an answer to a question, or a stop. */

import type { Tx } from "../db/connect.js";
import { sha256Hex } from "../domain/canonical.js";
import type { RunId, TicketId } from "../domain/ids.js";
import { isRunEnd } from "../domain/run.js";
import { takeText } from "../domain/text/ticket-text.js";
import type { CancelAnswer, ReplyAnswer, ThreadReply } from "./api.js";
import { bindFromText, tellRun, writeText } from "./binding.js";
import { currentRun, getRun, ticketOfThread } from "./read.js";
import { insertNote, isBlank, lockActiveRun, lockTicket, startRunIn } from "./start.js";
import { tellLeftOut } from "./tickets.js";
import type { BindingCandidate, RunsCtx, Ticket } from "./types.js";
import { wakeRun } from "./wakeups.js";

/** A reply in a ticket's thread. Idempotent by `dedupeKey`. Never an approval, whatever it says. */
export async function threadReply(ctx: RunsCtx, reply: ThreadReply): Promise<ReplyAnswer> {
  const ticket = await ticketOfThread(ctx.db, reply);
  if (ticket === null) return { outcome: "ignored", why: "no_ticket" };
  if (!ticket.filers.includes(reply.author)) return { outcome: "ignored", why: "not_filer" };
  if (isBlank(reply.text)) return { outcome: "ignored", why: "blank" };
  const { text, leftOut } = takeText(reply.text);
  const candidates = await ctx.identify(ctx.db, text);
  const answer = await ctx.db.tx(async (tx) => {
    const taken = await take(tx, ctx, ticket.id, { ...reply, text }, candidates);
    if (leftOut !== null && isRead(taken)) await tellLeftOut(tx, ctx, ticket.id, leftOut, reply.dedupeKey);
    return taken;
  });
  if (answer.outcome === "started") await ctx.wake("run", answer.run.id);
  if (answer.outcome === "noted") await ctx.wake("run", answer.runId);
  if (answer.outcome === "candidates" && answer.runId !== null) await ctx.wake("run", answer.runId);
  return answer;
}

const isRead = ({ outcome }: ReplyAnswer): boolean => outcome !== "ignored" && outcome !== "ended";

async function take(
  tx: Tx,
  ctx: RunsCtx,
  ticketId: TicketId,
  reply: ThreadReply,
  candidates: readonly BindingCandidate[],
): Promise<ReplyAnswer> {
  const ticket = await lockTicket(tx, ticketId);
  if (ticket === null) return { outcome: "ignored", why: "no_ticket" };
  if (isBlank(ticket.text)) return firstWords(tx, ctx, ticket, reply, candidates);
  const run = await lockActiveRun(tx, ticketId);
  if (run === null) return lateAnswer(tx, ctx, ticket, reply, candidates);
  const added = await insertNote(tx, ctx, {
    runId: run.id,
    author: reply.author,
    text: reply.text,
    dedupeKey: reply.dedupeKey,
  });
  if (!added) return { outcome: "ignored", why: "seen_before" };
  await ctx.notices.touch(tx, { kind: "run", id: run.id });
  const after = await bindFromText(tx, ctx, ticket, candidates);
  if (after.version === ticket.version) {
    if (run.state === "awaiting_binding") wakeRun(tx, run.id);
    return { outcome: "noted", runId: run.id, ticketId };
  }
  await tellRun(tx, ctx, run.id, after, ticket);
  return { outcome: "candidates", ticketId, candidates, runId: run.id };
}

/** The answer to "what should be done?". */
async function firstWords(
  tx: Tx,
  ctx: RunsCtx,
  ticket: Ticket,
  reply: ThreadReply,
  candidates: readonly BindingCandidate[],
): Promise<ReplyAnswer> {
  await writeText(tx, ticket.id, reply.text, sha256Hex(reply.text));
  await bindFromText(tx, ctx, ticket, candidates);
  await ctx.notices.touch(tx, { kind: "binding", id: ticket.id });
  const run = await startRunIn(tx, ctx, { ticketId: ticket.id });
  if (run === null) return { outcome: "ignored", why: "seen_before" };
  // Kept only so that the same message, delivered again, is known.
  const note = { runId: run.id, author: reply.author, text: reply.text, dedupeKey: reply.dedupeKey };
  await insertNote(tx, ctx, { ...note, usedInSeq: 0 });
  return { outcome: "started", run, ticketId: ticket.id };
}

/** The answer to "whom is it about?", or to the planner's own question, after the run had ended: a new run takes it up. */
async function lateAnswer(
  tx: Tx,
  ctx: RunsCtx,
  ticket: Ticket,
  reply: ThreadReply,
  candidates: readonly BindingCandidate[],
): Promise<ReplyAnswer> {
  const last = await currentRun(tx, ticket.id);
  const wasAsked = last?.ending?.code === "asked_back";
  if (!wasAsked && (ticket.binding !== "none" || candidates.length === 0)) {
    return last === null
      ? { outcome: "ignored", why: "no_active_run" }
      : { outcome: "ended", run: last, ticket };
  }
  if (await seenBefore(tx, reply.dedupeKey)) return { outcome: "ignored", why: "seen_before" };
  await bindFromText(tx, ctx, ticket, candidates);
  const run = await startRunIn(tx, ctx, { ticketId: ticket.id });
  if (run === null) return { outcome: "ignored", why: "seen_before" };
  await insertNote(tx, ctx, {
    runId: run.id,
    author: reply.author,
    text: reply.text,
    dedupeKey: reply.dedupeKey,
  });
  return { outcome: "started", run, ticketId: ticket.id };
}

async function seenBefore(tx: Tx, dedupeKey: string): Promise<boolean> {
  const rows = await tx.sql("runs.note_seen", "SELECT 1 FROM run_notes WHERE dedupe_key = $1", [dedupeKey]);
  return rows.length > 0;
}

/**
 * Stop: the run ends between two steps. Only those who filed may ask, or on-call as operator. A run that nobody drives is
 * woken so that it ends at once.
 */
export async function requestCancel(
  ctx: RunsCtx,
  { runId, by, asOperator }: { runId: RunId; by: string; asOperator?: boolean },
): Promise<CancelAnswer> {
  const answer = await ctx.db.tx(async (tx): Promise<CancelAnswer> => {
    const run = await getRun(tx, runId);
    if (run === null) return { outcome: "refused", code: "no_run", sentence: "There is no such run." };
    const [ticket] = await tx.sql<{ filers: string[] }>(
      "runs.filers",
      "SELECT filers FROM tickets WHERE id = $1",
      [run.ticketId],
    );
    if (asOperator !== true && !(ticket?.filers ?? []).includes(by)) {
      return {
        outcome: "refused",
        code: "not_filer",
        sentence: "Only the person who filed the ticket can stop its run.",
      };
    }
    if (isRunEnd(run.state) || !(await markCancelled(tx, runId, by))) return { outcome: "ended", run };
    await ctx.notices.touch(tx, { kind: "run", id: runId });
    return { outcome: "requested", run };
  });
  if (answer.outcome === "requested") await ctx.wake("run", runId);
  return answer;
}

async function markCancelled(tx: Tx, runId: RunId, by: string): Promise<boolean> {
  const rows = await tx.sql(
    "runs.cancel",
    `UPDATE runs SET cancel_requested_by = coalesce(cancel_requested_by, $2), woken = true, version = version + 1,
       due_at = CASE WHEN lease_until > countersign_now() THEN due_at ELSE countersign_now() END, updated_at = countersign_now()
     WHERE id = $1 AND state IN ('queued','running','awaiting_binding','awaiting_approval','waiting') RETURNING id`,
    [runId, by],
  );
  return rows.length > 0;
}
