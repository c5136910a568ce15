/** The provider contradicted a person's word, or did not show what it was given for, and its evidence has settled the operation since. */
import type { Tx } from "../db/connect.js";
import { isConfirmedOnWord } from "../domain/named-evidence.js";
import type { Operation } from "../domain/operation.js";
import type { LedgerCtx } from "./context.js";
import { closeIncident } from "./incidents.js";

/** $1 operation. Findings against a person's word of it; those against anything else wait for a person. */
const AGAINST_WORD = `
SELECT id FROM incidents WHERE operation_id = $1 AND status = 'open' AND kind IN ('contradiction', 'missing_effect') AND detail ? 'resolution'`;

/**
 * Call after a transition. Confirmed by what the provider shows: nothing is left to find out, so the record closes the finding itself,
 * and says by which reference.
 */
export async function closeSettledWord(
  tx: Tx,
  ctx: Pick<LedgerCtx, "notices">,
  operation: Operation,
): Promise<void> {
  if (operation.status !== "CONFIRMED" || isConfirmedOnWord(operation)) return;
  const found = await tx.sql<{ id: string }>("ledger.against_word", AGAINST_WORD, [operation.id]);
  for (const { id } of found) {
    await closeIncident(tx, ctx, {
      id,
      by: "system:reconcile",
      reason: `Settled: the provider shows ${operation.providerRef ?? "it"}, and it is confirmed by that, no longer on a person's word.`,
    });
  }
}
