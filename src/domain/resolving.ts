/**
 * When a person may end an open outcome, and how many people it takes (DESIGN §5, "Operator resolution"). Pure.
 *
 * 1. What the provider shows wins: a verb that it contradicts is not possible.
 * 2. Reject and retry need that no attempt can still commit; where the contract cannot know that, a quarantined operation and
 *    two people.
 * 3. Under a key past its life nothing is ever sent again.
 * 4. An effect that is not what was asked for confirms nothing. Two people may close such an operation as not carried out; what the
 *    provider made instead then counts as refunded elsewhere.
 */
import type { EffectContract } from "./contract.js";
import type { Evidence } from "./evidence.js";
import { OPEN_OUTCOMES, type OperationStatus } from "./operation.js";
import { type AttemptFact, inflightBoundPassed, keyIsSafe, provenNotExecuted } from "./recovery.js";

/** Result code of what a person closed knowing that the provider had made something else. */
export const MADE_DIFFERENTLY = "made_differently";

export type ResolvingVerb = "confirm" | "reject" | "retry";

export interface ResolvingInput {
  readonly verb: ResolvingVerb;
  readonly status: OperationStatus;
  readonly contract: EffectContract;
  /** What the provider said just before. */
  readonly probe: Evidence;
  readonly attempts: readonly AttemptFact[];
  readonly now: Date;
  readonly firstClaimedAt: Date | null;
  readonly lastSendEndedAt: Date | null;
  readonly timeoutMs: number;
  readonly marginMs: number;
}

export type ResolvingRefusal =
  | "wrong_state"
  | "evidence_contradicts"
  | "not_as_asked"
  | "may_still_commit"
  | "nobody_can_know"
  | "key_expired";

export type Resolving =
  | { readonly possible: true; readonly people: 1 | 2 }
  | { readonly possible: false; readonly code: ResolvingRefusal };

export function judgeResolving(input: ResolvingInput): Resolving {
  if (!OPEN_OUTCOMES.has(input.status)) return { possible: false, code: "wrong_state" };
  return input.verb === "confirm" ? judgeConfirm(input) : judgeWithoutEffect(input);
}

function judgeConfirm({ probe, status }: ResolvingInput): Resolving {
  switch (probe.says) {
    case "committed":
      return probe.postcondition === "holds"
        ? { possible: true, people: 1 }
        : { possible: false, code: "not_as_asked" };
    case "failed_at_provider":
    case "pending":
      return { possible: false, code: "evidence_contradicts" };
    case "duplicate":
      return { possible: true, people: 2 };
    case "absent":
    case "unattributed":
    case "unknown":
      // The person knows more than the list shows. Only where no machine is still looking.
      return status === "QUARANTINED"
        ? { possible: true, people: 1 }
        : { possible: false, code: "nobody_can_know" };
    default:
      return probe satisfies never;
  }
}

function judgeWithoutEffect(input: ResolvingInput): Resolving {
  const { probe, verb } = input;
  switch (probe.says) {
    case "committed":
      return verb === "reject" && probe.postcondition === "fails" && input.status === "QUARANTINED"
        ? { possible: true, people: 2 }
        : { possible: false, code: "evidence_contradicts" };
    case "pending":
    case "duplicate":
      return { possible: false, code: "evidence_contradicts" };
    case "unattributed":
      if (verb === "retry") return { possible: false, code: "evidence_contradicts" };
      break;
    case "unknown":
      // Without an answer only a repeated key is safe.
      if (verb === "reject" || !keyIsSafe(input.contract, input)) {
        return { possible: false, code: "nobody_can_know" };
      }
      break;
    case "absent":
    case "failed_at_provider":
      break;
    default:
      return probe satisfies never;
  }
  if (verb === "retry" && input.contract.keyed && !keyIsSafe(input.contract, input)) {
    return { possible: false, code: "key_expired" };
  }
  if (nothingCanCommit(input)) return { possible: true, people: 1 };
  return input.status === "QUARANTINED"
    ? { possible: true, people: 2 }
    : { possible: false, code: "may_still_commit" };
}

/** Every attempt is proven, or the contract's bound has passed since our last sender. */
const nothingCanCommit = (input: ResolvingInput): boolean =>
  input.attempts.every(({ verdict }) => provenNotExecuted(verdict)) ||
  inflightBoundPassed(input.contract, input);
