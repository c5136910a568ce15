/**
 * The use cases that Slack's listeners call, as this room needs them. The composition root fills them from `runs`, `approvals` and
 * `ops`; every one is one transaction (or none), may be called again with the same arguments, and answers with a value that
 * holds all that the sentence to the person needs. None of them talks to Slack.
 */
import type { ApprovalId, OperationId, RunId, TicketId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import type { OperationKind, OperationStatus } from "../domain/operation.js";
import type { RunState } from "../domain/run.js";

export interface TicketFile {
  readonly id: string;
  readonly name: string;
  readonly mimetype: string;
  readonly size: number;
}

export interface FileTicket {
  readonly source: "message" | "form" | "shortcut";
  readonly teamId: string;
  readonly channelId: string;
  /** The message that is the ticket; null for a form, whose message is posted later (`threadOpened`). */
  readonly messageTs: string | null;
  /** Root of the thread in which we answer; null until `threadOpened`. */
  readonly threadTs: string | null;
  readonly filer: string;
  /** Everybody who counts as filer, `filer` among them. */
  readonly filers: readonly string[];
  /** Decoded once from Slack's wire form, never blank. */
  readonly text: string;
  readonly files: readonly TicketFile[];
  /** An order reference or e-mail that the filer typed into a field of its own: binds as confirmed. Null if none. */
  readonly reference: string | null;
  /** One ticket for one key, whatever else differs. */
  readonly dedupeKey: string;
}

export type FiledTicket =
  | { readonly outcome: "filed"; readonly ticketId: TicketId; readonly runId: RunId }
  /** The message is a ticket already; the given filers were added to it. */
  | { readonly outcome: "exists"; readonly ticketId: TicketId };

export type BindingAnswer =
  | { readonly outcome: "confirmed"; readonly customer: string }
  | { readonly outcome: "changed"; readonly customer: string }
  | { readonly outcome: "not_filer"; readonly filers: readonly string[] }
  | { readonly outcome: "already_confirmed"; readonly customer: string }
  | { readonly outcome: "not_found"; readonly reference: string }
  | { readonly outcome: "ambiguous"; readonly candidates: readonly string[] }
  /** An effect under the old binding is under way or done. */
  | { readonly outcome: "too_late"; readonly why: string }
  | { readonly outcome: "unknown_ticket" };

export interface TicketUseCases {
  /** Files the ticket, binds it from its text, starts its run. */
  file(input: FileTicket): Promise<FiledTicket>;
  /** The message that carries the ticket's thread was posted: its channel and timestamp, once. */
  threadOpened(input: { ticketId: TicketId; channelId: string; messageTs: string }): Promise<void>;
  /** A person wrote in the thread: information for the run when the filer did, nothing otherwise. Never an approval. */
  note(input: {
    ticketId: TicketId;
    author: string;
    text: string;
    dedupeKey: string;
  }): Promise<
    | { readonly outcome: "added"; readonly runState: RunState }
    | { readonly outcome: "not_filer" }
    | { readonly outcome: "no_active_run"; readonly runState: RunState | null }
    | { readonly outcome: "duplicate" }
  >;
  requestCancel(input: {
    runId: RunId;
    by: string;
  }): Promise<
    | { readonly outcome: "requested" }
    | { readonly outcome: "already_requested"; readonly by: string }
    | { readonly outcome: "ended"; readonly state: RunState }
    | { readonly outcome: "not_filer"; readonly filers: readonly string[] }
    | { readonly outcome: "unknown_run" }
  >;
  confirmBinding(input: { ticketId: TicketId; by: string }): Promise<BindingAnswer>;
  /** Binds the ticket to the one customer that `reference` (order or e-mail) finds; counts as confirmed. */
  changeBinding(input: { ticketId: TicketId; by: string; reference: string }): Promise<BindingAnswer>;
  /** "This is a further refund": the one door to occurrence n + 1 of an operation that was replayed. */
  furtherRefund(input: {
    operationId: OperationId;
    ticketId: TicketId;
    by: string;
  }): Promise<
    | { readonly outcome: "asked"; readonly operationId: OperationId }
    | { readonly outcome: "not_filer" }
    | { readonly outcome: "already_asked"; readonly operationId: OperationId }
    | { readonly outcome: "refused"; readonly sentence: string }
  >;
}

/** Where the person saw what they clicked: a posted card, or App Home. */
export type Seen =
  | { readonly where: "message"; readonly channelId: string; readonly messageTs: string }
  | { readonly where: "home" };

/** What happened to a click on an approval, with everything that its sentence needs. */
export type DecideOutcome =
  /** The vote was stored. `missing`: further approvals needed; `siblings`: undecided cards of the same turn. */
  | {
      readonly outcome: "approved";
      readonly approvalId: ApprovalId;
      readonly missing: number;
      readonly siblings: number;
    }
  | { readonly outcome: "denied"; readonly approvalId: ApprovalId }
  /** A deny that came too late: the operation had left. */
  | { readonly outcome: "already_sent"; readonly status: OperationStatus }
  | { readonly outcome: "already_voted"; readonly verdict: "approve" | "deny"; readonly at: Date }
  | {
      readonly outcome: "already_decided";
      readonly state: string;
      readonly by: readonly string[];
      readonly at: Date | null;
      readonly status: OperationStatus;
    }
  | { readonly outcome: "expired"; readonly expiredAt: Date }
  /** The binding no longer holds: this approval is dead, a new card may follow. */
  | { readonly outcome: "voided"; readonly changes: readonly string[]; readonly successor: ApprovalId | null }
  | { readonly outcome: "stale_card"; readonly current: number }
  | { readonly outcome: "not_allowed"; readonly sentence: string }
  | { readonly outcome: "amount_not_repeated"; readonly expected: string }
  | { readonly outcome: "unknown_approval" }
  /** Nothing was recorded; click again. */
  | { readonly outcome: "try_again"; readonly sentence: string };

export interface Decide {
  readonly approvalId: ApprovalId;
  readonly cardVersion: number;
  readonly userId: string;
  readonly verdict: "approve" | "deny";
  readonly note?: string;
  /** As typed. */
  readonly repeatedAmount?: string;
  /** Minor units of the operation's currency. */
  readonly suggestedMinor?: bigint;
  readonly seen: Seen;
}

export interface ApprovalUseCases {
  decide(input: Decide): Promise<DecideOutcome>;
  /** Takes an approved, not yet sent operation back during its cooling-off. */
  undo(input: { approvalId: ApprovalId; userId: string; seen: Seen }): Promise<DecideOutcome>;
  /** Approvals that this person may decide now, most urgent first. */
  pendingFor(input: { userId: string; limit: number }): Promise<readonly ApprovalId[]>;
}

// ── on-call ─────────────────────────────────────────────────────────────────────────────────────────────────────

export type ResolutionVerb = "confirm" | "reject" | "retry";

/** One operation as on-call sees it in a list. */
export interface OperationLine {
  readonly id: OperationId;
  readonly kind: OperationKind;
  readonly status: OperationStatus;
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly order: string | null;
  readonly subscription: string | null;
  readonly customer: string;
  readonly createdAt: Date;
  readonly unknownSince: Date | null;
}

export interface OperationDetail extends OperationLine {
  readonly key: string;
  readonly idempotencyKey: string;
  readonly ticketId: TicketId | null;
  readonly runId: RunId | null;
  readonly approvedBy: readonly string[];
  readonly filers: readonly string[];
  readonly providerRef: string | null;
  readonly quarantineReason: string | null;
  readonly attempts: readonly {
    readonly number: number;
    readonly startedAt: Date;
    readonly finishedAt: Date | null;
    readonly verdict: string;
    readonly code: string | null;
  }[];
  /** Sentences: what is known, what recovery the contract allows and why, what is safe to do now. */
  readonly known: readonly string[];
  readonly allowed: readonly string[];
  readonly safeNow: readonly string[];
  /** Verbs that would be accepted now, and the reason for each that would not. */
  readonly verbs: { readonly [verb in ResolutionVerb]: { ok: true } | { ok: false; why: string } };
}

export interface EventLine {
  readonly seq: number;
  readonly at: Date;
  readonly type: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly actor: string;
  readonly attempt: number | null;
  readonly summary: string;
}

/** A reference typed by a person: exact, an unambiguous prefix, or neither. */
export type Found<T> =
  | { readonly found: "one"; readonly value: T }
  | { readonly found: "several"; readonly candidates: readonly string[] }
  | { readonly found: "none"; readonly suggestion: string | null };

export type ResolveOutcome =
  | { readonly outcome: "applied"; readonly status: OperationStatus; readonly sentence: string }
  /** A second person has to agree; the card for it is on its way. */
  | { readonly outcome: "second_needed"; readonly resolutionId: string; readonly sentence: string }
  | { readonly outcome: "refused"; readonly sentence: string }
  | { readonly outcome: "try_again"; readonly sentence: string };

export type FreezeOutcome =
  | { readonly outcome: "frozen"; readonly inFlight: readonly OperationLine[] }
  | { readonly outcome: "already_frozen"; readonly by: string | null; readonly at: Date | null }
  | { readonly outcome: "thawed" }
  | { readonly outcome: "second_needed"; readonly thawId: string; readonly sentence: string }
  | { readonly outcome: "not_frozen" }
  | { readonly outcome: "refused"; readonly sentence: string };

export type FreezeKind = "all" | OperationKind;

/** Use cases behind `/ops`, the quarantine card and the second person's card. Each checks the on-call role itself, failing closed. */
export interface OpsUseCases {
  /** May this person use /ops now? The sentence says why not. */
  mayUse(input: { userId: string }): Promise<{ ok: true } | { ok: false; sentence: string }>;
  list(input: { status: OperationStatus | null; cursor: string | null; limit: number }): Promise<{
    readonly operations: readonly OperationLine[];
    readonly next: string | null;
    readonly counts: readonly { readonly status: OperationStatus; readonly count: number }[];
  }>;
  show(input: { reference: string }): Promise<Found<OperationDetail>>;
  events(input: {
    reference: string;
  }): Promise<Found<{ readonly id: OperationId; readonly events: readonly EventLine[] }>>;
  /** What the provider says now, for the form: read before the person decides. */
  probe(input: {
    operationId: OperationId;
  }): Promise<{ readonly sentence: string; readonly evidence: JsonObject }>;
  resolve(input: {
    operationId: OperationId;
    verb: ResolutionVerb;
    userId: string;
    reason: string;
    evidence: string;
  }): Promise<ResolveOutcome>;
  /** The second person's answer on a resolution. */
  second(input: {
    resolutionId: string;
    userId: string;
    agree: boolean;
    note: string;
  }): Promise<ResolveOutcome>;
  runs(input: { limit: number }): Promise<
    readonly {
      readonly id: RunId;
      readonly ticketId: TicketId;
      readonly state: RunState;
      readonly steps: number;
      readonly createdAt: Date;
    }[]
  >;
  approvals(input: { limit: number }): Promise<
    readonly {
      readonly id: ApprovalId;
      readonly operation: OperationLine;
      readonly role: string;
      readonly votes: number;
      readonly needed: number;
      readonly expiresAt: Date;
    }[]
  >;
  freeze(input: { kind: FreezeKind; userId: string; reason: string }): Promise<FreezeOutcome>;
  thaw(input: { kind: FreezeKind; userId: string; reason: string }): Promise<FreezeOutcome>;
  /** The second person's answer on a thaw. */
  thawSecond(input: { thawId: string; userId: string; agree: boolean }): Promise<FreezeOutcome>;
  /** One line per part of the system. */
  health(): Promise<readonly { readonly part: string; readonly ok: boolean; readonly detail: string }[]>;
  /** For App Home of on-call. */
  attention(): Promise<{
    readonly unknown: readonly OperationLine[];
    readonly quarantined: readonly OperationLine[];
    readonly frozen: readonly {
      readonly kind: FreezeKind;
      readonly by: string | null;
      readonly at: Date | null;
    }[];
  }>;
}

export interface SlackUseCases {
  readonly tickets: TicketUseCases;
  readonly approvals: ApprovalUseCases;
  readonly ops: OpsUseCases;
}
