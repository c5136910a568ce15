/**
 * Whether an effect that an answer names can confirm an operation. An answer need not carry our mark; but an effect that is known
 * before it was asked for, as another refund's or as made elsewhere, is not this one, and one that came to nothing confirms nothing.
 * What only a person has named as another refund's is not known as that.
 */
import type { Tx } from "../db/connect.js";
import type { OperationId } from "../domain/ids.js";
import { referenceIsGiven, referenceStands } from "./on-word.js";

/** SQL, true when it cannot. `operation`: the alias of its row; `ref`: the provider's reference. */
export const notOwnEffect = ({ operation: o, ref }: { operation: string; ref: string }): string => `(
  EXISTS (
    SELECT 1 FROM provider_evidence x WHERE x.provider_ref = ${ref} AND (
      (x.operation_id = ${o}.id AND x.payload ->> 'status' IN ('failed', 'canceled'))
      OR (x.operation_id IS NULL AND x.at < ${o}.first_claimed_at AND ${o}.kind = 'refund')))
  OR (${o}.kind = 'refund' AND EXISTS (
    SELECT 1 FROM operations other WHERE other.provider_ref = ${ref} AND other.kind = 'refund' AND other.id <> ${o}.id
      AND ${referenceStands("other")} AND NOT ${referenceIsGiven("other")})))`;

/** $1 operation, $2 reference. */
const IS_OTHER = `
SELECT EXISTS (
    SELECT 1 FROM provider_evidence x
    WHERE x.provider_ref = $2 AND x.operation_id = o.id AND x.payload ->> 'status' IN ('failed', 'canceled')) AS failed
FROM operations o WHERE o.id = $1 AND ${notOwnEffect({ operation: "o", ref: "$2" })}`;

/** The same of one operation and one reference, under whatever the transaction has locked: as what it is known; null: it can confirm it. */
export async function whyNotOwn(tx: Tx, id: OperationId, ref: string): Promise<"failed" | "anothers" | null> {
  const [row] = await tx.sql<{ failed: boolean }>("ledger.not_own_effect", IS_OTHER, [id, ref]);
  if (row === undefined) return null;
  return row.failed ? "failed" : "anothers";
}
