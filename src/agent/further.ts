/**
 * "This is a further refund": the one door to occurrence n + 1. A person's click, never the planner's wish: code writes a run
 * of one turn that asks for the same again, and it goes through the same gate, where it is always held.
 */

import type { OperationId, RunId, TicketId } from "../domain/ids.js";
import { amountToJson } from "../domain/money.js";
import { currentRun, getTicket, startCodeRun } from "../runs/index.js";
import type { AgentCtx } from "./ports.js";
import { amountOf, nameOf } from "./results.js";
import { refundableMinor } from "./tools/reads.js";

export type FurtherAsked =
  /** A run of its own asks; its approval card follows. */
  | { outcome: "asked"; runId: RunId }
  /** The click came twice. */
  | { outcome: "already_asked"; runId: RunId }
  | { outcome: "refused"; code: FurtherRefusal; sentence: string };
export type FurtherRefusal =
  | "no_operation"
  | "no_ticket"
  | "not_filer"
  | "not_this_customer"
  | "not_a_refund"
  | "nothing_left"
  | "run_active";

const no = (code: FurtherRefusal, sentence: string): FurtherAsked => ({ outcome: "refused", code, sentence });

export async function askFurther(
  ctx: AgentCtx,
  { operationId, ticketId, by }: { operationId: OperationId; ticketId: TicketId; by: string },
): Promise<FurtherAsked> {
  const operation = await ctx.gate.operation(ctx.db, operationId);
  if (operation === null) return no("no_operation", "There is no such operation.");
  const ticket = await getTicket(ctx.db, ticketId);
  if (ticket === null) return no("no_ticket", "There is no such ticket.");
  if (!ticket.filers.includes(by)) {
    return no("not_filer", "Only the person who filed this ticket can ask for a further refund.");
  }
  if (ticket.customerRef !== operation.customerRef) {
    return no("not_this_customer", "That refund belongs to another customer than this ticket.");
  }
  if (operation.kind !== "refund" || operation.orderRef === null) {
    return no("not_a_refund", `Only a refund can be asked for once more, not ${nameOf(operation)}.`);
  }
  const order = await ctx.shop.order(ctx.db, operation.orderRef);
  const left = order === null ? 0n : refundableMinor(order);
  if (left < operation.amountMinor) {
    return no(
      "nothing_left",
      `Not possible: only ${amountOf({ amountMinor: left, currency: operation.currency })} is left to refund on order ${operation.orderRef}.`,
    );
  }
  const input = {
    order_reference: operation.orderRef,
    scope: "amount",
    item_references: [],
    amount_minor: amountToJson(operation.amountMinor),
    reason: `A further refund, asked for by ${by}.`,
  };
  const run = await ctx.db.tx((tx) =>
    startCodeRun(tx, ctx, {
      ticketId,
      calls: [
        {
          toolUseId: `further_${operation.id}`,
          name: "issue_refund",
          input,
          askedBy: { further: { askedBy: by, of: operation.id } },
        },
      ],
    }),
  );
  if (run === null) {
    const active = await currentRun(ctx.db, ticketId);
    if (active?.planner === "code" && active.ending === null) {
      return { outcome: "already_asked", runId: active.id };
    }
    return no("run_active", "The run of this ticket is still under way. Ask again when it has ended.");
  }
  await ctx.wake("run", run.id);
  return { outcome: "asked", runId: run.id };
}
