/**
 * Phase "execute turn": nothing of the turn is held. Reads run; prepared operations are carried out; each result is stored
 * under its call. What was carried out before a crash is found in the ledger, never repeated.
 */
import { failpoint } from "../../domain/failpoints.js";
import type { OperationId } from "../../domain/ids.js";
import type { Operation } from "../../domain/operation.js";
import {
  decideCall,
  fence,
  finishCall,
  moveTurn,
  setRunning,
  type ToolCall,
  type Turn,
} from "../../runs/index.js";
import type { AgentCtx } from "../ports.js";
import { answerOf, type ToolResult } from "../results.js";
import { scopeOf } from "../scope.js";
import { isReadCall } from "../tools/catalogue.js";
import { parseCall } from "../tools/parse.js";
import { runRead } from "../tools/reads.js";
import { type Driven, GO_ON, OUTCOME_RELOOK_MS, type PhaseOutcome, park } from "./phase.js";

/**
 * `moved`: what the call waits for was replaced meanwhile, and its turn is held again. `inherited`: the run that had asked for
 * it is gone, and its approval is now this turn's.
 */
type Waiting = "approval" | "outcome" | "moved" | "inherited";

export async function executeTurn(ctx: AgentCtx, driven: Driven, turn: Turn): Promise<PhaseOutcome> {
  const { view, lease } = driven;
  const open = view.calls
    .filter((call) => call.turnId === turn.id && call.state !== "done")
    .sort((a, b) => a.position - b.position);
  const waits: Waiting[] = [];
  for (const call of open) {
    driven.signal.throwIfAborted();
    await failpoint("agent.before_tool");
    const waiting =
      call.operationId === null ? await runHere(ctx, driven, call) : await carryOut(ctx, driven, call);
    if (waiting === "moved") return GO_ON;
    if (waiting === "inherited") return holdAgain(ctx, driven, turn, call);
    if (waiting !== null) waits.push(waiting);
  }
  if (waits.length > 0) {
    const to = waits.includes("outcome") ? "waiting" : "awaiting_approval";
    return park(ctx, driven, { to, dueInMs: OUTCOME_RELOOK_MS, clock: "stops" });
  }
  await ctx.db.tx(async (tx) => {
    if (view.run.state !== "running") await setRunning(tx, lease);
    await moveTurn(tx, lease, { turnId: turn.id, to: "resolved" });
    await ctx.notices.touch(tx, { kind: "run", id: lease.runId });
  });
  await failpoint("agent.after_turn_resolved");
  return GO_ON;
}

/** A call without an operation: a read, or the handover. */
async function runHere(ctx: AgentCtx, driven: Driven, call: ToolCall): Promise<null> {
  const parsed = parseCall(call.name, call.input);
  let result: ToolResult;
  if (!parsed.ok) {
    result = { result: parsed.sentence, resultJson: null, isError: true };
  } else if (parsed.call.name === "escalate_to_human") {
    result = { result: "A person takes over from here.", resultJson: null, isError: false };
  } else if (!isReadCall(parsed.call)) {
    throw new Error(`${call.id} was released without an operation`);
  } else {
    result = await runRead(ctx, ctx.db, scopeOf(driven.view.ticket), parsed.call);
  }
  await failpoint("agent.after_tool_ran");
  await store(ctx, driven, call, result);
  return null;
}

/** A call with an operation: what its row says, after it was carried out as far as that goes now. */
async function carryOut(ctx: AgentCtx, driven: Driven, call: ToolCall): Promise<Waiting | null> {
  if (call.operationId === null) throw new Error(`${call.id} has no operation`);
  const operation = await sent(ctx, driven, call.operationId);
  await failpoint("agent.after_tool_ran");
  if (operation.id !== call.operationId) return "moved";
  // Asked for before by somebody else, or by a sibling: the outcome is told as that one's.
  const replayed = call.decision === "same";
  const answer = answerOf(operation, { replayed });
  if (answer.state === "ended") {
    return (await store(ctx, driven, call, { ...answer, replayed })) ? null : "moved";
  }
  if (operation.status === "AWAITING_APPROVAL" && operation.ownerRunId === driven.view.run.id)
    return "inherited";
  if (call.state === "waiting") return answer.waitsFor;
  const waits = await ctx.db.tx(async (tx) => {
    await fence(tx, driven.lease);
    return decideCall(tx, {
      callId: call.id,
      state: "waiting",
      decision: call.decision ?? "allowed",
      decisionDetail: null,
      operationId: null,
      stillAbout: call.operationId,
    });
  });
  return waits ? answer.waitsFor : "moved";
}

/** The operation as it stands once what can be done for it now is done. */
async function sent(ctx: AgentCtx, driven: Driven, id: OperationId): Promise<Operation> {
  const claim = driven.claims.get(id);
  if (claim !== undefined) {
    driven.claims.delete(id);
    return ctx.gate.send(claim);
  }
  const operation = await ctx.gate.operation(ctx.db, id);
  if (operation === null) throw new Error(`the operation ${id} is gone`);
  return operation.status === "PREPARED" ? ctx.gate.drive(id) : operation;
}

/** The approval stands in this turn from now on: it is released like any held turn. */
async function holdAgain(ctx: AgentCtx, driven: Driven, turn: Turn, call: ToolCall): Promise<PhaseOutcome> {
  await ctx.db.tx(async (tx) => {
    await decideCall(tx, {
      callId: call.id,
      state: "held",
      decision: "held",
      decisionDetail: null,
      operationId: null,
      stillAbout: call.operationId,
    });
    await moveTurn(tx, driven.lease, { turnId: turn.id, to: "held" });
    await ctx.notices.touch(tx, { kind: "run", id: driven.lease.runId });
  });
  return GO_ON;
}

/** False: the call is about another operation by now, and this result is not its own. */
async function store(
  ctx: AgentCtx,
  driven: Driven,
  call: ToolCall,
  result: ToolResult & { replayed?: boolean },
): Promise<boolean> {
  const stored = await ctx.db.tx(async (tx) => {
    const first = await finishCall(tx, {
      callId: call.id,
      result: result.result,
      resultJson: result.resultJson,
      isError: result.isError,
      replayed: result.replayed ?? false,
      stillAbout: call.operationId,
    });
    await setRunning(tx, driven.lease);
    await ctx.notices.touch(tx, { kind: "run", id: driven.lease.runId });
    return first;
  });
  await failpoint("agent.after_call_finished");
  return stored;
}
