/** Operations that are stopped before anything of them is sent. */

import { CountersignError } from "../domain/errors.js";
import { identityProblems } from "../domain/identity.js";
import type { OperationId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import { ROW_CHANGED } from "../domain/recovery.js";
import {
  type Authority,
  authorityOf,
  doesNotFit,
  openIncident,
  paymentProblems,
  restUnsent,
  voidOperation,
} from "../ledger/index.js";
import type { DispatchCtx } from "./context.js";

/** Ends one that was never sent. @throws CountersignError `operation_not_found` */
export async function voidFor(
  ctx: DispatchCtx,
  operationId: OperationId,
  why: { code: string; detail: string },
): Promise<Operation> {
  const ended = await ctx.db.tx((tx) =>
    voidOperation(tx, ctx, { operationId, actor: "system:dispatch", ...why }),
  );
  if (ended.operation === null) {
    throw new CountersignError("operation_not_found", `there is no operation ${operationId}`, {
      ids: { operationId },
    });
  }
  return ended.operation;
}

/** $1 operation. How often on-call was told of it, and whether that is still open. */
const TOLD_BEFORE = `
SELECT count(*)::int AS times, COALESCE(bool_or(status = 'open'), false) AS open FROM incidents WHERE operation_id = $1 AND kind = 'row_changed'`;

/**
 * The row is not the one that was decided on: on-call hears of it, once; and again when it was closed and is still, or anew, not as the
 * log tells it.
 */
export async function reportChanged(
  ctx: DispatchCtx,
  operation: Operation,
  problems: readonly string[],
): Promise<void> {
  const { first } = await ctx.db.tx(async (tx) => {
    const [told] = await tx.sql<{ times: number; open: boolean }>("dispatch_told_changed", TOLD_BEFORE, [
      operation.id,
    ]);
    if (told?.open === true) return { first: false };
    const times = told?.times ?? 0;
    return openIncident(tx, ctx, {
      kind: "row_changed",
      dedupeKey: times === 0 ? `row_changed:${operation.id}` : `row_changed:${operation.id}:${times + 1}`,
      operationId: operation.id,
      paymentId: null,
      detail: { problems: [...problems] },
    });
  });
  if (first)
    ctx.log.error({ operation: operation.id, problems }, "an operation's row was changed in the database");
}

/**
 * What about this operation was changed by hand: its identity does not follow from its fields, or the log does not tell what its row
 * or its payment's says. Asked before it is claimed and again before it is sent, whichever way it was claimed.
 */
export async function changedByHand(ctx: DispatchCtx, operation: Operation): Promise<Authority> {
  const [told, payment] = await Promise.all([
    authorityOf(ctx, operation.id),
    paymentProblems(ctx.db, operation.id),
  ]);
  const identity = identityProblems(operation);
  if (identity.length > 0) return { ...told, problems: identity };
  return { ...told, problems: [...told.problems, ...payment] };
}

/** What came of it cannot be written down: where that is because somebody changed rows, on-call hears of them. */
export async function tellUnrecordable(ctx: DispatchCtx, operation: Operation): Promise<void> {
  const { problems } = await changedByHand(ctx, operation);
  if (problems.length > 0) await reportChanged(ctx, operation, problems);
}

/** Not a byte of it leaves. It ends unsent where the log agrees that nothing has left; else the row stays as it is until somebody mends it. */
export async function stopChanged(
  ctx: DispatchCtx,
  operation: Operation,
  { problems, unsent }: Authority,
): Promise<Operation> {
  await reportChanged(ctx, operation, problems);
  if (!unsent) {
    await restUnsent(ctx.db, operation);
    return operation;
  }
  try {
    return await voidFor(ctx, operation.id, {
      code: ROW_CHANGED,
      detail:
        "Not sent: its record in the database is not what was decided. On-call was told why. Nothing happened.",
    });
  } catch (error) {
    // Its money no longer fits the payment's: the row stays as it is, unsent, until somebody mends it.
    if (!doesNotFit(error)) throw error;
    await restUnsent(ctx.db, operation);
    return operation;
  }
}
