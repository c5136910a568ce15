/** A quarantined operation asks for a person again and again, one card at a time. */
import type { OperationId } from "../domain/ids.js";
import { restQuarantined } from "../ledger/index.js";
import type { ReconcileCtx } from "./context.js";

/** Posts the card again if its time has come; true when it did. The old card is replaced, not piled upon. */
export async function repostQuarantined(ctx: ReconcileCtx, id: OperationId): Promise<boolean> {
  return ctx.db.tx(async (tx) => {
    const due = await restQuarantined(tx, ctx, id);
    if (due) await ctx.notices.repost(tx, { kind: "quarantine", id });
    return due;
  });
}
