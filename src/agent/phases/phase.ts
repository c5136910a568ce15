/** What every phase of a run works with, and how it ends. */
import type { OperationId } from "../../domain/ids.js";
import type { RunEnd, RunState } from "../../domain/run.js";
import type { Claim } from "../../ledger/index.js";
import { type GiveBack, giveBack, type RunLease, type RunView } from "../../runs/index.js";
import type { AgentCtx } from "../ports.js";

/** A run under our lease, as its rows are now. */
export interface Driven {
  lease: RunLease;
  view: RunView;
  /** Aborted when the lease is lost. */
  signal: AbortSignal;
  /** What this drive has claimed with a turn and not sent yet. */
  claims: Map<OperationId, Claim>;
}

export type PhaseOutcome =
  /** Read the rows again and decide the next step. */
  | { goOn: true }
  /** The lease is given back; the run waits in this state. */
  | { goOn: false; parked: Exclude<RunState, RunEnd> }
  | { goOn: false; ended: RunEnd };

export const GO_ON: PhaseOutcome = { goOn: true };

/** Looked at again after this long even if nobody wakes it: a lost wake-up costs so much and no more. */
export const APPROVAL_RELOOK_MS = 15 * 60_000;
export const OUTCOME_RELOOK_MS = 60_000;
/** People could not be read: soon again. */
export const DIRECTORY_RELOOK_MS = 5_000;

/** Gives the run back to wait. Wakes it when its news came meanwhile. */
export async function park(ctx: AgentCtx, driven: Driven, back: GiveBack): Promise<PhaseOutcome> {
  const { dueNow } = await ctx.db.tx(async (tx) => {
    const given = await giveBack(tx, driven.lease, back);
    await ctx.notices.touch(tx, { kind: "run", id: driven.lease.runId });
    return given;
  });
  if (dueNow) await ctx.wake("run", driven.lease.runId);
  return { goOn: false, parked: back.to };
}
