/**
 * The reconciler's side of the ledger: take what is due, write what was decided.
 *
 * 1. One taker a row: SKIP LOCKED for whoever scans, status, version and token for whoever writes. Every taking has a new token.
 * 2. A dispatch whose lease ran out becomes unknown first, as an event of its own; an expired lease alone sends nothing.
 * 3. A reconciler that died is succeeded by the next one when its lease has run out.
 */
import type { Tx } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { Evidence, ProviderEffect } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import type { Operation, OperationStatus } from "../domain/operation.js";
import { backoffMs } from "./backoff.js";
import { takeClaim, whyLost } from "./claim.js";
import type { LedgerCtx } from "./context.js";
import { openIncident, recordEvidence } from "./evidence.js";
import { toJsonObject } from "./json.js";
import { note } from "./note.js";
import { attemptsOf, getOperation } from "./reads.js";
import { type OperationRow, operationColumns, toOperation } from "./rows.js";
import { effectEvidence } from "./settle.js";
import { tell } from "./told.js";
import { move, type Patch } from "./transition.js";
import type { ClaimResult, LeaseRef, Reconciled, SettleReconcile, Taken } from "./types.js";

type LockedRow = OperationRow & {
  now: Date;
  lease_over: boolean;
  is_due: boolean;
  last_send_ended_at: Date | null;
};

const LOCKED = `${operationColumns("o")}, countersign_now() AS now,
  (o.lease_until IS NULL OR o.lease_until <= countersign_now()) AS lease_over,
  (o.due_at IS NOT NULL AND o.due_at <= countersign_now()) AS is_due, o.last_send_ended_at`;

/** Takes a reconciler's lease on one operation; see `index.ts`. */
export async function takeForReconcile(
  ctx: LedgerCtx,
  request: { operationId: OperationId; worker: string; because: "due" | "evidence" },
): Promise<Taken | null> {
  return ctx.db.tx(async (tx) => {
    const [row] = await tx.sql<LockedRow>(
      "ledger.take_lock",
      `SELECT ${LOCKED} FROM operations o WHERE o.id = $1 FOR NO KEY UPDATE SKIP LOCKED`,
      [request.operationId],
    );
    return row === undefined ? null : take(tx, ctx, row, request);
  });
}

/** Takes up to `limit` due rows that no other reconciler is taking. */
export async function takeDue(ctx: LedgerCtx, request: { worker: string; limit: number }): Promise<Taken[]> {
  return ctx.db.tx(async (tx) => {
    const rows = await tx.sql<LockedRow>(
      "ledger.take_due",
      `SELECT ${LOCKED} FROM operations o
        WHERE o.due_at IS NOT NULL AND o.due_at <= countersign_now()
          AND o.status IN ('DISPATCHED', 'OUTCOME_UNKNOWN', 'RECONCILING')
        ORDER BY o.due_at, o.id LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED`,
      [request.limit],
    );
    const taken: Taken[] = [];
    for (const row of rows) {
      const one = await take(tx, ctx, row, { worker: request.worker, because: "due" });
      if (one !== null) taken.push(one);
    }
    return taken;
  });
}

async function take(
  tx: Tx,
  ctx: LedgerCtx,
  row: LockedRow,
  request: { worker: string; because: "due" | "evidence" },
): Promise<Taken | null> {
  let operation: Operation | null = toOperation(row);
  let from: OperationStatus = operation.status;
  if (from === "DISPATCHED") {
    if (!row.lease_over) return null;
    operation = await senderGone(tx, ctx, operation);
    if (operation === null) return null;
    from = operation.status;
  }
  switch (from) {
    case "OUTCOME_UNKNOWN":
      // Whoever just found the sender gone looks at once.
      if (!row.is_due && request.because === "due" && row.status === "OUTCOME_UNKNOWN") return null;
      return lease(tx, ctx, operation, request.worker);
    case "QUARANTINED":
      return row.is_due ? lease(tx, ctx, operation, request.worker) : null;
    case "RECONCILING":
      return row.lease_over ? succeed(tx, ctx, operation, request.worker) : null;
    default:
      return null;
  }
}

/** The worker that claimed it did not come back: what it sent, if anything, is unknown. */
async function senderGone(tx: Tx, ctx: LedgerCtx, operation: Operation): Promise<Operation | null> {
  const moved = await move(tx, {
    id: operation.id,
    from: "DISPATCHED",
    version: operation.version,
    token: operation.leaseToken,
    event: "settle_unknown",
    actor: "system:reconcile",
    data: { code: "lease_expired", detail: "the worker that claimed it did not report back" },
    attemptNumber: operation.attempts,
    patch: { fence: true, dueMs: 0, sendEnded: "with_lease" },
  });
  if (moved !== null) await tell(tx, ctx, operation, moved);
  return moved;
}

async function lease(tx: Tx, ctx: LedgerCtx, operation: Operation, worker: string): Promise<Taken | null> {
  const moved = await move(tx, {
    id: operation.id,
    from: operation.status,
    version: operation.version,
    token: null,
    event: "reconcile",
    actor: `system:${worker}`,
    data: { worker },
    patch: { lease: { ms: ctx.timing.leaseMs, holder: worker }, dueMs: ctx.timing.leaseMs },
  });
  if (moved === null) return null;
  if (operation.status === "QUARANTINED")
    await ctx.notices.touch(tx, { kind: "quarantine", id: operation.id });
  return takenOf(tx, moved);
}

async function succeed(tx: Tx, ctx: LedgerCtx, operation: Operation, worker: string): Promise<Taken | null> {
  const noted = await note(tx, {
    id: operation.id,
    status: "RECONCILING",
    version: operation.version,
    note: "lease_taken_over",
    actor: `system:${worker}`,
    data: { worker },
    lease: { ms: ctx.timing.leaseMs, holder: worker },
  });
  return noted === null ? null : takenOf(tx, noted);
}

async function takenOf(tx: Tx, operation: Operation): Promise<Taken> {
  const [times] = await tx.sql<{ now: Date; last_send_ended_at: Date | null; lease_until: Date }>(
    "ledger.taken_times",
    "SELECT countersign_now() AS now, last_send_ended_at, lease_until FROM operations WHERE id = $1",
    [operation.id],
  );
  if (times === undefined)
    throw new CountersignError("operation_not_found", `there is no operation ${operation.id}`);
  return {
    operation,
    leaseToken: operation.leaseToken,
    attempts: await attemptsOf(tx, operation.id),
    now: times.now,
    lastSendEndedAt: times.last_send_ended_at,
    leaseUntil: times.lease_until,
  };
}

/** Writes what was decided; see `index.ts`. */
export async function settleReconcile(ctx: LedgerCtx, request: SettleReconcile): Promise<Reconciled> {
  const result = await ctx.db.tx<Reconciled>(async (tx) => {
    const operation = await getOperation(tx, request.operationId);
    if (operation === null) return { settled: false, why: "not_found", operation: null };
    if (operation.status !== "RECONCILING" || operation.leaseToken !== request.leaseToken) {
      return { settled: false, why: "fenced", operation };
    }
    const moved = await write(tx, ctx, operation, request);
    if (moved === null) return { settled: false, why: "fenced", operation };
    const effect = effectIn(request.evidence);
    if (effect !== null) await recordEvidence(tx, ctx, effectEvidence(operation.id, "probe", effect));
    if (request.evidence.says === "duplicate")
      await duplicateIncident(tx, ctx, operation, request.evidence.effects);
    await tell(tx, ctx, operation, moved);
    return { settled: true, operation: moved };
  });
  if (result.settled && result.operation.status === "PREPARED")
    await ctx.wake("operation", result.operation.id);
  return result;
}

async function write(
  tx: Tx,
  ctx: LedgerCtx,
  operation: Operation,
  request: SettleReconcile,
): Promise<Operation | null> {
  const { move: decided } = request;
  const base = {
    id: operation.id,
    from: "RECONCILING" as const,
    version: operation.version,
    token: request.leaseToken,
    actor: "system:reconcile",
    data: { evidence: evidenceData(request.evidence), move: toJsonObject(decided) },
  };
  const seen: Patch = { fence: true, probed: true };
  switch (decided.do) {
    case "confirm":
      return move(tx, {
        ...base,
        event: "settle_confirmed",
        patch: {
          ...seen,
          providerRef: decided.effect.ref,
          providerStatus: decided.effect.status,
          result: { code: "confirmed", detail: decided.effect.status, providerRef: decided.effect.ref },
        },
      });
    case "reject":
      return move(tx, {
        ...base,
        event: "settle_rejected",
        patch: { ...seen, result: { code: decided.code, detail: decided.detail } },
      });
    case "prepare_again":
      return move(tx, {
        ...base,
        event: "not_executed",
        patch: { ...seen, dueMs: ctx.timing.prepareGraceMs },
      });
    case "later":
      return move(tx, {
        ...base,
        event: "settle_unknown",
        patch: { ...seen, dueMs: backoffMs(ctx, (await probesOf(tx, operation.id)) + 1) },
      });
    case "quarantine":
      return move(tx, {
        ...base,
        event: "quarantine",
        patch: { ...seen, quarantineReason: `${decided.reason}: ${decided.detail}` },
      });
  }
}

async function probesOf(tx: Tx, id: OperationId): Promise<number> {
  const [row] = await tx.sql<{ probes: number }>(
    "ledger.probes",
    "SELECT probes FROM operations WHERE id = $1",
    [id],
  );
  return row?.probes ?? 0;
}

/** RECONCILING → DISPATCHED: attempt n + 1 under the same key. */
export async function resend(ctx: LedgerCtx, request: LeaseRef & { worker: string }): Promise<ClaimResult> {
  const operation = await getOperation(ctx.db, request.operationId);
  if (operation === null) return { claimed: false, why: "not_found" };
  if (operation.status !== "RECONCILING" || operation.leaseToken !== request.leaseToken) {
    return { claimed: false, why: "moved", operation };
  }
  const taken = await takeClaim(ctx.db, ctx, {
    operation,
    worker: request.worker,
    request: null,
    from: "RECONCILING",
    token: request.leaseToken,
    data: { why: "the outcome is open and the key is safe to repeat" },
  });
  return taken ?? whyLost(ctx.db, ctx, operation.id, "RECONCILING", operation.version);
}

/** The effect that evidence is about, where it is about one. */
export function effectIn(evidence: Evidence): ProviderEffect | null {
  switch (evidence.says) {
    case "committed":
    case "pending":
    case "failed_at_provider":
      return evidence.effect;
    case "duplicate":
    case "unattributed":
    case "absent":
    case "unknown":
      return null;
  }
}

const evidenceData = (evidence: Evidence): JsonObject => toJsonObject(evidence);

async function duplicateIncident(
  tx: Tx,
  ctx: LedgerCtx,
  operation: Operation,
  effects: readonly ProviderEffect[],
): Promise<void> {
  await openIncident(tx, ctx, {
    kind: "duplicate_effect",
    dedupeKey: `duplicate:${operation.id}:${effects.map((effect) => effect.ref).join(":")}`,
    operationId: operation.id,
    paymentId: null,
    detail: { effects: effects.map((effect) => toJsonObject(effect)) },
  });
}
