/** Everything that is due, any number of reconcilers at once: each row is taken by one of them. */
import { takeDue } from "../ledger/index.js";
import type { ReconcileCtx } from "./context.js";
import { reconcileTaken } from "./one.js";

/**
 * Takes what is due and works on it, at most `limit` operations; returns how many were looked at. One that fails is left to its
 * lease and does not stop the others.
 */
export async function reconcileDue(ctx: ReconcileCtx, options: { limit: number }): Promise<number> {
  let looked = 0;
  while (looked < options.limit) {
    const batch = await takeDue(ctx, {
      worker: ctx.worker,
      limit: Math.min(ctx.reconcile.concurrency, options.limit - looked),
    });
    if (batch.length === 0) break;
    looked += batch.length;
    await Promise.all(
      batch.map(async (taken) => {
        try {
          await reconcileTaken(ctx, taken);
        } catch (error) {
          ctx.log.error(
            { err: error, operation: taken.operation.id },
            "an open outcome could not be looked at; it is tried again when its lease has run out",
          );
        }
      }),
    );
  }
  return looked;
}
