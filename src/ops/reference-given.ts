/** Whose word an operation's reference is. */
import type { OperationId } from "../domain/ids.js";
import type { Db } from "../domain/ports/database.js";

/**
 * SQL: whether the reference of operation `o` is only what a person named when they confirmed it. It stays on the row when that end is
 * taken back, as the log names it, until the provider shows one. The text of the evidence is kept longer than a reference can be.
 */
export const REFERENCE_IS_GIVEN = `(o.provider_ref IS NOT NULL AND EXISTS (
    SELECT 1 FROM resolutions r WHERE r.operation_id = o.id AND r.verb = 'confirm' AND r.state = 'applied'
      AND r.probe ->> 'says' IN ('absent', 'unknown') AND strpos(r.evidence_ref, rtrim(o.provider_ref, '…')) > 0)
  AND NOT EXISTS (SELECT 1 FROM provider_evidence x WHERE x.operation_id = o.id AND x.provider_ref = o.provider_ref)
  AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.operation_id = o.id AND a.provider_ref = o.provider_ref))`;

/** Whether the provider has never shown the reference that the operation has. */
export async function isReferenceGiven(db: Db, id: OperationId): Promise<boolean> {
  const [row] = await db.sql<{ given: boolean }>(
    "ops.reference_given",
    `SELECT ${REFERENCE_IS_GIVEN} AS given FROM operations o WHERE o.id = $1`,
    [id],
  );
  return row?.given === true;
}
