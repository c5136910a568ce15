/** What nobody would look at again, because somebody changed in the database when it is due. */
import { reportChanged } from "../dispatch/index.js";
import { getOperation, makeForgottenDue } from "../ledger/index.js";
import type { ReconcileCtx } from "./context.js";

/** Makes such operations due, tells on-call of each, and returns how many there were. */
export async function remindForgotten(ctx: ReconcileCtx, options: { limit: number }): Promise<number> {
  const ids = await makeForgottenDue(ctx.db, ctx, options);
  for (const id of ids) {
    const operation = await getOperation(ctx.db, id);
    if (operation === null) continue;
    await reportChanged(ctx, operation, ["when it is to be looked at again was taken away or put off"]);
  }
  return ids.length;
}
