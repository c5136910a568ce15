/**
 * Recovery: from a contract, evidence and the clock to the one legal move (DESIGN §5, "Contracts").
 *
 * 1. Total and pure: every combination has exactly one answer.
 * 2. Nothing is sent again unless a repeated key is safe now, or nothing sent before can still commit.
 * 3. An empty lookup is "unknown" unless the contract makes it terminal.
 * 4. Every path that cannot end by itself ends with a person.
 */
import type { EffectContract } from "./contract.js";
import type { AttemptVerdict, Evidence, ProviderEffect } from "./evidence.js";

/** An attempt as far as recovery cares. `open`: sent or about to be, no answer recorded. */
export interface AttemptFact {
  readonly number: number;
  readonly verdict: AttemptVerdict | "open";
  readonly code: string | null;
}

/** Times are the database's. Durations in milliseconds. */
export interface RecoveryInput {
  readonly contract: EffectContract;
  readonly evidence: Evidence;
  readonly attempts: readonly AttemptFact[];
  readonly now: Date;
  readonly firstClaimedAt: Date | null;
  /** When our last sender could no longer send: its answer, or the end of its lease plus its timeout. null: not over yet. */
  readonly lastSendEndedAt: Date | null;
  readonly unknownSince: Date;
  readonly quarantineAfterMs: number;
  readonly timeoutMs: number;
  readonly marginMs: number;
  /** Attempts after which an open outcome is no longer sent again. */
  readonly maxAttempts: number;
}

export type QuarantineReason =
  | "postcondition_failed"
  | "duplicate_effect"
  | "unattributed_effect"
  | "pending_too_long"
  | "unknown_too_long"
  | "proof_incomplete"
  | "evidence_contradicts";

export type Move =
  | { readonly do: "confirm"; readonly effect: ProviderEffect }
  | { readonly do: "reject"; readonly code: string; readonly detail: string }
  /** Every attempt is proven not executed: back to PREPARED. */
  | { readonly do: "prepare_again"; readonly why: string }
  | { readonly do: "send_again"; readonly why: "not_committed" | "key_is_safe" }
  | { readonly do: "later"; readonly why: string }
  | { readonly do: "quarantine"; readonly reason: QuarantineReason; readonly detail: string };
