/**
 * What a provider promises about one kind of effect, as data. Recovery is derived from these promises by one pure function
 * (`recovery.ts`), never from hope.
 */
import type { OperationKind } from "./operation.js";

export type Readback =
  | { kind: "none" }
  /** A committed effect shows in the list after at most `lagMs`, usually. Absence proves nothing. */
  | { kind: "eventual"; lagMs: number }
  /** A committed effect is in the list at once. */
  | { kind: "strong" };

export interface EffectContract {
  kind: OperationKind;
  version: string;
  /** The effect shares a transaction with its operation: no provider, no unknown. */
  local: boolean;
  /** Repeating a request under the same key does it at most once. */
  keyed: boolean;
  /** Life of a key in milliseconds, counted from the first claim; null: for ever. Meaningless unless keyed. */
  keyTtlMs: number | null;
  readback: Readback;
  /** After this many milliseconds since our last sender could no longer send, nothing sent can still commit; null: unknown. */
  inflightBoundMs: number | null;
  /**
   * What was sent can be called back. Told to the person who has the case, and never done by a machine: a call-back whose answer is
   * lost would be a second unknown, and a reading settles the first one anyhow.
   */
  cancellable: boolean;
  /** Where each promise is written. */
  sources: readonly string[];
}
