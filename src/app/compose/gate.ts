/** The gate between a turn and its effects: the ledger prepares, the policy judges, approvals hold, dispatch carries out. */
import type { PerCall, Proposal, TurnGate } from "../../agent/index.js";
import { bindingWasConfirmed, ownerGone, releaseTurn, request } from "../../approvals/index.js";
import { type DispatchCtx, drive, sendClaimed } from "../../dispatch/index.js";
import { CountersignError } from "../../domain/errors.js";
import { getOperation, type PerCall as LedgerCall, liveOn, prepareTurn } from "../../ledger/index.js";

/** Composes the agent's gate. */
export function turnGate(ctx: DispatchCtx): TurnGate {
  const { approvals } = ctx;
  return {
    prepare: async (tx, turn) => {
      const calls = await prepareTurn(tx, ctx, {
        calls: turn.proposals.map((proposal: Proposal) => ({ callId: proposal.callId, proposal })),
        judge: approvals.judge,
        ...(turn.sendNext
          ? { claim: { worker: ctx.worker, buildRequest: (material) => ctx.provider.buildRequest(material) } }
          : {}),
        onHold: async (on, held) => {
          await request(on, approvals, {
            operation: held.operation,
            judgement: held.judgement,
            runId: turn.runId,
            turnId: turn.turnId,
            ticketId: turn.ticketId,
          });
        },
      });
      return calls.map(asAgentCall);
    },
    release: async (turn, { onReleased, ...more }) => {
      const outcome = await releaseTurn(approvals, turn, {
        ...more,
        onReleased: (tx, calls) => onReleased(tx, calls.map(asAgentCall)),
      });
      return outcome.outcome === "released"
        ? { outcome: "released", calls: outcome.calls.map(asAgentCall) }
        : outcome;
    },
    reconsider: (tx, turn) => bindingWasConfirmed(tx, approvals, turn),
    drive: (operationId) => drive(ctx, operationId),
    send: (claim) => sendClaimed(ctx, claim),
    operation: (db, operationId) => getOperation(db, operationId),
    liveOn: (db, target) => liveOn(db, target),
    abandon: async (tx, run) => {
      await ownerGone(tx, approvals, { runId: run.runId, actor: `run:${run.runId}` });
    },
  };
}

/** A released turn has no drifted call left: those keep the turn held. */
function asAgentCall(call: LedgerCall): PerCall {
  switch (call.outcome) {
    case "drifted":
      throw new CountersignError("turn_not_released", `the approval of ${call.operation.id} drifted`, {
        ids: { operationId: call.operation.id },
      });
    case "ready":
      return { callId: call.callId, outcome: "ready" };
    case "conflict":
      return { callId: call.callId, outcome: "conflict", sentence: call.sentence };
    case "insufficient":
      return {
        callId: call.callId,
        outcome: "insufficient",
        leftMinor: call.leftMinor,
        currency: call.currency,
      };
    case "refused":
      return { callId: call.callId, outcome: "refused", code: call.code, sentence: call.sentence };
    case "prepared":
      return { callId: call.callId, outcome: "prepared", operation: call.operation, claim: call.claim };
    case "held":
    case "same":
    case "denied_before":
    case "ended":
      return { callId: call.callId, outcome: call.outcome, operation: call.operation };
  }
}
