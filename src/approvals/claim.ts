/**
 * The last look before an operation leaves: once more at the claim, everything that was compared at the release.
 *
 * 1. `stillHolds` runs in the claim's transaction before the operation's row is locked, and keeps its approval from moving
 *    until that transaction ends: a no and a claim exclude each other.
 * 2. On drift nothing is sent. `replaceDrifted` then voids the operation, which frees what it had set aside, and asks for the
 *    same again under a new card, where the policy still allows that.
 */
import type { Tx } from "../db/connect.js";
import type { Approval, Change } from "../domain/approval.js";
import { materialFieldsHold } from "../domain/approval-drift.js";
import { changesText } from "../domain/approval-words.js";
import type { Landing } from "../domain/identity.js";
import type { ApprovalId, CallId, OperationId, RunId, TicketId } from "../domain/ids.js";
import type { Intent, Operation } from "../domain/operation.js";
import type { Judge, Judgement, JudgeSubject } from "../domain/ports/judge.js";
import * as ledger from "../ledger/index.js";
import { changesForAudit, voteFacts } from "./audit.js";
import { comparePolicy, compareWorldAndVoters, refusalSentence } from "./compare.js";
import type { ApprovalsContext } from "./context.js";
import { DRIFT_CODE, tellThread } from "./rearm.js";
import { request } from "./request.js";
import { APPROVAL_COLUMNS, type ApprovalRow, approvalFromRow, getApproval } from "./rows.js";
import { move } from "./transition.js";
import { CLAIM_READING_MAX_AGE_MS } from "./tunables.js";
import type { Holds, VoterReadings } from "./types.js";
import { readPeople, yesVoters } from "./voters.js";
import { lockWorld } from "./world.js";

/** The newest approval of an operation, whatever its state; null: it never needed one. */
export async function approvalOfOperation(
  on: Pick<Tx, "sql">,
  operationId: OperationId,
): Promise<Approval | null> {
  const [row] = await on.sql<ApprovalRow>(
    "approvals.of_operation",
    `SELECT ${APPROVAL_COLUMNS} FROM approvals a WHERE a.operation_id = $1 ORDER BY a.id DESC LIMIT 1`,
    [operationId],
  );
  return row === undefined ? null : approvalFromRow(row);
}

/** Reads everybody who said yes to an operation, at most 60 s old. To be called before the claim's transaction. */
export async function readVoters(
  ctx: Pick<ApprovalsContext, "db" | "directory">,
  operationId: OperationId,
): Promise<VoterReadings> {
  const approval = await approvalOfOperation(ctx.db, operationId);
  const voters = approval === null ? [] : yesVoters(approval);
  return readPeople(ctx.directory, voters, CLAIM_READING_MAX_AGE_MS);
}

/** Whether this PREPARED operation may be sent now under its approval. One that never needed an approval may. */
export async function stillHolds(
  tx: Tx,
  ctx: Pick<ApprovalsContext, "ledger" | "judge" | "activePolicy">,
  claim: { readonly operation: Operation; readonly voters: VoterReadings },
): Promise<Holds> {
  const { operation, voters } = claim;
  await tx.sql("approvals.share", "SELECT 1 FROM approvals WHERE operation_id = $1 ORDER BY id FOR SHARE", [
    operation.id,
  ]);
  const approval = await approvalOfOperation(tx, operation.id);
  if (approval === null) return { holds: true };
  if (approval.state !== "RELEASED") return { holds: false, code: "not_released", changes: [] };
  const compared = await compareReleased(tx, ctx, approval, operation, voters);
  if (compared.unreadable !== null) return { holds: false, code: "voters_unreadable", changes: [] };
  if (compared.changes.length > 0) return { holds: false, code: "drift", changes: compared.changes };
  return { holds: true };
}

async function compareReleased(
  tx: Tx,
  ctx: Pick<ApprovalsContext, "ledger" | "judge" | "activePolicy">,
  approval: Approval,
  operation: Operation,
  readings: VoterReadings,
): Promise<{ changes: readonly Change[]; unreadable: string | null; judgement: Judgement | null }> {
  const policy = await ctx.activePolicy(tx);
  const together = await releasedWith(tx, approval.id);
  const compared = await compareWorldAndVoters(tx, ctx, approval, { policy, readings, together });
  if (compared.unreadable !== null) return { ...compared, judgement: null };
  const judgement = await judgeAgain(tx, ctx.judge, approval, operation);
  // Under the policy of the release the answer was compared then, and what came after was judged on top of this operation.
  const samePolicy = judgement.policyHash === operation.policyHash;
  const policyChanged = samePolicy ? [] : comparePolicy(approval, judgement, false);
  return { changes: [...compared.changes, ...policyChanged], unreadable: null, judgement };
}

/** The policy's answer now, the operation not counted against itself. Takes no totals' locks: nothing is reserved on it. */
async function judgeAgain(
  tx: Tx,
  judge: Judge<Tx>,
  approval: Approval,
  operation: Operation,
): Promise<Judgement> {
  const subject = await subjectOf(tx, approval, operation);
  await judge.plan(tx, subject);
  return judge.judge(tx, subject);
}

async function subjectOf(tx: Tx, approval: Approval, operation: Operation): Promise<JudgeSubject> {
  const [row] = await tx.sql<{
    customer_id: string;
    order_id: string | null;
    payment_id: string | null;
    subscription_id: string | null;
  }>(
    "approvals.subject",
    "SELECT customer_id, order_id, payment_id, subscription_id FROM operations WHERE id = $1",
    [operation.id],
  );
  if (row === undefined) throw new Error(`operation ${operation.id} is gone`);
  return {
    intent: intentOf(operation),
    refundScope: operation.refundScope,
    itemRefs: operation.itemRefs,
    filers: operation.filers,
    bindingConfirmed: !approval.binding.bindingUnconfirmed,
    customerId: row.customer_id,
    orderId: row.order_id,
    paymentId: row.payment_id,
    subscriptionId: row.subscription_id,
    operationId: operation.id,
    predecessorId: operation.predecessorId,
  };
}

async function releasedWith(tx: Tx, id: ApprovalId): Promise<readonly string[]> {
  const [row] = await tx.sql<{ ids: string[] }>(
    "approvals.released_with",
    "SELECT released_with AS ids FROM approvals WHERE id = $1",
    [id],
  );
  return row?.ids ?? [];
}

export type Replaced =
  /** The binding holds after all, or the operation has moved: nothing was changed. */
  | { readonly outcome: "unchanged"; readonly operation: Operation | null }
  /** Voided; `successor` asks for the same again. null: the world or the policy no longer allows it. */
  | {
      readonly outcome: "replaced";
      readonly operation: Operation;
      readonly successor: Operation | null;
      readonly approval: Approval | null;
    };

/** After a claim that drift stopped. Reads the voters, compares once more under the locks, and only then voids. */
export async function replaceDrifted(
  ctx: ApprovalsContext,
  drifted: { readonly operationId: OperationId },
): Promise<Replaced> {
  const voters = await readVoters(ctx, drifted.operationId);
  return ctx.db.tx((tx) => replaceIn(tx, ctx, drifted.operationId, voters));
}

async function replaceIn(
  tx: Tx,
  ctx: ApprovalsContext,
  operationId: OperationId,
  voters: VoterReadings,
): Promise<Replaced> {
  await tx.sql(
    "approvals.lock_of_operation",
    "SELECT 1 FROM approvals WHERE operation_id = $1 ORDER BY id FOR NO KEY UPDATE",
    [operationId],
  );
  lockWorld(tx, [operationId], []);
  const operation = await ledger.getOperation(tx, operationId);
  const approval = await approvalOfOperation(tx, operationId);
  if (operation?.status !== "PREPARED" || approval?.state !== "RELEASED") {
    return { outcome: "unchanged", operation };
  }
  const compared = await compareReleased(tx, ctx, approval, operation, voters);
  if (compared.unreadable !== null || compared.changes.length === 0)
    return { outcome: "unchanged", operation };

  const changes = withRefusal(compared.changes, compared.judgement);
  const detail = changesText(changes);
  const voided = await ledger.voidOperation(tx, ctx.ledger, {
    operationId,
    actor: "system:approvals",
    code: DRIFT_CODE,
    detail: `What was approved no longer holds, so nothing was sent. ${detail}`,
    approval: {
      approvalId: approval.id,
      votes: voteFacts(approval),
      changes: changesForAudit(changes),
    },
  });
  if (!voided.moved) return { outcome: "unchanged", operation: voided.operation };
  await move(tx, ctx, approval, { to: "VOIDED", endCode: "drift", endDetail: detail });
  const next = materialFieldsHold(changes) ? await askAgain(tx, ctx, { approval, operation, changes }) : null;
  await tellThread(tx, ctx, approval, next?.approval.id ?? null);
  return {
    outcome: "replaced",
    operation: voided.operation,
    successor: next?.operation ?? null,
    approval: next?.approval ?? null,
  };
}

function withRefusal(changes: readonly Change[], judgement: Judgement | null): readonly Change[] {
  const told = changes.some((change) => change.what === "policy_refuses");
  if (told || judgement?.answer !== "refuse") return changes;
  return [...changes, { what: "policy_refuses", sentence: refusalSentence(judgement) }];
}

/** The same wish as a new operation that is held under a new card; null: the policy or the world refuses it. */
async function askAgain(
  tx: Tx,
  ctx: ApprovalsContext,
  before: { approval: Approval; operation: Operation; changes: readonly Change[] },
): Promise<{ operation: Operation; approval: Approval } | null> {
  const { approval, operation, changes } = before;
  if (operation.ownerRunId === null || operation.ticketId === null) return null;
  const { ownerRunId: runId, ticketId, filers } = operation;
  let armed: Approval | null = null;
  const [call] = await ledger.prepareTurn(tx, ctx.ledger, {
    calls: [entryAgain(before, { runId, ticketId, filers })],
    judge: heldAnyway(ctx.judge, approval),
    onHold: async (on, held) => {
      armed = await request(on, ctx, {
        operation: held.operation,
        judgement: held.judgement,
        runId: approval.runId,
        turnId: approval.turnId,
        ticketId: approval.ticketId,
        predecessor: approval,
        changes,
      });
    },
  });
  if (call?.outcome !== "held" || armed === null) return null;
  const { id } = armed as Approval;
  await waitersFollow(tx, ctx, before);
  await ctx.hooks.onSuccessor(tx, { from: operation.id, to: call.operation.id });
  const stored = await getApproval(tx, id);
  return stored === null ? null : { operation: call.operation, approval: stored };
}

const intentOf = (operation: Operation): Intent => ({
  kind: operation.kind,
  customerRef: operation.customerRef,
  orderRef: operation.orderRef,
  subscriptionRef: operation.subscriptionRef,
  amountMinor: operation.amountMinor,
  currency: operation.currency,
  atPeriodEnd: operation.atPeriodEnd,
  occurrence: operation.occurrence,
});

const landingOf = ({ paymentIntent, providerSubscription }: Operation): Landing => ({
  paymentIntent,
  providerSubscription,
});

/** Who waited for the voided operation waits for its successor: the same wish joins what exists. */
async function waitersFollow(
  tx: Tx,
  ctx: Pick<ApprovalsContext, "ledger" | "judge">,
  before: { approval: Approval; operation: Operation },
): Promise<void> {
  for (const { runId, ticketId, filer } of await ledger.waitersOf(tx, before.operation.id)) {
    await ledger.prepareTurn(tx, ctx.ledger, {
      calls: [entryAgain(before, { runId, ticketId, filers: [filer] })],
      judge: ctx.judge,
      onHold: () => Promise.reject(new Error("a waiter met no successor")),
    });
  }
}

/** The same wish once more, for a run that has it. The call's id is only the answer's name. */
function entryAgain(
  { approval, operation }: { approval: Approval; operation: Operation },
  whose: { runId: RunId; ticketId: TicketId; filers: readonly string[] },
): ledger.TurnEntry {
  const callId: CallId = `call_${operation.id}`;
  const proposal: ledger.Proposal = {
    callId,
    intent: intentOf(operation),
    landing: landingOf(operation),
    itemRefs: operation.itemRefs,
    refundScope: operation.refundScope,
    reason: operation.reason,
    bindingConfirmed: !approval.binding.bindingUnconfirmed,
    ...whose,
  };
  return { callId, proposal };
}

/** What was asked of people once is asked of them again, even where the policy would now allow it by itself. */
function heldAnyway(judge: Judge<Tx>, approval: Approval): Judge<Tx> {
  return {
    plan: (tx, subject) => judge.plan(tx, subject),
    judge: async (tx, subject) => {
      const judgement = await judge.judge(tx, subject);
      if (judgement.answer !== "allow") return judgement;
      return { ...judgement, answer: "hold", approval: demandOf(approval) };
    },
  };
}

function demandOf(approval: Approval): NonNullable<Judgement["approval"]> {
  const { policy } = approval.binding;
  const minutes = (approval.expiresAt.getTime() - approval.createdAt.getTime()) / 60_000;
  return {
    role: policy.role,
    approvers: policy.approvers,
    line: policy.line,
    isLastLine: policy.isLastLine,
    ladderMinor: policy.ladderMinor,
    confirmAmount: policy.confirmAmount,
    selfApproval: policy.selfApproval,
    expireAfterMinutes: minutes,
    remindAfterMinutes: [],
    escalateTo: [],
  };
}
