/** Tickets, runs, turns, calls as the rest of the program reads them. Written only by this room. */
import type { Db, Tx } from "../db/connect.js";
import type { CallId, OperationId, RunId, TicketId, TurnId } from "../domain/ids.js";
import type { Json, JsonObject } from "../domain/json.js";
import type { Ids } from "../domain/ports/clock.js";
import type { Notices } from "../domain/ports/notices.js";
import type { Wake } from "../domain/ports/wake.js";
import type { Binding, CallState, RunState, TurnState } from "../domain/run.js";

export type TicketSource = "message" | "form" | "shortcut" | "seed" | "cli";

/** Somebody the ticket may be about, and by which words of the text. */
export interface BindingCandidate {
  customerId: string;
  customerRef: string;
  name: string;
  /** References and addresses in the text that led here, as typed. */
  via: readonly { kind: "order" | "subscription" | "customer" | "email"; text: string }[];
}

export interface TicketFile {
  id: string;
  name: string;
  mimetype: string;
}

export interface Ticket {
  id: TicketId;
  /** TCK-2001 for seeded tickets; null for those filed in Slack. */
  ref: string | null;
  source: TicketSource;
  teamId: string | null;
  channelId: string | null;
  messageTs: string | null;
  threadTs: string | null;
  filer: string;
  /** Everybody who counts as filer. */
  filers: readonly string[];
  text: string;
  files: readonly TicketFile[];
  customerId: string | null;
  customerRef: string | null;
  customerName: string | null;
  binding: Binding;
  candidates: readonly BindingCandidate[];
  boundBy: string | null;
  version: bigint;
  createdAt: Date;
}

/** `code` plans nothing: its one turn was written by code on a person's click. */
export type PlannerName = "messages-api" | "scripted" | "code" | "none" | (string & {});

export interface RunEnding {
  code: string;
  /** A sentence made by code. */
  detail: string;
  /** What the planner said of itself. */
  plannerSuccess: boolean;
  /** What the database shows. */
  verifiedSuccess: boolean;
  /** Policy and scope were kept. */
  constraintsKept: boolean;
}

export interface Run {
  id: RunId;
  ticketId: TicketId;
  state: RunState;
  version: bigint;
  planner: PlannerName;
  model: string | null;
  /** Present exactly in the named ends. */
  ending: RunEnding | null;
  cancelRequestedBy: string | null;
  stepsUsed: number;
  stepsMax: number;
  inputTokensUsed: bigint;
  outputTokensUsed: bigint;
  /** Millionths of a US dollar. */
  costUsedMicroUsd: bigint;
  costMaxMicroUsd: bigint | null;
  /** Active time used so far, as of the read, and allowed; waiting for people does not count. */
  activeMs: number;
  deadlineMs: number;
  /** Model calls in a row that brought no reply. */
  modelFailures: number;
  dueAt: Date | null;
  leaseToken: bigint;
  createdAt: Date;
  updatedAt: Date;
}

/** One content block as the Messages API gave it, verbatim. */
export type ContentBlock = JsonObject & { type: string };

export interface Turn {
  id: TurnId;
  runId: RunId;
  /** 1, 2, 3 … within the run. */
  seq: number;
  state: TurnState;
  content: readonly ContentBlock[];
  stopReason: string | null;
  stopDetails: Json;
  model: string | null;
  usage: JsonObject;
  costMicroUsd: bigint;
  createdAt: Date;
}

export interface ToolCall {
  id: CallId;
  runId: RunId;
  turnId: TurnId;
  position: number;
  toolUseId: string;
  name: string;
  input: Json;
  state: CallState;
  operationId: OperationId | null;
  /** The result was stored before this call and is told again. */
  replayed: boolean;
  decision: CallDecision | null;
  decisionDetail: JsonObject | null;
  result: string | null;
  resultJson: Json;
  isError: boolean | null;
  createdAt: Date;
  finishedAt: Date | null;
}

/** What code answered to a proposed call before anything ran. */
export type CallDecision = "allowed" | "held" | "refused" | "invalid" | "same" | "not_executed";

/** Information for the planner that did not come from a tool: the filer's later messages, and facts told by code. */
export interface RunNote {
  id: string;
  runId: RunId;
  /** A Slack user id, or `system:` and the part that speaks. */
  author: string;
  text: string;
  /** The turn whose request told it; null while nobody has. */
  usedInSeq: number | null;
  createdAt: Date;
}

/** A run with everything that happened in it, oldest first. */
export interface RunView {
  run: Run;
  ticket: Ticket;
  turns: readonly Turn[];
  calls: readonly ToolCall[];
  notes: readonly RunNote[];
}

/** Finds whom a text is about, by references and addresses in it. Composed from the shop; never guesses. */
export type Identify = (db: Db | Tx, text: string) => Promise<readonly BindingCandidate[]>;

/** Budgets of a new run. */
export interface RunBudgets {
  maxSteps: number;
  maxCostMicroUsd: bigint | null;
  deadlineMs: number;
}

export interface RunsCtx {
  db: Db;
  ids: Ids;
  notices: Notices<Tx>;
  wake: Wake;
  identify: Identify;
  /** Planner and model that new runs are given, and their budgets. */
  newRuns: { planner: PlannerName; model: string | null; budgets: RunBudgets };
}

/** The right to drive one run, fenced by `token`. */
export interface RunLease {
  runId: RunId;
  token: bigint;
}
