/**
 * The trace of a run: everything that happened, with what the planner said, what the database shows, and whether policy
 * and scope were kept, apart from each other.
 */
import type { SqlRunner } from "../db/connect.js";
import { assertNever } from "../domain/assert-never.js";
import type { OperationId, RunId } from "../domain/ids.js";
import type { Json, JsonObject } from "../domain/json.js";
import { amountToJson } from "../domain/money.js";
import { isRunEnd, type RunState } from "../domain/run.js";
import { OPERATIONS_OF_RUN } from "./operations-of-run.js";
import { viewRun } from "./read.js";
import type { RunView, ToolCall, Turn } from "./types.js";
import { verifyRun } from "./verify.js";

export interface TracedOperation {
  id: OperationId;
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
  /** What the policy answered when it was last asked, and each rule that spoke. */
  policy: { answer: string; rules: readonly JsonObject[] };
  /** Every card that asked for it, oldest first: for which line of the policy, and what people said. */
  approvals: readonly TracedApproval[];
}

export interface TracedApproval {
  id: string;
  state: string;
  role: string;
  approvers: number;
  /** Why it was held, one sentence each. */
  why: readonly string[];
  /** This amount and what the order has cost already, minor units: chose the line. */
  ladder: number | null;
  votes: readonly { by: string; verdict: string; role: string; note: string | null; at: string }[];
  /** How it ended, if not by a yes. */
  end: string | null;
}

export interface Trace {
  run: string;
  ticket: { id: string; ref: string | null; text: string; customer: string | null; binding: string };
  planner: string;
  model: string | null;
  state: string;
  end: { code: string; detail: string } | null;
  /** Whom or what the run waits for; null: it has ended or works. */
  waits_for: string | null;
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
  const operations = await operationsOf(db, runId);
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
    waits_for: waitsFor(run.state),
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
    steps: view.turns.map((turn) => step(turn, view, operations)),
    notes: view.notes.map((note) => ({
      at: note.createdAt.toISOString(),
      author: note.author,
      text: note.text,
      told_before_step: note.usedInSeq,
    })),
    operations,
  };
}

function step(turn: Turn, view: RunView, operations: readonly TracedOperation[]): JsonObject {
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
    calls: view.calls
      .filter((call) => call.turnId === turn.id)
      .map((call) =>
        tracedCall(
          call,
          operations.find(({ id }) => id === call.operationId),
        ),
      ),
  };
}

function tracedCall(call: ToolCall, operation: TracedOperation | undefined): JsonObject {
  return {
    tool_use_id: call.toolUseId,
    tool: call.name,
    input: call.input,
    state: call.state,
    decision: call.decision,
    // A held call is "allowed" once people have said yes; whose yes it took stays here.
    held_for: call.replayed ? null : (operation?.approvals.at(-1)?.role ?? null),
    decision_detail: call.decisionDetail as Json,
    operation: call.operationId,
    replayed: call.replayed,
    is_error: call.isError,
    refused_by: refusedBy(call),
    result: call.result,
    at: call.createdAt.toISOString(),
    finished_at: call.finishedAt?.toISOString() ?? null,
  };
}

/** The rule that refused a call; null: none did. */
function refusedBy({ decision, resultJson: json }: ToolCall): Json {
  const rule =
    typeof json === "object" && json !== null && !Array.isArray(json) ? json["refused_by"] : undefined;
  return rule ?? (decision === "invalid" ? "input" : null);
}

function waitsFor(state: RunState): string | null {
  switch (state) {
    case "awaiting_binding":
      return "The filer, to say which customer the ticket is about.";
    case "awaiting_approval":
      return "People, to decide what is held: see approvals of the operations.";
    case "waiting":
      return "An outcome that is not known yet, a cooling-off, or a thaw: see status of the operations.";
    case "queued":
      return "A worker, or the time at which it tries again.";
    case "running":
    case "resolved":
    case "escalated":
    case "budget_exhausted":
    case "failed":
    case "cancelled":
      return null;
    default:
      return assertNever(state, "run state");
  }
}

async function operationsOf(db: SqlRunner, runId: RunId): Promise<TracedOperation[]> {
  const rows = await db.sql<Omit<TracedOperation, "amount"> & { amount: bigint }>(
    "runs.trace_operations",
    `SELECT o.id, o.key, o.kind, o.status, o.order_ref AS "order", o.subscription_ref AS subscription, o.amount_minor AS amount,
       o.currency, o.attempts, o.approved_by AS "approvedBy", o.provider_ref AS "providerRef",
       jsonb_build_object('answer', o.decision -> 'answer', 'rules', coalesce(o.decision -> 'rules', '[]')) AS policy,
       coalesce((SELECT jsonb_agg(jsonb_build_object('id', a.id, 'state', a.state, 'role', a.role, 'approvers', a.approvers_needed,
           'why', a.binding -> 'policy' -> 'reasons', 'ladder', a.binding -> 'policy' -> 'ladderMinor', 'end', a.end_detail,
           'votes', coalesce((SELECT jsonb_agg(jsonb_build_object('by', v.user_id, 'verdict', v.verdict, 'role', v.role,
               'note', v.note, 'at', v.at) ORDER BY v.at, v.id) FROM votes v WHERE v.approval_id = a.id), '[]'))
         ORDER BY a.created_at, a.id) FROM approvals a WHERE a.operation_id = o.id), '[]') AS approvals
     FROM operations o
     WHERE o.id = ANY (ARRAY(${OPERATIONS_OF_RUN}))
     ORDER BY o.created_at, o.id`,
    [runId],
  );
  return rows.map((row) => ({ ...row, amount: amountToJson(row.amount) }));
}
