/** A click that was the last of its turn: the turn is released in this process, and then its run is woken. */
import { setTimeout as pause } from "node:timers/promises";
import { releaseAtOnce, releaseWithVote } from "../../agent/index.js";
import {
  type ApprovalsContext,
  asItStands,
  type DecidedTurn,
  type DecideOutcome,
} from "../../approvals/index.js";
import { failpoint } from "../../domain/failpoints.js";
import type { Contexts } from "./contexts.js";

/** The answer to the click waits for the release no longer than this; the release goes on. */
const WAIT_MS = 1_000;

type Decide<Click> = (ctx: ApprovalsContext, click: Click) => Promise<DecideOutcome>;

/** The use case, with what it decided carried on at once. */
export function releasingAtOnce<Click>(
  { approvals, agent }: Pick<Contexts, "approvals" | "agent">,
  decide: Decide<Click>,
): (click: Click) => Promise<DecideOutcome> {
  const release = async (turn: DecidedTurn): Promise<void> => {
    try {
      await releaseAtOnce(agent, turn);
    } catch (error) {
      agent.log.warn(
        { runId: turn.runId, err: error },
        "a decided turn could not be released at once; a worker does it",
      );
    }
    await agent.wake("run", turn.runId);
  };
  return async (click) => {
    const released: Promise<void>[] = [];
    let withVote = false;
    const outcome = await decide(
      {
        ...approvals,
        hooks: {
          ...approvals.hooks,
          releaseDecided: async (tx, turn) => {
            if ((await releaseWithVote(agent, turn, tx)) === "left") return false;
            await failpoint("approvals.after_turn_decided");
            tx.afterCommit(() => {
              withVote = true;
              void agent.wake("run", turn.runId);
            });
            return true;
          },
          afterTurnDecided: (turn) => void released.push(release(turn)),
        },
      },
      click,
    );
    if (withVote) await failpoint("agent.after_turn_released");
    if (released.length > 0) {
      const enough = new AbortController();
      const late = pause(WAIT_MS, undefined, { signal: enough.signal }).catch(() => undefined);
      await Promise.race([Promise.all(released), late]);
      enough.abort();
      return asItStands(approvals.db, outcome);
    }
    return outcome;
  };
}
