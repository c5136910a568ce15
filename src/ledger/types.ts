/** Parameters and outcomes of the room's functions. Outcomes are values: losing a race is an ordinary answer. */
import type { Tx } from "../db/connect.js";
import type { AttemptOutcome, AttemptVerdict, Evidence } from "../domain/evidence.js";
import type { Landing } from "../domain/identity.js";
import type { ApprovalId, CallId, OperationId, RunId, TicketId } from "../domain/ids.js";
import type { Json, JsonObject } from "../domain/json.js";
import type {
  Actor,
  Intent,
  Operation,
  OperationKind,
  OperationStatus,
  RefundScope,
} from "../domain/operation.js";
import type { Judge, Judgement } from "../domain/ports/judge.js";
import type { RequestMaterial, StoredRequest } from "../domain/ports/payment-provider.js";
import type { Move } from "../domain/recovery.js";
import type { ResolvingRefusal } from "../domain/resolving.js";

// ── prepare ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** One write of a turn as code computed it. Amounts in minor units. */
export interface Proposal {
  readonly callId: CallId;
  readonly intent: Intent;
  readonly landing: Landing;
  readonly itemRefs: readonly string[];
  readonly refundScope: RefundScope | null;
  /** Free text of the planner, unverified; never material. */
  readonly reason: string;
  readonly runId: RunId;
  readonly ticketId: TicketId;
  /** SHA-256 of the ticket's text as the run read it, for the audit log. */
  readonly ticketTextHash?: string;
  readonly filers: readonly string[];
  readonly bindingConfirmed: boolean;
  /** A person asked for a further occurrence of `of`; the ledger numbers it. Asking twice about one operation is asking once. */
  readonly further?: { readonly askedBy: string; readonly of: OperationId };
}

/** One person's vote as the audit log states it. */
export interface VoteFact {
  /** Slack user id; the log names its salted hash. */
  readonly userId: string;
  readonly verdict: "approve" | "deny";
  readonly role: string;
  /** The list or user group that gave the role when the vote was given; null: not recorded. */
  readonly grantedBy: string | null;
  /** Of the approval's card that was clicked. */
  readonly cardVersion?: number;
  /** UTC, ISO 8601. */
  readonly at: string;
}

/** The approval that an event is about, for the audit log. */
export interface ApprovalFact {
  readonly approvalId: ApprovalId;
  readonly votes: readonly VoteFact[];
  /** What no longer held, without names of people. */
  readonly changes?: readonly Json[];
}

/** An approval whose votes are complete, as its room knows it. */
export interface ApprovedBinding {
  readonly approvalId: ApprovalId;
  /** Slack user ids. */
  readonly approvedBy: readonly string[];
  readonly votes?: readonly VoteFact[];
  /** Compares world, policy and voters with the binding, in the transaction that prepares. */
  accepts(tx: Tx, now: { operation: Operation; judgement: Judgement }): Promise<BindingCheck>;
}
export type BindingCheck =
  | { readonly holds: true }
  | { readonly holds: false; readonly changes: readonly Json[] };

/** One write call of a turn: proposed now, or held before under `operationId`. */
export type TurnEntry =
  | { readonly callId: CallId; readonly proposal: Proposal }
  | {
      readonly callId: CallId;
      readonly operationId: OperationId;
      /** null: not approved (undecided, or decided otherwise). */
      readonly approval: ApprovedBinding | null;
      readonly bindingConfirmed: boolean;
    };

export interface PrepareTurn {
  readonly calls: readonly TurnEntry[];
  readonly judge: Judge<Tx>;
  /** Arms the approval of an operation that was just stored as AWAITING_APPROVAL; same transaction. */
  onHold(tx: Tx, held: { callId: CallId; operation: Operation; judgement: Judgement }): Promise<void>;
  /** Who sends at once what needs nobody's approval. Left out: claimed by whoever drives it. */
  readonly claim?: ClaimAtOnce;
}

/**
 * PREPARE and claim in one commit: for a turn of one write that is allowed without cooling off and happens outside. Frozen, it is
 * only prepared. The lease runs from the commit: whoever gets the claim sends it next.
 */
export interface ClaimAtOnce {
  readonly worker: string;
  readonly buildRequest: (material: RequestMaterial) => StoredRequest;
}

/** What became of one call. Nothing is `prepared` unless nothing of the turn is `held` or `drifted`. */
export type PerCall =
  /** Reserved; may be claimed, or is: then by `claim`, which nobody else has. */
  | {
      callId: CallId;
      outcome: "prepared";
      operation: Operation;
      judgement: Judgement;
      claim: Claim | null;
    }
  /** Stored without a reservation; waits for its approval. `judgement` is null when it was held before and not judged again. */
  | { callId: CallId; outcome: "held"; operation: Operation; judgement: Judgement | null }
  /** Allowed, but a sibling is held: no row, nothing reserved. An approved sibling keeps its row and its approval. */
  | { callId: CallId; outcome: "ready"; operation: Operation | null }
  /** The approval no longer fits; the operation itself may be asked for again. */
  | {
      callId: CallId;
      outcome: "drifted";
      operation: Operation;
      judgement: Judgement;
      changes: readonly Json[];
    }
  /** The same intent exists and may have, or had, an effect: the run waits with it, or its stored result is told. */
  | { callId: CallId; outcome: "same"; operation: Operation }
  /** Denied (or refused by the provider) before in this ticket: told again. */
  | { callId: CallId; outcome: "denied_before"; operation: Operation }
  /** Held before and ended without an effect while its turn waited, or voided here because it no longer fits the world. */
  | { callId: CallId; outcome: "ended"; operation: Operation }
  /** By the policy or by the world; no row. */
  | { callId: CallId; outcome: "refused"; code: string; sentence: string; judgement: Judgement | null }
  /** No row. */
  | { callId: CallId; outcome: "insufficient"; leftMinor: bigint; currency: string; sentence: string }
  /** Same key, other material fields. */
  | { callId: CallId; outcome: "conflict"; operation: Operation; sentence: string };

// ── claim, settle ───────────────────────────────────────────────────────────────────────────────────────────────

/** The right to send one attempt, fenced by `leaseToken`. */
export interface Claim {
  readonly operation: Operation;
  readonly attempt: number;
  readonly leaseToken: bigint;
  /** The request as it was stored with the first attempt. */
  readonly request: StoredRequest;
  /** Database time. */
  readonly leaseUntil: Date;
}

export type ClaimLost =
  | { readonly claimed: false; readonly why: "not_found" }
  /** Somebody else moved it; `operation` as it is now. */
  | { readonly claimed: false; readonly why: "moved"; readonly operation: Operation }
  | { readonly claimed: false; readonly why: "frozen"; readonly operation: Operation }
  /** Cooling off, or backing off after a proven non-execution. */
  | { readonly claimed: false; readonly why: "not_yet"; readonly operation: Operation; readonly until: Date }
  /** The key's life is over: it is never sent again. */
  | { readonly claimed: false; readonly why: "key_expired"; readonly operation: Operation }
  /** Something was recorded about it since its reconciler took it: it is read again first. */
  | { readonly claimed: false; readonly why: "news"; readonly operation: Operation }
  /** The guard said no; nothing was changed. */
  | { readonly claimed: false; readonly why: "guard"; readonly operation: Operation; readonly detail: Json };

export type ClaimResult = ({ readonly claimed: true } & Claim) | ClaimLost;

export interface ClaimRequest {
  readonly operation: Operation;
  readonly worker: string;
  /** Stored if this is the first attempt; later attempts send the stored one. */
  readonly request: StoredRequest;
  readonly leaseMs?: number;
  /** Looked at in the claim's transaction, before the row is locked (it may lock an approval). */
  readonly guard?: (tx: Tx, operation: Operation) => Promise<{ ok: true } | { ok: false; detail: Json }>;
}

export interface LeaseRef {
  readonly operationId: OperationId;
  readonly leaseToken: bigint;
}

/** Whether a byte may leave now. */
export type SendCheck =
  | { readonly ok: true }
  | { readonly ok: false; readonly code: "lease_lost" | "key_expiring" | "frozen" };

export interface SettleRequest extends LeaseRef {
  readonly attempt: number;
  readonly outcome: AttemptOutcome;
  /** The claim's operation: makes the usual case one statement. */
  readonly operation?: Operation;
}

export type SettleResult =
  | { readonly settled: true; readonly operation: Operation }
  /** The lease was lost: stored as evidence, the attempt's verdict noted, the reconciler woken. */
  | { readonly settled: false; readonly why: "fenced"; readonly operation: Operation };

// ── reconcile ───────────────────────────────────────────────────────────────────────────────────────────────────

/** A row that someone must look at. */
export interface DueOperation {
  readonly id: OperationId;
  readonly status: OperationStatus;
  readonly dueAt: Date;
  /** What a quarantined operation is due for: new evidence, an authorised retry, or its card. null for every other status. */
  readonly quarantine: "evidence" | "authorised" | "repost" | null;
}

/** A reconciler's lease with what recovery needs to decide. */
export interface Taken {
  readonly operation: Operation;
  readonly leaseToken: bigint;
  readonly attempts: readonly AttemptRow[];
  /** Database time of the taking. */
  readonly now: Date;
  readonly lastSendEndedAt: Date | null;
  readonly leaseUntil: Date;
  /** It had ended before, and nobody has authorised sending it again since. */
  readonly endedBefore: boolean;
}

export interface SettleReconcile extends LeaseRef {
  readonly evidence: Evidence;
  /** `send_again` is not settled here: call `resend`. */
  readonly move: Exclude<Move, { do: "send_again" }>;
}

export type Reconciled =
  | { readonly settled: true; readonly operation: Operation }
  | { readonly settled: false; readonly why: "fenced" | "not_found"; readonly operation: Operation | null };

// ── transitions by people and rooms ─────────────────────────────────────────────────────────────────────────────

export type Moved =
  | { readonly moved: true; readonly operation: Operation }
  /** The state does not allow it (any more). */
  | { readonly moved: false; readonly operation: Operation | null };

export interface EndWithoutEffect {
  readonly operationId: OperationId;
  readonly actor: Actor;
  /** Machine code and a sentence; both are stored as the result and replayed. */
  readonly code: string;
  readonly detail: string;
  /** The approval whose decision this is. */
  readonly approval?: ApprovalFact;
}

export type LocalOutcome =
  | { readonly done: true; readonly operation: Operation }
  | { readonly done: false; readonly lost: ClaimLost };

// ── evidence, incidents, freeze, resolutions ────────────────────────────────────────────────────────────────────

export type EvidenceSource = "response" | "late_response" | "probe" | "webhook" | "sweep" | "person";

export interface NewEvidence {
  readonly operationId: OperationId | null;
  readonly source: EvidenceSource;
  readonly providerRef: string | null;
  /** One for each distinct fact: object, status, amount. */
  readonly dedupeKey: string;
  readonly payload: JsonObject;
}

export type IncidentKind =
  | "orphan_effect"
  | "missing_effect"
  | "duplicate_effect"
  | "contradiction"
  | "reversed"
  | "refunded_elsewhere"
  | "overdrawn"
  | "import_below_reserved"
  | "late_effect"
  | "freeze_tripped"
  | "row_changed"
  | "made_differently"
  | "other_currency";

export interface NewIncident {
  readonly kind: IncidentKind;
  /** The same key is the same finding, whoever finds it again. */
  readonly dedupeKey: string;
  readonly operationId: OperationId | null;
  readonly paymentId: string | null;
  readonly detail: JsonObject;
}

export interface Incident extends NewIncident {
  readonly id: string;
  readonly status: "open" | "closed";
  readonly closedBy: string | null;
  readonly closeReason: string | null;
  readonly closedAt: Date | null;
  readonly createdAt: Date;
}

export type FreezeKind = OperationKind | "all";

export interface FreezeSwitch {
  readonly kind: FreezeKind;
  readonly frozen: boolean;
  readonly by: string | null;
  readonly reason: string | null;
  readonly at: Date | null;
  readonly thawAskedBy: string | null;
  /** Until when another person may agree to the thaw. */
  readonly thawExpiresAt: Date | null;
  /** Grows with every turn of the switch and every request: what a card was made from. */
  readonly version: number;
}

export type ResolveVerb = "confirm" | "reject" | "retry";
/** `reopen`: a person's end was opened again. */
export type ResolutionVerb = ResolveVerb | "reopen";
export type ResolutionState = "proposed" | "applied" | "disagreed" | "refused" | "superseded" | "expired";

/** In a resolution's `probe`: why it was refused at the agreement (`code`), and what the provider showed then (`shown`). */
export const REFUSED_BY = "refusedBy";

/**
 * In a resolution's `probe`: what the provider answered when a second person wanted to agree and it was another answer than the one shown
 * (`shown`), and how often that happened (`times`). The request's card shows it since.
 */
export const SHOWN_SINCE = "shownSince";

/** In a resolution's `probe`: what the provider answered at the agreement by which it was carried out. */
export const AGREED_ON = "agreedOn";

export interface Resolution {
  readonly id: string;
  readonly operationId: OperationId;
  readonly verb: ResolutionVerb;
  readonly state: ResolutionState;
  /** The operation's version that was looked at (proposed), or that this resolution made (applied). */
  readonly operationVersion: bigint;
  readonly by: string;
  readonly reason: string;
  readonly evidenceRef: string;
  readonly probe: JsonObject;
  readonly secondBy: string | null;
  readonly secondVerdict: "agree" | "disagree" | null;
  readonly secondNote: string | null;
  /** That people decided just this; null: made before there were seals, or ended without being carried out. */
  readonly seal: string | null;
  /** Until when a second person may answer. */
  readonly expiresAt: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface ResolveRequest {
  readonly operationId: OperationId;
  /** As it was read when the person's right and the provider were looked at. */
  readonly expectedVersion: bigint;
  readonly verb: ResolveVerb;
  /** Slack user id. */
  readonly by: string;
  readonly reason: string;
  readonly evidenceRef: string;
  /** What the provider said just before. */
  readonly probe: Evidence;
  /** The caller's policy asks for a second person; the ledger itself asks for one where the contract does. */
  readonly needsSecond: boolean;
  /** How long a proposal waits for the second person. Milliseconds. */
  readonly secondWithinMs: number;
  /** When it was sent in: what it came to since then is not done a second time. */
  readonly typedAt?: Date;
}

export type ResolveResult =
  | { readonly outcome: "applied"; readonly resolution: Resolution; readonly operation: Operation }
  | { readonly outcome: "needs_second"; readonly resolution: Resolution }
  | {
      readonly outcome: "not_safe";
      readonly code: NotSafe;
      readonly operation: Operation;
      /** `anothers_effect`: whose. */
      readonly other?: OperationId;
    }
  /** An open proposal exists, or the operation moved. */
  | { readonly outcome: "overtaken"; readonly by: string | null; readonly operation: Operation | null }
  /** This very decision was carried out before; nothing was changed now. */
  | { readonly outcome: "repeated"; readonly resolution: Resolution; readonly operation: Operation };

/** Why not now: as judged by `judgeResolving`, by what is named as the effect (`namedEffect`), or because of who asks. */
export type NotSafe =
  | ResolvingRefusal
  | "names_none_shown"
  | "named_differs"
  | "anothers_effect"
  | "filed_it_themselves"
  | "same_person"
  /** What a second person agreed to is not what the log tells that a first one asked for. */
  | "not_asked";

export interface SecondRequest {
  readonly resolutionId: string;
  readonly by: string;
  readonly verdict: "agree" | "disagree";
  readonly note: string | null;
  readonly probe: Evidence;
  /** Of the card that was answered: how often the provider's answer on it had changed. Absent: never. */
  readonly seen?: number;
}

export type SecondResult =
  | ResolveResult
  | { readonly outcome: "disagreed"; readonly resolution: Resolution }
  /** The provider answers otherwise than the card that was agreed to said: nothing was done, and the card says it now. */
  | { readonly outcome: "shown_anew"; readonly resolution: Resolution }
  /** Nobody agreed in time. */
  | { readonly outcome: "expired"; readonly resolution: Resolution };

export interface ReopenRequest {
  readonly operationId: OperationId;
  /** As it was read when the person's right was looked at. */
  readonly expectedVersion: bigint;
  /** Slack user id. */
  readonly by: string;
  readonly reason: string;
  readonly evidenceRef: string;
  /** When it was sent in: what it came to since then is not done a second time. */
  readonly typedAt?: Date;
}

export type ReopenResult =
  | { readonly outcome: "reopened"; readonly resolution: Resolution; readonly operation: Operation }
  | {
      readonly outcome: "not_safe";
      readonly code: "wrong_state" | "filed_it_themselves" | "repeated";
      readonly operation: Operation;
    }
  | { readonly outcome: "overtaken"; readonly operation: Operation | null };

// ── reads ───────────────────────────────────────────────────────────────────────────────────────────────────────

export interface AttemptRow {
  readonly number: number;
  readonly leaseToken: bigint;
  readonly worker: string;
  readonly startedAt: Date;
  readonly timeoutMs: number;
  readonly finishedAt: Date | null;
  readonly verdict: AttemptVerdict | "open";
  readonly code: string | null;
  readonly httpStatus: number | null;
  readonly providerRef: string | null;
  readonly requestId: string | null;
  readonly evidence: Json;
}

export interface OperationEvent {
  /** Position in the whole log. */
  readonly id: bigint;
  readonly operationId: OperationId;
  readonly seq: number;
  /** UTC with microseconds, `2026-11-02T09:00:00.123456Z`. */
  readonly at: string;
  readonly type: string;
  readonly from: OperationStatus | null;
  readonly to: OperationStatus | null;
  /** A person's Slack id again, or `erased` where it was erased. */
  readonly actor: string;
  readonly attempt: number | null;
  readonly data: JsonObject;
  readonly prevHash: string;
  readonly hash: string;
}

/** An event of the operation's own chain, or, without a number in it, one of a request about it. */
export type StoryEvent = Omit<OperationEvent, "seq"> & { readonly seq: number | null };

export interface Waiter {
  readonly runId: RunId;
  readonly ticketId: TicketId;
  readonly filer: string;
  readonly joinedAt: Date;
}

export interface EvidenceRow {
  readonly id: string;
  readonly operationId: OperationId | null;
  readonly source: EvidenceSource;
  readonly providerRef: string | null;
  readonly payload: JsonObject;
  readonly at: Date;
}

export interface Page<T> {
  readonly rows: readonly T[];
  /** Opaque; hand it back for the next page. null: no more. */
  readonly next: string | null;
}

// ── audit ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** Something that does not recompute. `where` is an event's number, an operation's or payment's id, or a block's number. */
export interface BrokenLink {
  readonly what: "event" | "operation" | "subject" | "payment" | "total" | "policy" | "block";
  /** Id of the row; of a subject its name, of a total its scope, kind, currency and bucket. */
  readonly where: string;
  readonly operationId: OperationId | null;
  readonly seq: number | null;
  readonly problem: string;
}

/** The log of one operation, recomputed. */
export interface OperationAudit {
  /** What does not hold; empty: intact. */
  readonly broken: readonly BrokenLink[];
  readonly events: number;
  /** Hash of its last event, as its row keeps it. */
  readonly headHash: string;
  /** Blocks of the global chain that hold its events, oldest first. */
  readonly blocks: readonly { readonly seq: bigint; readonly hash: string; readonly sealedAt: Date }[];
  /** Events that no block holds yet. */
  readonly unsealed: number;
}

export interface AuditReport {
  readonly intact: boolean;
  readonly events: number;
  readonly operations: number;
  /** Events about freeze switches, incidents and the policy. */
  readonly subjectEvents: number;
  readonly blocks: number;
  readonly sealedEvents: number;
  /** Seals of decisions that were looked at; null: there was no secret to look at them with. */
  readonly decisionSeals: number | null;
  /** In the order of the log; the first is the one to name. At most 100. */
  readonly broken: readonly BrokenLink[];
}
