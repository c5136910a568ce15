/**
 * The answer of a worker whose lease is lost. It overwrites nothing: it is its own attempt's verdict (if that was open) and
 * evidence. An open operation is looked at again; a settled one keeps its state, unless the answer proves it wrong.
 */
import type { Tx } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { AttemptOutcome, ProviderEffect } from "../domain/evidence.js";
import { isConfirmedOnWord } from "../domain/named-evidence.js";
import type { Operation } from "../domain/operation.js";
import { besideWordText, noteBesideWord } from "./beside-word.js";
import type { LedgerCtx } from "./context.js";
import { quarantineEnd, staysRejected, wasClosedKnowing } from "./contradiction.js";
import { recountElsewhere } from "./elsewhere.js";
import { lockOperation } from "./endings.js";
import { recordEvidence } from "./evidence.js";
import { openIncident } from "./incidents.js";
import { reportDifference } from "./made-otherwise.js";
import { note } from "./note.js";
import { wordOf } from "./on-word.js";
import { attemptPatch, effectOf, outcomeJson } from "./outcome.js";
import type { SettleRequest } from "./types.js";

/** $1 operation, $2 number, $3 token, $4 verdict, $5 code, $6 status, $7 reference, $8 request id, $9 evidence. Only an open verdict of that very attempt. */
const FILL_VERDICT = `
UPDATE attempts
SET verdict = $4, finished_at = countersign_now(), code = $5, http_status = $6, provider_ref = $7, request_id = $8,
    evidence = $9::jsonb
WHERE operation_id = $1 AND number = $2 AND lease_token = $3::bigint AND verdict = 'open'
RETURNING number`;

/** The row's lock is taken here if it is not held. Telling it twice is telling it once. */
export async function absorbLateAnswer(tx: Tx, ctx: LedgerCtx, request: SettleRequest): Promise<Operation> {
  const operation = await lockOperation(tx, request.operationId);
  if (operation === null) {
    throw new CountersignError("no_operation", `there is no operation ${request.operationId}`);
  }
  const patch = attemptPatch(request.attempt, request.outcome);
  const filled = await tx.sql("ledger.fill_verdict", FILL_VERDICT, [
    operation.id,
    request.attempt,
    request.leaseToken,
    patch.verdict,
    patch.code,
    patch.httpStatus,
    patch.providerRef,
    patch.requestId,
    JSON.stringify(patch.evidence),
  ]);
  if (filled.length === 0) return operation;
  return absorb(tx, ctx, operation, request);
}

async function absorb(
  tx: Tx,
  ctx: LedgerCtx,
  operation: Operation,
  request: SettleRequest,
): Promise<Operation> {
  const open = operation.status === "OUTCOME_UNKNOWN" || operation.status === "QUARANTINED";
  const noted = await note(tx, {
    id: operation.id,
    status: operation.status,
    version: operation.version,
    note: "late_answer",
    actor: "system:dispatch",
    data: { evidence: outcomeJson(request.outcome) },
    attemptNumber: request.attempt,
    dueNow: open,
  });
  if (noted === null)
    throw new CountersignError("lost_lock", `operation ${operation.id} moved under its lock`);
  const evidence = {
    operationId: operation.id,
    source: "late_response",
    providerRef: effectOf(request.outcome)?.ref ?? null,
    dedupeKey: `late:${operation.id}:${request.attempt}:${request.outcome.verdict}`,
    payload: outcomeJson(request.outcome),
  } as const;
  await recordEvidence(tx, ctx, evidence);
  if (open) tx.afterCommit(() => void ctx.wake("operation", operation.id));
  const effect = effectOf(request.outcome);
  if (effect === null || !mayHaveTakenEffect(request.outcome)) return noted;
  const after = await contradicts(tx, ctx, noted, effect);
  await recountElsewhere(tx, ctx, after, [effect]);
  return after;
}

/** An effect where the ledger knows of none, or of another one. */
async function contradicts(
  tx: Tx,
  ctx: LedgerCtx,
  operation: Operation,
  effect: ProviderEffect,
): Promise<Operation> {
  const incident = (kind: "duplicate_effect" | "late_effect"): Promise<unknown> =>
    openIncident(tx, ctx, {
      kind,
      dedupeKey: `${kind}:${operation.id}:${effect.ref}`,
      operationId: operation.id,
      paymentId: null,
      detail: { ref: effect.ref, known: operation.providerRef, status: operation.status },
    });
  switch (operation.status) {
    case "CONFIRMED":
    case "REVERSED": {
      if (effect.ref === operation.providerRef) return operation;
      if (!isConfirmedOnWord(operation)) {
        await incident("duplicate_effect");
        return operation;
      }
      const parked = await quarantineEnd(tx, ctx, operation, {
        actor: "system:dispatch",
        data: { ref: effect.ref },
        detail: besideWordText(effect),
        word: await wordOf(tx, operation.id),
        effect,
      });
      await noteBesideWord(tx, ctx, parked, effect, "late_response");
      return parked;
    }
    case "REJECTED": {
      if (wasClosedKnowing(operation, effect.ref)) return operation;
      if (staysRejected(operation, effect)) {
        await reportDifference(tx, ctx, operation, effect);
        return operation;
      }
      const detail = `An attempt that was taken for not executed made ${effect.ref}.`;
      return quarantineEnd(tx, ctx, operation, {
        actor: "system:dispatch",
        data: { ref: effect.ref },
        detail,
        effect,
      });
    }
    case "PREPARED":
    case "DENIED":
    case "EXPIRED":
    case "VOIDED":
    case "AWAITING_APPROVAL":
      await incident("late_effect");
      return operation;
    case "DISPATCHED":
    case "OUTCOME_UNKNOWN":
    case "RECONCILING":
    case "QUARANTINED":
      return operation;
    default:
      return operation.status satisfies never;
  }
}

const mayHaveTakenEffect = ({ verdict }: AttemptOutcome): boolean =>
  verdict === "committed" || verdict === "pending" || verdict === "postcondition_failed";
