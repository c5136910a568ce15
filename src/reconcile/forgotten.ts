/** What nobody would look at again, because somebody changed in the database when it is due. */
import { reportChanged } from "../dispatch/index.js";
import { getOperation, makeForgottenDue } from "../ledger/index.js";
import type { ReconcileCtx } from "./context.js";

/**
 * Makes such operations due, and returns how many there were. On-call hears of each whose due time is gone: nothing of ours takes it away.
 * One that was put off is logged: a shorter setting of the longest wait puts off as well.
 */
export async function remindForgotten(ctx: ReconcileCtx, options: { limit: number }): Promise<number> {
  const forgotten = await makeForgottenDue(ctx.db, ctx, options);
  const putOff = forgotten.filter(({ gone }) => !gone).map(({ id }) => id);
  if (putOff.length > 0)
    ctx.log.error(
      { operations: putOff },
      "these operations were due later than anything is put off; they are due now",
    );
  for (const { id, gone } of forgotten) {
    const operation = gone ? await getOperation(ctx.db, id) : null;
    if (operation === null) continue;
    await reportChanged(ctx, operation, ["when it is to be looked at again was taken away"]);
  }
  return forgotten.length;
}
