/** New runs: one under way for a ticket, kept by the database (`runs_one_active_per_ticket`). */
import type { SqlRunner, Tx } from "../db/connect.js";
import type { RunId, TicketId } from "../domain/ids.js";
import { isRunEnd } from "../domain/run.js";
import type { StartAnswer } from "./api.js";
import { bindingSentence } from "./binding-sentence.js";
import { currentRun, findTicket, getRun, getTicket } from "./read.js";
import { insertTurn, type NewCall } from "./turns.js";
import type { PlannerName, Run, RunsCtx, Ticket } from "./types.js";

/** Starts a run inside the caller's transaction; null when one is under way. */
export async function startRunIn(
  tx: Tx,
  ctx: RunsCtx,
  { ticketId, planner, model }: { ticketId: TicketId; planner?: PlannerName; model?: string | null },
): Promise<Run | null> {
  const id = ctx.ids.next("run_");
  const { budgets } = ctx.newRuns;
  const rows = await tx.sql(
    "runs.insert",
    `INSERT INTO runs (id, ticket_id, state, planner, model, steps_max, cost_max_micro_usd, deadline_ms, due_at)
     VALUES ($1, $2, 'queued', $3, $4, $5, $6, $7, countersign_now())
     ON CONFLICT (ticket_id) WHERE state IN ('queued','running','awaiting_binding','awaiting_approval','waiting') DO NOTHING
     RETURNING id`,
    [
      id,
      ticketId,
      planner ?? ctx.newRuns.planner,
      model === undefined ? ctx.newRuns.model : model,
      budgets.maxSteps,
      budgets.maxCostMicroUsd,
      budgets.deadlineMs,
    ],
  );
  if (rows.length === 0) return null;
  if (planner !== "code") await tellCustomer(tx, ctx, id, ticketId);
  await ctx.notices.touch(tx, { kind: "run", id });
  // A later run of a ticket that ended unconfirmed: it can be confirmed again.
  await ctx.notices.touch(tx, { kind: "binding", id: ticketId });
  return getRun(tx, id);
}

/** The first thing that a planner is told beside the ticket: whom it is about, as far as code knows. */
async function tellCustomer(tx: Tx, ctx: RunsCtx, runId: RunId, ticketId: TicketId): Promise<void> {
  const ticket = await getTicket(tx, ticketId);
  if (ticket === null) throw new Error(`ticket ${ticketId} is gone`);
  await insertNote(tx, ctx, {
    runId,
    author: "system:binding",
    text: bindingSentence(ticket),
    dedupeKey: `binding:${runId}:${ticket.version}`,
  });
}

/**
 * A run without a planner: its one turn is written by code because a person asked for exactly this. It goes through the same
 * gate as any other. Null when a run is under way.
 */
export async function startCodeRun(
  tx: Tx,
  ctx: RunsCtx,
  { ticketId, calls }: { ticketId: TicketId; calls: readonly NewCall[] },
): Promise<Run | null> {
  const run = await startRunIn(tx, ctx, { ticketId, planner: "code", model: null });
  if (run === null) return null;
  await insertTurn(tx, ctx, run.id, {
    seq: 1,
    state: "recorded",
    content: calls.map((call) => ({
      type: "tool_use",
      id: call.toolUseId,
      name: call.name,
      input: call.input,
    })),
    stopReason: "tool_use",
    stopDetails: null,
    model: "code",
    usage: {},
    inputTokens: 0,
    outputTokens: 0,
    costMicroUsd: 0n,
    requestHash: "",
    calls,
  });
  return run;
}

/** Starts a run of a ticket by id or reference, unless one is under way. */
export async function startRun(ctx: RunsCtx, { ticket: idOrRef }: { ticket: string }): Promise<StartAnswer> {
  const ticket = await findTicket(ctx.db, idOrRef);
  if (ticket === null) {
    return { outcome: "refused", code: "no_ticket", sentence: `There is no ticket ${idOrRef}.` };
  }
  if (isBlank(ticket.text)) {
    return { outcome: "refused", code: "blank", sentence: `Ticket ${idOrRef} does not say what is wanted.` };
  }
  const run = await ctx.db.tx((tx) => startRunIn(tx, ctx, { ticketId: ticket.id }));
  if (run === null) return activeAnswer(ctx, ticket);
  await ctx.wake("run", run.id);
  return { outcome: "started", run };
}

async function activeAnswer(ctx: RunsCtx, ticket: Ticket): Promise<StartAnswer> {
  const run = await currentRun(ctx.db, ticket.id);
  if (run === null) throw new Error(`ticket ${ticket.id} refused a run and has none`);
  return { outcome: "active", run };
}

/** The run under way of a ticket, locked so that it cannot end within this transaction; null when there is none. */
export async function lockActiveRun(tx: Tx, ticketId: TicketId): Promise<Run | null> {
  const rows = await tx.sql(
    "runs.lock_active",
    `SELECT 1 FROM runs WHERE ticket_id = $1
       AND state IN ('queued','running','awaiting_binding','awaiting_approval','waiting') FOR NO KEY UPDATE`,
    [ticketId],
  );
  if (rows.length === 0) return null;
  const run = await currentRun(tx, ticketId);
  return run === null || isRunEnd(run.state) ? null : run;
}

/** Locks a ticket for the rest of the transaction. Null when there is none. */
export async function lockTicket(tx: Tx, ticketId: TicketId): Promise<Ticket | null> {
  await tx.sql("runs.lock_ticket", "SELECT 1 FROM tickets WHERE id = $1 FOR NO KEY UPDATE", [ticketId]);
  return getTicket(tx, ticketId);
}

/** Nothing that anybody could read: white space and invisible characters only. */
export const isBlank = (text: string): boolean =>
  text.replace(/[\s\p{Cf}\p{Cc}\u3164\u115f\u1160]/gu, "") === "";

/** Author of the note that says whom the ticket is about, where nobody knew before. */
export const CUSTOMER_FOUND = "system:customer";

/** A note that a run must not end without having told: the filer's words, or the customer it had to wait for. */
export const needsAnAnswer = (note: { author: string }): boolean =>
  note.author === CUSTOMER_FOUND || !note.author.startsWith("system:");

/** Adds a note to a run. False when this note was there. `usedInSeq` 0: the planner hears it as the ticket itself. */
export async function insertNote(
  tx: SqlRunner,
  ctx: Pick<RunsCtx, "ids">,
  note: { runId: string; author: string; text: string; dedupeKey: string; usedInSeq?: number },
): Promise<boolean> {
  const rows = await tx.sql(
    "runs.note_insert",
    `INSERT INTO run_notes (id, run_id, author, text, dedupe_key, used_in_seq) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (dedupe_key) DO NOTHING RETURNING id`,
    [ctx.ids.next("note_"), note.runId, note.author, note.text, note.dedupeKey, note.usedInSeq ?? null],
  );
  return rows.length > 0;
}
