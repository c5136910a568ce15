/**
 * Phase "release turn": people have decided, possibly days later and in another process. Approvals compare the world with
 * what was shown and prepare what still holds; whatever it is, every call then has its answer.
 */
import type { HeldTurn, TurnCall } from "../../approvals/index.js";
import { sha256Hex } from "../../domain/canonical.js";
import { failpoint } from "../../domain/failpoints.js";
import type { Tx } from "../../domain/ports/database.js";
import {
  fence,
  moveTurn,
  type RunView,
  setRunning,
  type ToolCall,
  type Turn,
  unholdCall,
} from "../../runs/index.js";
import type { AgentCtx, PerCall, Proposal } from "../ports.js";
import { scopeOf } from "../scope.js";
import { proposalFromJson } from "../stored-proposal.js";
import { applyAnswer } from "./apply.js";
import {
  APPROVAL_RELOOK_MS,
  DIRECTORY_RELOOK_MS,
  type Driven,
  GO_ON,
  type PhaseOutcome,
  park,
} from "./phase.js";

export async function releaseHeldTurn(ctx: AgentCtx, driven: Driven, turn: Turn): Promise<PhaseOutcome> {
  const { view, lease } = driven;
  const open = openCalls(view, turn);
  if (await reconsidered(ctx, driven, turn, open)) return GO_ON;
  const release = await ctx.gate.release(heldTurn(view, turn, open), {
    onReleased: async (tx, answers) => {
      await storeAnswers(tx, ctx, view, open, answers);
      await setRunning(tx, lease);
      await moveTurn(tx, lease, { turnId: turn.id, to: "released" });
    },
  });
  switch (release.outcome) {
    case "still_held":
      return park(ctx, driven, {
        to: "awaiting_approval",
        dueInMs: APPROVAL_RELOOK_MS,
        clock: "stops",
      });
    case "voters_unreadable":
      ctx.log.warn(
        { runId: lease.runId, reason: release.reason },
        "voters could not be read; the turn stays held",
      );
      return park(ctx, driven, { to: "awaiting_approval", dueInMs: DIRECTORY_RELOOK_MS, clock: "stops" });
    case "released":
      await failpoint("agent.after_turn_released");
      return GO_ON;
  }
}

/** Calls of the turn that have no result yet. */
export const openCalls = (view: RunView, turn: Turn): ToolCall[] =>
  view.calls.filter((call) => call.turnId === turn.id && call.state !== "done");

/** The held turn as its gate wants it. */
export const heldTurn = (view: RunView, turn: Turn, open: readonly ToolCall[]): HeldTurn => ({
  runId: view.run.id,
  turnId: turn.id,
  calls: open.flatMap((call) => turnCall(view, call)),
});

/** What the gate answered to each call of a released turn. The caller's transaction ends with the rows of the run. */
export async function storeAnswers(
  tx: Tx,
  ctx: AgentCtx,
  view: RunView,
  open: readonly ToolCall[],
  answers: readonly PerCall[],
): Promise<void> {
  const byId = new Map(open.map((call) => [call.id, call]));
  const apply = async (answer: PerCall): Promise<void> => {
    const call = byId.get(answer.callId);
    if (call !== undefined)
      await applyAnswer(tx, ctx, view, { call, answer: prepared(answer), proposal: null });
  };
  // At once what is one statement each; what asks for more goes before them, one after another.
  const [alone, more] = [answers.filter(isOneStatement), answers.filter((one) => !isOneStatement(one))];
  for (const answer of more) await apply(answer);
  await Promise.all([...alone.map(apply), ctx.notices.touch(tx, { kind: "run", id: view.run.id })]);
  // The question about the customer names what waits for it, and this does not any more.
  if (view.ticket.binding === "unconfirmed")
    await ctx.notices.touch(tx, { kind: "binding", id: view.ticket.id });
}

const isOneStatement = ({ outcome }: PerCall): boolean => outcome === "prepared";

/** Calls that were held only because nobody had confirmed the customer, who is confirmed now. */
export function heldForBinding(view: RunView, open: readonly ToolCall[]): readonly ToolCall[] {
  if (view.ticket.binding !== "confirmed") return [];
  return open.filter((call) => call.state === "held" && call.decisionDetail?.["bindingConfirmed"] === false);
}

/** The filer has confirmed the customer since: what only that was holding is proposed again, in its turn. */
async function reconsidered(
  ctx: AgentCtx,
  { view, lease }: Driven,
  turn: Turn,
  open: readonly ToolCall[],
): Promise<boolean> {
  const before = heldForBinding(view, open);
  if (before.length === 0) return false;
  return ctx.db.tx(async (tx) => {
    const voided = new Set(await ctx.gate.reconsider(tx, { turnId: turn.id }));
    for (const { id, operationId } of before) {
      if (operationId !== null && voided.has(operationId)) await unholdCall(tx, { callId: id, operationId });
    }
    await fence(tx, lease);
    return voided.size > 0;
  });
}

/** A released turn holds nothing: an answer that says otherwise is a defect of the gate, and nothing is run on it. */
function prepared(answer: PerCall): PerCall {
  if (answer.outcome === "held" || answer.outcome === "ready") {
    throw new Error(`the gate released a turn in which ${answer.callId} is still ${answer.outcome}`);
  }
  return answer;
}

/** A write of the turn as approvals want it; nothing for reads. */
function turnCall(view: RunView, call: ToolCall): TurnCall<Proposal>[] {
  if (call.operationId !== null) return [{ callId: call.id, operationId: call.operationId }];
  const stored = call.decisionDetail?.["proposal"];
  if (stored === undefined) return [];
  const scope = scopeOf(view.ticket);
  return [
    {
      callId: call.id,
      proposal: proposalFromJson(stored, {
        callId: call.id,
        runId: view.run.id,
        ticketId: view.ticket.id,
        ticketTextHash: sha256Hex(view.ticket.text),
        filers: view.ticket.filers,
        bindingConfirmed: scope.kind === "customer" && scope.confirmed,
      }),
    },
  ];
}
