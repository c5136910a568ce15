/**
 * Approvals: a request for a countersignature, bound to one operation and to the state of the world that its card showed.
 *
 * 1. `APPROVAL_TRANSITIONS` is the only table of approval states; a test compares it with what the code can write.
 * 2. Votes are stored at the click; nothing is prepared there. RELEASED means that the operation was prepared under it.
 * 3. An approval is bound: whatever of the binding no longer holds kills the approval, never the wish behind it.
 * 4. Deny wins until the operation is dispatched, also over a complete approval. EXPIRED means that nobody decided.
 */
import type { ApprovalId, OperationId, RunId, TicketId, TurnId } from "./ids.js";
import type { OperationKind } from "./operation.js";

export const APPROVAL_STATES = ["PENDING", "APPROVED", "RELEASED", "DENIED", "EXPIRED", "VOIDED"] as const;
export type ApprovalState = (typeof APPROVAL_STATES)[number];

export const APPROVAL_TRANSITIONS = {
  /** Enough votes, a person's no, the deadline, or nobody waits any more. */
  PENDING: ["APPROVED", "DENIED", "EXPIRED", "VOIDED"],
  /** Its turn is released; a later no; drift. */
  APPROVED: ["RELEASED", "DENIED", "VOIDED"],
  /** A no or Undo before dispatch; drift at the claim. */
  RELEASED: ["DENIED", "VOIDED"],
  DENIED: [],
  EXPIRED: [],
  VOIDED: [],
} as const satisfies Record<ApprovalState, readonly ApprovalState[]>;

/** Why an approval ended without a person's yes. */
export type ApprovalEndCode =
  | "denied"
  /** A no after a complete approval, before dispatch. */
  | "denied_late"
  /** The visible Undo during cooling-off. */
  | "undone"
  /** Nobody decided in time. */
  | "expired"
  /** The binding no longer holds; a successor may ask again. */
  | "drift"
  /** The run was cancelled and nobody else waits. */
  | "nobody_waits"
  /** The filer confirmed the customer, and nothing else had asked for an approval: the call is proposed anew. */
  | "binding_confirmed"
  /** The operation ended for another reason. */
  | "superseded";

/** The part of the world that a card shows and an approval is bound to. Amounts in minor units. */
export interface WorldSnapshot {
  readonly customerRef: string;
  /** Whom the ticket is bound to now; null: nobody, or no ticket. */
  readonly ticketCustomerRef: string | null;
  readonly order: {
    readonly ref: string;
    readonly status: string;
    readonly currency: string;
    /** Whose order it is, by the order's own row. */
    readonly customerRef: string;
  } | null;
  readonly payment: {
    readonly capturedMinor: bigint;
    /** captured − reserved − refunded − refunded elsewhere, when the card was made. May be negative after a correction. */
    readonly refundableMinor: bigint;
    readonly currency: string;
    /** What had been spent of it by then; shown, not compared. Cards of older versions lack it. */
    readonly spent?: {
      readonly refundedMinor: bigint;
      readonly elsewhereMinor: bigint;
      /** Set aside for other operations. */
      readonly reservedMinor: bigint;
    };
  } | null;
  readonly subscription: {
    readonly ref: string;
    readonly status: string;
    readonly customerRef: string;
  } | null;
}

/** What the policy answered, and the hash of that answer (reasons and comments are not in it). */
export interface BoundAnswer {
  readonly answer: "allow" | "hold";
  readonly answerHash: string;
  readonly policyHash: string;
  /** Why it is held, one sentence each. */
  readonly reasons: readonly string[];
  readonly role: string;
  readonly approvers: number;
  /** Position of the line in the policy's ladder, from 0. */
  readonly line: number;
  readonly confirmAmount: boolean;
  /** Minutes between release and dispatch; 0: none. */
  readonly coolingOffMinutes: number;
  readonly selfApproval: boolean;
  readonly isLastLine: boolean;
  /** This amount and what the order has cost already: chose the line, and is what a role's limit must cover. */
  readonly ladderMinor: bigint;
}

/** What was shown and is executed. Stored with the approval; the card is rendered from it alone. */
export interface ApprovalBinding {
  readonly operationId: OperationId;
  readonly kind: OperationKind;
  readonly customerRef: string;
  readonly customerName: string;
  readonly orderRef: string | null;
  readonly subscriptionRef: string | null;
  readonly itemRefs: readonly string[];
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly atPeriodEnd: boolean | null;
  readonly occurrence: number;
  readonly fingerprint: string;
  /** Slack user ids that count as filer. */
  readonly filers: readonly string[];
  /** The ticket's customer was read from text and nobody confirmed it: approving confirms it for this operation alone. */
  readonly bindingUnconfirmed: boolean;
  readonly world: WorldSnapshot;
  readonly policy: BoundAnswer;
  /** Earlier occurrences of the same intent, oldest first. */
  readonly earlier: readonly EarlierOperation[];
}

export interface EarlierOperation {
  readonly operationId: OperationId;
  readonly status: string;
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly at: string;
  /** Of a denied predecessor: who, when, why. */
  readonly denied: { readonly by: string; readonly at: string; readonly note: string | null } | null;
}

/** One thing that differs between the binding and now. Texts of a card's "what changed" are made from it. */
export type Change =
  | { readonly what: "order_status"; readonly from: string; readonly to: string }
  | {
      readonly what: "refundable";
      readonly fromMinor: bigint;
      readonly toMinor: bigint;
      readonly currency: string;
    }
  | {
      readonly what: "captured";
      readonly fromMinor: bigint;
      readonly toMinor: bigint;
      readonly currency: string;
    }
  | { readonly what: "order_customer"; readonly from: string; readonly to: string }
  | { readonly what: "order_currency"; readonly from: string; readonly to: string }
  | { readonly what: "customer"; readonly from: string; readonly to: string }
  | { readonly what: "subscription_status"; readonly from: string; readonly to: string }
  | { readonly what: "subscription_customer"; readonly from: string; readonly to: string }
  | { readonly what: "missing"; readonly thing: "order" | "payment" | "subscription" | "customer" }
  | { readonly what: "fingerprint"; readonly from: string; readonly to: string }
  | {
      readonly what: "amount";
      readonly fromMinor: bigint;
      readonly toMinor: bigint;
      readonly currency: string;
    }
  | { readonly what: "occurrence"; readonly from: number; readonly to: number }
  | { readonly what: "policy"; readonly from: string; readonly to: string }
  | { readonly what: "policy_refuses"; readonly sentence: string }
  /** A vote that no longer counts. */
  | { readonly what: "voter"; readonly userId: string; readonly sentence: string }
  /** Fewer votes than it takes, and none that was lost: the row was never complete. */
  | { readonly what: "votes"; readonly given: number; readonly needed: number };

/** One person's decision. */
export interface Vote {
  readonly userId: string;
  /** One value for one human. */
  readonly person: string;
  readonly verdict: "approve" | "deny";
  readonly note: string | null;
  readonly role: string;
  /** Which list or group gave the role. */
  readonly grantedBy: string | null;
  readonly cardVersion: number;
  readonly at: Date;
  /** Of a yes: that a person gave it; null: nobody sealed it. */
  readonly seal: string | null;
}

/** An approval row with its votes, as the rest of the program reads it. Written only by `src/approvals`. */
export interface Approval {
  readonly id: ApprovalId;
  readonly operationId: OperationId;
  readonly runId: RunId | null;
  readonly turnId: TurnId | null;
  readonly ticketId: TicketId | null;
  readonly state: ApprovalState;
  readonly version: bigint;
  /** Carried by the card's buttons; a click with another one is a click on an old card. */
  readonly cardVersion: number;
  readonly binding: ApprovalBinding;
  readonly bindingHash: string;
  readonly role: string;
  readonly approversNeeded: number;
  readonly confirmAmount: boolean;
  readonly predecessorId: ApprovalId | null;
  /** What changed since the predecessor's card. */
  readonly changes: readonly Change[];
  /** null: not looked at yet. Otherwise whether enough people could decide this, said when it was armed. */
  readonly gate:
    | { readonly satisfiable: true }
    | { readonly satisfiable: false; readonly sentence: string }
    | null;
  readonly expiresAt: Date;
  readonly remindersSent: number;
  readonly decidedAt: Date | null;
  readonly endCode: ApprovalEndCode | null;
  /** A sentence: what the end was about. */
  readonly endDetail: string | null;
  readonly denyNote: string | null;
  readonly suggestedMinor: bigint | null;
  readonly votes: readonly Vote[];
  readonly createdAt: Date;
  readonly updatedAt: Date;
}
