/**
 * A person's evidenced decision on an operation that no machine can settle.
 *
 * 1. It pre-empts a reconciler: the operation gets a new token, and what the reconciler writes afterwards is fenced.
 * 2. Reject and retry only when no attempt can still commit; where the contract knows no bound, only from QUARANTINED and by two
 *    people. Confirm needs the provider's reference.
 * 3. Nobody resolves what they filed. The provider's own evidence always wins over a person's word.
 * 4. A retry is authorised here and sent by a worker, under the same key, while that key is safe.
 */
import type { Db, Tx } from "../db/connect.js";
import type { Evidence } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import type { Operation } from "../domain/operation.js";
import { inflightBoundPassed, keyIsSafe, provenNotExecuted } from "../domain/recovery.js";
import { takeClaim, whyLost } from "./claim.js";
import type { LedgerCtx } from "./context.js";
import { toJsonObject } from "./json.js";
import { note } from "./note.js";
import { attemptsOf, getOperation } from "./reads.js";
import { type OperationRow, operationColumns, toOperation } from "./rows.js";
import { tell } from "./told.js";
import { move } from "./transition.js";
import type {
  ClaimResult,
  NotSafe,
  Resolution,
  ResolveRequest,
  ResolveResult,
  SecondRequest,
  SecondResult,
} from "./types.js";

const COLUMNS = `id, operation_id AS "operationId", verb, state, operation_version AS "operationVersion", by, reason,
  evidence_ref AS "evidenceRef", probe, second_by AS "secondBy", second_verdict AS "secondVerdict",
  second_note AS "secondNote", created_at AS "createdAt", updated_at AS "updatedAt"`;

/** What a person decided, with everything that the write needs. */
interface Decision {
  readonly verb: ResolveRequest["verb"];
  readonly by: string;
  readonly secondBy: string | null;
  readonly reason: string;
  readonly evidenceRef: string;
  readonly probe: Evidence;
  readonly providerRef: string | undefined;
}

export async function resolve(ctx: LedgerCtx, request: ResolveRequest): Promise<ResolveResult> {
  return ctx.db.tx<ResolveResult>(async (tx) => {
    const operation = await lock(tx, request.operationId);
    const open = await openResolutionOf(tx, request.operationId);
    if (operation === null || open !== null || operation.version !== request.expectedVersion) {
      return { outcome: "overtaken", by: open?.by ?? null, operation };
    }
    const judged = await judge(tx, ctx, operation, request);
    if (judged.refused !== null) return { outcome: "not_safe", code: judged.refused, operation };
    if (judged.people === 2 || request.needsSecond) {
      const resolution = await insert(tx, ctx, operation, request, "proposed");
      await ctx.notices.touch(tx, { kind: "resolution", id: resolution.id });
      await ctx.notices.touch(tx, { kind: "quarantine", id: operation.id });
      return { outcome: "needs_second", resolution };
    }
    const resolution = await insert(tx, ctx, operation, request, "applied");
    return apply(tx, ctx, operation, resolution, {
      ...request,
      secondBy: null,
      providerRef: request.providerRef,
    });
  });
}

export async function secondResolve(ctx: LedgerCtx, request: SecondRequest): Promise<SecondResult> {
  return ctx.db.tx<SecondResult>(async (tx) => {
    const resolution = await getResolution(tx, request.resolutionId);
    const operation = resolution === null ? null : await lock(tx, resolution.operationId);
    const now = await getResolution(tx, request.resolutionId);
    if (now?.state !== "proposed" || operation === null) {
      return { outcome: "overtaken", by: now?.secondBy ?? now?.by ?? null, operation };
    }
    if (now.by === request.by) return { outcome: "not_safe", code: "same_person", operation };
    if (operation.filers.includes(request.by))
      return { outcome: "not_safe", code: "filed_it_themselves", operation };
    if (request.verdict === "disagree") {
      const ended = await update(tx, now.id, "disagreed", request);
      await touch(tx, ctx, ended);
      return { outcome: "disagreed", resolution: ended };
    }
    const judged = await judge(tx, ctx, operation, {
      ...now,
      verb: now.verb,
      by: now.by,
      probe: request.probe,
    });
    if (judged.refused !== null) {
      const ended = await update(tx, now.id, "superseded", request);
      await touch(tx, ctx, ended);
      return { outcome: "not_safe", code: judged.refused, operation };
    }
    const agreed = await update(tx, now.id, "applied", request);
    return apply(tx, ctx, operation, agreed, {
      verb: now.verb,
      by: now.by,
      secondBy: request.by,
      reason: now.reason,
      evidenceRef: now.evidenceRef,
      probe: request.probe,
      providerRef: undefined,
    });
  });
}

async function touch(tx: Tx, ctx: LedgerCtx, resolution: Resolution): Promise<void> {
  await ctx.notices.touch(tx, { kind: "resolution", id: resolution.id });
  await ctx.notices.touch(tx, { kind: "quarantine", id: resolution.operationId });
}

/** Whether this verb is safe now, and for how many people. */
async function judge(
  tx: Tx,
  ctx: LedgerCtx,
  operation: Operation,
  request: { verb: ResolveRequest["verb"]; by: string; probe: Evidence },
): Promise<{ refused: NotSafe | null; people: 1 | 2 }> {
  const refused = (code: NotSafe): { refused: NotSafe; people: 1 } => ({ refused: code, people: 1 });
  if (operation.filers.includes(request.by)) return refused("filed_it_themselves");
  const open = ["OUTCOME_UNKNOWN", "RECONCILING", "QUARANTINED"].includes(operation.status);
  if (!open) return refused("wrong_state");
  const { probe } = request;
  if (request.verb === "confirm") {
    return probe.says === "failed_at_provider"
      ? refused("evidence_contradicts")
      : { refused: null, people: 1 };
  }
  if (probe.says === "committed" || probe.says === "pending" || probe.says === "duplicate") {
    return refused("evidence_contradicts");
  }
  return request.verb === "reject" ? judgeReject(tx, ctx, operation) : judgeRetry(tx, ctx, operation, probe);
}

async function judgeReject(
  tx: Tx,
  ctx: LedgerCtx,
  operation: Operation,
): Promise<{ refused: NotSafe | null; people: 1 | 2 }> {
  const attempts = await attemptsOf(tx, operation.id);
  if (attempts.every((attempt) => provenNotExecuted(attempt.verdict))) return { refused: null, people: 1 };
  const contract = ctx.contracts[operation.kind];
  const times = await timesOf(tx, operation.id);
  if (contract.inflightBoundMs !== null) {
    return inflightBoundPassed(contract, times)
      ? { refused: null, people: 1 }
      : { refused: "may_still_commit", people: 1 };
  }
  return operation.status === "QUARANTINED"
    ? { refused: null, people: 2 }
    : { refused: "may_still_commit", people: 1 };
}

async function judgeRetry(
  tx: Tx,
  ctx: LedgerCtx,
  operation: Operation,
  probe: Evidence,
): Promise<{ refused: NotSafe | null; people: 1 | 2 }> {
  if (operation.status !== "QUARANTINED") return { refused: "wrong_state", people: 1 };
  const contract = ctx.contracts[operation.kind];
  const times = await timesOf(tx, operation.id);
  if (probe.says === "unattributed") return { refused: "evidence_contradicts", people: 1 };
  const safe = keyIsSafe(contract, {
    now: times.now,
    firstClaimedAt: operation.firstClaimedAt,
    timeoutMs: ctx.timing.providerTimeoutMs,
    marginMs: ctx.timing.sendMarginMs,
  });
  if (safe) return { refused: null, people: 1 };
  if (contract.keyed) return { refused: "key_expired", people: 1 };
  return inflightBoundPassed(contract, times)
    ? { refused: null, people: 1 }
    : { refused: "may_still_commit", people: 1 };
}

async function timesOf(tx: Tx, id: OperationId): Promise<{ now: Date; lastSendEndedAt: Date | null }> {
  const [row] = await tx.sql<{ now: Date; lastSendEndedAt: Date | null }>(
    "ledger.resolve_times",
    `SELECT countersign_now() AS now, last_send_ended_at AS "lastSendEndedAt" FROM operations WHERE id = $1`,
    [id],
  );
  return row ?? { now: new Date(0), lastSendEndedAt: null };
}

async function apply(
  tx: Tx,
  ctx: LedgerCtx,
  before: Operation,
  resolution: Resolution,
  decision: Decision,
): Promise<ResolveResult> {
  const operation = await intoHands(tx, before, decision);
  const written = await carryOut(tx, operation, decision);
  if (written === null)
    return { outcome: "overtaken", by: null, operation: await getOperation(tx, before.id) };
  await tx.sql("ledger.resolution_version", "UPDATE resolutions SET operation_version = $2 WHERE id = $1", [
    resolution.id,
    written.version,
  ]);
  await ctx.notices.ops(tx, {
    key: `resolved:${resolution.id}`,
    message: {
      type: "resolved",
      operationId: written.id,
      verb: decision.verb,
      by: decision.by,
      reason: decision.reason,
      evidence: decision.evidenceRef,
    },
  });
  await tell(tx, ctx, before, written);
  await touch(tx, ctx, resolution);
  if (decision.verb === "retry") tx.afterCommit(() => void ctx.wake("operation", written.id));
  return {
    outcome: "applied",
    resolution: { ...resolution, operationVersion: written.version },
    operation: written,
  };
}

/** Takes an unknown outcome out of the reconciler's hands: confirm and reject are written from RECONCILING or QUARANTINED. */
async function intoHands(tx: Tx, operation: Operation, decision: Decision): Promise<Operation> {
  if (operation.status !== "OUTCOME_UNKNOWN") return operation;
  const moved = await move(tx, {
    id: operation.id,
    from: "OUTCOME_UNKNOWN",
    version: operation.version,
    token: null,
    event: "reconcile",
    actor: `slack:${decision.by}`,
    data: { why: "a person resolves it" },
    patch: { fence: true },
  });
  return moved ?? operation;
}

function carryOut(tx: Tx, operation: Operation, decision: Decision): Promise<Operation | null> {
  const data = {
    verb: decision.verb,
    reason: decision.reason,
    evidenceRef: decision.evidenceRef,
    secondBy: decision.secondBy === null ? null : `slack:${decision.secondBy}`,
    probe: toJsonObject(decision.probe),
  };
  const actor = `slack:${decision.by}`;
  const base = { id: operation.id, version: operation.version, token: null, actor, data } as const;
  switch (decision.verb) {
    case "confirm": {
      const effect = decision.probe.says === "committed" ? decision.probe.effect : null;
      const ref = effect?.ref ?? decision.providerRef ?? decision.evidenceRef;
      return move(tx, {
        ...base,
        from: operation.status,
        event: "settle_confirmed",
        patch: {
          fence: true,
          providerRef: ref,
          ...(effect === null ? {} : { providerStatus: effect.status }),
          resolvedByPerson: true,
          result: { code: "confirmed_by_person", detail: decision.reason, providerRef: ref },
        },
      });
    }
    case "reject":
      return move(tx, {
        ...base,
        from: operation.status,
        event: "settle_rejected",
        patch: {
          fence: true,
          resolvedByPerson: true,
          result: { code: "rejected_by_person", detail: decision.reason },
        },
      });
    case "retry":
      return note(tx, {
        id: operation.id,
        status: operation.status,
        version: operation.version,
        note: "authorise",
        actor,
        data,
        dueNow: true,
      });
  }
}

/** QUARANTINED → DISPATCHED, once, under a person's authorisation. */
export async function sendAuthorised(
  ctx: LedgerCtx,
  request: { operationId: OperationId; worker: string },
): Promise<ClaimResult> {
  return ctx.db.tx<ClaimResult>(async (tx) => {
    const operation = await lock(tx, request.operationId);
    if (operation === null) return { claimed: false, why: "not_found" };
    const [authorised] = await tx.sql<{ id: string }>(
      "ledger.authorised",
      `SELECT id FROM resolutions WHERE operation_id = $1 AND verb = 'retry' AND state = 'applied' AND operation_version = $2`,
      [operation.id, operation.version],
    );
    if (operation.status !== "QUARANTINED" || authorised === undefined) {
      return { claimed: false, why: "moved", operation };
    }
    const taken = await takeClaim(tx, ctx, {
      operation,
      worker: request.worker,
      request: null,
      from: "QUARANTINED",
      token: null,
      data: { why: "authorised by a person", resolution: authorised.id },
    });
    if (taken === null) return whyLost(tx, ctx, operation.id, "QUARANTINED", operation.version);
    await ctx.notices.touch(tx, { kind: "quarantine", id: operation.id });
    return taken;
  });
}

async function lock(tx: Tx, id: OperationId): Promise<Operation | null> {
  const [row] = await tx.sql<OperationRow>(
    "ledger.lock_one",
    `SELECT ${operationColumns("o")} FROM operations o WHERE o.id = $1 FOR NO KEY UPDATE`,
    [id],
  );
  return row === undefined ? null : toOperation(row);
}

async function insert(
  tx: Tx,
  ctx: LedgerCtx,
  operation: Operation,
  request: ResolveRequest,
  state: "proposed" | "applied",
): Promise<Resolution> {
  const probe: JsonObject = toJsonObject(request.probe);
  const [row] = await tx.sql<Resolution>(
    "ledger.resolution_add",
    `INSERT INTO resolutions (id, operation_id, verb, state, operation_version, by, reason, evidence_ref, probe)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING ${COLUMNS}`,
    [
      ctx.ids.next("res_"),
      operation.id,
      request.verb,
      state,
      operation.version,
      request.by,
      request.reason,
      request.evidenceRef,
      JSON.stringify(probe),
    ],
  );
  if (row === undefined) throw new Error("the resolution was not stored");
  return row;
}

async function update(
  tx: Tx,
  id: string,
  state: Resolution["state"],
  second: { by: string; verdict: "agree" | "disagree"; note: string | null },
): Promise<Resolution> {
  const [row] = await tx.sql<Resolution>(
    "ledger.resolution_second",
    `UPDATE resolutions SET state = $2, second_by = $3, second_verdict = $4, second_note = $5, updated_at = countersign_now()
      WHERE id = $1 AND state = 'proposed' RETURNING ${COLUMNS}`,
    [id, state, second.by, second.verdict, second.note],
  );
  if (row === undefined) throw new Error("the resolution moved under its operation's lock");
  return row;
}

export async function getResolution(db: Db | Tx, id: string): Promise<Resolution | null> {
  const [row] = await db.sql<Resolution>(
    "ledger.resolution",
    `SELECT ${COLUMNS} FROM resolutions WHERE id = $1`,
    [id],
  );
  return row ?? null;
}

export async function openResolutionOf(db: Db | Tx, operationId: OperationId): Promise<Resolution | null> {
  const [row] = await db.sql<Resolution>(
    "ledger.resolution_open",
    `SELECT ${COLUMNS} FROM resolutions WHERE operation_id = $1 AND state = 'proposed'`,
    [operationId],
  );
  return row ?? null;
}
