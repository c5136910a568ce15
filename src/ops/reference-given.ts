/** Whose word an operation's reference is. */
import type { OperationId } from "../domain/ids.js";
import type { Db } from "../domain/ports/database.js";
import { confirmedOnWord, referenceIsGiven } from "../ledger/index.js";

/** SQL: whether the reference of operation `o` is only what a person named when they confirmed it. */
export const REFERENCE_IS_GIVEN = referenceIsGiven("o");

/** SQL: operation `o` is confirmed, and only a person vouches for it. */
export const CONFIRMED_ON_WORD = confirmedOnWord("o");

/** Whether the provider has never shown the reference that the operation has. */
export async function isReferenceGiven(db: Db, id: OperationId): Promise<boolean> {
  const [row] = await db.sql<{ given: boolean }>(
    "ops.reference_given",
    `SELECT ${REFERENCE_IS_GIVEN} AS given FROM operations o WHERE o.id = $1`,
    [id],
  );
  return row?.given === true;
}
