/** How far it is settled whom a ticket is about, besides the ticket's own row. */
import type { SqlRunner } from "../../db/connect.js";
import type { TicketId } from "../../domain/ids.js";
import { isRunEnd } from "../../domain/run.js";
import { currentRun } from "../../runs/index.js";
import type { BindingStanding } from "../cards/binding-card.js";

/** $1 ticket. Found by the ticket's operations: their approvals are its own. */
const APPROVED = `
SELECT 1 FROM operations o JOIN approvals a ON a.operation_id = o.id
WHERE o.ticket_id = $1 AND a.ticket_id = $1 AND a.state IN ('APPROVED','RELEASED')
  AND (a.binding ->> 'bindingUnconfirmed')::boolean
LIMIT 1`;

export async function bindingStandingOf(db: SqlRunner, ticketId: TicketId): Promise<BindingStanding> {
  const run = await currentRun(db, ticketId);
  const approved = await db.sql("slack.binding_approved", APPROVED, [ticketId]);
  return { ended: run !== null && isRunEnd(run.state), approved: approved.length > 0 };
}
