/** Whether the provider's newest answer to an operation asks for fewer requests. Reads only. */
import type { SqlRunner } from "../db/connect.js";
import type { OperationId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import { isTriedAgain, SLOW_DOWN } from "../domain/tried.js";

const CODES = SLOW_DOWN.map((code) => `'${code}'`).join(", ");

/** SQL: operation `o` waits to be tried again because the provider answered its newest attempt so. One row by its index, for each `o`. */
export const SLOWED_DOWN = `(o.status = 'PREPARED' AND coalesce((
  SELECT t.code IN (${CODES}) FROM attempts t WHERE t.operation_id = o.id AND t.number = o.attempts), false))`;

/** Those of them. Reads nothing where none is tried again. */
export async function slowedDown(
  on: SqlRunner,
  operations: readonly Operation[],
): Promise<ReadonlySet<OperationId>> {
  const tried = operations.filter(isTriedAgain).map(({ id }) => id);
  if (tried.length === 0) return new Set();
  const rows = await on.sql<{ id: OperationId }>(
    "ledger.slowed_down",
    `SELECT o.id FROM operations o WHERE o.id = ANY ($1::text[]) AND ${SLOWED_DOWN}`,
    [tried],
  );
  return new Set(rows.map(({ id }) => id));
}
