import { type Held, type HeldOptions, hold, moveApproval, moveOperation } from "./held.js";
import type { World } from "./world.js";

/** An operation that was sent once, got no answer, and could not be settled. */
export async function quarantined(w: World, options: HeldOptions = {}): Promise<Held> {
  const held = await hold(w, options);
  await moveApproval(w, held, "APPROVED");
  await moveApproval(w, held, "RELEASED");
  await moveOperation(w, held, ["PREPARED", "DISPATCHED", "OUTCOME_UNKNOWN", "RECONCILING", "QUARANTINED"]);
  await w.db.tx(async (tx) => {
    await tx.sql(
      undefined,
      `INSERT INTO attempts (id, operation_id, number, lease_token, worker, started_at, timeout_ms, finished_at, verdict, code)
       VALUES ('att_' || $1, $1, 1, 1, 'w', countersign_now() - interval '2 hours', 10000, countersign_now() - interval '2 hours', 'unknown', 'timeout')`,
      [held.operationId],
    );
    await tx.sql(
      undefined,
      `UPDATE operations SET attempts = 1, quarantine_reason = 'The outcome stayed unknown for an hour.', unknown_since = countersign_now() - interval '2 hours',
         first_claimed_at = countersign_now() - interval '2 hours', last_send_ended_at = countersign_now() - interval '2 hours', reserved_minor = amount_minor, due_at = countersign_now() + interval '1 hour',
         approved_by = '{U_SUP1}' WHERE id = $1`,
      [held.operationId],
    );
    await tx.sql(
      undefined,
      "UPDATE payments SET reserved = $2 WHERE order_id = (SELECT order_id FROM operations WHERE id = $1)",
      [held.operationId, options.amountMinor ?? 18_000n],
    );
    await w.notices.touch(tx, { kind: "quarantine", id: held.operationId });
  });
  return held;
}
