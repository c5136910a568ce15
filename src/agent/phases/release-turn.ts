/**
 * Phase "release turn": people have decided, possibly days later and in another process. Approvals compare the world with
 * what was shown and prepare what still holds; whatever it is, every call then has its answer.
 */
import type { TurnCall } from "../../approvals/index.js";
import { sha256Hex } from "../../domain/canonical.js";
import { failpoint } from "../../domain/failpoints.js";
import { fence, moveTurn, setRunning, type ToolCall, type Turn, unholdCall } from "../../runs/index.js";
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
  const open = view.calls.filter((call) => call.turnId === turn.id && call.state !== "done");
  if (await reconsidered(ctx, driven, turn, open)) return GO_ON;
  const writes = open.flatMap((call) => turnCall(driven, call));
  const release = await ctx.gate.release({
    runId: view.run.id,
    turnId: turn.id,
    ticketId: view.ticket.id,
    calls: writes,
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
    case "released": {
      const byId = new Map(open.map((call) => [call.id, call]));
      await ctx.db.tx(async (tx) => {
        for (const answer of release.calls) {
          const call = byId.get(answer.callId);
          if (call !== undefined)
            await applyAnswer(tx, ctx, view, { call, answer: prepared(answer), proposal: null });
        }
        await setRunning(tx, lease);
        await moveTurn(tx, lease, { turnId: turn.id, to: "released" });
        await ctx.notices.touch(tx, { kind: "run", id: lease.runId });
      });
      await failpoint("agent.after_turn_released");
      return GO_ON;
    }
  }
}

/** The filer has confirmed the customer since: what only that was holding is proposed again, in its turn. */
async function reconsidered(
  ctx: AgentCtx,
  { view, lease }: Driven,
  turn: Turn,
  open: readonly ToolCall[],
): Promise<boolean> {
  const before = open.filter(
    (call) => call.state === "held" && call.decisionDetail?.["bindingConfirmed"] === false,
  );
  if (view.ticket.binding !== "confirmed" || before.length === 0) return false;
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
function turnCall({ view }: Driven, call: ToolCall): TurnCall<Proposal>[] {
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
