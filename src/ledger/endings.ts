/** Ends without an effect: a person said no, nobody decided, or the world moved on. Only of what was never sent, or proven unsent. */

import type { Tx } from "../db/connect.js";
import { isCheckViolation } from "../db/sqlstate.js";
import type { OperationId } from "../domain/ids.js";
import { next, type Operation } from "../domain/operation.js";
import { announce } from "./announce.js";
import { approvalData } from "./approval-facts.js";
import type { LedgerCtx } from "./context.js";
import { type OperationRow, operationColumns, toOperation } from "./rows.js";
import { actorName, textName } from "./subjects.js";
import { move } from "./transition.js";
import type { EndWithoutEffect, Moved } from "./types.js";

/** $1 operation. */
const LOCK = `SELECT ${operationColumns("o")} FROM operations o WHERE o.id = $1 FOR NO KEY UPDATE`;

/** The row, locked until the transaction ends; null when there is none. */
export async function lockOperation(tx: Tx, id: OperationId): Promise<Operation | null> {
  const [row] = await tx.sql<OperationRow>("ledger.lock_operation", LOCK, [id]);
  return row === undefined ? null : toOperation(row);
}

/** Ends the operation if its state still allows it. The code and sentence are stored as its result and told again to whoever asks. */
export async function endWithoutEffect(
  tx: Tx,
  ctx: LedgerCtx,
  event: "deny" | "expire" | "void",
  request: EndWithoutEffect,
): Promise<Moved> {
  const operation = await lockOperation(tx, request.operationId);
  if (operation === null || !next(operation.status, event).legal) return { moved: false, operation };
  const byPerson = request.actor.startsWith("slack:");
  const ended = await move(tx, {
    id: operation.id,
    from: operation.status,
    version: operation.version,
    token: null,
    event,
    actor: await actorName(tx, request.actor),
    // What a person wrote stays erasable.
    data: {
      code: request.code,
      detail: byPerson ? await textName(tx, request.detail) : request.detail,
      ...(request.approval === undefined ? {} : await approvalData(tx, request.approval)),
    },
    patch: { result: { code: request.code, detail: request.detail }, fence: true },
  });
  if (ended === null) return { moved: false, operation };
  await announce(tx, ctx, { operation: ended, from: operation.status });
  return { moved: true, operation: ended };
}

/** A person said no: AWAITING_APPROVAL or PREPARED → DENIED. Joins the caller's transaction; who waits is due after it. */
export const deny = (tx: Tx, ctx: LedgerCtx, request: EndWithoutEffect): Promise<Moved> =>
  endWithoutEffect(tx, ctx, "deny", request);

/** Nobody decided: AWAITING_APPROVAL → EXPIRED. Joins the caller's transaction. */
export const expire = (tx: Tx, ctx: LedgerCtx, request: EndWithoutEffect): Promise<Moved> =>
  endWithoutEffect(tx, ctx, "expire", request);

/** Drift, superseded, nobody waits: AWAITING_APPROVAL or PREPARED → VOIDED. Joins the caller's transaction. */
export const voidOperation = (tx: Tx, ctx: LedgerCtx, request: EndWithoutEffect): Promise<Moved> =>
  endWithoutEffect(tx, ctx, "void", request);

/** True when an end was refused by the database because what it would release no longer fits the payment. */
export const doesNotFit = (error: unknown): boolean => isCheckViolation(error);
