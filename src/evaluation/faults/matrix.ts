/** Plays scenarios through every arm and counts, at the provider, what came of them. */
import { sealBlocks, verifyAudit } from "../../ledger/index.js";
import { ARM_NAMES, type Arm, type ArmName, type Played } from "../arms/arm.js";
import { naiveRetry } from "../arms/naive-retry.js";
import { newKeyPerAttempt } from "../arms/new-key-per-attempt.js";
import { ours } from "../arms/ours.js";
import { fileOwner } from "../arms/owner.js";
import { verifyThenRetry } from "../arms/verify-then-retry.js";
import { CONTRACT_NAMES, providerContract } from "./contracts.js";
import { CRASH_POINTS } from "./crash-points.js";
import { expectedEnds } from "./expected.js";
import { MODE_NAMES, MODES } from "./modes.js";
import { seededRandom } from "./random.js";
import { passes } from "./reach.js";
import { type Cell, planScenarios, type Scenario } from "./scenario.js";
import { type Counted, type Score, score } from "./score.js";
import type { World } from "./world.js";

/** One arm in one scenario whose fault and crash really happened. */
export interface Episode {
  readonly arm: ArmName;
  readonly scenario: Scenario;
  readonly end: string;
  readonly score: Score;
  readonly broken: readonly string[];
  /** A person was shown a harm that could not be excluded; null: there was none. */
  readonly noticed: boolean | null;
}

export interface NotFired {
  readonly arm: ArmName;
  readonly scenario: Scenario;
}

export interface MatrixRun {
  readonly seed: number;
  readonly episodes: readonly Episode[];
  /** Scenarios that did not count for an arm because fault or crash had no occasion to happen. */
  readonly notFired: readonly NotFired[];
  /** What the audit chain's verifier found; empty: nothing. */
  readonly auditProblems: readonly string[];
}

/** One part of a plan, so that several worlds play it together: every `of`-th scenario, from `index` on. */
export interface Share {
  readonly index: number;
  readonly of: number;
}

export interface MatrixOptions {
  readonly episodes: number;
  readonly seed: number;
  /** The part of the plan that this world plays; all of it when left out. */
  readonly share?: Share;
  /** Of which the plan is made; all that can happen when left out. */
  readonly cells?: readonly Cell[];
  /** Who plays; everybody when left out. */
  readonly arms?: readonly ArmName[];
  /** Only these cells; all when left out. */
  readonly only?: (cell: Cell) => boolean;
  readonly onEpisode?: (done: number, of: number) => void;
}

/** Every fault, provider and crash point for which the table has a right end. */
const tableCells = (): Cell[] =>
  MODE_NAMES.flatMap((mode) =>
    CONTRACT_NAMES.flatMap((contract) =>
      CRASH_POINTS.filter((crash) => expectedEnds(mode, contract, crash) !== null).map((crash) => ({
        mode,
        contract,
        crash,
      })),
    ),
  );

const isPassed = ({ mode, contract, crash }: Cell): boolean => passes(mode, contract, crash);

/** Every cell in which fault and crash can happen. */
export const allCells = (): Cell[] => tableCells().filter(isPassed);

/** Cells that are not in the plan because the worker never comes by their crash point (`reach.ts`). */
export const cellsOutOfReach = (): Cell[] => tableCells().filter((cell) => !isPassed(cell));

export async function runMatrix(world: World, options: MatrixOptions): Promise<MatrixRun> {
  const every: readonly Arm[] = [ours(await fileOwner(world)), naiveRetry, verifyThenRetry, newKeyPerAttempt];
  const arms = every.filter(({ name }) => options.arms?.includes(name) ?? true);
  const cells = (options.cells ?? allCells()).filter(options.only ?? (() => true));
  const { index, of } = options.share ?? { index: 0, of: 1 };
  // The whole plan is made from the seed and then shared out, so that the number of worlds decides nothing.
  const plan = planScenarios(
    cells,
    cells.length === 0 ? 0 : options.episodes,
    seededRandom(options.seed),
  ).filter((scenario) => scenario.index % of === index);
  let done = 0;
  const episodes: Episode[] = [];
  const notFired: NotFired[] = [];
  for (const scenario of plan) {
    for (const arm of arms) {
      const episode = await playOne(world, arm, scenario);
      if (episode === null) notFired.push({ arm: arm.name, scenario });
      else episodes.push(episode);
    }
    done += 1;
    options.onEpisode?.(done, plan.length);
  }
  await sealBlocks(world.db);
  const audit = await verifyAudit(world.db);
  return {
    seed: options.seed,
    episodes,
    notFired,
    auditProblems: audit.broken.map((link) => `${link.what} ${link.where}: ${link.problem}`),
  };
}

/** What several worlds played of one plan, as if one had played it all. Pure. @throws when there is none, or seeds differ */
export function mergeRuns(runs: readonly MatrixRun[]): MatrixRun {
  const [first] = runs;
  if (first === undefined) throw new Error("there is no run");
  if (runs.some(({ seed }) => seed !== first.seed)) throw new Error("these runs are of different plans");
  return {
    seed: first.seed,
    episodes: runs
      .flatMap(({ episodes }) => episodes)
      .sort(
        (a, b) => a.scenario.index - b.scenario.index || ARM_NAMES.indexOf(a.arm) - ARM_NAMES.indexOf(b.arm),
      ),
    notFired: runs.flatMap(({ notFired }) => notFired),
    auditProblems: runs.flatMap(({ auditProblems }) => auditProblems),
  };
}

/** null: the fault or the crash had no occasion to happen. */
async function playOne(world: World, arm: Arm, scenario: Scenario): Promise<Episode | null> {
  const mode = MODES[scenario.mode];
  const { orderRef, paymentIntent } = await world.newPayment();
  world.control.setPromises(providerContract(scenario.contract).sandbox);
  const armed = await mode.arm({ world, paymentIntent, amountMinor: scenario.amountMinor });
  let played: Played;
  try {
    played = await arm.play({ world, scenario, mode, armed, orderRef, paymentIntent });
  } finally {
    world.control.disarmAll();
    world.forgetLater();
    await world.hurryProvider();
  }
  if (!played.crashed || !(await armed.fired())) return null;
  const scored = score({
    claim: played.claim,
    counted: await count(world, paymentIntent),
    amountMinor: scenario.amountMinor,
    possible: mode.impossible !== true,
    authorised: mode.unauthorised === undefined,
    askedBeyond: played.askedBeyond,
  });
  const harmed = scored.duplicate || scored.falseSuccess;
  const noticed = harmed && played.noticed !== undefined ? await played.noticed() : null;
  return { arm: arm.name, scenario, end: played.end, broken: played.broken, score: scored, noticed };
}

async function count(world: World, paymentIntent: string): Promise<Counted> {
  const effects = await world.control.effects({ paymentIntent });
  return {
    alive: effects
      .filter((effect) => effect.status !== "failed" && effect.status !== "canceled")
      .map(({ amount, origin }) => ({ amount, origin })),
  };
}
