/**
 * What the provider said, as values. An outcome belongs to one attempt (`AttemptOutcome`); evidence comes from reading
 * (`Evidence`). Neither is a state: states follow by `next` and by the recovery table.
 */
/** One effect as the provider lists it. Amounts in minor units. */
export interface ProviderEffect {
  ref: string;
  kind: "refund" | "subscription_cancellation";
  /** Payment intent or subscription id. */
  target: string;
  amountMinor: bigint;
  currency: string;
  /** Provider's own word: succeeded, pending, requires_action, failed, canceled … */
  status: string;
  pendingReason: string | null;
  failureReason: string | null;
  /** metadata.operation_id, when the effect carries one. */
  operationId: string | null;
  createdAt: Date;
}

/** The one name under which an effect is evidence: once for each state and amount of the provider's object, whoever saw it. */
export const effectKey = ({
  ref,
  status,
  amountMinor,
}: Pick<ProviderEffect, "ref" | "status" | "amountMinor">): string =>
  `effect:${ref}:${status}:${amountMinor}`;

/** It was made there and came to nothing: no money of it is gone. */
export const isDead = ({ status }: Pick<ProviderEffect, "status">): boolean =>
  status === "failed" || status === "canceled";

/** How one attempt ended. Only `not_executed` and `rejected` prove that nothing happened. */
export type AttemptOutcome =
  | { verdict: "committed"; effect: ProviderEffect; requestId: string | null; replayed: boolean }
  | {
      verdict: "postcondition_failed";
      effect: ProviderEffect;
      differs: readonly string[];
      requestId: string | null;
    }
  | { verdict: "pending"; effect: ProviderEffect; reason: string; requestId: string | null }
  /** Proven not executed and may be tried again (refused before a byte, a definitive 429). */
  | { verdict: "not_executed"; code: string; detail: string; retryAfterMs: number | null }
  /**
   * A definitive refusal: not executed, and trying again changes nothing. `code` is the provider's. `replayed`: the provider
   * says that this is its stored answer to an earlier request under the same key, so every attempt under that key has it.
   */
  | { verdict: "rejected"; code: string; detail: string; httpStatus: number; replayed?: true }
  /** The provider accepted it and it then failed there: terminal, no money moved. */
  | { verdict: "failed_at_provider"; effect: ProviderEffect; code: string }
  /** It may or may not have happened. */
  | { verdict: "unknown"; code: string; detail: string; httpStatus: number | null };

export type AttemptVerdict = AttemptOutcome["verdict"];

/** Why nothing was asked for: no thing of the provider's can have that name, however often one asks. */
export const BAD_REFERENCE = "bad_reference";

/** The provider's list for one target, read to its last page, or the reason why it could not be read. */
export type Listing =
  | { read: "complete"; effects: readonly ProviderEffect[]; balance: ProviderBalance | null; readAt: Date }
  | { read: "failed"; reason: string; detail: string };

/** Captured and refunded as the provider states them, minor units, when it says so. */
export interface ProviderBalance {
  capturedMinor: bigint;
  refundedMinor: bigint;
  currency: string;
  disputed: boolean;
}

/** What a listing means for one operation. Computed purely from the listing and the ledger's known references. */
export type Evidence =
  | { says: "committed"; effect: ProviderEffect; postcondition: "holds" }
  | { says: "committed"; effect: ProviderEffect; postcondition: "fails"; differs: readonly string[] }
  /** More than one effect carries this operation's id. */
  | { says: "duplicate"; effects: readonly ProviderEffect[] }
  | { says: "pending"; effect: ProviderEffect; reason: string }
  /** Accepted, then failed or cancelled at the provider. */
  | { says: "failed_at_provider"; effect: ProviderEffect; code: string }
  /** The list is complete and holds nothing of this operation. Means "did not happen" only if the contract says so. */
  | { says: "absent" }
  /** An effect on this target that no operation of ours explains. */
  | { says: "unattributed"; effects: readonly ProviderEffect[] }
  | { says: "unknown"; reason: string };

/** Everything that the provider showed with it. */
export function effectsOf(evidence: Evidence): readonly ProviderEffect[] {
  if ("effects" in evidence) return evidence.effects;
  return "effect" in evidence ? [evidence.effect] : [];
}
