/**
 * Turns and calls: one model call and its consequences.
 *
 * 1. A turn is committed, content verbatim and every call with it, before anything of it runs.
 * 2. A turn moves recorded → held or released → resolved (or final, without calls); a call never leaves `done`.
 * 3. Every write carries the lease.
 */
import type { Tx } from "../db/connect.js";
import type { CallId, OperationId, RunId, TurnId } from "../domain/ids.js";
import type { Json, JsonObject } from "../domain/json.js";
import type { Ids } from "../domain/ports/clock.js";
import type { CallState, TurnState } from "../domain/run.js";
import { settleReservation } from "./budget.js";
import { fence, LeaseLost } from "./lease.js";
import type { CallDecision, ContentBlock, RunLease } from "./types.js";

export interface NewTurn {
  seq: number;
  state: Extract<TurnState, "recorded" | "final">;
  content: readonly ContentBlock[];
  stopReason: string | null;
  stopDetails: Json;
  model: string;
  usage: JsonObject;
  inputTokens: number;
  outputTokens: number;
  costMicroUsd: bigint;
  requestHash: string;
  calls: readonly NewCall[];
}

export interface NewCall {
  toolUseId: string;
  name: string;
  input: Json;
  /** A person asked for this call; what they asked. */
  askedBy?: JsonObject;
  /** Answered by code at once and never to run. */
  refusal?: { decision: CallDecision; result: string };
}

/** Stores a reply and books what it cost. Throws `LeaseLost`. */
export async function recordTurn(
  tx: Tx,
  { ids }: { ids: Ids },
  lease: RunLease,
  turn: NewTurn,
): Promise<TurnId> {
  await settleReservation(tx, lease, {
    costMicroUsd: turn.costMicroUsd,
    inputTokens: turn.inputTokens,
    outputTokens: turn.outputTokens,
  });
  return insertTurn(tx, { ids }, lease.runId, turn);
}

/** Writes a turn and its calls. Its caller has proven that it may. */
export async function insertTurn(
  tx: Tx,
  { ids }: { ids: Ids },
  runId: RunId,
  turn: NewTurn,
): Promise<TurnId> {
  const turnId = ids.next("turn_");
  await tx.sql(
    "runs.turn_insert",
    `INSERT INTO turns (id, run_id, seq, state, content, stop_reason, stop_details, model, usage, cost_micro_usd, request_hash)
     VALUES ($1, $2, $3, $4, $5::jsonb, $6, $7::jsonb, $8, $9::jsonb, $10, $11)`,
    [
      turnId,
      runId,
      turn.seq,
      turn.state,
      JSON.stringify(turn.content),
      turn.stopReason,
      JSON.stringify(turn.stopDetails),
      turn.model,
      JSON.stringify(turn.usage),
      turn.costMicroUsd,
      turn.requestHash,
    ],
  );
  for (const [position, call] of turn.calls.entries()) {
    await tx.sql(
      "runs.call_insert",
      `INSERT INTO tool_calls (id, run_id, turn_id, position, tool_use_id, name, input, state, decision, result, is_error,
         decision_detail, finished_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb, $8, $9, $10, $11, $12::jsonb, CASE WHEN $8 = 'done' THEN countersign_now() END)`,
      [
        ids.next("call_"),
        runId,
        turnId,
        position,
        call.toolUseId,
        call.name,
        JSON.stringify(call.input),
        call.refusal === undefined ? "proposed" : "done",
        call.refusal?.decision ?? null,
        call.refusal?.result ?? null,
        call.refusal === undefined ? null : true,
        call.askedBy === undefined ? null : JSON.stringify(call.askedBy),
      ],
    );
  }
  return turnId;
}

export interface CallUpdate {
  callId: CallId;
  state: Exclude<CallState, "proposed" | "done">;
  decision: CallDecision;
  decisionDetail: JsonObject | null;
  operationId: OperationId | null;
  /** Only if the call is still about this operation (null: about none). */
  stillAbout?: OperationId | null;
}

/**
 * What code answered to a proposed or held call before it runs. Part of a transaction that is fenced. False: the call is done,
 * or about another operation by now.
 */
export async function decideCall(tx: Tx, call: CallUpdate): Promise<boolean> {
  const rows = await tx.sql(
    "runs.call_decide",
    `UPDATE tool_calls SET state = $2, decision = $3, decision_detail = coalesce($4::jsonb, decision_detail),
       operation_id = coalesce($5, operation_id)
     WHERE id = $1 AND state <> 'done' AND ($6 OR operation_id IS NOT DISTINCT FROM $7) RETURNING id`,
    [
      call.callId,
      call.state,
      call.decision,
      call.decisionDetail === null ? null : JSON.stringify(call.decisionDetail),
      call.operationId,
      call.stillAbout === undefined,
      call.stillAbout ?? null,
    ],
  );
  return rows.length > 0;
}

/** A held call whose operation is void is proposed anew with its turn: it belongs to no operation. Part of a fenced transaction. */
export async function unholdCall(tx: Tx, call: { callId: CallId; operationId: OperationId }): Promise<void> {
  await tx.sql(
    "runs.call_unhold",
    `UPDATE tool_calls SET state = 'ready', decision = 'allowed', operation_id = NULL
     WHERE id = $1 AND operation_id = $2 AND state = 'held'`,
    [call.callId, call.operationId],
  );
}

export interface CallResult {
  callId: CallId;
  /** Told to the planner, word for word. Never blank. */
  result: string;
  resultJson: Json;
  isError: boolean;
  replayed?: boolean;
  decision?: CallDecision;
  operationId?: OperationId | null;
  /** Only if the call is still about this operation (null: about none). */
  stillAbout?: OperationId | null;
}

/** Stores the result of a call, once: false when it had one, or is about another operation by now. Part of a transaction that is fenced. */
export async function finishCall(tx: Tx, call: CallResult): Promise<boolean> {
  const rows = await tx.sql(
    "runs.call_finish",
    `UPDATE tool_calls SET state = 'done', result = $2, result_json = $3::jsonb, is_error = $4, replayed = $5,
       decision = coalesce($6, decision), operation_id = coalesce($7, operation_id), finished_at = countersign_now()
     WHERE id = $1 AND state <> 'done' AND ($8 OR operation_id IS NOT DISTINCT FROM $9) RETURNING id`,
    [
      call.callId,
      call.result,
      JSON.stringify(call.resultJson),
      call.isError,
      call.replayed ?? false,
      call.decision ?? null,
      call.operationId ?? null,
      call.stillAbout === undefined,
      call.stillAbout ?? null,
    ],
  );
  return rows.length > 0;
}

/**
 * A held turn is released by somebody without a lease, and its run is due for whoever takes it: conditional on the run as it was
 * read and on nobody holding it. False: somebody drives it, or it moved; write nothing. The last write of its transaction.
 */
export async function handOnReleased(
  tx: Tx,
  { runId, version, turnId }: { runId: RunId; version: bigint; turnId: TurnId },
): Promise<boolean> {
  const rows = await tx.sql(
    "runs.hand_on",
    `WITH handed AS (
       UPDATE runs SET state = 'queued', woken = false, due_at = countersign_now(), lease_token = lease_token + 1,
         lease_until = NULL, lease_holder = NULL, version = version + 1, updated_at = countersign_now()
       WHERE id = $1 AND version = $2 AND state = 'awaiting_approval'
         AND (lease_until IS NULL OR lease_until <= countersign_now()) RETURNING id)
     UPDATE turns t SET state = 'released', updated_at = countersign_now() FROM handed
     WHERE t.id = $3 AND t.run_id = handed.id AND t.state = 'held' RETURNING t.id`,
    [runId, version, turnId],
  );
  return rows.length > 0;
}

const TURN_BEFORE: Record<Exclude<TurnState, "recorded">, readonly TurnState[]> = {
  // From released: what this run only waited for became its own to have approved.
  held: ["recorded", "held", "released"],
  released: ["recorded", "held"],
  resolved: ["released"],
  final: ["recorded"],
};

/** Moves a turn and proves the lease. The last write of a transaction that also touches the ledger. Throws `LeaseLost`. */
export async function moveTurn(
  tx: Tx,
  lease: RunLease,
  { turnId, to }: { turnId: TurnId; to: Exclude<TurnState, "recorded"> },
): Promise<void> {
  await fence(tx, lease);
  const rows = await tx.sql(
    "runs.turn_move",
    `UPDATE turns SET state = $3, updated_at = countersign_now() WHERE id = $1 AND run_id = $2 AND state = ANY ($4) RETURNING id`,
    [turnId, lease.runId, to, TURN_BEFORE[to]],
  );
  if (rows.length === 0) throw new LeaseLost(lease.runId);
}
