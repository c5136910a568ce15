/**
 * The only loop. Drives one run as far as it goes now: read the rows, decide the next step, carry it out, again. Holds nothing
 * between steps but what it has just claimed to send, so that any worker may go on from any point at which another one died: such
 * an operation is found by the end of its lease.
 *
 * 1. Nothing is written without the lease; a lost lease ends the drive silently.
 * 2. Every wait is a row with a due time, never a sleep.
 * 3. What this drive has claimed it sends, also when the run meanwhile became somebody else's: the operation has its own lease.
 * 4. Whatever breaks unexpectedly is tried again a bounded number of times and then ends the run as failed.
 */
import { assertNever } from "../domain/assert-never.js";
import { failpoint } from "../domain/failpoints.js";
import type { RunId } from "../domain/ids.js";
import type { DbFailure } from "../domain/ports/database.js";
import { isRunEnd, type RunEnd, type RunState } from "../domain/run.js";
import { countTrouble, giveBack, LeaseLost, leaseRun, type RunLease, viewRun } from "../runs/index.js";
import { addCorrelation } from "../telemetry/index.js";
import { keepLease } from "./heartbeat.js";
import { nextStep } from "./next-step.js";
import { callModel } from "./phases/call-model.js";
import { executeTurn } from "./phases/execute-turn.js";
import { endNow, finish } from "./phases/finish.js";
import { type Driven, type PhaseOutcome, park } from "./phases/phase.js";
import { releaseHeldTurn } from "./phases/release-turn.js";
import { resolveTurn } from "./phases/resolve-turn.js";
import type { AgentCtx } from "./ports.js";

export type DriveOutcome =
  /** Not due, held by somebody, ended, or not there. */
  | { outcome: "nothing_to_do" }
  /** Somebody else took over; nothing was overwritten. */
  | { outcome: "fenced" }
  | { outcome: "parked"; state: Exclude<RunState, RunEnd> }
  | { outcome: "ended"; state: RunEnd };

/** What the database says when trying later may help; anything else from it is a defect like any other. */
const PASSING: ReadonlySet<DbFailure["kind"] | undefined> = new Set<DbFailure["kind"]>([
  "connection",
  "shutdown",
  "too-many-connections",
  "disk-full",
  "serialization",
  "deadlock",
  "lock-timeout",
  "statement-timeout",
]);

/** Unexpected failures in a row after which the run ends. */
const MAX_TROUBLE = 5;
const TROUBLE_RELOOK_MS = 2_000;
/** No run has this many phases; a loop that does is a defect and stops. */
const MAX_PHASES = 10_000;

/** Drives the run until it ends or waits. Safe to call at any time, by any number of workers. */
export async function driveRun(ctx: AgentCtx, runId: RunId): Promise<DriveOutcome> {
  const lease = await leaseRun(ctx.db, { runId, holder: ctx.worker, leaseMs: ctx.leaseMs });
  if (lease === null) return { outcome: "nothing_to_do" };
  const heart = keepLease(ctx, lease);
  const claims: Driven["claims"] = new Map();
  try {
    await failpoint("agent.after_lease");
    return await driveLeased(ctx, lease, heart.signal, claims);
  } catch (error) {
    if (error instanceof LeaseLost || heart.signal.aborted) return { outcome: "fenced" };
    // A database that is away keeps its rows: the lease runs out and somebody goes on.
    if (PASSING.has(ctx.db.failureOf(error)?.kind)) throw error;
    return await onTrouble(ctx, lease, error, heart.signal);
  } finally {
    heart.stop();
    await sendLeftOver(ctx, claims);
  }
}

/** Something came between a claim and its sending. */
async function sendLeftOver(ctx: AgentCtx, claims: Driven["claims"]): Promise<void> {
  for (const claim of claims.values()) {
    try {
      await ctx.gate.send(claim);
    } catch (error) {
      ctx.log.warn(
        { operationId: claim.operation.id, err: error },
        "what was claimed could not be sent; it is looked at when its lease ends",
      );
    }
  }
}

async function driveLeased(
  ctx: AgentCtx,
  lease: RunLease,
  signal: AbortSignal,
  claims: Driven["claims"],
): Promise<DriveOutcome> {
  for (let phase = 0; phase < MAX_PHASES; phase += 1) {
    const view = await viewRun(ctx.db, lease.runId);
    if (view === null || isRunEnd(view.run.state)) throw new LeaseLost(lease.runId);
    addCorrelation({ runId: lease.runId, ticketId: view.run.ticketId });
    const outcome = await carryOut(ctx, { lease, view, signal, claims });
    if (outcome.goOn) continue;
    return "ended" in outcome
      ? { outcome: "ended", state: outcome.ended }
      : { outcome: "parked", state: outcome.parked };
  }
  throw new Error(`run ${lease.runId} does not come to an end`);
}

function carryOut(ctx: AgentCtx, driven: Driven): Promise<PhaseOutcome> {
  const step = nextStep(driven.view);
  switch (step.do) {
    case "call_model":
      return callModel(ctx, driven, step);
    case "resolve_turn":
      return resolveTurn(ctx, driven, step.turn);
    case "release_turn":
      return releaseHeldTurn(ctx, driven, step.turn);
    case "execute_turn":
      return executeTurn(ctx, driven, step.turn);
    case "await_binding":
      return park(ctx, driven, { to: "awaiting_binding", dueInMs: null, clock: "stops" });
    case "end":
      return finish(ctx, driven, step.ending);
    default:
      return assertNever(step, "step");
  }
}

async function onTrouble(
  ctx: AgentCtx,
  lease: RunLease,
  error: unknown,
  signal: AbortSignal,
): Promise<DriveOutcome> {
  try {
    const times = await countTrouble(ctx.db, lease);
    ctx.log.error({ runId: lease.runId, err: error, times }, "driving the run broke");
    const view = await viewRun(ctx.db, lease.runId);
    if (view === null || isRunEnd(view.run.state)) return { outcome: "fenced" };
    if (times < MAX_TROUBLE) {
      const state = view.run.state === "running" ? "queued" : view.run.state;
      await giveBack(ctx.db, lease, {
        to: state as "queued",
        dueInMs: TROUBLE_RELOOK_MS * times,
        clock: "runs",
      });
      return { outcome: "parked", state: state as "queued" };
    }
    await endNow(
      ctx,
      { lease, view, signal, claims: new Map() },
      {
        state: "failed",
        code: "internal_error",
        detail:
          "The run broke on an internal error, several times in a row. What it had sent goes on and is told here.",
      },
    );
    return { outcome: "ended", state: "failed" };
  } catch (second) {
    if (second instanceof LeaseLost) return { outcome: "fenced" };
    throw second;
  }
}
