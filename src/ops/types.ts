/**
 * What on-call sees and may do, as data. Texts are made by whoever shows it; a `sentence` here is ready to show.
 *
 * 1. Every use case authorises its caller itself, by a reading of the directory at most 5 s old, failing closed.
 * 2. Looking changes nothing. What changes the world is said in the ops channel, in the transaction of the change.
 */
import type { Approval, ApprovalState } from "../domain/approval.js";
import type { EffectContract } from "../domain/contract.js";
import type { AttemptVerdict } from "../domain/evidence.js";
import type { Frozen } from "../domain/frozen.js";
import type { ApprovalId, OperationId, RunId, TicketId } from "../domain/ids.js";
import type { Json } from "../domain/json.js";
import type { Operation, OperationKind, OperationStatus } from "../domain/operation.js";
import type { RunState } from "../domain/run.js";
import type { FreezeSwitch, IncidentKind } from "../ledger/index.js";
import type { AskedFor } from "../runs/index.js";

/** A word list read from `/ops …`. `kind` all: every kind of effect. */
export type OpsCommand =
  | { readonly verb: "help" }
  | { readonly verb: "list"; readonly status: OperationStatus | null }
  | { readonly verb: "show"; readonly ref: string }
  | { readonly verb: "events"; readonly ref: string }
  | { readonly verb: ResolveVerb | "reopen" | "close"; readonly ref: string }
  | { readonly verb: "incidents" }
  | { readonly verb: "runs" }
  | { readonly verb: "approvals" }
  | { readonly verb: "freeze"; readonly kind: FreezeKind; readonly reason: string | null }
  | { readonly verb: "thaw"; readonly kind: FreezeKind }
  | { readonly verb: "health" };

export type ResolveVerb = "confirm" | "reject" | "retry";
/** `reopen`: a person's end was opened again. */
export type ResolutionVerb = ResolveVerb | "reopen";
export type FreezeKind = OperationKind | "all";

export type ParsedCommand =
  | { readonly ok: true; readonly command: OpsCommand }
  /** `suggestion` is a whole command to type instead ("/ops show op_…"), when there is a good guess. */
  | { readonly ok: false; readonly sentence: string; readonly suggestion: string | null };

/** Not on-call, or it cannot be known: nothing is shown and nothing changed. */
export interface Refused {
  readonly outcome: "refused";
  readonly reason: string;
  readonly sentence: string;
}

/** What may have been meant, whole, so that whoever asked sees which one it is. */
export type Suggestion =
  | { readonly kind: "operation"; readonly operation: Operation }
  | { readonly kind: "incident"; readonly incident: IncidentRow };

/** An id or the beginning of one that names nothing, or several. `suggestions`: newest first. */
export interface Unresolved {
  readonly outcome: "unresolved";
  readonly sentence: string;
  readonly suggestions: readonly Suggestion[];
}

export interface ListView {
  readonly outcome: "list";
  /** Operations that are not at an end, by state; ended ones are history and are not counted. */
  readonly counts: Readonly<Partial<Record<OperationStatus, number>>>;
  readonly status: OperationStatus | null;
  readonly operations: readonly Operation[];
  /** Of those that ended without an effect, the one that asked for the same afterwards. */
  readonly askedAgain: ReadonlyMap<OperationId, Operation>;
  /** Those that the provider answered with "slow down". */
  readonly slowedDown: ReadonlySet<OperationId>;
  /** What is frozen now; of what waits, nothing of that is sent. */
  readonly frozen: readonly FreezeState[];
  /** Opaque; hand it back for the next page. null: no more. */
  readonly next: string | null;
}

/** One try as on-call needs it: when, what came back, what that proves. */
export interface AttemptView {
  readonly number: number;
  readonly startedAt: Date;
  readonly finishedAt: Date | null;
  readonly verdict: AttemptVerdict | "open";
  readonly code: string | null;
  readonly httpStatus: number | null;
  readonly providerRef: string | null;
  readonly requestId: string | null;
  /** The provider says that this is its stored answer to an earlier try under the same key. */
  readonly replayed: boolean;
}

export interface EvidenceView {
  readonly at: Date;
  readonly source: string;
  readonly providerRef: string | null;
  /** What it says, one sentence. */
  readonly says: string;
  /** The effect and its state, by which two readings are told to be of one fact; null: it shows none. */
  readonly shows: string | null;
  readonly payload: Json;
}

/** What one of the three verbs would do now. */
export interface VerbView {
  readonly verb: ResolveVerb;
  readonly possible: boolean;
  /** Whatever the provider answers now. Any other form can be sent: that asks the provider, whose answer may settle the question. */
  readonly never?: true;
  /** 2: a second person must agree. */
  readonly people: 1 | 2;
  /** Why, in one sentence. */
  readonly sentence: string;
}

/** A reading of the provider's list, and the effects with their states that it showed (`EvidenceView.shows`). */
export interface LastLook {
  readonly at: Date;
  readonly sentence: string;
  readonly shows: readonly string[];
}

export interface OperationView {
  readonly outcome: "operation";
  readonly operation: Operation;
  readonly customerName: string;
  /** Its reference is only what a person named: the provider has not shown it. */
  readonly referenceGiven: boolean;
  /** What it is looked up by at the provider: the payment, or the provider's id of the subscription; null: a local effect. */
  readonly target: string | null;
  /** The request as it was stored with the first attempt, without secrets; null: nothing was sent. */
  readonly request: Json;
  readonly attempts: readonly AttemptView[];
  readonly evidence: readonly EvidenceView[];
  /** Why the provider was not asked just now, though its answer would count, one sentence; null: it was, or there is nothing to ask. */
  readonly notAsked: string | null;
  /** What the provider showed when it was last asked, in one sentence; null: it was not asked yet. */
  readonly lastLook: LastLook | null;
  readonly approval: Approval | null;
  /** What the provider shows as refunded on its payment that is no operation's; null: nothing, or no payment. Minor units. */
  readonly refundedElsewhere: { readonly amountMinor: bigint; readonly currency: string } | null;
  readonly waiters: readonly { readonly runId: RunId; readonly ticketId: TicketId }[];
  readonly contract: EffectContract;
  /** What recovery the contract allows now and why, one sentence each; the last says what happens next by itself. */
  readonly recovery: readonly string[];
  /** What keeps its kind from being sent; null: nothing does, or nothing of it is to be sent any more. */
  readonly frozen: Frozen | null;
  /** When a machine asks the provider again by itself; null: none will, or one is asking now. */
  readonly nextLookAt: Date | null;
  /** What a person may do now, and what that would take. Empty when it has ended. */
  readonly safe: readonly VerbView[];
  /** The operation by which the same was asked for again after this one ended without an effect; null: none. */
  readonly next: Operation | null;
  /** The proposal that waits for a second person. */
  readonly openResolution: ResolutionView | null;
  /** Findings about it or about its payment that nobody has closed, newest first. */
  readonly openIncidents: readonly IncidentRow[];
}

export interface EventView {
  /** In the operation's chain; null: a request about it, which has a chain of its own. */
  readonly seq: number | null;
  readonly at: Date;
  readonly type: string;
  readonly from: OperationStatus | null;
  readonly to: OperationStatus | null;
  readonly actor: string;
  readonly attempt: number | null;
  readonly evidence: Json;
}

export interface EventsView {
  readonly outcome: "events";
  readonly operation: Operation;
  readonly events: readonly EventView[];
}

export interface RunRow {
  readonly id: RunId;
  readonly ticketId: TicketId;
  readonly state: RunState;
  readonly steps: number;
  readonly endCode: string | null;
  readonly createdAt: Date;
  readonly dueAt: Date | null;
  readonly filer: string;
  /** Beginning of the ticket's text. Somebody else's words. */
  readonly excerpt: string;
  /** The ticket's message in Slack; null: it has none. */
  readonly message: { readonly channelId: string; readonly ts: string } | null;
  /** What it asked for, in order. */
  readonly asked: readonly AskedFor[];
}

export interface RunsView {
  readonly outcome: "runs";
  readonly runs: readonly RunRow[];
  readonly next: string | null;
}

export interface ApprovalRow {
  readonly id: ApprovalId;
  readonly operationId: OperationId;
  readonly state: ApprovalState;
  readonly role: string;
  readonly approversNeeded: number;
  readonly missing: number;
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly kind: OperationKind;
  readonly orderRef: string | null;
  readonly subscriptionRef: string | null;
  readonly expiresAt: Date;
  readonly createdAt: Date;
  /** Nobody could decide it, and what to do about that. */
  readonly gateSentence: string | null;
}

export interface ApprovalsView {
  readonly outcome: "approvals";
  readonly approvals: readonly ApprovalRow[];
  readonly next: string | null;
}

/** A freeze switch as on-call sees it. */
export type FreezeState = FreezeSwitch;

export interface IncidentRow {
  readonly id: string;
  readonly kind: IncidentKind;
  readonly operationId: OperationId | null;
  readonly status: "open" | "closed";
  readonly createdAt: Date;
  /** The order or subscription that it is about, as the shop calls it; null: none, or not known. */
  readonly target: string | null;
  /** The money that it is about, with its currency; null: none. */
  readonly amount: string | null;
  /** The provider's references that were found. */
  readonly references: readonly string[];
}

export interface IncidentsView {
  readonly outcome: "incidents";
  /** Open ones, newest first. */
  readonly incidents: readonly IncidentRow[];
  readonly next: string | null;
}

/** A form that closes an incident, submitted. */
export interface CloseRequest {
  /** Full id or the beginning of one. */
  readonly ref: string;
  readonly userId: string;
  readonly reason: string;
}

export type CloseOutcome =
  | Refused
  | Unresolved
  | { readonly outcome: "invalid"; readonly field: "reason"; readonly sentence: string }
  | { readonly outcome: "closed"; readonly incident: IncidentRow }
  /** Somebody else has closed it before. */
  | {
      readonly outcome: "already";
      readonly by: string | null;
      readonly at: Date | null;
      readonly reason: string | null;
    };

/** One part that the product needs, and whether it answers. */
export interface HealthPart {
  readonly name: string;
  readonly ok: boolean;
  /** It cannot be seen from where health was asked for, and the sentence says why. */
  readonly looked?: false;
  readonly sentence: string;
}

export interface HealthView {
  readonly outcome: "health";
  readonly parts: readonly HealthPart[];
  readonly counts: Readonly<Partial<Record<OperationStatus, number>>>;
  /** Sent and not settled for longest, by `unknownSince`: what was opened again counts from then. null: nothing is. */
  readonly oldestUnknown: Operation | null;
  /** Approved operations that are not sent before a time that has not come; null: none. */
  readonly coolingOff: { readonly count: number; readonly firstUntil: Date; readonly lastUntil: Date } | null;
  /** Sent and certainly not carried out each time, and tried again: how many, since the first try of the oldest; null: none. */
  readonly triedAgain: { readonly count: number; readonly since: Date } | null;
  readonly pendingApprovals: number;
  readonly oldestPendingAt: Date | null;
  readonly openIncidents: number;
  readonly frozen: readonly FreezeState[];
  /** Rows that are due and wait for a worker, and how long the oldest has waited. */
  readonly backlog: readonly {
    readonly what: string;
    readonly due: number;
    readonly oldestDueAt: Date | null;
  }[];
}

/** What the provider said when it was asked just before a resolution. */
export interface ProbeView {
  readonly says: string;
  /** Committed, and not as it was asked for. */
  readonly differs?: boolean;
  readonly providerRef: string | null;
  readonly sentence: string;
}

export interface ResolutionView {
  readonly id: string;
  readonly operationId: OperationId;
  readonly verb: ResolutionVerb;
  readonly state: "proposed" | "applied" | "disagreed" | "refused" | "superseded" | "expired";
  readonly by: string;
  readonly reason: string;
  readonly evidenceRef: string;
  /** What the provider said when it was asked for. */
  readonly probe: ProbeView | null;
  /** What it said since, where that was another answer: its card asks by this one. */
  readonly shownSince: ProbeView | null;
  /** How often the answer on its card has changed. */
  readonly shownTimes: number;
  /** What it said at the agreement by which it was carried out; null: it was not, or that was not kept. */
  readonly agreedOn: ProbeView | null;
  /** Of a refusal at the agreement: what the provider showed then and why it was not done, in sentences. */
  readonly refusal: string | null;
  readonly secondBy: string | null;
  readonly secondVerdict: "agree" | "disagree" | null;
  readonly secondNote: string | null;
  /** Until when a second person may answer. */
  readonly expiresAt: Date | null;
  readonly createdAt: Date;
}

/** A submitted form behind Confirm committed, Reject or Authorise retry. */
export interface ResolveRequest {
  /** Full id or the beginning of one. */
  readonly ref: string;
  readonly verb: ResolveVerb;
  readonly userId: string;
  readonly reason: string;
  readonly evidenceRef: string;
  /** When the form was sent in: taken a second time it changes nothing. */
  readonly typedAt?: Date | null;
}

export type ResolveOutcome =
  | Refused
  | Unresolved
  /** Something is missing in the form. */
  | { readonly outcome: "invalid"; readonly field: "reason" | "evidence"; readonly sentence: string }
  /** Done; `operation` is how it stands now. */
  | {
      readonly outcome: "resolved";
      readonly resolution: ResolutionView;
      readonly operation: Operation;
      readonly probe: ProbeView | null;
    }
  /** Waits for a second person; a card asks for one. */
  | {
      readonly outcome: "needs_second";
      readonly resolution: ResolutionView;
      readonly probe: ProbeView | null;
      readonly sentence: string;
    }
  /** The provider answered the question itself: the operation was settled by that evidence and not by this verb. */
  | {
      readonly outcome: "settled_by_evidence";
      readonly operation: Operation;
      readonly probe: ProbeView;
      readonly sentence: string;
    }
  /** Not now: an attempt may still commit, the state does not allow it, or nobody can know. Nothing was changed. */
  | {
      readonly outcome: "not_safe";
      readonly operation: Operation;
      readonly probe: ProbeView | null;
      readonly sentence: string;
    }
  /** Somebody else was faster, or it moved meanwhile. */
  | {
      readonly outcome: "overtaken";
      readonly operation: Operation;
      readonly by: string | null;
      readonly at: Date | null;
      readonly sentence: string;
    };

/** The second person's click on Agree or Disagree. */
export interface SecondRequest {
  readonly resolutionId: string;
  readonly userId: string;
  readonly verdict: "agree" | "disagree";
  readonly note?: string | null;
  /** Of the card that was clicked: `shownTimes`. Absent: its answer had never changed. */
  readonly seen?: number;
}

export type SecondOutcome =
  | ResolveOutcome
  | { readonly outcome: "disagreed"; readonly resolution: ResolutionView }
  /** The provider answers otherwise than the card that was agreed to said: nothing was done, and the card asks anew. */
  | { readonly outcome: "shown_anew"; readonly resolution: ResolutionView; readonly sentence: string };

export interface ReopenRequest {
  readonly ref: string;
  readonly userId: string;
  readonly reason: string;
  readonly evidenceRef: string;
  /** When the form was sent in: taken a second time it changes nothing. */
  readonly typedAt?: Date | null;
}

export type ReopenForm =
  | Refused
  | Unresolved
  | { readonly outcome: "form"; readonly operation: Operation }
  | { readonly outcome: "not_safe"; readonly operation: Operation; readonly sentence: string };

export type ReopenOutcome =
  | Refused
  | Unresolved
  | { readonly outcome: "invalid"; readonly field: "reason" | "evidence"; readonly sentence: string }
  | { readonly outcome: "reopened"; readonly operation: Operation }
  | { readonly outcome: "not_safe"; readonly operation: Operation; readonly sentence: string };

export type FreezeOutcome =
  | Refused
  | { readonly outcome: "invalid"; readonly sentence: string }
  | {
      readonly outcome: "frozen";
      readonly state: FreezeState;
      /** Already frozen before this. */
      readonly already: boolean;
      /** Sent before the freeze and not settled: they may still take effect. Oldest first, at most 20. */
      readonly inFlight: readonly Operation[];
    };

export type ThawOutcome =
  | Refused
  /** `frozenNow`: switches that are on all the same. */
  | {
      readonly outcome: "not_frozen";
      readonly state: FreezeState;
      readonly frozenNow: readonly FreezeState[];
    }
  /** `reason` of the freeze in `state`. */
  | { readonly outcome: "thawed"; readonly state: FreezeState; readonly stillFrozen: readonly FreezeKind[] }
  /** The card's request was answered, ran out, or the switch was turned meanwhile, also since this very command. Nothing was changed. */
  | { readonly outcome: "gone"; readonly state: FreezeState; readonly sentence: string }
  /** The person who froze may not thaw alone; a card asks for another. */
  | { readonly outcome: "needs_second"; readonly state: FreezeState; readonly sentence: string }
  | { readonly outcome: "kept_frozen"; readonly state: FreezeState };

/** What needs somebody on call, as App Home shows it. */
export interface OncallHome {
  readonly outcome: "home";
  readonly unknown: readonly Operation[];
  readonly quarantined: readonly Operation[];
  /** Open ones, newest first. */
  readonly incidents: readonly IncidentRow[];
  readonly frozen: readonly FreezeState[];
}

/** Everything behind `/ops`, the quarantine cards and their second-person cards. */
export interface OpsUseCases {
  /** Reads the words behind `/ops`; tolerant of curly quotes, non-breaking spaces, long dashes and Slack's escapes. */
  parse(text: string): ParsedCommand;
  /** Help is for on-call, too: what cannot be used is not taught. */
  help(request: { userId: string }): Promise<{ readonly outcome: "help" } | Refused>;
  list(request: {
    userId: string;
    status: OperationStatus | null;
    cursor?: string | null;
    limit?: number;
  }): Promise<ListView | Refused>;
  /** An open one asks the provider, and waits `askMs` milliseconds at most for its answer; later than that, the last reading is shown. */
  show(request: {
    userId: string;
    ref: string;
    askMs?: number;
  }): Promise<OperationView | Refused | Unresolved>;
  events(request: { userId: string; ref: string }): Promise<EventsView | Refused | Unresolved>;
  runs(request: { userId: string; cursor?: string | null; limit?: number }): Promise<RunsView | Refused>;
  approvals(request: {
    userId: string;
    cursor?: string | null;
    limit?: number;
  }): Promise<ApprovalsView | Refused>;
  health(request: { userId: string }): Promise<HealthView | Refused>;
  /** May this person open the form of a verb on this operation, and what would it take? Changes nothing, asks nobody outside but the directory. */
  openResolution(request: {
    userId: string;
    ref: string;
    verb: ResolveVerb;
  }): Promise<{ outcome: "form"; operation: Operation; verb: VerbView } | Refused | Unresolved>;
  /** What the provider says of it now, for whoever may open the form. Settles nothing; not being able to ask is an answer. */
  askProvider(request: {
    userId: string;
    ref: string;
  }): Promise<{ outcome: "asked"; probe: ProbeView } | Refused | Unresolved>;
  resolve(request: ResolveRequest): Promise<ResolveOutcome>;
  second(request: SecondRequest): Promise<SecondOutcome>;
  /** May this person open that end again? Changes nothing, asks nobody outside but the directory. */
  openReopening(request: { userId: string; ref: string }): Promise<ReopenForm>;
  /** Opens a wrong click again, with a record of its own. */
  reopen(request: ReopenRequest): Promise<ReopenOutcome>;
  /** `command`: which command it was, where one was typed; taken a second time it changes nothing. */
  freeze(request: {
    userId: string;
    kind: FreezeKind;
    reason: string;
    command?: string | null;
  }): Promise<FreezeOutcome>;
  /** `typedAt`: a freeze of later is not the one that was meant. */
  thaw(request: {
    userId: string;
    kind: FreezeKind;
    command?: string | null;
    typedAt?: Date | null;
  }): Promise<ThawOutcome>;
  /** The other person's answer to a thaw that waits. */
  secondThaw(request: {
    userId: string;
    kind: FreezeKind;
    /** Of the switch, as the card showed it. */
    version: number;
    verdict: "agree" | "disagree";
  }): Promise<ThawOutcome>;
  incidents(request: {
    userId: string;
    cursor?: string | null;
    limit?: number;
  }): Promise<IncidentsView | Refused>;
  /** May this person close that incident? Changes nothing. */
  openClosing(request: {
    userId: string;
    ref: string;
  }): Promise<{ outcome: "form"; incident: IncidentRow } | Exclude<CloseOutcome, { outcome: "closed" }>>;
  closeIncident(request: CloseRequest): Promise<CloseOutcome>;
  /** For App Home of on-call: what is unknown, quarantined, found and not closed, frozen. */
  home(request: { userId: string; maxAgeMs?: number }): Promise<OncallHome | Refused>;
  /** For cards: a proposal and a switch as their rows say. */
  resolution(id: string): Promise<ResolutionView | null>;
  freezeState(kind: FreezeKind): Promise<FreezeState>;
}
