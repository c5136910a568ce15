/**
 * The ledger: the only writer of operations, attempts, events, totals, `payments.reserved` and `payments.refunded`, provider
 * evidence, incidents, freeze switches, resolutions and the audit chain.
 *
 * Invariants
 *  1. A row is committed before anything is sent for it.
 *  2. A status moves only along `TRANSITIONS`, in one place (`transition.ts`), conditional on the status and version that were
 *     read and, for lease holders, on their token; its event is written by the same statement.
 *  3. Money is reserved before an operation can be sent, and released only when no attempt can have committed.
 *  4. Nothing is claimed or sent again while its kind is frozen.
 *  5. Events are hashed over their content and their predecessor; the database refuses to change them.
 */
import type { Db, Tx } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { OperationId, RunId } from "../domain/ids.js";
import type { Actor, Operation, OperationKind, OperationStatus } from "../domain/operation.js";
import type { StoredRequest } from "../domain/ports/payment-provider.js";
import type { LedgerCtx } from "./context.js";
import type * as t from "./types.js";

export type { LedgerCtx, LedgerHooks, LedgerTiming } from "./context.js";
export { listingContext } from "./listing-context.js";
export type * from "./types.js";

const notBuilt = (name: string): never => {
  throw new CountersignError("not_built", `ledger.${name} is not there yet`);
};

/**
 * Decides the writes of one turn, in their order, each seeing the reservations of those before it; joins the caller's
 * transaction. If nothing of the turn is held, everything allowed is PREPARED together; otherwise nothing is, and what is held
 * exists as AWAITING_APPROVAL. Takes locks in the order operation, order, payment, totals' scopes.
 */
export async function prepareTurn(_tx: Tx, _ctx: LedgerCtx, _turn: t.PrepareTurn): Promise<t.PerCall[]> {
  return notBuilt("prepareTurn");
}

/** Takes the lease of a PREPARED operation and writes the attempt: one statement, in a transaction of its own. */
export async function claim(_ctx: LedgerCtx, _request: t.ClaimRequest): Promise<t.ClaimResult> {
  return notBuilt("claim");
}

/** As `claim`, inside the caller's transaction: PREPARE and claim in one commit. The guard is not offered here. */
export async function claimIn(
  _tx: Tx,
  _ctx: LedgerCtx,
  _request: Omit<t.ClaimRequest, "guard">,
): Promise<t.ClaimResult> {
  return notBuilt("claimIn");
}

/** Prolongs a lease while a call runs; false: it is lost. */
export async function renewLease(
  _ctx: LedgerCtx,
  _lease: t.LeaseRef & { leaseMs?: number },
): Promise<boolean> {
  return notBuilt("renewLease");
}

/** The last question before the socket: lease unexpired, key's life long enough, not frozen. By the database's clock. */
export async function checkSend(_ctx: LedgerCtx, _lease: t.LeaseRef): Promise<t.SendCheck> {
  return notBuilt("checkSend");
}

/** Records an attempt's outcome. From a lost lease it overwrites nothing and becomes evidence. */
export async function settle(_ctx: LedgerCtx, _request: t.SettleRequest): Promise<t.SettleResult> {
  return notBuilt("settle");
}

/** Effect and operation in one transaction: PREPARED → DISPATCHED → CONFIRMED or REJECTED. What the effect wrote is undone when it answers no. */
export async function executeLocal(
  _ctx: LedgerCtx,
  _request: {
    operation: Operation;
    worker: string;
    guard?: t.ClaimRequest["guard"];
    effect: (
      tx: Tx,
      operation: Operation,
    ) => Promise<{ ok: true; ref: string } | { ok: false; code: string; detail: string }>;
  },
): Promise<t.LocalOutcome> {
  return notBuilt("executeLocal");
}

/** Rows that are due now, oldest first; reads only. Costs what is due, not what is stored. */
export async function dueOperations(_db: Db, _options: { limit: number }): Promise<t.DueOperation[]> {
  return notBuilt("dueOperations");
}

/** Takes a reconciler's lease: of an unknown outcome that is due, of an expired lease, or (`evidence`) of a quarantined operation about which there is news. null: somebody else has it, or there is nothing to take. */
export async function takeForReconcile(
  _ctx: LedgerCtx,
  _request: { operationId: OperationId; worker: string; because: "due" | "evidence" },
): Promise<t.Taken | null> {
  return notBuilt("takeForReconcile");
}

/** Takes up to `limit` due rows that no other reconciler is taking. */
export async function takeDue(
  _ctx: LedgerCtx,
  _request: { worker: string; limit: number },
): Promise<t.Taken[]> {
  return notBuilt("takeDue");
}

export async function settleReconcile(_ctx: LedgerCtx, _request: t.SettleReconcile): Promise<t.Reconciled> {
  return notBuilt("settleReconcile");
}

/** RECONCILING → DISPATCHED: attempt n + 1 under the same key. Refused when frozen or when the key's life is over. */
export async function resend(
  _ctx: LedgerCtx,
  _request: t.LeaseRef & { worker: string },
): Promise<t.ClaimResult> {
  return notBuilt("resend");
}

/** QUARANTINED → DISPATCHED, once, under a person's authorisation that `resolve` applied. */
export async function sendAuthorised(
  _ctx: LedgerCtx,
  _request: { operationId: OperationId; worker: string },
): Promise<t.ClaimResult> {
  return notBuilt("sendAuthorised");
}

/** A person said no: AWAITING_APPROVAL or PREPARED → DENIED. */
export async function deny(_tx: Tx, _ctx: LedgerCtx, _request: t.EndWithoutEffect): Promise<t.Moved> {
  return notBuilt("deny");
}
/** Nobody decided: AWAITING_APPROVAL → EXPIRED. */
export async function expire(_tx: Tx, _ctx: LedgerCtx, _request: t.EndWithoutEffect): Promise<t.Moved> {
  return notBuilt("expire");
}
/** Drift, superseded, nobody waits: AWAITING_APPROVAL or PREPARED → VOIDED. */
export async function voidOperation(
  _tx: Tx,
  _ctx: LedgerCtx,
  _request: t.EndWithoutEffect,
): Promise<t.Moved> {
  return notBuilt("voidOperation");
}

/** The run ends early: what was never sent goes to the oldest waiter whose run goes on, else is voided; what was sent goes on. */
export async function abandon(
  _tx: Tx,
  _ctx: LedgerCtx,
  _run: { runId: RunId; actor: Actor },
): Promise<Operation[]> {
  return notBuilt("abandon");
}

/** The provider took it back: CONFIRMED → REVERSED; the money counts as not refunded. */
export async function reverse(
  _ctx: LedgerCtx,
  _request: { operationId: OperationId; actor: Actor; evidence: t.NewEvidence; code: string; detail: string },
): Promise<t.Moved> {
  return notBuilt("reverse");
}

/** Evidence contradicts an end: CONFIRMED or REJECTED → QUARANTINED, with an incident. */
export async function contradict(
  _ctx: LedgerCtx,
  _request: { operationId: OperationId; actor: Actor; evidence: t.NewEvidence; detail: string },
): Promise<t.Moved> {
  return notBuilt("contradict");
}

/** Stores a fact once. `first` is false when it was known. Wakes the reconciler of an open operation. */
export async function recordEvidence(
  _tx: Tx,
  _ctx: LedgerCtx,
  _evidence: t.NewEvidence,
): Promise<{ id: string; first: boolean }> {
  return notBuilt("recordEvidence");
}

/** Opens an incident with its card, once for each `dedupeKey`. */
export async function openIncident(
  _tx: Tx,
  _ctx: LedgerCtx,
  _incident: t.NewIncident,
): Promise<{ id: string; first: boolean }> {
  return notBuilt("openIncident");
}
export async function closeIncident(
  _tx: Tx,
  _ctx: LedgerCtx,
  _request: { id: string; by: string },
): Promise<boolean> {
  return notBuilt("closeIncident");
}

/** What the provider lists on a payment that is not ours, in minor units. Recorded even where it breaks the plan; then an incident. */
export async function recordElsewhere(
  _ctx: LedgerCtx,
  _request: { paymentIntent: string; elsewhereMinor: bigint; effects: readonly string[] },
): Promise<{ changed: boolean; overdrawn: boolean }> {
  return notBuilt("recordElsewhere");
}

/** After this resolves, nothing new of the kind is claimed or sent again. */
export async function freeze(
  _ctx: LedgerCtx,
  _request: { kind: t.FreezeKind; by: string; reason: string },
): Promise<{ state: t.FreezeSwitch; already: boolean }> {
  return notBuilt("freeze");
}
/** Records who asks for a thaw that another person must agree to. */
export async function askThaw(
  _ctx: LedgerCtx,
  _request: { kind: t.FreezeKind; by: string },
): Promise<t.FreezeSwitch> {
  return notBuilt("askThaw");
}
/** Thaws; `changed` false: it was not frozen. Wakes what waited. */
export async function thaw(
  _ctx: LedgerCtx,
  _request: { kind: t.FreezeKind; by: string },
): Promise<{ state: t.FreezeSwitch; changed: boolean }> {
  return notBuilt("thaw");
}
export async function freezeStates(_db: Db | Tx): Promise<t.FreezeSwitch[]> {
  return notBuilt("freezeStates");
}

/** A person's evidenced decision. The caller has looked at role and provider; state, version, in-flight bound and people are judged here. */
export async function resolve(_ctx: LedgerCtx, _request: t.ResolveRequest): Promise<t.ResolveResult> {
  return notBuilt("resolve");
}
export async function secondResolve(_ctx: LedgerCtx, _request: t.SecondRequest): Promise<t.SecondResult> {
  return notBuilt("secondResolve");
}
export async function getResolution(_db: Db | Tx, _id: string): Promise<t.Resolution | null> {
  return notBuilt("getResolution");
}
export async function openResolutionOf(
  _db: Db | Tx,
  _operationId: OperationId,
): Promise<t.Resolution | null> {
  return notBuilt("openResolutionOf");
}

export async function getOperation(_db: Db | Tx, _id: OperationId): Promise<Operation | null> {
  return notBuilt("getOperation");
}
/** Newest first. With a status a page may be short although `next` is not null. */
export async function listOperations(
  _db: Db,
  _options: { status?: OperationStatus; cursor?: string | null; limit?: number },
): Promise<t.Page<Operation>> {
  return notBuilt("listOperations");
}
/** Full ids that begin with the text, newest first, at most `limit`. */
export async function findByPrefix(
  _db: Db,
  _prefix: string,
  _options: { limit: number },
): Promise<OperationId[]> {
  return notBuilt("findByPrefix");
}
/** Operations that may have, or had, an effect on this target, oldest first. */
export async function liveOn(
  _db: Db | Tx,
  _target: { kind: OperationKind; orderRef: string },
): Promise<Operation[]> {
  return notBuilt("liveOn");
}
/** The operation that this provider reference belongs to. */
export async function operationByProviderRef(_db: Db | Tx, _ref: string): Promise<Operation | null> {
  return notBuilt("operationByProviderRef");
}
/** Provider references of one payment or subscription that operations explain: reference → operation. */
export async function knownReferences(
  _db: Db | Tx,
  _target: { paymentIntent: string } | { providerSubscription: string },
): Promise<Map<string, OperationId>> {
  return notBuilt("knownReferences");
}
export async function eventsOf(_db: Db | Tx, _id: OperationId): Promise<t.OperationEvent[]> {
  return notBuilt("eventsOf");
}
export async function attemptsOf(_db: Db | Tx, _id: OperationId): Promise<t.AttemptRow[]> {
  return notBuilt("attemptsOf");
}
export async function waitersOf(_db: Db | Tx, _id: OperationId): Promise<t.Waiter[]> {
  return notBuilt("waitersOf");
}
export async function evidenceOf(_db: Db | Tx, _id: OperationId): Promise<t.EvidenceRow[]> {
  return notBuilt("evidenceOf");
}
/** The request as stored with the first attempt; null: nothing was sent. */
export async function requestOf(_db: Db | Tx, _id: OperationId): Promise<StoredRequest | null> {
  return notBuilt("requestOf");
}
/** Operations that are not at an end, by status. Costs what is open. */
export async function openCounts(_db: Db): Promise<Partial<Record<OperationStatus, number>>> {
  return notBuilt("openCounts");
}
export async function getIncident(_db: Db | Tx, _id: string): Promise<t.Incident | null> {
  return notBuilt("getIncident");
}
export async function listIncidents(
  _db: Db,
  _options: { cursor?: string | null; limit?: number },
): Promise<t.Page<t.Incident>> {
  return notBuilt("listIncidents");
}

/** Recomputes every hash from what the database gives back. */
export async function verifyAudit(_db: Db): Promise<t.AuditReport> {
  return notBuilt("verifyAudit");
}
/** The log as JSON Lines, oldest first, blocks at the end. */
export async function* exportAudit(_db: Db): AsyncGenerator<string> {
  yield notBuilt("exportAudit");
}
/** Seals events that no running transaction can still precede. Returns how many. */
export async function sealBlocks(_db: Db): Promise<number> {
  return notBuilt("sealBlocks");
}
/** Erases a person (or a text) from the audit log's subjects; the chain still verifies. */
export async function eraseSubject(_db: Db, _value: string): Promise<number> {
  return notBuilt("eraseSubject");
}
