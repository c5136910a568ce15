/** Phase "end": every run ends in a named state, with a sentence by code. Model prose goes to the thread under its own marker. */

import { failpoint } from "../../domain/failpoints.js";
import type { RunEnd } from "../../domain/run.js";
import { factsOnly } from "../../domain/text/advice.js";
import { endRun, type Reservation, setRunning } from "../../runs/index.js";
import type { Ending } from "../next-step.js";
import type { AgentCtx } from "../ports.js";
import { type Driven, GO_ON, type PhaseOutcome } from "./phase.js";

/** States in which a run may be left without being running. */
const FROM_WAITING: ReadonlySet<RunEnd> = new Set(["cancelled", "failed", "escalated"]);

export async function finish(ctx: AgentCtx, driven: Driven, ending: Ending): Promise<PhaseOutcome> {
  const { lease, view } = driven;
  await failpoint("agent.before_run_end");
  const outcome = await ctx.db.tx(async (tx) => {
    // What was never sent is handed on or called off first: operations are locked before runs.
    if (ending.state === "cancelled" || ending.state === "failed") {
      await ctx.gate.abandon(tx, { runId: lease.runId, actor: `run:${lease.runId}` });
    }
    if (view.run.state !== "running" && !FROM_WAITING.has(ending.state)) await setRunning(tx, lease);
    const ended = await endRun(tx, lease, {
      state: ending.state,
      code: ending.code,
      detail: ending.detail,
      plannerSuccess: ending.plannerSuccess,
      unlessNotes: ending.state === "resolved",
    });
    if (ended === "has_notes") return ended;
    await tell(ctx, driven, ending, tx);
    return ended;
  });
  if (outcome === "has_notes") return GO_ON;
  await failpoint("agent.after_run_ended");
  return { goOn: false, ended: ending.state };
}

async function tell(
  ctx: AgentCtx,
  { view }: Driven,
  ending: Ending,
  tx: Parameters<AgentCtx["notices"]["touch"]>[0],
): Promise<void> {
  const { id: runId, planner } = view.run;
  const ticketId = view.ticket.id;
  if (ending.says !== null) {
    await ctx.notices.thread(tx, {
      ticketId,
      key: `says:${runId}`,
      message: { type: "model_says", text: ending.says, planner },
    });
  }
  if (ending.handover !== null) {
    await ctx.notices.thread(tx, {
      ticketId,
      key: `handover:${runId}`,
      message: { type: "escalated", runId, summary: ending.handover },
    });
  }
  // The planner's last words, or the handover, are the end as people read it: one message, not two.
  if (ending.says === null && ending.handover === null) {
    await ctx.notices.thread(tx, { ticketId, key: `ended:${runId}`, message: { type: "run_ended", runId } });
  }
  await ctx.notices.touch(tx, { kind: "run", id: runId });
  // What could be confirmed or changed there no longer can.
  if (view.ticket.binding !== "confirmed") await ctx.notices.touch(tx, { kind: "binding", id: ticketId });
}

/** Ends without anything that the planner said. */
export function endNow(
  ctx: AgentCtx,
  driven: Driven,
  end: { state: RunEnd; code: string; detail: string },
): Promise<PhaseOutcome> {
  return finish(ctx, driven, { ...end, plannerSuccess: false, says: null, handover: null });
}

/** A budget is used up: the ticket goes to a person, with what was done so far. */
export function endForBudget(
  ctx: AgentCtx,
  driven: Driven,
  over: Extract<Reservation, { ok: false }>,
): Promise<PhaseOutcome> {
  return endNow(ctx, driven, {
    state: "budget_exhausted",
    code: over.budget,
    detail: `${budgetSentence(over)} ${doneSoFar(driven)}`,
  });
}

function budgetSentence({ budget, used, limit }: Extract<Reservation, { ok: false }>): string {
  switch (budget) {
    case "steps":
      return `All ${limit} model calls of this run are used.`;
    case "cost":
      return `The run has cost ${usd(used)}; another call could pass its limit of ${usd(limit)}.`;
    case "deadline":
      return `The run has worked for ${Math.round(Number(used) / 1000)} s; its limit is ${Math.round(Number(limit) / 1000)} s.`;
    case "daily":
      return `Today's model spend stands at ${usd(used)}; another call could pass the limit of ${usd(limit)} for all runs.`;
  }
}

const usd = (micro: bigint): string => `$${(Number(micro) / 1_000_000).toFixed(2)} USD`;

/** Effects that the rows show, and the last thing that did not work. */
function doneSoFar({ view }: Driven): string {
  const effects = new Map<string, string>();
  for (const { operationId, isError, result } of view.calls) {
    if (operationId === null || isError !== false || result === null) continue;
    // What was asked for again is one effect, told once.
    if (!effects.has(operationId)) effects.set(operationId, result);
  }
  const done =
    effects.size === 0 ? "Nothing was changed." : `Done so far: ${[...effects.values()].join(" ")}`;
  const failed = view.calls.filter((call) => call.isError === true).at(-1);
  return failed === undefined ? done : `${done} Last answered with: ${factsOnly(failed.result ?? "")}`;
}
