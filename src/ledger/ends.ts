/** Ends that need no provider, and ends that the provider takes back. */
import type { Tx } from "../db/connect.js";
import type { OperationId, RunId, TicketId } from "../domain/ids.js";
import type { Actor, Operation, OperationEventType, OperationStatus } from "../domain/operation.js";
import type { LedgerCtx } from "./context.js";
import { openIncident, recordEvidence } from "./evidence.js";
import { note } from "./note.js";
import { getOperation } from "./reads.js";
import { type OperationRow, operationColumns, toOperation } from "./rows.js";
import { tell } from "./told.js";
import { move } from "./transition.js";
import type { EndWithoutEffect, Moved, NewEvidence } from "./types.js";

/** A person said no: AWAITING_APPROVAL or PREPARED → DENIED. */
export const deny = (tx: Tx, ctx: LedgerCtx, request: EndWithoutEffect): Promise<Moved> =>
  endFrom(tx, ctx, request, "deny", ["AWAITING_APPROVAL", "PREPARED"]);

/** Nobody decided: AWAITING_APPROVAL → EXPIRED. */
export const expire = (tx: Tx, ctx: LedgerCtx, request: EndWithoutEffect): Promise<Moved> =>
  endFrom(tx, ctx, request, "expire", ["AWAITING_APPROVAL"]);

/** Drift, superseded, nobody waits: AWAITING_APPROVAL or PREPARED → VOIDED. */
export const voidOperation = (tx: Tx, ctx: LedgerCtx, request: EndWithoutEffect): Promise<Moved> =>
  endFrom(tx, ctx, request, "void", ["AWAITING_APPROVAL", "PREPARED"]);

async function endFrom(
  tx: Tx,
  ctx: LedgerCtx,
  request: EndWithoutEffect,
  event: OperationEventType,
  from: readonly OperationStatus[],
): Promise<Moved> {
  const operation = await lock(tx, request.operationId);
  if (operation === null || !from.includes(operation.status)) return { moved: false, operation };
  const moved = await move(tx, {
    id: operation.id,
    from: operation.status,
    version: operation.version,
    token: null,
    event,
    actor: request.actor,
    data: { code: request.code, detail: request.detail },
    patch: { fence: true, result: { code: request.code, detail: request.detail } },
  });
  if (moved === null) return { moved: false, operation: await getOperation(tx, operation.id) };
  await tell(tx, ctx, operation, moved);
  return { moved: true, operation: moved };
}

async function lock(tx: Tx, id: OperationId): Promise<Operation | null> {
  const [row] = await tx.sql<OperationRow>(
    "ledger.lock_one",
    `SELECT ${operationColumns("o")} FROM operations o WHERE o.id = $1 FOR NO KEY UPDATE`,
    [id],
  );
  return row === undefined ? null : toOperation(row);
}

/** The run ends early; see `index.ts`. */
export async function abandon(
  tx: Tx,
  ctx: LedgerCtx,
  run: { runId: RunId; actor: Actor },
): Promise<Operation[]> {
  const rows = await tx.sql<OperationRow>(
    "ledger.abandon_lock",
    `SELECT ${operationColumns("o")} FROM operations o
      WHERE o.owner_run_id = $1 AND o.status IN ('AWAITING_APPROVAL', 'PREPARED') ORDER BY o.id FOR NO KEY UPDATE`,
    [run.runId],
  );
  const after: Operation[] = [];
  for (const row of rows) after.push(await handOver(tx, ctx, toOperation(row), run));
  await tx.sql("ledger.abandon_waits", "DELETE FROM operation_waiters WHERE run_id = $1", [run.runId]);
  return after;
}

async function handOver(
  tx: Tx,
  ctx: LedgerCtx,
  operation: Operation,
  run: { runId: RunId; actor: Actor },
): Promise<Operation> {
  const [heir] = await tx.sql<{ run_id: RunId; ticket_id: TicketId }>(
    "ledger.heir",
    `SELECT w.run_id, w.ticket_id FROM operation_waiters w JOIN runs r ON r.id = w.run_id
      WHERE w.operation_id = $1 AND w.run_id <> $2
        AND r.state IN ('queued','running','awaiting_binding','awaiting_approval','waiting')
      ORDER BY w.joined_at, w.run_id LIMIT 1`,
    [operation.id, run.runId],
  );
  if (heir !== undefined) {
    const handed = await note(tx, {
      id: operation.id,
      status: operation.status,
      version: operation.version,
      note: "handover",
      actor: run.actor,
      data: { from: run.runId, to: heir.run_id },
      owner: { runId: heir.run_id, ticketId: heir.ticket_id },
    });
    if (handed !== null) {
      await tx.sql(
        "ledger.heir_owns",
        "DELETE FROM operation_waiters WHERE operation_id = $1 AND run_id = $2",
        [operation.id, heir.run_id],
      );
      return handed;
    }
  }
  const ended = await voidOperation(tx, ctx, {
    operationId: operation.id,
    actor: run.actor,
    code: "nobody_waits",
    detail: "The request was stopped before anything was sent, and nobody else waits for it.",
  });
  return ended.operation ?? operation;
}

/** The provider took it back: CONFIRMED → REVERSED. */
export async function reverse(
  ctx: LedgerCtx,
  request: { operationId: OperationId; actor: Actor; evidence: NewEvidence; code: string; detail: string },
): Promise<Moved> {
  return ctx.db.tx(async (tx) => {
    const operation = await lock(tx, request.operationId);
    await recordEvidence(tx, ctx, request.evidence);
    if (operation?.status !== "CONFIRMED") return { moved: false, operation };
    const moved = await move(tx, {
      id: operation.id,
      from: "CONFIRMED",
      version: operation.version,
      token: null,
      event: "reverse",
      actor: request.actor,
      data: { code: request.code, detail: request.detail, evidence: request.evidence.payload },
      patch: { fence: true, result: { code: request.code, detail: request.detail } },
    });
    if (moved === null) return { moved: false, operation };
    await openIncident(tx, ctx, {
      kind: "reversed",
      dedupeKey: `reversed:${operation.id}`,
      operationId: operation.id,
      paymentId: null,
      detail: { code: request.code, detail: request.detail, providerRef: operation.providerRef },
    });
    await tell(tx, ctx, operation, moved);
    return { moved: true, operation: moved };
  });
}

/** Evidence contradicts an end: CONFIRMED or REJECTED → QUARANTINED, with an incident. */
export async function contradict(
  ctx: LedgerCtx,
  request: { operationId: OperationId; actor: Actor; evidence: NewEvidence; detail: string },
): Promise<Moved> {
  return ctx.db.tx(async (tx) => {
    const operation = await lock(tx, request.operationId);
    await recordEvidence(tx, ctx, request.evidence);
    if (operation === null || (operation.status !== "CONFIRMED" && operation.status !== "REJECTED")) {
      return { moved: false, operation };
    }
    const moved = await move(tx, {
      id: operation.id,
      from: operation.status,
      version: operation.version,
      token: null,
      event: "quarantine",
      actor: request.actor,
      data: { detail: request.detail, evidence: request.evidence.payload },
      patch: { fence: true, quarantineReason: `evidence_contradicts: ${request.detail}` },
    });
    if (moved === null) return { moved: false, operation };
    await openIncident(tx, ctx, {
      kind: "contradiction",
      dedupeKey: `contradiction:${operation.id}:${operation.version}`,
      operationId: operation.id,
      paymentId: null,
      detail: { was: operation.status, detail: request.detail },
    });
    await tell(tx, ctx, operation, moved);
    return { moved: true, operation: moved };
  });
}
