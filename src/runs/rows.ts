/** Rows of this room into the types of this room, in one place. */
import type { CallId, OperationId, RunId, TicketId, TurnId } from "../domain/ids.js";
import type { Json, JsonObject } from "../domain/json.js";
import type { Binding, CallState, RunState, TurnState } from "../domain/run.js";
import { isRunEnd } from "../domain/run.js";
import type {
  BindingCandidate,
  CallDecision,
  ContentBlock,
  Run,
  RunEnding,
  RunNote,
  Ticket,
  TicketFile,
  TicketSource,
  ToolCall,
  Turn,
} from "./types.js";

/** SQL list of the run states in which a run is under way; the partial unique index repeats it. */
export const ACTIVE_SQL = "('queued','running','awaiting_binding','awaiting_approval','waiting')";

/** Active time of row `r` up to now, in milliseconds: what is booked, and what runs since the lease was taken. */
export const ACTIVE_MS_SQL = `(r.active_ms + CASE WHEN r.active_since IS NULL THEN 0 ELSE greatest(0,
  extract(epoch FROM least(countersign_now(), coalesce(r.lease_until, countersign_now())) - r.active_since) * 1000) END)::bigint`;

export const TICKET_COLUMNS = `t.id, t.ref, t.source, t.team_id, t.channel_id, t.message_ts, t.thread_ts, t.filer, t.filers, t.text,
  t.files, t.customer_id, c.ref AS customer_ref, c.name AS customer_name, t.binding, t.binding_candidates, t.bound_by, t.version,
  t.created_at`;
export const TICKET_FROM = "tickets t LEFT JOIN customers c ON c.id = t.customer_id";

export interface TicketRow {
  id: TicketId;
  ref: string | null;
  source: TicketSource;
  team_id: string | null;
  channel_id: string | null;
  message_ts: string | null;
  thread_ts: string | null;
  filer: string;
  filers: string[];
  text: string;
  files: TicketFile[];
  customer_id: string | null;
  customer_ref: string | null;
  customer_name: string | null;
  binding: Binding;
  binding_candidates: BindingCandidate[];
  bound_by: string | null;
  version: bigint;
  created_at: Date;
}

export const toTicket = (row: TicketRow): Ticket => ({
  id: row.id,
  ref: row.ref,
  source: row.source,
  teamId: row.team_id,
  channelId: row.channel_id,
  messageTs: row.message_ts,
  threadTs: row.thread_ts,
  filer: row.filer,
  filers: row.filers,
  text: row.text,
  files: row.files,
  customerId: row.customer_id,
  customerRef: row.customer_ref,
  customerName: row.customer_name,
  binding: row.binding,
  candidates: row.binding_candidates,
  boundBy: row.bound_by,
  version: row.version,
  createdAt: row.created_at,
});

export const RUN_COLUMNS = `r.id, r.ticket_id, r.state, r.version, r.planner, r.model, r.end_code, r.end_detail, r.planner_success,
  r.verified_success, r.constraints_kept, r.cancel_requested_by, r.steps_used, r.steps_max, r.input_tokens_used,
  r.output_tokens_used, r.cost_used_micro_usd, r.cost_max_micro_usd, ${ACTIVE_MS_SQL} AS active_ms, r.deadline_ms,
  r.model_failures, r.due_at, r.lease_token, r.created_at, r.updated_at`;

export interface RunRow {
  id: RunId;
  ticket_id: TicketId;
  state: RunState;
  version: bigint;
  planner: string;
  model: string | null;
  end_code: string | null;
  end_detail: string | null;
  planner_success: boolean | null;
  verified_success: boolean | null;
  constraints_kept: boolean;
  cancel_requested_by: string | null;
  steps_used: number;
  steps_max: number;
  input_tokens_used: bigint;
  output_tokens_used: bigint;
  cost_used_micro_usd: bigint;
  cost_max_micro_usd: bigint | null;
  active_ms: bigint;
  deadline_ms: bigint;
  model_failures: number;
  due_at: Date | null;
  lease_token: bigint;
  created_at: Date;
  updated_at: Date;
}

/** Throws for a row that fits no run: an end without its code. */
export function toRun(row: RunRow): Run {
  return {
    id: row.id,
    ticketId: row.ticket_id,
    state: row.state,
    version: row.version,
    planner: row.planner,
    model: row.model,
    ending: endingOf(row),
    cancelRequestedBy: row.cancel_requested_by,
    stepsUsed: row.steps_used,
    stepsMax: row.steps_max,
    inputTokensUsed: row.input_tokens_used,
    outputTokensUsed: row.output_tokens_used,
    costUsedMicroUsd: row.cost_used_micro_usd,
    costMaxMicroUsd: row.cost_max_micro_usd,
    activeMs: Number(row.active_ms),
    deadlineMs: Number(row.deadline_ms),
    modelFailures: row.model_failures,
    dueAt: row.due_at,
    leaseToken: row.lease_token,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

function endingOf(row: RunRow): RunEnding | null {
  if (!isRunEnd(row.state)) return null;
  if (row.end_code === null) throw new Error(`run ${row.id} ended as ${row.state} without a code`);
  return {
    code: row.end_code,
    detail: row.end_detail ?? "",
    plannerSuccess: row.planner_success ?? false,
    verifiedSuccess: row.verified_success ?? false,
    constraintsKept: row.constraints_kept,
  };
}

export const TURN_COLUMNS =
  "id, run_id, seq, state, content, stop_reason, stop_details, model, usage, cost_micro_usd, created_at";

export interface TurnRow {
  id: TurnId;
  run_id: RunId;
  seq: number;
  state: TurnState;
  content: ContentBlock[];
  stop_reason: string | null;
  stop_details: Json;
  model: string | null;
  usage: JsonObject;
  cost_micro_usd: bigint;
  created_at: Date;
}

export const toTurn = (row: TurnRow): Turn => ({
  id: row.id,
  runId: row.run_id,
  seq: row.seq,
  state: row.state,
  content: row.content,
  stopReason: row.stop_reason,
  stopDetails: row.stop_details,
  model: row.model,
  usage: row.usage,
  costMicroUsd: row.cost_micro_usd,
  createdAt: row.created_at,
});

export const CALL_COLUMNS = `id, run_id, turn_id, position, tool_use_id, name, input, state, operation_id, replayed, decision,
  decision_detail, result, result_json, is_error, created_at, finished_at`;

export interface CallRow {
  id: CallId;
  run_id: RunId;
  turn_id: TurnId;
  position: number;
  tool_use_id: string;
  name: string;
  input: Json;
  state: CallState;
  operation_id: OperationId | null;
  replayed: boolean;
  decision: CallDecision | null;
  decision_detail: JsonObject | null;
  result: string | null;
  result_json: Json;
  is_error: boolean | null;
  created_at: Date;
  finished_at: Date | null;
}

export const toCall = (row: CallRow): ToolCall => ({
  id: row.id,
  runId: row.run_id,
  turnId: row.turn_id,
  position: row.position,
  toolUseId: row.tool_use_id,
  name: row.name,
  input: row.input,
  state: row.state,
  operationId: row.operation_id,
  replayed: row.replayed,
  decision: row.decision,
  decisionDetail: row.decision_detail,
  result: row.result,
  resultJson: row.result_json,
  isError: row.is_error,
  createdAt: row.created_at,
  finishedAt: row.finished_at,
});

export const NOTE_COLUMNS = "id, run_id, author, text, used_in_seq, created_at";

export interface NoteRow {
  id: string;
  run_id: RunId;
  author: string;
  text: string;
  used_in_seq: number | null;
  created_at: Date;
}

export const toNote = (row: NoteRow): RunNote => ({
  id: row.id,
  runId: row.run_id,
  author: row.author,
  text: row.text,
  usedInSeq: row.used_in_seq,
  createdAt: row.created_at,
});
