/** A quarantined operation asks for a person again and again, one card at a time. */
import { lookAtParked } from "../dispatch/index.js";
import type { OperationId } from "../domain/ids.js";
import { repostIsDue, restQuarantined } from "../ledger/index.js";
import type { ReconcileCtx } from "./context.js";
import { reconcileOne } from "./one.js";

/**
 * Posts the card again if its time has come; true when it did. The old card is replaced, not piled upon. Before a person is asked again
 * the provider is: what it settles by now asks nobody.
 */
export async function repostQuarantined(ctx: ReconcileCtx, id: OperationId): Promise<boolean> {
  if (!(await repostIsDue(ctx.db, id))) return false;
  if (await lookAtParked(ctx, id)) {
    const looked = await reconcileOne(ctx, id, "due");
    if (looked !== null) return false;
  }
  return ctx.db.tx(async (tx) => {
    const due = await restQuarantined(tx, ctx, id);
    if (due) await ctx.notices.repost(tx, { kind: "quarantine", id });
    return due;
  });
}
