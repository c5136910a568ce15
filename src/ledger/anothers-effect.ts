/** A reference that a person names for one operation, and that is another's own effect already. */
import type { Tx } from "../db/connect.js";
import type { OperationId } from "../domain/ids.js";
import { isReference } from "../domain/named-evidence.js";
import type { Operation } from "../domain/operation.js";

/** $1 reference. Two people who name the same one at the same time are told apart. */
const ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('named:' || $1::text, 0))";

/**
 * $1 operation, $2 reference, $3 whether it is of the form of one: else two may rest on the same words, as on one transfer. A refund that ended by it, whoever's word that was, or of which the provider showed it: an answer to an
 * attempt is evidence in the transaction that records it.
 */
const OTHERS = `
SELECT o.id FROM operations o
WHERE $3::boolean AND o.kind = 'refund' AND o.id <> $1 AND o.provider_ref = $2 AND o.status IN ('CONFIRMED', 'REVERSED')
UNION ALL
SELECT x.operation_id FROM provider_evidence x JOIN operations o ON o.id = x.operation_id
WHERE o.kind = 'refund' AND x.provider_ref = $2 AND x.operation_id <> $1
ORDER BY 1 LIMIT 1`;

/** Whose effect it is; null: nobody else's. What a provider uses as its ids need not look like one. Joins the transaction that writes it. */
export async function anothersEffect(
  tx: Tx,
  { id, kind }: Pick<Operation, "id" | "kind">,
  ref: string,
): Promise<OperationId | null> {
  if (kind !== "refund") return null;
  await tx.sql("ledger.name_one_at_a_time", ONE_AT_A_TIME, [ref]);
  const [row] = await tx.sql<{ id: OperationId }>("ledger.anothers_effect", OTHERS, [
    id,
    ref,
    isReference(ref),
  ]);
  return row?.id ?? null;
}
