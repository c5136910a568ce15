/**
 * What the other arms share: a worker that posts a refund, looks at the answer, waits and tries again; and a queue that hands the
 * job to the next worker when one dies. Each arm says how it words a try and what it does before one.
 */
import { lossOf } from "../faults/crash-points.js";
import type { Claim } from "../faults/score.js";
import type { Arm, ArmName, Played, Stage } from "./arm.js";
import { type Answer, postRefund } from "./wire.js";

/** Tries of one worker before it gives up. */
const TRIES = 4;
const BACKOFF_BASE_MS = 2_000;
/** After this long without a word from its worker the queue hands a job out again. */
const REDELIVERED_AFTER_MS = 30_000;

export interface Habits {
  readonly name: ArmName;
  /** Sent with this try; undefined: no key at all. */
  key(stage: Stage): string | undefined;
  /** Looked at before each try: `done` ends it without sending, `unsure` uses the try up. */
  before(stage: Stage): Promise<"send" | "done" | "unsure">;
}

class WorkerDied extends Error {}

export function baseline(habits: Habits): Arm {
  return { name: habits.name, play: (stage) => play(habits, stage) };
}

async function play(habits: Habits, stage: Stage): Promise<Played> {
  const { world, armed, scenario } = stage;
  const crash = planCrash(stage);
  let claim: Claim = "open";
  try {
    claim = await work(habits, stage, crash);
  } catch (error) {
    if (!(error instanceof WorkerDied)) throw error;
    await crash.firstTryOver();
    await world.advance(REDELIVERED_AFTER_MS);
    claim = await work(habits, stage, crash);
  }
  await armed.afterEnd?.();
  return {
    claim,
    end: claim,
    crashed: scenario.crash === "none" || crash.happened(),
    broken: [],
    askedBeyond: false,
  };
}

async function work(habits: Habits, stage: Stage, crash: Crash): Promise<Claim> {
  const { world, armed } = stage;
  for (let attempt = 1; attempt <= TRIES; attempt += 1) {
    const look = await habits.before(stage);
    if (look === "done") return "done";
    if (look === "send") {
      crash.beforeSend();
      const answer = await send(habits, stage);
      await crash.firstTryOver();
      if (answer === "done") return "done";
      if (answer === "refused") return "not_done";
    }
    await world.advance(BACKOFF_BASE_MS * 2 ** (attempt - 1));
  }
  return "not_done";

  async function send(arm: Habits, on: Stage): Promise<Answer> {
    const answer = await postRefund(on, {
      key: arm.key(on),
      refused: armed.refusesConnection?.() === true,
    });
    crash.afterAnswer();
    return answer;
  }
}

interface Crash {
  beforeSend(): void;
  afterAnswer(): void;
  /** Lets the mode's own events happen, once. */
  firstTryOver(): Promise<void>;
  happened(): boolean;
}

/** The crash points of the ledger as far as a plain worker has them: before it sends, after the answer, before a later try. */
function planCrash({ scenario, armed }: Stage): Crash {
  const loss = scenario.crash === "none" ? "none" : lossOf(scenario.crash);
  let sends = 0;
  let happened = false;
  let first = true;
  const die = (): void => {
    if (happened) return;
    happened = true;
    throw new WorkerDied();
  };
  return {
    beforeSend: () => {
      sends += 1;
      if (loss === "unsent" || loss === "kept") die();
      if (loss === "looking" && sends === 2) die();
    },
    afterAnswer: () => {
      if (loss === "unsaid") die();
    },
    firstTryOver: async () => {
      if (!first) return;
      first = false;
      await armed.beforeRecovery?.();
    },
    happened: () => happened,
  };
}
