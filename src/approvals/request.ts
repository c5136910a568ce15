/**
 * Arming: a held operation becomes a row that its card is rendered from and its votes are bound to.
 *
 * 1. The binding is read from rows in the transaction that holds the operation, never handed in.
 * 2. One open approval an operation (the database keeps it).
 * 3. Whether anybody could decide is looked at right after commit (`attendOne`): asking Slack has no place in a transaction.
 */
import type { Tx } from "../db/connect.js";
import type { Approval, ApprovalBinding, BoundAnswer } from "../domain/approval.js";
import { CountersignError } from "../domain/errors.js";
import type { ApprovalId } from "../domain/ids.js";
import type { Judgement } from "../domain/ports/judge.js";
import { recordAsked } from "../ledger/index.js";
import { bindingHash, bindingToJson, changesToJson } from "./binding-json.js";
import type { ApprovalsContext } from "./context.js";
import { getApproval } from "./rows.js";
import type { ApprovalRequest } from "./types.js";
import { readEarlier, readSurroundings } from "./world.js";

/** What arming needs of the context. */
export type RequestContext = Pick<ApprovalsContext, "ids" | "notices" | "wake"> & {
  readonly ledger: Pick<ApprovalsContext["ledger"], "contracts">;
};

/**
 * Asks for a countersignature of an operation that is AWAITING_APPROVAL. Joins the caller's transaction.
 *
 * Throws `CountersignError('approval_without_demand')` for a judgement that neither asks for people nor follows an approval.
 */
export async function request(tx: Tx, ctx: RequestContext, asked: ApprovalRequest): Promise<Approval> {
  const { operation, judgement, predecessor } = asked;
  const around = await readSurroundings(tx, ctx.ledger.contracts, operation.id, []);
  if (around === null) throw new Error(`operation ${operation.id} is gone`);
  const policy = boundAnswer(judgement, predecessor?.binding.policy ?? null);
  const binding: ApprovalBinding = {
    operationId: operation.id,
    kind: operation.kind,
    customerRef: operation.customerRef,
    customerName: around.customerName,
    orderRef: operation.orderRef,
    subscriptionRef: operation.subscriptionRef,
    itemRefs: operation.itemRefs,
    amountMinor: operation.amountMinor,
    currency: operation.currency,
    atPeriodEnd: operation.atPeriodEnd,
    occurrence: operation.occurrence,
    fingerprint: operation.fingerprint,
    filers: operation.filers,
    bindingUnconfirmed: around.bindingUnconfirmed,
    world: around.world,
    policy,
    earlier: await readEarlier(tx, operation),
  };
  const id = ctx.ids.next("apr_") as ApprovalId;
  const times = judgement.approval ?? { expireAfterMinutes: await minutesOf(tx, predecessor) };
  await tx.sql("approvals.insert", INSERT, [
    id,
    operation.id,
    asked.runId,
    asked.turnId,
    asked.ticketId,
    JSON.stringify(bindingToJson(binding)),
    bindingHash(binding),
    judgement.policyHash,
    judgement.answerHash,
    policy.role,
    policy.approvers,
    policy.confirmAmount,
    predecessor?.id ?? null,
    JSON.stringify(changesToJson(asked.changes ?? [])),
    times.expireAfterMinutes,
  ]);
  await recordAsked(tx, {
    id,
    operationId: operation.id,
    role: policy.role,
    approvers: policy.approvers,
    bindingHash: bindingHash(binding),
    confirmAmount: policy.confirmAmount,
  });
  await ctx.notices.touch(tx, { kind: "approval", id });
  tx.afterCommit(() => void ctx.wake("approval", id));
  const approval = await getApproval(tx, id);
  if (approval === null) throw new Error(`approval ${id} was not stored`);
  return approval;
}

// $1 id, $2 operation, $3 run, $4 turn, $5 ticket, $6 binding, $7 its hash, $8 policy, $9 answer, $10 role, $11 people,
// $12 amount repeated, $13 predecessor, $14 changes, $15 minutes until it expires. Due at once: its gate is to be looked at.
const INSERT = `
INSERT INTO approvals (id, operation_id, run_id, turn_id, ticket_id, state, binding, binding_hash, policy_hash, answer_hash,
  role, approvers_needed, confirm_amount, predecessor_id, changes, expires_at, due_at)
VALUES ($1, $2, $3, $4, $5, 'PENDING', $6::jsonb, $7, $8, $9, $10, $11, $12, $13, $14::jsonb,
  countersign_now() + make_interval(secs => $15::float8 * 60), countersign_now())`;

/** The answer as an approval is bound to it. One that allows by itself asks what its predecessor asked. */
function boundAnswer(judgement: Judgement, before: BoundAnswer | null): BoundAnswer {
  const { approval, rules } = judgement;
  const common = {
    answerHash: judgement.answerHash,
    policyHash: judgement.policyHash,
    coolingOffMinutes: judgement.notBeforeMinutes ?? 0,
  };
  if (approval !== null) {
    return {
      ...common,
      answer: "hold",
      reasons: rules.filter((rule) => rule.verdict === "hold").map((rule) => rule.sentence),
      role: approval.role,
      approvers: approval.approvers,
      line: approval.line,
      isLastLine: approval.isLastLine,
      ladderMinor: approval.ladderMinor,
      confirmAmount: approval.confirmAmount,
      selfApproval: approval.selfApproval,
    };
  }
  if (judgement.answer !== "allow" || before === null) {
    throw new CountersignError(
      "approval_without_demand",
      "the policy asks for nobody's approval, and none was asked for before",
    );
  }
  return { ...before, ...common, answer: "allow", reasons: [ASKED_BEFORE] };
}

const ASKED_BEFORE =
  "The policy would allow this now. It was asked for under an approval that no longer fits, so it is asked again.";

/** How long the predecessor was given, in minutes. */
async function minutesOf(tx: Tx, predecessor: Approval | undefined): Promise<number> {
  const [row] = await tx.sql<{ minutes: number }>(
    "approvals.minutes_of",
    "SELECT extract(epoch FROM expires_at - created_at)::float8 / 60 AS minutes FROM approvals WHERE id = $1",
    [predecessor?.id ?? null],
  );
  if (row === undefined) throw new Error("the approval that is asked for again is gone");
  return row.minutes;
}
