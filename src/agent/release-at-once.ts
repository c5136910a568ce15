/**
 * The last click of a held turn releases it in the process that heard it, without a queue in between: in the transaction of its vote
 * where nobody else has voted, else in one of its own after that.
 *
 * 1. Nothing here decides anything that a woken worker would not decide alike.
 * 2. No lease is taken: all is one transaction, whose last write is conditional on the run as it was read and on nobody holding
 *    it. Whoever drives the run meanwhile wins, and everything here is undone.
 * 3. It may fail or die anywhere: the vote is stored alone then, the run is due since that, and whoever is woken goes on.
 */
import type { AskedTurn, DecidedTurn } from "../approvals/index.js";
import { failpoint } from "../domain/failpoints.js";
import type { Tx } from "../domain/ports/database.js";
import { handOnReleased, type RunView, type ToolCall, type Turn, viewRun } from "../runs/index.js";
import { nextStep } from "./next-step.js";
import { heldForBinding, heldTurn, openCalls, storeAnswers } from "./phases/release-turn.js";
import type { AgentCtx } from "./ports.js";

/** `left`: for whoever is woken. */
export type ReleasedAtOnce = "released" | "left";

/** Somebody drives the run, or it is not as it was read. */
class DrivenElsewhere extends Error {}

/** Releases the turn if that is all there is to do with its run now. Wakes nobody. */
export async function releaseAtOnce(ctx: AgentCtx, decided: DecidedTurn): Promise<ReleasedAtOnce> {
  await failpoint("approvals.after_turn_decided");
  try {
    if ((await release(ctx, decided)) === "left") return "left";
  } catch (error) {
    if (error instanceof DrivenElsewhere) return "left";
    throw error;
  }
  await failpoint("agent.after_turn_released");
  return "released";
}

/** The same in the transaction of the vote. What it throws must undo that transaction. */
export const releaseWithVote = (ctx: AgentCtx, decided: DecidedTurn, join: Tx): Promise<ReleasedAtOnce> =>
  release(ctx, decided, join);

async function release(ctx: AgentCtx, decided: DecidedTurn, join?: Tx): Promise<ReleasedAtOnce> {
  let found: Found | null = null;
  const asked: AskedTurn = {
    turnId: decided.turnId,
    read: async (tx) => {
      found = await find(tx, decided);
      return found === null ? null : heldTurn(found.view, found.turn, found.open);
    },
  };
  const { outcome } = await ctx.gate.release(asked, {
    people: decided.people,
    ...(join === undefined ? {} : { join }),
    onReleased: async (tx, answers) => {
      if (found === null) throw new Error("a turn was released that nobody has read");
      const { view, turn, open } = found;
      const { id: runId, version } = view.run;
      const handOn = (): Promise<boolean> => handOnReleased(tx, { runId, version, turnId: turn.id });
      const stored = storeAnswers(tx, ctx, view, open, answers);
      // One statement for each prepared call, asked for by now: the run's row may travel behind them. Others ask for more.
      const handed = answers.every(({ outcome }) => outcome === "prepared")
        ? (await Promise.all([stored, handOn()]))[1]
        : await stored.then(handOn);
      if (!handed) throw new DrivenElsewhere();
    },
  });
  return outcome === "released" ? "released" : "left";
}

interface Found {
  readonly view: RunView;
  readonly turn: Turn;
  readonly open: readonly ToolCall[];
}

/** The run with the turn that was decided, if releasing it is what its run does next. */
async function find(tx: Tx, decided: DecidedTurn): Promise<Found | null> {
  const view = await viewRun(tx, decided.runId);
  if (view === null || view.run.state !== "awaiting_approval") return null;
  const step = nextStep(view);
  if (step.do !== "release_turn" || step.turn.id !== decided.turnId) return null;
  const { turn } = step;
  const open = openCalls(view, turn);
  return heldForBinding(view, open).length > 0 ? null : { view, turn, open };
}
