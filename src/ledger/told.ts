/** What else happens in the transaction of a transition: people hear of it, runs that wait are due, cards are drawn again. */
import type { Tx } from "../db/connect.js";
import { ENDED, type Operation } from "../domain/operation.js";
import type { LedgerCtx } from "./context.js";
import { waitersOf } from "./reads.js";

/** The outcome became open: the threads of everybody who waits say so, once. */
export async function tellUnknown(tx: Tx, ctx: LedgerCtx, operation: Operation): Promise<void> {
  await eachThread(tx, operation, async (ticketId) => {
    await ctx.notices.thread(tx, {
      ticketId,
      key: `checked:${operation.id}`,
      message: { type: "operation_being_checked", operationId: operation.id },
    });
  });
  await touchCards(tx, ctx, operation);
  await ctx.hooks.onSettled(tx, operation);
}

/** The operation reached an end: every thread hears it, every run that waits is due. */
export async function tellEnd(tx: Tx, ctx: LedgerCtx, operation: Operation): Promise<void> {
  const sent = operation.attempts > 0;
  if (sent) {
    await eachThread(tx, operation, async (ticketId) => {
      await ctx.notices.thread(tx, {
        ticketId,
        key: `outcome:${operation.id}:${operation.version}`,
        message: { type: "operation_outcome", operationId: operation.id },
      });
    });
  }
  await touchCards(tx, ctx, operation);
  await ctx.hooks.onSettled(tx, operation);
}

/** A person has to look: a card in the ops channel; whoever waits goes on waiting. */
export async function tellQuarantined(tx: Tx, ctx: LedgerCtx, operation: Operation): Promise<void> {
  await ctx.notices.repost(tx, { kind: "quarantine", id: operation.id });
  await touchCards(tx, ctx, operation);
  await ctx.hooks.onSettled(tx, operation);
}

/** Whatever the new state is. */
export async function tell(
  tx: Tx,
  ctx: LedgerCtx,
  before: Operation | null,
  operation: Operation,
): Promise<void> {
  if (operation.status === "QUARANTINED") {
    await tellQuarantined(tx, ctx, operation);
    return;
  }
  if (before?.status === "QUARANTINED") await ctx.notices.touch(tx, { kind: "quarantine", id: operation.id });
  if (ENDED.has(operation.status)) await tellEnd(tx, ctx, operation);
  else if (
    operation.status === "OUTCOME_UNKNOWN" &&
    before?.status === "DISPATCHED" &&
    operation.attempts === 1
  ) {
    await tellUnknown(tx, ctx, operation);
  } else await touchCards(tx, ctx, operation);
}

async function touchCards(tx: Tx, ctx: LedgerCtx, operation: Operation): Promise<void> {
  if (operation.approvalId !== null)
    await ctx.notices.touch(tx, { kind: "approval", id: operation.approvalId });
}

async function eachThread(
  tx: Tx,
  operation: Operation,
  post: (ticketId: NonNullable<Operation["ticketId"]>) => Promise<void>,
): Promise<void> {
  const tickets = new Set((await waitersOf(tx, operation.id)).map((waiter) => waiter.ticketId));
  if (operation.ticketId !== null) tickets.add(operation.ticketId);
  for (const ticket of tickets) await post(ticket);
}
