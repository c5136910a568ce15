/** What an operation's money is doing in each state. What may have been spent counts as spent. */
import { assertNever } from "./assert-never.js";
import type { OperationStatus } from "./operation.js";

export type Holding = "none" | "reserved" | "refunded";

/** Amount set aside, paid back, or neither. */
export function holdingOf(status: OperationStatus): Holding {
  switch (status) {
    case "PREPARED":
    case "DISPATCHED":
    case "OUTCOME_UNKNOWN":
    case "RECONCILING":
    case "QUARANTINED":
      return "reserved";
    case "CONFIRMED":
      return "refunded";
    case "AWAITING_APPROVAL":
    case "REJECTED":
    case "DENIED":
    case "EXPIRED":
    case "VOIDED":
    case "REVERSED":
      return "none";
    default:
      return assertNever(status);
  }
}

export interface HoldingChange {
  /** −1, 0 or 1 times the amount. */
  readonly reserved: -1 | 0 | 1;
  readonly refunded: -1 | 0 | 1;
  /** Whether it counts under the totals: before and after. */
  readonly counted: "enters" | "stays" | "leaves" | "stays_out";
}

/** The difference that a transition makes to the payment and to the totals. */
export function holdingChange(from: OperationStatus | null, to: OperationStatus): HoldingChange {
  const before = from === null ? "none" : holdingOf(from);
  const after = holdingOf(to);
  const step = (what: Holding): -1 | 0 | 1 =>
    before === after ? 0 : after === what ? 1 : before === what ? -1 : 0;
  const counted =
    before === "none" ? (after === "none" ? "stays_out" : "enters") : after === "none" ? "leaves" : "stays";
  return { reserved: step("reserved"), refunded: step("refunded"), counted };
}

/**
 * Whether the operation's key is taken: it may have, or had, an effect, or a person closed it. Others with the same intent are
 * then this operation.
 */
export function keyIsTaken(status: OperationStatus, closedByPerson: boolean): boolean {
  if (status === "REJECTED") return closedByPerson;
  return status !== "DENIED" && status !== "EXPIRED" && status !== "VOIDED";
}
