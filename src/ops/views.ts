/** What on-call sees, as data. Looking changes no operation; only an open one that is looked at alone asks the provider. */
import { approvalOfOperation, listPending } from "../approvals/index.js";
import type { Approval } from "../domain/approval.js";
import { type Evidence, effectsOf } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import type { Json } from "../domain/json.js";
import type { Operation, OperationStatus } from "../domain/operation.js";
import type { Policy } from "../domain/policy/policy.js";
import {
  askedAgain,
  attemptsOf,
  eventsOf,
  evidenceOf,
  freezeStates,
  getOperation,
  listIncidents,
  listOperations,
  openCounts,
  openIncidentsOf,
  openResolutionOf,
  requestOf,
  type StoryEvent,
  slowedDown,
  storyOf,
  waitersOf,
} from "../ledger/index.js";
import { askedBy, listRuns } from "../runs/index.js";
import { authorise } from "./authorise.js";
import type { LookContext, OpsContext } from "./context.js";
import { hasEnded } from "./evidence-told.js";
import { isResolvable, nextLookOf, recoverySentences } from "./explain.js";
import { explained } from "./explained.js";
import { findOperation, theOnlyOne } from "./find.js";
import { incidentRows } from "./incident-rows.js";
import { probeView, resolutionView } from "./resolution-view.js";
import { effectShown, foundSentence, lastLook, shownEffect } from "./timeline.js";
import type {
  ApprovalRow,
  ApprovalsView,
  AttemptView,
  EventsView,
  EventView,
  EvidenceView,
  ListView,
  OncallHome,
  OperationView,
  OpsUseCases,
  Refused,
  RunsView,
  Unresolved,
} from "./types.js";
import { verbsNow } from "./verbs-now.js";
import { withinMs } from "./within.js";

const PAGE = 15;
/** How many open operations and incidents App Home and a freeze name. */
const NAMED = 20;

export async function list(
  ctx: OpsContext,
  request: Parameters<OpsUseCases["list"]>[0],
): Promise<ListView | Refused> {
  const caller = await authorise(ctx, request.userId);
  if (caller.outcome === "refused") return caller;
  const page = await listOperations(ctx.db, {
    ...(request.status === null ? {} : { status: request.status }),
    cursor: request.cursor ?? null,
    limit: request.limit ?? PAGE,
  });
  return {
    outcome: "list",
    counts: await openCounts(ctx.db),
    status: request.status,
    operations: page.rows,
    askedAgain: await askedAgain(ctx.db, page.rows),
    slowedDown: await slowedDown(ctx.db, page.rows),
    frozen: (await freezeStates(ctx.db)).filter((state) => state.frozen),
    next: page.next,
  };
}

export async function show(
  ctx: OpsContext,
  request: Parameters<OpsUseCases["show"]>[0],
): Promise<OperationView | Refused | Unresolved> {
  const caller = await authorise(ctx, request.userId);
  if (caller.outcome === "refused") return caller;
  const found = await findOperation(ctx.db, request.ref, theOnlyOne);
  if (found.outcome === "unresolved") return found;
  const { operation } = found;
  return lookAsking({ ...ctx, asking: ctx }, operation, {
    policy: caller.policy,
    askMs: request.askMs ?? SHOW_ASKS_MS,
  });
}

/**
 * Looks at one operation, and asks the provider first where anything was sent: of what is settled, its answer is shown and changes
 * nothing. `policy` null: none is in force yet; `asking` a sentence: why it cannot be asked from here.
 */
export async function lookAsking(
  ctx: LookContext & {
    readonly asking: Pick<OpsContext, "probe" | "read"> | string;
    readonly log: OpsContext["log"];
  },
  operation: Operation,
  { policy, askMs = SHOW_ASKS_MS }: { readonly policy: Policy | null; readonly askMs?: number },
): Promise<OperationView> {
  const { asking } = ctx;
  const asked = !wasSent(operation)
    ? null
    : typeof asking === "string"
      ? asking
      : await askedNow({ asking, log: ctx.log }, operation, askMs);
  // Asking may have told the ledger something.
  return lookAt(ctx, (await getOperation(ctx.db, operation.id)) ?? operation, policy, asked);
}

/** The provider may have something to show of it: a local effect and what never left it knows nothing of. */
const wasSent = ({ status, attempts, paymentIntent, providerSubscription }: Operation): boolean =>
  isOpenThere(status) || (attempts > 0 && (paymentIntent ?? providerSubscription) !== null);

/** Sent, and not ended: what the provider shows says more than the row. A worker that sent it may be gone. */
const isOpenThere = (status: OperationStatus): boolean => status === "DISPATCHED" || isResolvable(status);

/** A person waits for it. What comes later is not waited for: then the last reading is shown. */
export const SHOW_ASKS_MS = 2_500;

/** What the provider says now, or a sentence: why there is no answer. Never throws. */
async function askedNow(
  { asking, log }: { readonly asking: Pick<OpsContext, "probe" | "read">; readonly log: OpsContext["log"] },
  operation: Operation,
  ms: number,
): Promise<Evidence | string> {
  const ask = isOpenThere(operation.status) ? asking.probe : asking.read;
  try {
    const evidence = await withinMs(ms, ask(operation));
    return evidence === "late"
      ? `The provider was asked just now and did not answer within ${ms / 1000} s.`
      : evidence;
  } catch (error) {
    log.warn({ operation: operation.id, error: String(error) }, "the provider was not asked for a look");
    return "The provider could not be asked just now.";
  }
}

/** Everything that is known of one operation. `asked`: what the provider has said just now, or why it did not; null: there is nothing to ask. */
async function lookAt(
  ctx: LookContext,
  operation: Operation,
  policy: Policy | null,
  answer: Evidence | string | null,
): Promise<OperationView> {
  const asked = typeof answer === "string" ? null : answer;
  const view = await explained(ctx, operation);
  const open = await openResolutionOf(ctx.db, operation.id);
  const safe = policy === null ? [] : verbsNow(view, policy, asked);
  return {
    outcome: "operation",
    operation,
    customerName: view.customerName,
    referenceGiven: view.referenceGiven,
    refundedElsewhere: view.refundedElsewhere,
    target: operation.paymentIntent ?? operation.providerSubscription,
    request: (await requestOf(ctx.db, operation.id)) as unknown as Json,
    attempts: (await attemptsOf(ctx.db, operation.id)).map(attemptView),
    evidence: (await evidenceOf(ctx.db, operation.id)).map(evidenceView),
    notAsked: typeof answer === "string" ? answer : null,
    lastLook:
      asked === null
        ? lastLook((await eventsOf(ctx.db, operation.id)).map(eventView))
        : { at: view.now, sentence: probeView(asked).sentence, shows: effectsOf(asked).map(shownEffect) },
    approval: await approvalOfOperation(ctx.db, operation.id),
    waiters: await waitersOf(ctx.db, operation.id),
    contract: view.contract,
    recovery: recoverySentences(view, { asked, verbs: safe }),
    frozen: hasEnded(operation) ? null : view.frozen,
    nextLookAt: nextLookOf(view),
    safe,
    next: (await askedAgain(ctx.db, [operation])).get(operation.id) ?? null,
    openResolution: open === null ? null : resolutionView(open),
    openIncidents: await incidentRows(ctx.db, await openIncidentsOf(ctx.db, operation.id)),
  };
}

function attemptView(row: Awaited<ReturnType<typeof attemptsOf>>[number]): AttemptView {
  const { number, startedAt, finishedAt, verdict, code, httpStatus, providerRef, requestId, evidence } = row;
  return {
    number,
    startedAt,
    finishedAt,
    verdict,
    code,
    httpStatus,
    providerRef,
    requestId,
    replayed: isReplayed(evidence),
  };
}

const isReplayed = (evidence: Json): boolean =>
  typeof evidence === "object" &&
  evidence !== null &&
  "replayed" in evidence &&
  evidence["replayed"] === true;

function evidenceView(row: Awaited<ReturnType<typeof evidenceOf>>[number]): EvidenceView {
  const { at, source, providerRef, payload } = row;
  return {
    at,
    source,
    providerRef,
    says: foundSentence(payload) ?? "The provider told of it.",
    shows: effectShown(payload),
    payload,
  };
}

export async function events(
  ctx: OpsContext,
  request: { userId: string; ref: string },
): Promise<EventsView | Refused | Unresolved> {
  const caller = await authorise(ctx, request.userId);
  if (caller.outcome === "refused") return caller;
  const found = await findOperation(ctx.db, request.ref, theOnlyOne);
  if (found.outcome === "unresolved") return found;
  const rows = await storyOf(ctx.db, found.operation.id);
  return {
    outcome: "events",
    operation: found.operation,
    events: rows.map(eventView),
  };
}

const eventView = ({ seq, at, type, from, to, actor, attempt, data }: StoryEvent): EventView => ({
  seq,
  at: new Date(at),
  type,
  from,
  to,
  actor,
  attempt,
  evidence: data,
});

export async function runs(
  ctx: OpsContext,
  request: Parameters<OpsUseCases["runs"]>[0],
): Promise<RunsView | Refused> {
  const caller = await authorise(ctx, request.userId);
  if (caller.outcome === "refused") return caller;
  const page = await listRuns(ctx.db, { cursor: request.cursor ?? null, limit: request.limit ?? PAGE });
  const asked = await askedBy(
    ctx.db,
    page.runs.map(({ run }) => run.id),
  );
  return {
    outcome: "runs",
    next: page.next,
    runs: page.runs.map(({ run, filer, excerpt, message }) => ({
      id: run.id,
      ticketId: run.ticketId,
      state: run.state,
      steps: run.stepsUsed,
      endCode: run.ending?.code ?? null,
      createdAt: run.createdAt,
      dueAt: run.dueAt,
      filer,
      excerpt,
      message,
      asked: asked.get(run.id) ?? [],
    })),
  };
}

export async function approvals(
  ctx: OpsContext,
  request: Parameters<OpsUseCases["approvals"]>[0],
): Promise<ApprovalsView | Refused> {
  const caller = await authorise(ctx, request.userId);
  if (caller.outcome === "refused") return caller;
  const page = await listPending(ctx.db, { cursor: request.cursor ?? null, limit: request.limit ?? PAGE });
  return {
    outcome: "approvals",
    next: page.next,
    approvals: page.approvals.map(({ approval, missing }) => approvalRow(approval, missing)),
  };
}

function approvalRow(approval: Approval, missing: number): ApprovalRow {
  const { binding, gate } = approval;
  return {
    id: approval.id,
    operationId: approval.operationId,
    state: approval.state,
    role: approval.role,
    approversNeeded: approval.approversNeeded,
    missing,
    amountMinor: binding.amountMinor,
    currency: binding.currency,
    kind: binding.kind,
    orderRef: binding.orderRef,
    subscriptionRef: binding.subscriptionRef,
    expiresAt: approval.expiresAt,
    createdAt: approval.createdAt,
    gateSentence: gate === null || gate.satisfiable ? null : gate.sentence,
  };
}

export async function home(
  ctx: OpsContext,
  request: { userId: string; maxAgeMs?: number },
): Promise<OncallHome | Refused> {
  const caller = await authorise(ctx, request.userId, request.maxAgeMs);
  if (caller.outcome === "refused") return caller;
  return {
    outcome: "home",
    unknown: await openIn(ctx, ["OUTCOME_UNKNOWN", "RECONCILING"]),
    quarantined: await openIn(ctx, ["QUARANTINED"]),
    incidents: await incidentRows(ctx.db, (await listIncidents(ctx.db, { cursor: null, limit: NAMED })).rows),
    frozen: (await freezeStates(ctx.db)).filter((state) => state.frozen),
  };
}

/** Sent and not settled: what a freeze does not reach. Oldest first, at most 20. */
export const inFlight = (ctx: OpsContext): Promise<readonly Operation[]> =>
  openIn(ctx, ["DISPATCHED", "OUTCOME_UNKNOWN", "RECONCILING", "QUARANTINED"]);

/** Operations in open states that were sent, oldest first, at most 20. Each of them is due some time, so only those are read. */
async function openIn(
  ctx: Pick<OpsContext, "db">,
  statuses: readonly OperationStatus[],
): Promise<readonly Operation[]> {
  const rows = await ctx.db.sql<{ id: OperationId }>(
    "ops.open_in",
    `WITH due AS MATERIALIZED (SELECT id, created_at FROM operations WHERE due_at IS NOT NULL AND status = ANY ($1::text[]))
     SELECT id FROM due ORDER BY created_at, id LIMIT $2`,
    [[...statuses], NAMED],
  );
  const found = await Promise.all(rows.map(({ id }) => getOperation(ctx.db, id)));
  return found.filter((operation) => operation !== null);
}
