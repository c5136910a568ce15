/** How far it is settled whom a ticket is about, besides the ticket's own row. */
import type { SqlRunner } from "../../db/connect.js";
import type { RunId, TicketId } from "../../domain/ids.js";
import { isRunEnd } from "../../domain/run.js";
import { currentRun, viewRun } from "../../runs/index.js";
import type { BindingStanding } from "../cards/binding-card.js";
import { isWriteTool, toolText } from "../cards/run-card.js";

/** $1 ticket. Found by the ticket's operations: their approvals are its own. */
const APPROVED = `
SELECT 1 FROM operations o JOIN approvals a ON a.operation_id = o.id
WHERE o.ticket_id = $1 AND a.ticket_id = $1 AND a.state IN ('APPROVED','RELEASED')
  AND (a.binding ->> 'bindingUnconfirmed')::boolean
LIMIT 1`;

export async function bindingStandingOf(db: SqlRunner, ticketId: TicketId): Promise<BindingStanding> {
  const run = await currentRun(db, ticketId);
  const approved = await db.sql("slack.binding_approved", APPROVED, [ticketId]);
  const ended = run !== null && isRunEnd(run.state);
  return {
    ended,
    approved: approved.length > 0,
    waits: run === null || ended ? [] : await waiting(db, run.id),
  };
}

/** Changes that the run asks for and that are not decided. */
async function waiting(db: SqlRunner, runId: RunId): Promise<readonly string[]> {
  const calls = (await viewRun(db, runId))?.calls ?? [];
  return calls
    .filter(({ name, state }) => isWriteTool(name) && (state === "proposed" || state === "held"))
    .map(({ name, input }) => toolText(name, input));
}
