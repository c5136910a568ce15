/** One scenario: what goes wrong at which provider, and where the worker dies. Every arm plays it on a payment of its own. */

import type { ContractName } from "./contracts.js";
import type { CrashPoint } from "./crash-points.js";
import { MODES, type ModeName } from "./modes.js";
import type { Random } from "./random.js";

export interface Scenario {
  /** Position in the plan. */
  readonly index: number;
  readonly mode: ModeName;
  readonly contract: ContractName;
  readonly crash: CrashPoint;
  /** Minor units of a payment that has captured `CAPTURED_MINOR`. */
  readonly amountMinor: number;
}

/** Amounts that the agent may refund alone, and amounts that need a supervisor (`MATRIX_POLICY`). Minor units. */
const WITHIN = [500, 9_000] as const;
const ABOVE = [10_500, 19_000] as const;

/** One cell of the matrix. */
export type Cell = Pick<Scenario, "mode" | "contract" | "crash">;

/** `episodes` scenarios over these cells: each cell about equally often, in an order and with amounts that follow from the seed. */
export function planScenarios(cells: readonly Cell[], episodes: number, random: Random): Scenario[] {
  const plan: Scenario[] = [];
  while (plan.length < episodes) {
    for (const cell of random.shuffled(cells).slice(0, episodes - plan.length)) {
      const [least, most] = MODES[cell.mode].unauthorised === undefined ? WITHIN : ABOVE;
      plan.push({ ...cell, index: plan.length, amountMinor: random.between(least, most) });
    }
  }
  return plan;
}
