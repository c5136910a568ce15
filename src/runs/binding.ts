/**
 * Whom a ticket is about. Identity is never the model's: code finds it, the filer confirms or changes it.
 *
 * A change while a run is under way cannot move what the run has done: a run that has asked for an effect keeps its customer,
 * one that has only read is ended and begun again for the new one.
 */
import type { SqlRunner, Tx } from "../db/connect.js";
import type { RunId, TicketId } from "../domain/ids.js";
import type { BindingAnswer } from "./api.js";
import { bindingSentence } from "./binding-sentence.js";
import { endRunByForce } from "./ending.js";
import { currentRun, getTicket } from "./read.js";
import { CUSTOMER_FOUND, insertNote, isBlank, lockActiveRun, lockTicket, startRunIn } from "./start.js";
import { bindingOf } from "./tickets.js";
import type { BindingCandidate, Run, RunsCtx, Ticket } from "./types.js";
import { wakeRun } from "./wakeups.js";

const refuse = (
  code: Extract<BindingAnswer, { outcome: "refused" }>["code"],
  sentence: string,
): BindingAnswer => ({
  outcome: "refused",
  code,
  sentence,
});

/** The filer says that the customer read from the text is right. */
export async function confirmBinding(
  ctx: RunsCtx,
  { ticketId, by }: { ticketId: TicketId; by: string },
): Promise<BindingAnswer> {
  const ticket = await getTicket(ctx.db, ticketId);
  if (ticket?.customerId == null) return bindTo(ctx, { ticketId, by, customerId: null });
  return bindTo(ctx, { ticketId, by, customerId: ticket.customerId });
}

/** The filer names the customer, by reference; also chooses among candidates. */
export async function changeBinding(
  ctx: RunsCtx,
  { ticketId, by, customerRef }: { ticketId: TicketId; by: string; customerRef: string },
): Promise<BindingAnswer> {
  const [customer] = await ctx.db.sql<{ id: string }>(
    "runs.customer_by_ref",
    "SELECT id FROM customers WHERE ref = $1",
    [customerRef],
  );
  if (customer === undefined) {
    return refuse("no_such_customer", `There is no customer ${customerRef}.`);
  }
  return bindTo(ctx, { ticketId, by, customerId: customer.id });
}

async function bindTo(
  ctx: RunsCtx,
  { ticketId, by, customerId }: { ticketId: TicketId; by: string; customerId: string | null },
): Promise<BindingAnswer> {
  const answer = await ctx.db.tx(async (tx): Promise<BindingAnswer & { wakes?: RunId | null }> => {
    const ticket = await lockTicket(tx, ticketId);
    if (ticket === null) return refuse("no_ticket", "There is no such ticket.");
    if (!ticket.filers.includes(by)) {
      return refuse("not_filer", "Only the person who filed this ticket can say whom it is about.");
    }
    if (customerId === null) return refuse("nothing_to_confirm", "No customer is bound to this ticket yet.");
    if (ticket.binding === "confirmed" && ticket.customerId === customerId)
      return { outcome: "unchanged", ticket };
    const run = await lockActiveRun(tx, ticketId);
    const last = run ?? (await currentRun(tx, ticketId));
    if (run === null && last !== null)
      return refuse(
        "ended",
        "The work on this ticket is over, so nothing was changed. For anything else, file a new ticket.",
      );
    const moves = ticket.customerId !== null && ticket.customerId !== customerId;
    if (moves && run !== null && (await hasActed(tx, run.id))) {
      return refuse(
        "run_has_acted",
        `This run has already asked for an effect on ${ticket.customerRef ?? "its customer"}. Stop it first, then change the customer.`,
      );
    }
    await writeBinding(tx, ticketId, { customerId, binding: "confirmed", by });
    const after = await bound(tx, ctx, ticketId);
    const restarted = moves && run !== null && run.stepsUsed > 0 ? await restart(tx, ctx, after, run) : null;
    if (restarted === null && run !== null) await tellRun(tx, ctx, run.id, after, ticket);
    return { outcome: "bound", ticket: after, restartedRun: restarted, wakes: restarted ?? run?.id ?? null };
  });
  const { wakes, ...rest } = answer;
  if (wakes !== undefined && wakes !== null) await ctx.wake("run", wakes);
  return rest as BindingAnswer;
}

async function hasActed(tx: Tx, runId: RunId): Promise<boolean> {
  const rows = await tx.sql(
    "runs.has_acted",
    "SELECT 1 FROM tool_calls WHERE run_id = $1 AND operation_id IS NOT NULL LIMIT 1",
    [runId],
  );
  return rows.length > 0;
}

async function writeBinding(
  tx: Tx,
  ticketId: TicketId,
  to: {
    customerId: string | null;
    binding: string;
    by: string | null;
    candidates?: readonly BindingCandidate[];
  },
): Promise<void> {
  await tx.sql(
    "runs.ticket_bind",
    `UPDATE tickets SET customer_id = $2, binding = $3, bound_by = $4, binding_candidates = coalesce($5::jsonb, binding_candidates),
       version = version + 1, updated_at = countersign_now() WHERE id = $1`,
    [
      ticketId,
      to.customerId,
      to.binding,
      to.by,
      to.candidates === undefined ? null : JSON.stringify(to.candidates),
    ],
  );
}

async function bound(tx: Tx, ctx: RunsCtx, ticketId: TicketId): Promise<Ticket> {
  await ctx.notices.touch(tx, { kind: "binding", id: ticketId });
  const ticket = await getTicket(tx, ticketId);
  if (ticket === null) throw new Error(`ticket ${ticketId} is gone`);
  return ticket;
}

async function restart(tx: Tx, ctx: RunsCtx, ticket: Ticket, run: Run): Promise<RunId | null> {
  await endRunByForce(tx, run.id, {
    state: "cancelled",
    code: "customer_changed",
    detail: `The filer changed the customer to ${ticket.customerRef ?? "another one"}; a new run takes over.`,
    plannerSuccess: false,
  });
  await ctx.notices.touch(tx, { kind: "run", id: run.id });
  const next = await startRunIn(tx, ctx, { ticketId: ticket.id });
  return next?.id ?? null;
}

/** Tells the run under way, and lets it go on if it waits for this. */
export async function tellRun(
  tx: Tx,
  ctx: Pick<RunsCtx, "ids" | "notices">,
  runId: RunId,
  ticket: Ticket,
  before: Ticket,
): Promise<void> {
  await insertNote(tx, ctx, {
    runId,
    author: before.binding === "none" && ticket.binding !== "none" ? CUSTOMER_FOUND : "system:binding",
    text: bindingSentence(ticket),
    dedupeKey: `binding:${runId}:${ticket.version}`,
  });
  wakeRun(tx, runId);
  await ctx.notices.touch(tx, { kind: "run", id: runId });
}

/** New words of the filer: whom do they name? Binds, unconfirmed, if exactly one; never moves an existing binding. */
export async function bindFromText(
  tx: Tx,
  ctx: Pick<RunsCtx, "notices">,
  ticket: Ticket,
  candidates: readonly BindingCandidate[],
): Promise<Ticket> {
  if (ticket.binding !== "none" || candidates.length === 0) return ticket;
  const { customerId, binding } = bindingOf(null, candidates);
  await writeBinding(tx, ticket.id, { customerId, binding, by: null, candidates });
  await ctx.notices.touch(tx, { kind: "binding", id: ticket.id });
  return (await getTicket(tx, ticket.id)) ?? ticket;
}

/** The words of a ticket that had none. */
export async function writeText(
  db: SqlRunner,
  ticketId: TicketId,
  text: string,
  hash: string,
): Promise<void> {
  if (isBlank(text)) throw new Error("a ticket's text is never made blank");
  await db.sql(
    "runs.ticket_text",
    `UPDATE tickets SET text = $2, text_hash = $3, version = version + 1, updated_at = countersign_now() WHERE id = $1`,
    [ticketId, text, hash],
  );
}
