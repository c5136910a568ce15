/** Another run wants what is already under way: it waits with it, and its filers count as filers. */
import type { Tx } from "../db/connect.js";
import type { RunId, TicketId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import { note } from "./note.js";

/** Adds the run as a waiter. The operation's row is locked by the caller. Its owner joins nothing. */
export async function joinOperation(
  tx: Tx,
  operation: Operation,
  joining: { readonly runId: RunId; readonly ticketId: TicketId; readonly filers: readonly string[] },
): Promise<Operation> {
  if (operation.ownerRunId === joining.runId) return operation;
  const rows = await tx.sql(
    "ledger.join",
    `INSERT INTO operation_waiters (operation_id, run_id, ticket_id, filer) VALUES ($1, $2, $3, $4)
     ON CONFLICT (operation_id, run_id) DO NOTHING RETURNING run_id`,
    [operation.id, joining.runId, joining.ticketId, joining.filers.at(0) ?? ""],
  );
  if (rows.length === 0) return operation;
  const filers = [...new Set([...operation.filers, ...joining.filers])];
  const joined = await note(tx, {
    id: operation.id,
    status: operation.status,
    version: operation.version,
    note: "join",
    actor: `run:${joining.runId}`,
    data: { run: joining.runId, ticket: joining.ticketId },
    filers,
  });
  return joined ?? operation;
}
