/**
 * The writes of one turn, decided together (DESIGN §7, "Turn release").
 *
 * 1. Locks in the order operation, order, payment, totals' scopes; everything that is judged is judged under them.
 * 2. Each call sees the reservations of those before it: two refunds that together pass a line are not both allowed.
 * 3. Nothing is prepared unless nothing of the turn is held: what was prepared on trial is rolled back to a savepoint.
 */
import type { Tx } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import { fingerprint, operationKey } from "../domain/identity.js";
import type { CallId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import { formatMoney, money } from "../domain/money.js";
import { ENDED, type Intent, type Operation } from "../domain/operation.js";
import type { Judgement, JudgeSubject, ScopePlan } from "../domain/ports/judge.js";
import type { LedgerCtx } from "./context.js";
import { insertOperation } from "./insert.js";
import { joinOperation } from "./join.js";
import { toJsonObject } from "./json.js";
import { move } from "./transition.js";
import type { ApprovedBinding, PerCall, PrepareTurn, Proposal, TurnEntry } from "./types.js";
import { lockOperations, lockScopes, lockWorld, type World } from "./world.js";

const MINUTE_MS = 60_000;

/** A call with everything that is judged about it, found and locked. */
type Work =
  | { kind: "answered"; callId: CallId; answer: PerCall }
  | {
      kind: "new";
      callId: CallId;
      proposal: Proposal;
      intent: Intent;
      key: string;
      subject: JudgeSubject;
      paymentIntent: string | null;
      providerSubscription: string | null;
      plan: ScopePlan;
    }
  | {
      kind: "held_before";
      callId: CallId;
      operation: Operation;
      approval: ApprovedBinding;
      subject: JudgeSubject;
      plan: ScopePlan;
    };

/** Decides a turn; see `index.ts`. */
export async function prepareTurn(tx: Tx, ctx: LedgerCtx, turn: PrepareTurn): Promise<PerCall[]> {
  const work = await gather(tx, ctx, turn);
  await lockScopes(
    tx,
    work.flatMap((each) => (each.kind === "answered" ? [] : each.plan.lock)),
  );
  await tx.sql(undefined, "SAVEPOINT turn");
  const trial = await decide(tx, ctx, turn, work);
  if (trial.every((call) => call.outcome !== "held" && call.outcome !== "drifted")) {
    await tx.sql(undefined, "RELEASE SAVEPOINT turn");
    return wakePrepared(tx, ctx, trial);
  }
  await tx.sql(undefined, "ROLLBACK TO SAVEPOINT turn");
  return holdTurn(tx, ctx, turn, work, trial);
}

function wakePrepared(tx: Tx, ctx: LedgerCtx, calls: PerCall[]): PerCall[] {
  for (const call of calls) {
    if (call.outcome === "prepared") {
      const { id } = call.operation;
      tx.afterCommit(() => void ctx.wake("operation", id));
    }
  }
  return calls;
}

// ── finding and locking ─────────────────────────────────────────────────────────────────────────────────────────

async function gather(tx: Tx, ctx: LedgerCtx, turn: PrepareTurn): Promise<Work[]> {
  const further = turn.calls.flatMap((call) =>
    "proposal" in call && call.proposal.further !== undefined ? [call.proposal.further.of] : [],
  );
  const ids = [
    ...turn.calls.flatMap((call) => ("operationId" in call ? [call.operationId] : [])),
    ...further,
  ];
  const intents = turn.calls.flatMap((call) => ("proposal" in call ? [call.proposal.intent] : []));
  // A further occurrence is numbered by the operation it follows; its own key is looked up beside the plain one.
  const keys = intents.flatMap((intent) => [
    operationKey(intent),
    ...(further.length > 0 ? occurrencesAfter(intent) : []),
  ]);
  const operations = await lockOperations(tx, { keys, ids });
  const held = operations.filter((operation) => ids.includes(operation.id));
  const world = await lockWorld(tx, {
    orders: unique([...intents, ...held].map((one) => one.orderRef)),
    subscriptions: unique([...intents, ...held].map((one) => one.subscriptionRef)),
  });
  // Locks were waited for: what was committed meanwhile under these keys is read now.
  const known = await lockOperations(tx, { keys, ids });
  const work: Work[] = [];
  for (const call of turn.calls) work.push(await workOf(tx, ctx, turn, call, known, world));
  return work;
}

/** A person may ask for a further occurrence only so often that nobody could mean it otherwise. */
const MAX_OCCURRENCES = 20;

const occurrencesAfter = (intent: Intent): string[] =>
  Array.from({ length: MAX_OCCURRENCES }, (_, index) => operationKey({ ...intent, occurrence: index + 1 }));

const unique = (refs: readonly (string | null)[]): string[] => [
  ...new Set(refs.filter((ref): ref is string => ref !== null)),
];

async function workOf(
  tx: Tx,
  ctx: LedgerCtx,
  turn: PrepareTurn,
  call: TurnEntry,
  known: readonly Operation[],
  world: World,
): Promise<Work> {
  if ("proposal" in call) return newWork(tx, ctx, turn, call.callId, call.proposal, known, world);
  const operation = known.find((one) => one.id === call.operationId);
  if (operation === undefined) {
    throw new CountersignError("operation_not_found", `there is no operation ${call.operationId}`);
  }
  const answered = (answer: PerCall): Work => ({ kind: "answered", callId: call.callId, answer });
  if (operation.status !== "AWAITING_APPROVAL") {
    const withoutEffect = ["DENIED", "EXPIRED", "VOIDED"].includes(operation.status);
    return answered({ callId: call.callId, outcome: withoutEffect ? "ended" : "same", operation });
  }
  if (call.approval === null) {
    return answered({ callId: call.callId, outcome: "held", operation, judgement: null });
  }
  const subject = subjectOf(world, operation, {
    refundScope: operation.refundScope,
    itemRefs: operation.itemRefs,
    filers: operation.filers,
    bindingConfirmed: call.bindingConfirmed,
    operationId: operation.id,
    predecessorId: operation.predecessorId,
  });
  if (subject === null) {
    throw new CountersignError("world_gone", `what ${operation.id} is about is no longer in the shop`);
  }
  return {
    kind: "held_before",
    callId: call.callId,
    operation,
    approval: call.approval,
    subject,
    plan: await turn.judge.plan(tx, subject),
  };
}

async function newWork(
  tx: Tx,
  ctx: LedgerCtx,
  turn: PrepareTurn,
  callId: CallId,
  proposal: Proposal,
  known: readonly Operation[],
  world: World,
): Promise<Work> {
  const answered = (answer: PerCall): Work => ({ kind: "answered", callId, answer });
  const occurrence = occurrenceOf(proposal, known);
  const intent: Intent = { ...proposal.intent, occurrence };
  const key = operationKey(intent);
  const live = known.find((one) => one.key === key && keyStillTaken(one));
  if (live !== undefined) {
    const print = fingerprint(intent, proposal.landing, ctx.contracts[intent.kind].version);
    if (print !== live.fingerprint) {
      return answered({
        callId,
        outcome: "conflict",
        operation: live,
        sentence: `Refused: ${live.id} is the same request with other details. Nothing was done.`,
      });
    }
    const joined = ENDED.has(live.status) ? live : await joinOperation(tx, live, proposal);
    return answered({ callId, outcome: "same", operation: joined });
  }
  const before = known.filter((one) => one.key === key && !keyStillTaken(one)).at(-1);
  if (before !== undefined && before.ticketId === proposal.ticketId) {
    return answered({ callId, outcome: "denied_before", operation: before });
  }
  const problem = worldProblem(proposal, world);
  if (problem !== null) {
    return answered({ callId, outcome: "refused", ...problem, judgement: null });
  }
  const subject = subjectOf(world, intent, {
    refundScope: proposal.refundScope,
    itemRefs: proposal.itemRefs,
    filers: proposal.filers,
    bindingConfirmed: proposal.bindingConfirmed,
    operationId: null,
    predecessorId: before?.status === "DENIED" ? before.id : null,
  });
  if (subject === null) {
    return answered({ callId, outcome: "refused", ...NOT_FOUND, judgement: null });
  }
  const order = intent.orderRef === null ? undefined : world.orders.get(intent.orderRef);
  const subscription =
    intent.subscriptionRef === null ? undefined : world.subscriptions.get(intent.subscriptionRef);
  return {
    kind: "new",
    callId,
    proposal,
    intent,
    key,
    subject,
    paymentIntent: order?.payment?.paymentIntent ?? null,
    providerSubscription: subscription?.providerRef ?? null,
    plan: await turn.judge.plan(tx, subject),
  };
}

/** DENIED and provider-refused rows are listed beside live ones; they answer for their own ticket only. */
const keyStillTaken = (operation: Operation): boolean =>
  operation.status === "REJECTED"
    ? operation.resolvedByPerson
    : !["DENIED", "EXPIRED", "VOIDED"].includes(operation.status);

function occurrenceOf(proposal: Proposal, known: readonly Operation[]): number {
  const { further, intent } = proposal;
  if (further === undefined) return intent.occurrence;
  const of = known.find((one) => one.id === further.of);
  return of === undefined ? intent.occurrence : of.occurrence + 1;
}

const NOT_FOUND = {
  code: "not_in_scope",
  sentence: "Refused: there is no such order or subscription of this ticket's customer.",
} as const;

/** What the shop's rows say against a proposal that code computed from an earlier reading. */
function worldProblem(proposal: Proposal, world: World): { code: string; sentence: string } | null {
  const { intent, landing } = proposal;
  if (intent.orderRef !== null) {
    const order = world.orders.get(intent.orderRef);
    if (order === undefined || order.customerRef !== intent.customerRef) return NOT_FOUND;
    if (intent.kind !== "refund") return null;
    if (order.payment === null) {
      return { code: "not_paid", sentence: `Refused: ${order.ref} has no payment that could be refunded.` };
    }
    if (order.payment.currency !== intent.currency) {
      return {
        code: "wrong_currency",
        sentence: `Refused: ${order.ref} was paid in ${order.payment.currency}, not in ${intent.currency}.`,
      };
    }
    if (landing.paymentIntent !== order.payment.paymentIntent) {
      return {
        code: "payment_changed",
        sentence: `Refused: the payment of ${order.ref} has changed. Look the order up again.`,
      };
    }
    return null;
  }
  const subscription =
    intent.subscriptionRef === null ? undefined : world.subscriptions.get(intent.subscriptionRef);
  if (subscription === undefined || subscription.customerRef !== intent.customerRef) return NOT_FOUND;
  return null;
}

function subjectOf(
  world: World,
  intent: Intent,
  rest: Pick<
    JudgeSubject,
    "refundScope" | "itemRefs" | "filers" | "bindingConfirmed" | "operationId" | "predecessorId"
  >,
): JudgeSubject | null {
  const order = intent.orderRef === null ? null : world.orders.get(intent.orderRef);
  const subscription =
    intent.subscriptionRef === null ? null : world.subscriptions.get(intent.subscriptionRef);
  if (order === undefined || subscription === undefined) return null;
  const customerId = order?.customerId ?? subscription?.customerId;
  if (customerId === undefined) return null;
  return {
    ...rest,
    intent: plainIntent(intent),
    customerId,
    orderId: order?.id ?? null,
    paymentId: order?.payment?.id ?? null,
    subscriptionId: subscription?.id ?? null,
  };
}

const plainIntent = (intent: Intent): Intent => ({
  kind: intent.kind,
  customerRef: intent.customerRef,
  orderRef: intent.orderRef,
  subscriptionRef: intent.subscriptionRef,
  amountMinor: intent.amountMinor,
  currency: intent.currency,
  atPeriodEnd: intent.atPeriodEnd,
  occurrence: intent.occurrence,
});

// ── deciding ────────────────────────────────────────────────────────────────────────────────────────────────────

async function decide(tx: Tx, ctx: LedgerCtx, turn: PrepareTurn, work: readonly Work[]): Promise<PerCall[]> {
  const calls: PerCall[] = [];
  const byKey = new Map<string, PerCall>();
  for (const each of work) {
    const twin = each.kind === "new" ? byKey.get(each.key) : undefined;
    const call = twin === undefined ? await decideOne(tx, ctx, turn, each) : twinOf(each.callId, twin);
    if (each.kind === "new" && twin === undefined) byKey.set(each.key, call);
    calls.push(call);
  }
  return calls;
}

/** The same write twice in one turn is one operation. */
function twinOf(callId: CallId, twin: PerCall): PerCall {
  if (twin.outcome === "prepared") return { callId, outcome: "same", operation: twin.operation };
  return { ...twin, callId };
}

async function decideOne(tx: Tx, ctx: LedgerCtx, turn: PrepareTurn, work: Work): Promise<PerCall> {
  switch (work.kind) {
    case "answered":
      return work.answer;
    case "held_before":
      return release(tx, ctx, turn, work);
    case "new":
      return propose(tx, ctx, turn, work);
  }
}

async function propose(
  tx: Tx,
  ctx: LedgerCtx,
  turn: PrepareTurn,
  work: Extract<Work, { kind: "new" }>,
): Promise<PerCall> {
  const { callId } = work;
  const short = await insufficient(tx, work);
  if (short !== null) return { callId, outcome: "insufficient", ...short };
  const judgement = await turn.judge.judge(tx, work.subject);
  switch (judgement.answer) {
    case "refuse":
      return { callId, outcome: "refused", code: "policy", sentence: refusalOf(judgement), judgement };
    case "hold":
      // A row is made only when the whole turn is known; on trial the place is held by an operation that does not exist yet.
      return { callId, outcome: "held", operation: NO_ROW_YET, judgement };
    case "allow": {
      const operation = await insertOperation(tx, newRow(ctx, work, judgement, "PREPARED"));
      if (operation === null) return { callId, outcome: "insufficient", ...(await nothingLeft(tx, work)) };
      return { callId, outcome: "prepared", operation, judgement };
    }
  }
}

const NO_ROW_YET = {} as Operation;

async function release(
  tx: Tx,
  ctx: LedgerCtx,
  turn: PrepareTurn,
  work: Extract<Work, { kind: "held_before" }>,
): Promise<PerCall> {
  const { callId, operation } = work;
  const judgement = await turn.judge.judge(tx, work.subject);
  const check = await work.approval.accepts(tx, { operation, judgement });
  if (!check.holds) return { callId, outcome: "drifted", operation, judgement, changes: check.changes };
  const released = await move(tx, {
    id: operation.id,
    from: "AWAITING_APPROVAL",
    version: operation.version,
    token: null,
    event: "release",
    actor: `approval:${work.approval.approvalId}`,
    data: {
      approval: work.approval.approvalId,
      by: work.approval.approvedBy,
      policyHash: judgement.policyHash,
    },
    checkBalance: true,
    patch: {
      approval: { id: work.approval.approvalId, by: work.approval.approvedBy },
      decision: { policyHash: judgement.policyHash, json: decisionOf(judgement) },
      scopes: work.plan.count,
      ...waitOf(ctx, judgement),
    },
  });
  if (released === null) {
    return {
      callId,
      outcome: "drifted",
      operation,
      judgement,
      changes: [{ what: "balance", sentence: "The payment no longer holds this amount." }],
    };
  }
  return { callId, outcome: "prepared", operation: released, judgement };
}

function newRow(
  ctx: LedgerCtx,
  work: Extract<Work, { kind: "new" }>,
  judgement: Judgement,
  status: "PREPARED" | "AWAITING_APPROVAL",
): Parameters<typeof insertOperation>[1] {
  const { proposal, subject } = work;
  const wait: { notBeforeMs?: number; dueMs?: number } = status === "PREPARED" ? waitOf(ctx, judgement) : {};
  return {
    id: ctx.ids.next("op_"),
    status,
    intent: work.intent,
    contractVersion: ctx.contracts[work.intent.kind].version,
    customerId: subject.customerId,
    orderId: subject.orderId,
    paymentId: work.intent.kind === "refund" ? subject.paymentId : null,
    paymentIntent: work.intent.kind === "refund" ? work.paymentIntent : null,
    subscriptionId: subject.subscriptionId,
    providerSubscription: work.providerSubscription,
    itemRefs: proposal.itemRefs,
    refundScope: proposal.refundScope,
    reason: proposal.reason,
    policyHash: judgement.policyHash,
    decision: decisionOf(judgement),
    answerHash: judgement.answerHash,
    predecessorId: subject.predecessorId,
    runId: proposal.runId,
    ticketId: proposal.ticketId,
    filers: proposal.filers,
    scopes: work.plan.count,
    actor: `run:${proposal.runId}`,
    notBeforeMs: wait.notBeforeMs ?? null,
    dueMs: wait.dueMs ?? null,
  };
}

/** When the operation may leave, and when somebody looks if its wake-up is lost. */
function waitOf(ctx: LedgerCtx, judgement: Judgement): { notBeforeMs?: number; dueMs: number } {
  if (judgement.notBeforeMinutes === null) return { dueMs: ctx.timing.prepareGraceMs };
  const ms = Math.ceil(judgement.notBeforeMinutes * MINUTE_MS);
  return { notBeforeMs: ms, dueMs: ms };
}

const decisionOf = (judgement: Judgement): JsonObject =>
  toJsonObject({
    answer: judgement.answer,
    rules: judgement.rules,
    approval: judgement.approval,
    confirmAmount: judgement.confirmAmount,
    notBeforeMinutes: judgement.notBeforeMinutes,
    answerHash: judgement.answerHash,
  });

const refusalOf = (judgement: Judgement): string => {
  const against = judgement.rules.filter((rule) => rule.verdict === "refuse").map((rule) => rule.sentence);
  return `Refused by the policy: ${against.length > 0 ? against.join(" ") : "no rule allows it."}`;
};

type Short = { leftMinor: bigint; currency: string; sentence: string };

async function insufficient(tx: Tx, work: Extract<Work, { kind: "new" }>): Promise<Short | null> {
  if (work.intent.kind !== "refund" || work.subject.paymentId === null) return null;
  const left = await leftOf(tx, work.subject.paymentId);
  return left >= work.intent.amountMinor ? null : shortOf(work.intent, left);
}

async function nothingLeft(tx: Tx, work: Extract<Work, { kind: "new" }>): Promise<Short> {
  const left = work.subject.paymentId === null ? 0n : await leftOf(tx, work.subject.paymentId);
  return shortOf(work.intent, left);
}

function shortOf(intent: Intent, left: bigint): Short {
  const rest = left < 0n ? 0n : left;
  return {
    leftMinor: rest,
    currency: intent.currency,
    sentence: `Not possible: only ${formatMoney(money(rest, intent.currency))} is left to refund on ${intent.orderRef ?? "this payment"}.`,
  };
}

async function leftOf(tx: Tx, paymentId: string): Promise<bigint> {
  const [row] = await tx.sql<{ left_minor: bigint }>(
    "ledger.left_of",
    "SELECT captured - reserved - refunded - refunded_elsewhere AS left_minor FROM payments WHERE id = $1",
    [paymentId],
  );
  return row?.left_minor ?? 0n;
}

// ── holding ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** The trial was undone: what is held gets its row and its approval, what was allowed waits without one. */
async function holdTurn(
  tx: Tx,
  ctx: LedgerCtx,
  turn: PrepareTurn,
  work: readonly Work[],
  trial: readonly PerCall[],
): Promise<PerCall[]> {
  const calls: PerCall[] = [];
  const heldByKey = new Map<string, Operation>();
  for (const [index, each] of work.entries()) {
    const call = trial[index];
    if (call === undefined) throw new Error("a call of the turn has no answer");
    calls.push(await holdOne(tx, ctx, turn, each, call, heldByKey));
  }
  return calls;
}

async function holdOne(
  tx: Tx,
  ctx: LedgerCtx,
  turn: PrepareTurn,
  work: Work,
  call: PerCall,
  heldByKey: Map<string, Operation>,
): Promise<PerCall> {
  if (work.kind === "answered") return call;
  if (work.kind === "held_before") {
    return call.outcome === "prepared"
      ? { callId: work.callId, outcome: "ready", operation: work.operation }
      : call;
  }
  if (call.outcome === "prepared" || call.outcome === "same") {
    return { callId: work.callId, outcome: "ready", operation: null };
  }
  if (call.outcome !== "held" || call.judgement === null) return call;
  const twin = heldByKey.get(work.key);
  if (twin !== undefined) return { callId: work.callId, outcome: "same", operation: twin };
  const operation = await insertOperation(tx, newRow(ctx, work, call.judgement, "AWAITING_APPROVAL"));
  if (operation === null) {
    throw new CountersignError("key_taken", "the same operation was made by somebody else meanwhile", {
      retry: "again",
    });
  }
  heldByKey.set(work.key, operation);
  await turn.onHold(tx, { callId: work.callId, operation, judgement: call.judgement });
  return { callId: work.callId, outcome: "held", operation, judgement: call.judgement };
}
