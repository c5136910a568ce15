/**
 * Operations: one intended business effect, at most one success.
 *
 * 1. The transition table below is the only one; the database repeats it (`operation_transitions`) and a test compares both.
 * 2. `next` is total: every pair of state and event has an answer, and an illegal pair is refused, never ignored.
 * 3. PREPARED means that no attempt exists that may have committed.
 */
import type { ApprovalId, OperationId, RunId, TicketId } from "./ids.js";

export const OPERATION_KINDS = ["refund", "cancel_order", "cancel_subscription"] as const;
export type OperationKind = (typeof OPERATION_KINDS)[number];

export const OPERATION_STATUSES = [
  "AWAITING_APPROVAL",
  "PREPARED",
  "DISPATCHED",
  "OUTCOME_UNKNOWN",
  "RECONCILING",
  "QUARANTINED",
  "CONFIRMED",
  "REJECTED",
  "DENIED",
  "EXPIRED",
  "VOIDED",
  "REVERSED",
] as const;
export type OperationStatus = (typeof OPERATION_STATUSES)[number];

/** A state as people read it, "outcome unknown", and as `/ops list` takes it. */
export const stateWords = (status: string): string => status.toLowerCase().replaceAll("_", " ");

/** Denied by Undo: it had been approved. */
export const isTakenBack = ({ result }: { readonly result: { readonly code: string } | null }): boolean =>
  result?.code === "undone";

/** Ends. CONFIRMED and REJECTED may still be contradicted by evidence; the others never move again, REVERSED included. */
export const ENDED: ReadonlySet<OperationStatus> = new Set([
  "CONFIRMED",
  "REJECTED",
  "DENIED",
  "EXPIRED",
  "VOIDED",
  "REVERSED",
]);

/** States in which money is set aside because it may still be spent. */
export const RESERVING: ReadonlySet<OperationStatus> = new Set([
  "PREPARED",
  "DISPATCHED",
  "OUTCOME_UNKNOWN",
  "RECONCILING",
  "QUARANTINED",
]);

/** Sent, and nobody knows yet what came of it: what a person may resolve. */
export const OPEN_OUTCOMES: ReadonlySet<OperationStatus> = new Set([
  "OUTCOME_UNKNOWN",
  "RECONCILING",
  "QUARANTINED",
]);

/** What can happen to an operation. The comment behind each names who may say so. */
export const OPERATION_EVENTS = [
  "release", // votes complete, world and policy agree (reserves)
  "deny", // a person said no
  "expire", // nobody decided
  "void", // a material field changed, superseded, nobody waits
  "claim", // a worker took the lease and wrote the attempt
  "settle_confirmed", // the attempt's verdict, or evidence while reconciling
  "settle_rejected", // every attempt proven not executed, terminal
  "settle_unknown", // the outcome is open
  "not_executed", // every attempt proven not executed, and it may be tried again
  "reconcile", // a reconciler took the lease
  "resend", // attempt n + 1 with the same key
  "quarantine", // no machine can settle it, or evidence contradicts an end
  "reverse", // the provider took it back days later
] as const;
export type OperationEventType = (typeof OPERATION_EVENTS)[number];

type Row = Partial<Record<OperationEventType, OperationStatus>>;

export const TRANSITIONS = {
  AWAITING_APPROVAL: { release: "PREPARED", deny: "DENIED", expire: "EXPIRED", void: "VOIDED" },
  PREPARED: { claim: "DISPATCHED", deny: "DENIED", void: "VOIDED" },
  DISPATCHED: {
    settle_confirmed: "CONFIRMED",
    settle_rejected: "REJECTED",
    settle_unknown: "OUTCOME_UNKNOWN",
    not_executed: "PREPARED",
  },
  OUTCOME_UNKNOWN: { reconcile: "RECONCILING" },
  RECONCILING: {
    settle_confirmed: "CONFIRMED",
    settle_rejected: "REJECTED",
    settle_unknown: "OUTCOME_UNKNOWN",
    quarantine: "QUARANTINED",
    resend: "DISPATCHED",
    not_executed: "PREPARED",
  },
  QUARANTINED: {
    settle_confirmed: "CONFIRMED",
    settle_rejected: "REJECTED",
    resend: "DISPATCHED",
    reconcile: "RECONCILING",
  },
  CONFIRMED: { reverse: "REVERSED", quarantine: "QUARANTINED" },
  REJECTED: { quarantine: "QUARANTINED" },
  DENIED: {},
  EXPIRED: {},
  VOIDED: {},
  REVERSED: {},
} as const satisfies Record<OperationStatus, Row>;

export type Transition =
  | { legal: true; to: OperationStatus }
  | { legal: false; from: OperationStatus; event: OperationEventType };

/** The state that follows, or a refusal. Pure and total. */
export function next(from: OperationStatus, event: OperationEventType): Transition {
  const row: Row = TRANSITIONS[from];
  const to = row[event];
  return to === undefined ? { legal: false, from, event } : { legal: true, to };
}

/** How the refunded amount was named. Never part of an operation's identity. */
export type RefundScope = "everything_left" | "items" | "amount";

/** Who did something: a person by Slack user id, or one of our parts by name. */
export type Actor = `slack:${string}` | `system:${string}` | `run:${string}` | `cli:${string}`;

/** The material fields of an operation, as code (never the model) computed them. Amounts in minor units. */
export interface Intent {
  kind: OperationKind;
  customerRef: string;
  orderRef: string | null;
  subscriptionRef: string | null;
  /** 0n for effects that move no money by themselves. */
  amountMinor: bigint;
  /** ISO 4217; for effects without money the currency of the order, or "" for a subscription. */
  currency: string;
  /** cancel_subscription only: at the end of the period (true) or at once. */
  atPeriodEnd: boolean | null;
  /** 1, unless a person made it a further one. */
  occurrence: number;
}

/** An operation row as the rest of the program reads it. Written only by the ledger. */
export interface Operation extends Intent {
  id: OperationId;
  key: string;
  status: OperationStatus;
  version: bigint;
  fingerprint: string;
  contractVersion: string;
  idempotencyKey: string;
  paymentIntent: string | null;
  providerSubscription: string | null;
  itemRefs: readonly string[];
  refundScope: RefundScope | null;
  /** Free text of the planner. Unverified, never material. */
  reason: string;
  policyHash: string;
  approvalId: ApprovalId | null;
  approvedBy: readonly string[];
  predecessorId: OperationId | null;
  ownerRunId: RunId | null;
  ticketId: TicketId | null;
  /** Slack user ids that count as filer. */
  filers: readonly string[];
  providerRef: string | null;
  /** Stored result once ended, replayed to whoever asks again. */
  result: OperationResult | null;
  quarantineReason: string | null;
  attempts: number;
  leaseToken: bigint;
  notBefore: Date | null;
  firstClaimedAt: Date | null;
  unknownSince: Date | null;
  /** The end was decided by a person (REJECTED so keeps its key). */
  resolvedByPerson: boolean;
  createdAt: Date;
  updatedAt: Date;
}

/** What an ended operation tells whoever asked for it. Sentences are made from this by code. */
export interface OperationResult {
  code: string;
  detail: string;
  providerRef?: string;
}
