/** Everything that is due, any number of reconcilers at once: each row is taken by one of them. */
import { cannotBeRecorded, reportChanged } from "../dispatch/index.js";
import type { OperationId } from "../domain/ids.js";
import {
  authorityOf,
  dueToTake,
  restUntaken,
  type Taken,
  takeDue,
  takeForReconcile,
} from "../ledger/index.js";
import type { ReconcileCtx } from "./context.js";
import { reconcileTaken } from "./one.js";

/**
 * Takes what is due and works on it, at most `limit` operations; returns how many were looked at. One that fails is left to its
 * lease and does not stop the others.
 */
export async function reconcileDue(ctx: ReconcileCtx, options: { limit: number }): Promise<number> {
  let looked = 0;
  while (looked < options.limit) {
    const batch = await takeBatch(ctx, Math.min(ctx.reconcile.concurrency, options.limit - looked));
    if (batch.seen === 0) break;
    looked += batch.seen;
    await Promise.all(
      batch.taken.map(async (taken) => {
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

interface Batch {
  readonly taken: readonly Taken[];
  readonly seen: number;
}

/** One row that somebody changed so that nothing can be written about it stops itself alone. */
async function takeBatch(ctx: ReconcileCtx, limit: number): Promise<Batch> {
  try {
    const taken = await takeDue(ctx, { worker: ctx.worker, limit });
    return { taken, seen: taken.length };
  } catch (error) {
    if (!cannotBeRecorded(ctx.db, error)) throw error;
  }
  const ids = await dueToTake(ctx.db, { limit });
  const taken: Taken[] = [];
  for (const operationId of ids) {
    try {
      const one = await takeForReconcile(ctx, { operationId, worker: ctx.worker, because: "due" });
      if (one !== null) taken.push(one);
    } catch (error) {
      if (!cannotBeRecorded(ctx.db, error)) throw error;
      ctx.log.error(
        { err: error, operation: operationId },
        "an open outcome could not be taken; it is tried again in a minute",
      );
      await restUntaken(ctx.db, operationId);
      await tellChanged(ctx, operationId);
    }
  }
  return { taken, seen: ids.length };
}

async function tellChanged(ctx: ReconcileCtx, id: OperationId): Promise<void> {
  try {
    const { operation, problems } = await authorityOf(ctx, id);
    if (operation !== null && problems.length > 0) await reportChanged(ctx, operation, problems);
  } catch (error) {
    ctx.log.error({ err: error, operation: id }, "what was changed in it could not be told");
  }
}
