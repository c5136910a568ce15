/** An arm: one way to carry a refund out, put through the same scenarios as all others. */
import type { Armed, FaultMode } from "../faults/modes.js";
import type { Scenario } from "../faults/scenario.js";
import type { Claim } from "../faults/score.js";
import type { World } from "../faults/world.js";

export interface Stage {
  readonly world: World;
  readonly scenario: Scenario;
  readonly mode: FaultMode;
  readonly armed: Armed;
  readonly orderRef: string;
  readonly paymentIntent: string;
}

export interface Played {
  readonly claim: Claim;
  /** The arm's own word for its end. */
  readonly end: string;
  /** The crash really happened; true where the scenario has none. */
  readonly crashed: boolean;
  /** Rules that the arm sets itself and broke; empty for arms that set none. */
  readonly broken: readonly string[];
  /** Looks afterwards, when the provider shows the truth again: whether a person has been shown that something is wrong. */
  noticed?(): Promise<boolean>;
  /** Asked for more than was allowed. */
  readonly askedBeyond: boolean;
}

export interface Arm {
  readonly name: ArmName;
  play(stage: Stage): Promise<Played>;
}

export const ARM_NAMES = ["ours", "naive-retry", "verify-then-retry", "new-key-per-attempt"] as const;
export type ArmName = (typeof ARM_NAMES)[number];
