/** Ends that rest on a person's word, and references that nobody but a person has named. */
import type { SqlRunner } from "../db/connect.js";
import type { OperationId } from "../domain/ids.js";
import { CONFIRMED_ON_WORD } from "../domain/named-evidence.js";
import { AGREED_ON } from "./types.js";

/** SQL: operation `o` is confirmed, and only a person vouches for it (`isConfirmedOnWord`). */
export const confirmedOnWord = (o: string): string =>
  `(${o}.status = 'CONFIRMED' AND ${o}.result ->> 'code' IN (${CONFIRMED_ON_WORD.map((code) => `'${code}'`).join(", ")}))`;

/**
 * SQL: whether evidence of operation `o`, or an answer to it, names its reference. `OFFSET 0`: looked up by the operation, never hashed for
 * all of them.
 */
const named = (o: string): string => `(
  EXISTS (SELECT 1 FROM provider_evidence x WHERE x.operation_id = ${o}.id AND x.provider_ref = ${o}.provider_ref OFFSET 0)
  OR EXISTS (SELECT 1 FROM attempts a WHERE a.operation_id = ${o}.id AND a.provider_ref = ${o}.provider_ref OFFSET 0))`;

/**
 * SQL: whether the reference of operation `o` is only what a person named when they confirmed it. It stays on the row when that end is
 * taken back, as the log names it, until the provider shows one. The text of the evidence is kept longer than a reference can be.
 */
export const referenceIsGiven = (o: string): string => `(${o}.provider_ref IS NOT NULL AND EXISTS (
    SELECT 1 FROM resolutions r WHERE r.operation_id = ${o}.id AND r.verb = 'confirm' AND r.state = 'applied'
      AND COALESCE(r.probe #>> '{${AGREED_ON},says}', r.probe ->> 'says') IN ('absent', 'unknown') AND strpos(r.evidence_ref, rtrim(${o}.provider_ref, '…')) > 0)
  AND NOT ${named(o)})`;

/**
 * SQL: whether the reference of operation `o` is its effect. One that only a person named is that as long as the operation is confirmed by
 * it: with the end that is taken back it explains nothing any more, and what it names is as strange as before.
 */
export const referenceStands = (o: string): string =>
  `(${o}.provider_ref IS NOT NULL AND (${o}.status IN ('CONFIRMED', 'REVERSED') OR ${named(o)}))`;

/** SQL: the decision on which the confirmation of operation `id` rests. */
export const lastWord = (id: string): string => `(
  SELECT r.id FROM resolutions r WHERE r.operation_id = ${id} AND r.verb = 'confirm' AND r.state = 'applied'
  ORDER BY r.operation_version DESC LIMIT 1)`;

/** The decision on which the operation's confirmation rests; null: no person confirmed it. */
export async function wordOf(on: SqlRunner, id: OperationId): Promise<string | null> {
  const [row] = await on.sql<{ id: string | null }>("ledger.word_of", `SELECT ${lastWord("$1")} AS id`, [id]);
  return row?.id ?? null;
}
