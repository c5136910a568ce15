/**
 * The policy gate as the ledger asks it: inside the transaction that reserves, with order, payment and the totals' scopes
 * locked. Implemented by `src/policy`, handed in by `src/app`.
 */
import type { OperationId } from "../ids.js";
import type { Intent, RefundScope } from "../operation.js";
import type { ApprovalNeed, RuleVerdict } from "../policy/answer.js";
import type { Facts } from "../policy/facts.js";

/** One proposed operation, its rows already found and locked. */
export interface JudgeSubject {
  readonly intent: Intent;
  readonly refundScope: RefundScope | null;
  readonly itemRefs: readonly string[];
  /** Slack user ids that count as filer. */
  readonly filers: readonly string[];
  /** The filer confirmed which customer the ticket is about. */
  readonly bindingConfirmed: boolean;
  readonly customerId: string;
  readonly orderId: string | null;
  readonly paymentId: string | null;
  readonly subscriptionId: string | null;
  /** Set when an existing operation is judged again; it must not count against itself. */
  readonly operationId: OperationId | null;
  /** The denied operation that this one would succeed. */
  readonly predecessorId: OperationId | null;
}

/** Totals' scopes of one subject, each list sorted by name. */
export interface ScopePlan {
  /** Rows to lock before the facts are read: scopes that a rule of the active policy adds up. */
  readonly lock: readonly string[];
  /** Scopes under which the operation is counted once it is prepared, whether or not a rule counts them today. */
  readonly count: readonly string[];
}

export interface Judgement {
  readonly answer: "allow" | "hold" | "refuse";
  readonly rules: readonly RuleVerdict[];
  /** Present exactly when held. */
  readonly approval: ApprovalNeed | null;
  readonly confirmAmount: boolean;
  /** Cooling-off between release and dispatch, in minutes; null: none. */
  readonly notBeforeMinutes: number | null;
  readonly policyHash: string;
  /** What an approval is bound to: a changed answer matters, a changed comment does not. */
  readonly answerHash: string;
  readonly facts: Facts;
}

export interface Judge<Tx> {
  /** Names the scopes under the policy that is active as far as is known. */
  plan(tx: Tx, subject: JudgeSubject): Promise<ScopePlan>;
  /**
   * Called after the locks of `plan` are held. Takes a shared lock on the active policy: it cannot change before the transaction
   * ends; one that changed since `plan` has the transaction run again. Must hold a further occurrence, a successor and an
   * unconfirmed binding.
   */
  judge(tx: Tx, subject: JudgeSubject): Promise<Judgement>;
}
