/**
 * Recording what an attempt brought. The only place that a sender's answer reaches the ledger.
 *
 * 1. Conditional on status, version and the attempt's token. A sender whose lease is lost overwrites nothing: its answer becomes
 *    the attempt's verdict and evidence, and the reconciler is woken.
 * 2. The operation's new state is `settlementOf`, pure, from this outcome and the other attempts' verdicts.
 */
import type { Tx } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { AttemptOutcome, ProviderEffect } from "../domain/evidence.js";
import type { JsonObject } from "../domain/json.js";
import { ENDED, type Operation } from "../domain/operation.js";
import { type Settlement, settlementOf } from "../domain/settlement.js";
import { backoffMs } from "./backoff.js";
import type { LedgerCtx } from "./context.js";
import { recordEvidence } from "./evidence.js";
import { toJsonObject } from "./json.js";
import { note } from "./note.js";
import { attemptsOf, getOperation } from "./reads.js";
import { tell } from "./told.js";
import { type AttemptPatch, move, type Patch } from "./transition.js";
import type { SettleRequest, SettleResult } from "./types.js";

/** Records an attempt's outcome; see `index.ts`. @throws CountersignError `operation_not_found` */
export async function settle(ctx: LedgerCtx, request: SettleRequest): Promise<SettleResult> {
  const result = await ctx.db.tx((tx) => settleIn(tx, ctx, request));
  const { operation } = result;
  if (result.settled && operation.status === "OUTCOME_UNKNOWN") await ctx.wake("operation", operation.id);
  if (!result.settled) await ctx.wake("operation", operation.id);
  return result;
}

async function settleIn(tx: Tx, ctx: LedgerCtx, request: SettleRequest): Promise<SettleResult> {
  const operation = await getOperation(tx, request.operationId);
  if (operation === null) {
    throw new CountersignError("operation_not_found", `there is no operation ${request.operationId}`);
  }
  const holds = operation.status === "DISPATCHED" && operation.leaseToken === request.leaseToken;
  const settled = holds ? await apply(tx, ctx, operation, request) : null;
  if (settled !== null) return { settled: true, operation: settled };
  return { settled: false, why: "fenced", operation: await keepLate(tx, ctx, request) };
}

async function apply(
  tx: Tx,
  ctx: LedgerCtx,
  operation: Operation,
  request: SettleRequest,
): Promise<Operation | null> {
  const attempts = await attemptsOf(tx, operation.id);
  const others = attempts.filter((attempt) => attempt.number !== request.attempt);
  const settlement = settlementOf(request.outcome, others);
  const moved = await move(tx, {
    id: operation.id,
    from: "DISPATCHED",
    version: operation.version,
    token: request.leaseToken,
    event: settlement.event,
    actor: "system:dispatch",
    data: outcomeData(request.outcome),
    attemptNumber: request.attempt,
    patch: {
      ...patchOf(ctx, settlement, attempts.length),
      sendEnded: "now",
      attempt: verdictPatch(request.attempt, request.outcome),
    },
  });
  if (moved === null) return null;
  const effect = effectOf(request.outcome);
  if (effect !== null) await recordEvidence(tx, ctx, effectEvidence(operation.id, "response", effect));
  await tell(tx, ctx, operation, moved);
  return moved;
}

/** Everything that a transition to this settlement writes besides the status. */
function patchOf(ctx: LedgerCtx, settlement: Settlement, attempts: number): Patch {
  switch (settlement.event) {
    case "settle_confirmed":
      return {
        fence: true,
        providerRef: settlement.effect.ref,
        providerStatus: settlement.effect.status,
        result: { code: "confirmed", detail: settlement.effect.status, providerRef: settlement.effect.ref },
      };
    case "settle_rejected":
      return { fence: true, result: { code: settlement.code, detail: settlement.detail } };
    case "not_executed": {
      const wait = Math.max(settlement.retryAfterMs ?? 0, backoffMs(ctx, attempts));
      return { fence: true, dueMs: wait, notBeforeMs: wait };
    }
    case "settle_unknown":
      return { fence: true, dueMs: settlement.look === "now" ? 0 : backoffMs(ctx, 1) };
  }
}

/** A late answer: the attempt's verdict if it has none, evidence, an event; and somebody looks. */
async function keepLate(tx: Tx, ctx: LedgerCtx, request: SettleRequest): Promise<Operation> {
  const operation = await getOperation(tx, request.operationId);
  if (operation === null) {
    throw new CountersignError("operation_not_found", `there is no operation ${request.operationId}`);
  }
  const verdict = verdictPatch(request.attempt, request.outcome);
  const written = await tx.sql(
    "ledger.late_verdict",
    `UPDATE attempts SET verdict = $4, finished_at = countersign_now(), code = $5, http_status = $6, provider_ref = $7,
            request_id = $8, evidence = $9::jsonb
      WHERE operation_id = $1 AND number = $2 AND lease_token = $3 AND verdict = 'open' RETURNING number`,
    [
      request.operationId,
      request.attempt,
      request.leaseToken,
      verdict.verdict,
      verdict.code,
      verdict.httpStatus,
      verdict.providerRef,
      verdict.requestId,
      JSON.stringify(verdict.evidence),
    ],
  );
  if (written.length === 0) return operation;
  const effect = effectOf(request.outcome);
  if (effect !== null) await recordEvidence(tx, ctx, effectEvidence(operation.id, "late_response", effect));
  const noted = await note(tx, {
    id: operation.id,
    status: operation.status,
    version: operation.version,
    note: "late_answer",
    actor: "system:dispatch",
    data: outcomeData(request.outcome),
    attemptNumber: request.attempt,
    dueNow: operation.status === "OUTCOME_UNKNOWN" && !ENDED.has(operation.status),
  });
  return noted ?? operation;
}

/** The part of an outcome that is about one effect at the provider. */
export function effectOf(outcome: AttemptOutcome): ProviderEffect | null {
  switch (outcome.verdict) {
    case "committed":
    case "postcondition_failed":
    case "pending":
    case "failed_at_provider":
      return outcome.effect;
    case "not_executed":
    case "rejected":
    case "unknown":
      return null;
  }
}

export function effectEvidence(
  operationId: Operation["id"],
  source: "response" | "late_response" | "probe",
  effect: ProviderEffect,
): Parameters<typeof recordEvidence>[2] {
  return {
    operationId,
    source,
    providerRef: effect.ref,
    dedupeKey: `effect:${effect.ref}:${effect.status}:${effect.amountMinor}`,
    payload: toJsonObject(effect),
  };
}

const outcomeData = (outcome: AttemptOutcome): JsonObject => toJsonObject(outcome);

function verdictPatch(number: number, outcome: AttemptOutcome): AttemptPatch {
  const effect = effectOf(outcome);
  return {
    number,
    verdict: outcome.verdict,
    code: "code" in outcome ? outcome.code : null,
    httpStatus: "httpStatus" in outcome ? outcome.httpStatus : null,
    providerRef: effect?.ref ?? null,
    requestId: "requestId" in outcome ? outcome.requestId : null,
    evidence: outcomeData(outcome),
  };
}
