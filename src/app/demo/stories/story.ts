/** A story of the contract: what happens, and what both books must say when it is over. */
import type { Stage, Thread } from "../stage.js";

export interface Expected {
  /** Final state of each operation of the story, oldest first. */
  statuses: readonly string[];
  /** Effects that the provider committed during the story. */
  committed: number;
  /** Minor units by currency, as the provider counts them. */
  amounts: Readonly<Record<string, number>>;
  /** State in which the thread's newest run ends. */
  runState: string;
  verifiedSuccess: boolean;
}

export interface Story {
  name: string;
  /** One sentence: what this shows. */
  shows: string;
  /** Policy file to play under, relative to the project. Default: `policies/default.yaml`. */
  policy?: string;
  /** Variables for the product, on top of the demo's. */
  env?: Readonly<Record<string, string>>;
  play(stage: Stage): Promise<Thread>;
  expected: Expected;
}
