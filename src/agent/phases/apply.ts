/** What the gate answered to a write, into the rows of its call. */

import { assertNever } from "../../domain/assert-never.js";
import { formatMoney, money } from "../../domain/money.js";
import type { Operation } from "../../domain/operation.js";
import type { Tx } from "../../domain/ports/database.js";
import { decideCall, finishCall, type RunView, type ToolCall } from "../../runs/index.js";
import type { AgentCtx, PerCall, Proposal } from "../ports.js";
import { answerOf } from "../results.js";
import { proposalToJson } from "../stored-proposal.js";

/** Stores one answer. The caller's transaction ends with the fence. */
export async function applyAnswer(
  tx: Tx,
  ctx: AgentCtx,
  view: RunView,
  { call, answer, proposal }: { call: ToolCall; answer: PerCall; proposal: Proposal | null },
): Promise<void> {
  switch (answer.outcome) {
    case "prepared":
      await decideCall(tx, {
        callId: call.id,
        state: "ready",
        decision: "allowed",
        decisionDetail: null,
        operationId: answer.operation.id,
      });
      return;
    case "held":
      await decideCall(tx, {
        callId: call.id,
        state: "held",
        decision: "held",
        decisionDetail:
          proposal === null
            ? null
            : { proposal: proposalToJson(proposal), bindingConfirmed: proposal.bindingConfirmed },
        operationId: answer.operation.id,
      });
      return;
    case "ready":
      await decideCall(tx, {
        callId: call.id,
        state: "ready",
        decision: "allowed",
        decisionDetail: proposal === null ? null : { proposal: proposalToJson(proposal) },
        operationId: null,
      });
      return;
    case "same":
    case "denied_before":
    case "ended":
      await known(tx, ctx, view, call, answer.operation, answer.outcome);
      return;
    case "refused":
      await refuse(tx, call, { rule: answer.code, sentence: answer.sentence });
      return;
    case "conflict":
      await refuse(tx, call, { rule: "conflict", sentence: answer.sentence });
      return;
    case "insufficient":
      await refuse(tx, call, { rule: "balance", sentence: insufficient(answer) });
      return;
    default:
      assertNever(answer, "answer of the gate");
  }
}

const refuse = (
  tx: Tx,
  call: ToolCall,
  { rule, sentence }: { rule: string; sentence: string },
): Promise<boolean> =>
  finishCall(tx, {
    callId: call.id,
    result: `${sentence} Nothing was done.`,
    resultJson: { refused_by: rule },
    isError: true,
    decision: "refused",
  });

function insufficient({ leftMinor, currency }: { leftMinor: bigint; currency: string }): string {
  const left = leftMinor > 0n ? formatMoney(money(leftMinor, currency)) : null;
  return left === null
    ? "Nothing is left to refund on this order."
    : `That is more than can still be refunded: only ${left} (${leftMinor} in minor units) is left.`;
}

/** An operation that is there already: its stored result now, or its outcome later. */
async function known(
  tx: Tx,
  ctx: AgentCtx,
  view: RunView,
  call: ToolCall,
  operation: Operation,
  outcome: "same" | "denied_before" | "ended",
): Promise<void> {
  // What this very call asked for is its own result, also when it is found again after a crash.
  const replayed = outcome !== "ended" && call.operationId !== operation.id;
  const answer = answerOf(operation, { replayed });
  if (answer.state === "open") {
    await decideCall(tx, {
      callId: call.id,
      state: "waiting",
      decision: replayed ? "same" : "allowed",
      decisionDetail: null,
      operationId: operation.id,
    });
    return;
  }
  await finishCall(tx, {
    callId: call.id,
    result: answer.result,
    resultJson: answer.resultJson,
    isError: answer.isError,
    replayed,
    decision: outcome === "same" ? "same" : "refused",
    operationId: operation.id,
  });
  if (replayed) {
    await ctx.notices.thread(tx, {
      ticketId: view.ticket.id,
      key: `replayed:${view.run.id}:${operation.id}`,
      message: { type: "operation_replayed", operationId: operation.id },
    });
  }
}
