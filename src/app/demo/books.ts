/** Our own book as a story reads it: straight from the rows, whatever the product says of itself. */
import type { Db } from "../../db/connect.js";

export interface LedgerRow {
  id: string;
  kind: string;
  status: string;
  amountMinor: bigint;
  currency: string;
  orderRef: string | null;
  attempts: number;
  providerRef: string | null;
  ticketId: string | null;
}

/** Every operation, oldest first. */
export function readOperations(db: Db): Promise<LedgerRow[]> {
  return db.sql<LedgerRow>(
    "demo_operations",
    `SELECT id, kind, status, amount_minor AS "amountMinor", currency, order_ref AS "orderRef", attempts,
            provider_ref AS "providerRef", ticket_id AS "ticketId"
       FROM operations ORDER BY created_at, id`,
  );
}

/** Event types of one operation in their order. */
export async function readEventTypes(db: Db, operationId: string): Promise<string[]> {
  const rows = await db.sql<{ type: string }>(
    "demo_event_types",
    "SELECT type FROM operation_events WHERE operation_id = $1 ORDER BY seq",
    [operationId],
  );
  return rows.map((row) => row.type);
}

/** Runs of the ticket that was filed by this message, newest first. */
export function readRunStates(
  db: Db,
  message: { channel: string; ts: string },
): Promise<{ id: string; state: string }[]> {
  return db.sql<{ id: string; state: string }>(
    "demo_runs_of_message",
    `SELECT r.id, r.state FROM runs r JOIN tickets t ON t.id = r.ticket_id
      WHERE t.channel_id = $1 AND t.message_ts = $2 ORDER BY r.created_at DESC, r.id DESC`,
    [message.channel, message.ts],
  );
}

/** Every approval, oldest first, with the value of the buttons on its newest card. */
export function readApprovals(db: Db): Promise<{ operationId: string; state: string; button: string }[]> {
  return db.sql<{ operationId: string; state: string; button: string }>(
    "demo_approvals",
    `SELECT operation_id AS "operationId", state, id || '.' || card_version AS button
       FROM approvals ORDER BY created_at, id`,
  );
}
