/** What was played, for whoever counts it. */
import type { RunId } from "../../domain/ids.js";
import type { PaymentsControl } from "../../sandbox/payments/index.js";
import type { Desk } from "../tickets/desk.js";
import type { Case } from "./cases.js";
import type { Injected } from "./injections.js";
import type { DecidingPeople } from "./people.js";
import type { SeenAtGate } from "./seen-at-gate.js";
import type { Resident } from "./town.js";

/** Everything that was played, for the count. */
export interface Played {
  readonly desk: Desk;
  readonly control: PaymentsControl;
  readonly gate: SeenAtGate;
  readonly people: DecidingPeople;
  readonly residents: readonly Resident[];
  readonly cases: readonly (Case & { readonly runId: RunId | null })[];
  readonly injected: readonly Injected[] | null;
  /** What code told in each ticket's thread. */
  readonly told: ReadonlyMap<string, readonly string[]>;
  readonly proposals: number;
  readonly seed: number;
}
