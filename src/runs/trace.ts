/**
 * The trace of a run: everything that happened, with what the planner said, what the database shows, and whether policy
 * and scope were kept, apart from each other.
 */
import type { SqlRunner } from "../db/connect.js";
import type { RunId } from "../domain/ids.js";
import type { Json, JsonObject } from "../domain/json.js";
import { amountToJson } from "../domain/money.js";
import { isRunEnd } from "../domain/run.js";
import { viewRun } from "./read.js";
import type { RunView, ToolCall, Turn } from "./types.js";
import { verifyRun } from "./verify.js";

export interface TracedOperation {
  id: string;
  key: string;
  kind: string;
  status: string;
  order: string | null;
  subscription: string | null;
  /** Minor units. */
  amount: number;
  currency: string;
  attempts: number;
  approvedBy: readonly string[];
  providerRef: string | null;
}

export interface Trace {
  run: string;
  ticket: { id: string; ref: string | null; text: string; customer: string | null; binding: string };
  planner: string;
  model: string | null;
  state: string;
  end: { code: string; detail: string } | null;
  /** What the planner said of itself. Null while the run is under way. */
  planner_success: boolean | null;
  /** What the database shows. Null while the run is under way. */
  verified_success: boolean | null;
  constraints_kept: boolean;
  budget: {
    steps: { used: number; max: number };
    output_tokens: number;
    input_tokens: number;
    cost_micro_usd: number;
    active_ms: number;
  };
  steps: readonly JsonObject[];
  notes: readonly JsonObject[];
  operations: readonly TracedOperation[];
}

/** Null when there is no such run. */
export async function traceRun(db: SqlRunner, runId: RunId): Promise<Trace | null> {
  const view = await viewRun(db, runId);
  if (view === null) return null;
  const { run, ticket } = view;
  const now = isRunEnd(run.state) ? await verifyRun(db, runId, run.state) : null;
  return {
    run: run.id,
    ticket: {
      id: ticket.id,
      ref: ticket.ref,
      text: ticket.text,
      customer: ticket.customerRef,
      binding: ticket.binding,
    },
    planner: run.planner,
    model: run.model,
    state: run.state,
    end: run.ending === null ? null : { code: run.ending.code, detail: run.ending.detail },
    planner_success: run.ending === null ? null : run.ending.plannerSuccess,
    // read again now: an outcome may have become known, or been reversed, after the end
    verified_success: now === null ? null : now.verifiedSuccess,
    constraints_kept: now === null ? run.ending === null : now.constraintsKept,
    budget: {
      steps: { used: run.stepsUsed, max: run.stepsMax },
      output_tokens: Number(run.outputTokensUsed),
      input_tokens: Number(run.inputTokensUsed),
      cost_micro_usd: Number(run.costUsedMicroUsd),
      active_ms: run.activeMs,
    },
    steps: view.turns.map((turn) => step(turn, view)),
    notes: view.notes.map((note) => ({
      at: note.createdAt.toISOString(),
      author: note.author,
      text: note.text,
      told_before_step: note.usedInSeq,
    })),
    operations: await operationsOf(db, runId),
  };
}

function step(turn: Turn, view: RunView): JsonObject {
  return {
    step: turn.seq,
    at: turn.createdAt.toISOString(),
    model: turn.model,
    state: turn.state,
    stop_reason: turn.stopReason,
    stop_details: turn.stopDetails,
    content: [...turn.content],
    usage: turn.usage,
    cost_micro_usd: Number(turn.costMicroUsd),
    calls: view.calls.filter((call) => call.turnId === turn.id).map(tracedCall),
  };
}

function tracedCall(call: ToolCall): JsonObject {
  return {
    tool_use_id: call.toolUseId,
    tool: call.name,
    input: call.input,
    state: call.state,
    decision: call.decision,
    decision_detail: call.decisionDetail as Json,
    operation: call.operationId,
    replayed: call.replayed,
    is_error: call.isError,
    result: call.result,
    at: call.createdAt.toISOString(),
    finished_at: call.finishedAt?.toISOString() ?? null,
  };
}

async function operationsOf(db: SqlRunner, runId: RunId): Promise<TracedOperation[]> {
  const rows = await db.sql<Omit<TracedOperation, "amount"> & { amount: bigint }>(
    "runs.trace_operations",
    `SELECT o.id, o.key, o.kind, o.status, o.order_ref AS "order", o.subscription_ref AS subscription, o.amount_minor AS amount,
       o.currency, o.attempts, o.approved_by AS "approvedBy", o.provider_ref AS "providerRef"
     FROM operations o
     WHERE o.owner_run_id = $1 OR o.id IN (SELECT operation_id FROM tool_calls WHERE run_id = $1 AND operation_id IS NOT NULL)
     ORDER BY o.created_at, o.id`,
    [runId],
  );
  return rows.map((row) => ({ ...row, amount: amountToJson(row.amount) }));
}
