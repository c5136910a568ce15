/** One owner run and any number of waiters: joining an operation that exists, and leaving one's own to others. */
import type { Tx } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { OperationId, RunId, TicketId } from "../domain/ids.js";
import { type Actor, ENDED, type Operation } from "../domain/operation.js";
import type { LedgerCtx } from "./context.js";
import { endWithoutEffect } from "./endings.js";
import { note } from "./note.js";
import { type OperationRow, operationColumns, toOperation } from "./rows.js";
import { personNames } from "./subjects.js";

export interface Joining {
  readonly runId: RunId;
  readonly ticketId: TicketId;
  readonly filers: readonly string[];
}

/** $1 operation, $2 run, $3 ticket, $4 filer. One row when the run was no waiter yet. */
const ADD_WAITER = `
INSERT INTO operation_waiters (operation_id, run_id, ticket_id, filer) VALUES ($1, $2, $3, $4)
ON CONFLICT (operation_id, run_id) DO NOTHING RETURNING run_id`;

/**
 * Makes a run a waiter of an operation whose row is locked. The filers of all who wait count as filer from now on. Returns the
 * operation as it is then. Whoever joins what is not at an end moves its version: a transition that reads who waits in its own
 * statement (`ledger.move`) misses nobody.
 */
export async function join(tx: Tx, operation: Operation, who: Joining): Promise<Operation> {
  const added =
    operation.ownerRunId === who.runId
      ? []
      : await tx.sql("ledger.add_waiter", ADD_WAITER, [
          operation.id,
          who.runId,
          who.ticketId,
          who.filers[0] ?? "",
        ]);
  if (ENDED.has(operation.status)) return operation;
  const newcomers = who.filers.filter((filer) => !operation.filers.includes(filer));
  if (added.length === 0 && newcomers.length === 0) return operation;
  const joined = await note(tx, {
    id: operation.id,
    status: operation.status,
    version: operation.version,
    note: "join",
    actor: `run:${who.runId}`,
    data: { run: who.runId, ticket: who.ticketId, filers: await personNames(tx, newcomers) },
    filers: [...operation.filers, ...newcomers],
  });
  if (joined === null) throw lostLock(operation.id);
  return joined;
}

/** $1 run. What it owns and what was never sent, in the order of ids. */
const OWNED = `
SELECT ${operationColumns("o")} FROM operations o
WHERE o.owner_run_id = $1 AND o.status IN ('AWAITING_APPROVAL', 'PREPARED')
ORDER BY o.id
FOR NO KEY UPDATE`;

/** $1 operation, $2 the run that leaves. The oldest waiter whose run goes on. */
const HEIR = `
SELECT w.run_id, w.ticket_id FROM operation_waiters w JOIN runs r ON r.id = w.run_id
WHERE w.operation_id = $1 AND w.run_id <> $2
  AND r.state IN ('queued', 'running', 'awaiting_binding', 'awaiting_approval', 'waiting')
ORDER BY w.joined_at, w.run_id LIMIT 1`;

/** Hands what was never sent to the oldest waiter whose run goes on, else voids it. Returns what it touched. */
export async function abandon(
  tx: Tx,
  ctx: LedgerCtx,
  run: { runId: RunId; actor: Actor },
): Promise<Operation[]> {
  const owned = await tx.sql<OperationRow>("ledger.owned", OWNED, [run.runId]);
  const touched: Operation[] = [];
  for (const row of owned) {
    const operation = toOperation(row);
    const [heir] = await tx.sql<{ run_id: RunId; ticket_id: TicketId }>("ledger.heir", HEIR, [
      operation.id,
      run.runId,
    ]);
    touched.push(
      heir === undefined
        ? await voidUnwanted(tx, ctx, operation, run.actor)
        : await handOver(tx, operation, run.runId, { runId: heir.run_id, ticketId: heir.ticket_id }),
    );
  }
  await tx.sql("ledger.stop_waiting", "DELETE FROM operation_waiters WHERE run_id = $1", [run.runId]);
  return touched;
}

async function handOver(
  tx: Tx,
  operation: Operation,
  from: RunId,
  owner: { runId: RunId; ticketId: TicketId },
): Promise<Operation> {
  const handed = await note(tx, {
    id: operation.id,
    status: operation.status,
    version: operation.version,
    note: "handover",
    actor: `run:${from}`,
    data: { from, to: owner.runId, ticket: owner.ticketId },
    owner,
  });
  if (handed === null) throw lostLock(operation.id);
  await tx.sql("ledger.heir_owns", "DELETE FROM operation_waiters WHERE operation_id = $1 AND run_id = $2", [
    operation.id,
    owner.runId,
  ]);
  return handed;
}

async function voidUnwanted(tx: Tx, ctx: LedgerCtx, operation: Operation, actor: Actor): Promise<Operation> {
  const ended = await endWithoutEffect(tx, ctx, "void", {
    operationId: operation.id,
    actor,
    code: "nobody_waits",
    detail: "Stopped before anything was sent: nobody waits for it any more.",
  });
  if (!ended.moved) throw lostLock(operation.id);
  return ended.operation;
}

/** Cannot happen: the row's lock is held. */
const lostLock = (id: OperationId): CountersignError =>
  new CountersignError("lost_lock", `operation ${id} moved although its row is locked`, {
    ids: { operationId: id },
  });
