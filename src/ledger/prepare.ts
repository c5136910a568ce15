/**
 * The writes of one turn, decided and reserved in one transaction.
 *
 * 1. Locks: operations of the same keys, then orders with payments, then totals' scopes, each in the order of ids or names.
 * 2. Each write sees the reservations of those before it in the turn: a line that two pass together is passed by the second.
 *    What is held reserves nothing, and is seen by the allowed ones when the turn is released. Those that are held see each other
 *    at once, so that each card asks for the role of the sum; if one does not go ahead, a milder answer at the release is no drift.
 * 3. If anything is held or drifted, everything tried is rolled back to a savepoint: nothing of the turn is PREPARED. The policy that
 *    answered stays locked until the end: what is held was answered under the policy in force.
 * 4. A race that the locks cannot exclude (the same new key, committed while we waited) runs the whole transaction again.
 */
import type { Tx } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import { keyIsTaken } from "../domain/holding.js";
import { operationKey } from "../domain/identity.js";
import type { ApprovalId, CallId, OperationId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import type { Judgement, ScopePlan } from "../domain/ports/judge.js";
import { type Candidate, furtherIntent, paymentOf, place, sameEffect, subjectOf } from "./candidate.js";
import type { LedgerCtx } from "./context.js";
import { join } from "./join.js";
import { judgeBySum } from "./judge-by-sum.js";
import { judgeCandidate, type Verdict } from "./judge-candidate.js";
import { type StoredCase as Case, store, voidHeld } from "./prepare-store.js";
import { getOperation } from "./reads.js";
import { TurnRace } from "./turn-race.js";
import type { ClaimAtOnce, PerCall, PrepareTurn, Proposal, TurnEntry } from "./types.js";
import {
  keyIsHeld,
  lockOperations,
  lockOperationsAndOrders,
  lockOrdersOfOperations,
  lockScopes,
  lockWorld,
  type OrderLock,
} from "./world.js";

/** Decides the writes of one turn; joins the caller's transaction. See the room's index for what the answers mean. */
export async function prepareTurn(tx: Tx, ctx: LedgerCtx, turn: PrepareTurn): Promise<PerCall[]> {
  const answers = new Map<CallId, PerCall>();
  const { candidates, paid } = await identify(tx, ctx, turn.calls, answers);
  const undecided = turn.calls.some((call) => answers.get(call.callId)?.outcome === "held");
  if (undecided) {
    for (const candidate of candidates) answers.set(candidate.callId, ready(candidate));
  } else if (candidates.length > 0) {
    await decide(tx, ctx, turn, { candidates, paid }, answers);
  }
  return turn.calls.map(({ callId }) => {
    const answer = answers.get(callId);
    if (answer === undefined) throw new CountersignError("unanswered_call", `call ${callId} has no answer`);
    return answer;
  });
}

// ── who it is ───────────────────────────────────────────────────────────────────────────────────────────────────

/** What identity leaves to be decided. */
interface Identified {
  readonly candidates: readonly Candidate[];
  /** Paid orders that were locked with the operations; null: none were. */
  readonly paid: ReadonlyMap<string, OrderLock> | null;
}

/** Answers what identity alone decides, and returns the rest. Two calls of one turn with one key are one candidate. */
async function identify(
  tx: Tx,
  ctx: LedgerCtx,
  calls: readonly TurnEntry[],
  answers: Map<CallId, PerCall>,
): Promise<Identified> {
  const proposals = new Map<CallId, Candidate>();
  for (const call of calls) {
    if (!("proposal" in call)) continue;
    const candidate = await asCandidate(tx, call.proposal);
    if (candidate === null) answers.set(call.callId, notFurther(call.callId));
    else proposals.set(call.callId, candidate);
  }
  const ids = calls.flatMap((call) => ("operationId" in call ? [call.operationId] : []));
  const keys = [...new Set([...proposals.values()].map(({ key }) => key))].sort();
  const { operations: locked, orders: paid } = await lockIdentified(tx, [...proposals.values()], {
    keys,
    ids,
  });

  const found: Candidate[] = [];
  for (const call of calls) {
    if ("operationId" in call) {
      const operation = locked.find(({ id }) => id === call.operationId);
      const candidate = heldCandidate(call, operation, answers);
      if (candidate !== null) found.push(candidate);
      continue;
    }
    const candidate = proposals.get(call.callId);
    if (candidate === undefined) continue;
    const answer = await replay(tx, ctx, candidate, call.proposal, locked);
    if (answer === null) found.push(withPredecessor(candidate, locked));
    else answers.set(call.callId, answer);
  }
  return { candidates: found, paid };
}

/** Operations of the keys and ids, and with them the paid orders that the turn is about, unless that is known only afterwards. */
async function lockIdentified(
  tx: Tx,
  proposals: readonly Candidate[],
  { keys, ids }: { keys: readonly string[]; ids: readonly OperationId[] },
): Promise<{ operations: readonly Operation[]; orders: ReadonlyMap<string, OrderLock> | null }> {
  const orders = ordersOf(proposals);
  if (ids.length === 0) {
    return orders === null
      ? { operations: await lockOperations(tx, { keys, ids }), orders: null }
      : lockOperationsAndOrders(tx, { keys, orders });
  }
  if (proposals.length > 0) return { operations: await lockOperations(tx, { keys, ids }), orders: null };
  const [operations, paid] = await Promise.all([
    lockOperations(tx, { keys, ids }),
    lockOrdersOfOperations(tx, ids),
  ]);
  return { operations, orders: paid };
}

/** The orders that these are about; null where one is about something else. */
function ordersOf(candidates: readonly Candidate[]): string[] | null {
  const refs = candidates.map(({ intent }) => (intent.subscriptionRef === null ? intent.orderRef : null));
  return refs.length === 0 || refs.includes(null)
    ? null
    : [...new Set(refs.filter((ref) => ref !== null))].sort();
}

async function asCandidate(tx: Tx, proposal: Proposal): Promise<Candidate | null> {
  const source = { kind: "proposal", proposal, predecessorId: null } as const;
  if (proposal.further === undefined) {
    const { intent } = proposal;
    return { callId: proposal.callId, intent, key: operationKey(intent), source };
  }
  const of = await getOperation(tx, proposal.further.of);
  const taken = of !== null && keyIsTaken(of.status, of.resolvedByPerson);
  const intent = taken ? furtherIntent(proposal.intent, of) : null;
  return intent === null ? null : { callId: proposal.callId, intent, key: operationKey(intent), source };
}

/** An operation of the turn that was held: still undecided, ended meanwhile, moved on, or approved and to be released. */
function heldCandidate(
  call: Extract<TurnEntry, { operationId: unknown }>,
  operation: Operation | undefined,
  answers: Map<CallId, PerCall>,
): Candidate | null {
  const { callId, approval } = call;
  if (operation === undefined) {
    throw new CountersignError("no_operation", `there is no operation ${call.operationId}`);
  }
  switch (operation.status) {
    case "AWAITING_APPROVAL":
      if (approval === null) {
        answers.set(callId, { callId, outcome: "held", operation, judgement: null });
        return null;
      }
      return {
        callId,
        intent: operation,
        key: operation.key,
        source: { kind: "held", operation, approval, bindingConfirmed: call.bindingConfirmed },
      };
    case "DENIED":
    case "EXPIRED":
    case "VOIDED":
      answers.set(callId, { callId, outcome: "ended", operation });
      return null;
    default:
      answers.set(callId, { callId, outcome: "same", operation });
      return null;
  }
}

/** The stored answer to an intent that exists; null when it is new. */
async function replay(
  tx: Tx,
  ctx: LedgerCtx,
  candidate: Candidate,
  proposal: Proposal,
  locked: readonly Operation[],
): Promise<PerCall | null> {
  const { callId } = candidate;
  const known = locked.filter(({ key }) => key === candidate.key);
  const live = known.find((operation) => !isEndedAttempt(operation));
  if (live !== undefined) {
    if (!sameEffect(candidate, live)) {
      return {
        callId,
        outcome: "conflict",
        operation: live,
        sentence: `The operation ${live.id} is the same request with other material fields; nothing was done.`,
      };
    }
    const joined = await join(tx, live, proposal);
    if (joined.filers.length > live.filers.length) await tellApproval(tx, ctx, joined);
    return { callId, outcome: "same", operation: joined };
  }
  const here = known.filter(({ ticketId }) => ticketId === proposal.ticketId).at(-1);
  return here === undefined ? null : { callId, outcome: "denied_before", operation: here };
}

/** $1 operation. */
const PENDING_OF = "SELECT id FROM approvals WHERE operation_id = $1 AND state = 'PENDING'";

/** Whoever asks for it, too, may not decide it: its card says who asks, and whether anybody is left is looked at anew. */
async function tellApproval(tx: Tx, ctx: LedgerCtx, { id, status }: Operation): Promise<void> {
  if (status !== "AWAITING_APPROVAL") return;
  const [pending] = await tx.sql<{ id: ApprovalId }>("ledger.pending_of", PENDING_OF, [id]);
  if (pending === undefined) return;
  await ctx.notices.touch(tx, { kind: "approval", id: pending.id });
  tx.afterCommit(() => void ctx.wake("approval", pending.id));
}

/** Denied by a person, or refused by the provider: no longer live, told again within its ticket. */
const isEndedAttempt = (operation: Operation): boolean =>
  operation.status === "DENIED" || (operation.status === "REJECTED" && !operation.resolvedByPerson);

/** A later ticket that asks for what was denied makes a successor. Rows come in the order of their ids, which is that of time. */
function withPredecessor(candidate: Candidate, locked: readonly Operation[]): Candidate {
  const { source } = candidate;
  const last = locked.filter(({ key }) => key === candidate.key).at(-1);
  if (source.kind !== "proposal" || last?.status !== "DENIED") return candidate;
  return { ...candidate, source: { ...source, predecessorId: last.id } };
}

// ── what becomes of it ──────────────────────────────────────────────────────────────────────────────────────────

async function decide(
  tx: Tx,
  ctx: LedgerCtx,
  turn: PrepareTurn,
  identified: Identified,
  answers: Map<CallId, PerCall>,
): Promise<void> {
  const { candidates } = identified;
  const { cases, misplaced } = await lockAndPlace(tx, turn, identified);
  const firsts = cases.filter(
    (one, index) => cases.findIndex(({ candidate }) => candidate.key === one.candidate.key) === index,
  );
  const verdicts = new Map<string, Verdict>();
  // Not before the first was judged: what is rolled back lets go of its locks, and the policy that answered stays locked.
  let saved = false;
  let blocked = false;
  for (const [index, one] of firsts.entries()) {
    const verdict = await judgeCandidate(tx, turn.judge, one.candidate, one.site);
    const last = index === firsts.length - 1;
    blocked ||= verdict.is === "hold" || verdict.is === "drift";
    const seen = verdict.is === "allow" && !(blocked && last);
    // Alone in its turn nothing can hold it any more: it may be claimed with the same commit.
    const claim = firsts.length === 1 ? turn.claim : undefined;
    if (seen && firsts.length > 1 && !saved) {
      await tx.sql(undefined, "SAVEPOINT turn_tried");
      saved = true;
    }
    verdicts.set(one.candidate.key, seen ? await reserve(tx, ctx, one, verdict, claim) : verdict);
  }
  if (blocked && firsts.length > 1) {
    await tx.sql(undefined, saved ? "ROLLBACK TO SAVEPOINT turn_tried" : "SAVEPOINT turn_tried");
    await judgeBySum(tx, ctx, turn.judge, firsts, verdicts);
  }

  for (const one of firsts) {
    const verdict = verdicts.get(one.candidate.key);
    if (verdict === undefined) continue;
    answers.set(one.candidate.callId, await conclude(tx, ctx, turn, one, verdict, blocked));
  }
  for (const [candidate, reason] of misplaced) {
    answers.set(candidate.callId, await refuse(tx, ctx, candidate, reason, null));
  }
  for (const { candidate } of cases) echo(candidate, firsts, answers);
  await excludeRace(tx, candidates, answers);
}

/** Locks what the candidates touch; those whose rows are gone or changed are returned apart. */
async function lockAndPlace(
  tx: Tx,
  turn: PrepareTurn,
  { candidates, paid }: Identified,
): Promise<{ cases: Case[]; misplaced: Map<Candidate, Refusal> }> {
  const refs = (pick: (candidate: Candidate) => string | null): string[] => [
    ...new Set(candidates.map(pick).filter((ref) => ref !== null)),
  ];
  const world = await lockWorld(
    tx,
    {
      orders: refs(({ intent }) => (intent.subscriptionRef === null ? intent.orderRef : null)),
      subscriptions: refs(({ intent }) => intent.subscriptionRef),
    },
    paid,
  );
  const misplaced = new Map<Candidate, Refusal>();
  const cases: Case[] = [];
  const plans: ScopePlan[] = [];
  for (const candidate of candidates) {
    const placed = place(candidate, world);
    if (!placed.ok) {
      misplaced.set(candidate, { code: placed.code, sentence: placed.sentence });
      continue;
    }
    const plan = await turn.judge.plan(tx, subjectOf(candidate, placed.site));
    plans.push(plan);
    cases.push({ candidate, site: placed.site, scopes: plan.count });
  }
  lockScopes(
    tx,
    plans.flatMap(({ lock }) => lock),
  );
  return { cases, misplaced };
}

/** Prepares what is allowed, so that the next ones see it; undone if the turn turns out to be held. */
async function reserve(
  tx: Tx,
  ctx: LedgerCtx,
  one: Case,
  verdict: Extract<Verdict, { is: "allow" }>,
  claim: ClaimAtOnce | undefined,
): Promise<Verdict> {
  const { judgement, audit } = verdict;
  const stored = await store(tx, ctx, one, judgement, "PREPARED", { claim, audit });
  const payment = paymentOf(one.candidate, one.site);
  if (payment !== null) payment.left -= one.candidate.intent.amountMinor;
  return { ...verdict, stored };
}

async function conclude(
  tx: Tx,
  ctx: LedgerCtx,
  turn: PrepareTurn,
  one: Case,
  verdict: Verdict,
  blocked: boolean,
): Promise<PerCall> {
  const { candidate } = one;
  const { callId } = candidate;
  switch (verdict.is) {
    case "insufficient":
      return candidate.source.kind === "held"
        ? endHeld(tx, ctx, candidate, { code: "insufficient", sentence: verdict.answer.sentence })
        : verdict.answer;
    case "refuse":
      return refuse(tx, ctx, candidate, verdict, verdict.judgement);
    case "allow":
      if (blocked) return ready(candidate);
      if (verdict.stored === null) throw new CountersignError("not_stored", `call ${callId} was not stored`);
      // Who has the claim sends it; if nobody does, the end of its lease is due.
      if (verdict.stored.claim === null) tx.afterCommit(wakeFor(ctx, verdict.stored.operation));
      return { callId, outcome: "prepared", judgement: verdict.judgement, ...verdict.stored };
    case "drift": {
      if (candidate.source.kind !== "held")
        throw new CountersignError("not_held", `call ${callId} was not held`);
      const { operation } = candidate.source;
      const { judgement, changes } = verdict;
      return { callId, outcome: "drifted", operation, judgement, changes };
    }
    case "hold": {
      const { operation } = await store(tx, ctx, one, verdict.judgement, "AWAITING_APPROVAL");
      await turn.onHold(tx, { callId, operation, judgement: verdict.judgement });
      return { callId, outcome: "held", operation, judgement: verdict.judgement };
    }
  }
}

const wakeFor =
  (ctx: LedgerCtx, { id }: Operation): (() => void) =>
  () =>
    void ctx.wake("operation", id);

interface Refusal {
  readonly code: string;
  readonly sentence: string;
}

async function refuse(
  tx: Tx,
  ctx: LedgerCtx,
  candidate: Candidate,
  reason: Refusal,
  judgement: Judgement | null,
): Promise<PerCall> {
  if (candidate.source.kind === "held") return endHeld(tx, ctx, candidate, reason);
  const { callId } = candidate;
  return { callId, outcome: "refused", code: reason.code, sentence: reason.sentence, judgement };
}

/** What was held and no longer fits the world or the policy ends here. */
async function endHeld(tx: Tx, ctx: LedgerCtx, candidate: Candidate, reason: Refusal): Promise<PerCall> {
  const { callId, source } = candidate;
  if (source.kind !== "held") throw new CountersignError("not_held", `call ${callId} was not held`);
  return { callId, outcome: "ended", operation: await voidHeld(tx, ctx, source, reason) };
}

/** The second call of a turn that asks for the same gets the first one's answer. */
function echo(candidate: Candidate, firsts: readonly Case[], answers: Map<CallId, PerCall>): void {
  if (answers.has(candidate.callId)) return;
  const first = firsts.find((one) => one.candidate.key === candidate.key);
  const answer = first === undefined ? undefined : answers.get(first.candidate.callId);
  if (answer === undefined) return;
  const { callId } = candidate;
  answers.set(
    callId,
    "operation" in answer && answer.operation !== null && answer.outcome !== "ready"
      ? { callId, outcome: "same", operation: answer.operation }
      : { ...answer, callId },
  );
}

/** A refusal may only mean that the same intent was committed while we waited for the payment: then it is that operation. */
async function excludeRace(
  tx: Tx,
  candidates: readonly Candidate[],
  answers: ReadonlyMap<CallId, PerCall>,
): Promise<void> {
  const keys = candidates
    .filter(({ source, callId }) => {
      const outcome = answers.get(callId)?.outcome;
      return source.kind === "proposal" && (outcome === "refused" || outcome === "insufficient");
    })
    .map(({ key }) => key);
  if (keys.length > 0 && (await keyIsHeld(tx, keys))) throw new TurnRace();
}

const ready = (candidate: Candidate): PerCall => ({
  callId: candidate.callId,
  outcome: "ready",
  operation: candidate.source.kind === "held" ? candidate.source.operation : null,
});

const notFurther = (callId: CallId): PerCall => ({
  callId,
  outcome: "refused",
  code: "not_further",
  sentence: "This is no further occurrence of the operation that was named.",
  judgement: null,
});
