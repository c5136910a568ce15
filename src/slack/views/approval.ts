/** An approval as its card shows it. */
import { changesSince, getApproval, standingOf, successorOf } from "../../approvals/index.js";
import type { SqlRunner } from "../../db/connect.js";
import type { Approval } from "../../domain/approval.js";
import type { ApprovalId, OperationId } from "../../domain/ids.js";
import { CONFIRMED_ON_WORD, dataIn, personNamed } from "../../ops/index.js";
import { getTicket } from "../../runs/index.js";
import { type ApprovalView, isConfirmed } from "../cards/approval-card.js";
import type { OperationFacts } from "../cards/sentences.js";
import { withoutAddresses } from "../text/addresses.js";
import { readOperation } from "./operation.js";

export async function readApprovalView(db: SqlRunner, id: ApprovalId): Promise<ApprovalView | null> {
  const approval = await getApproval(db, id);
  return approval === null ? null : approvalViewOf(db, approval);
}

export async function approvalViewOf(db: SqlRunner, approval: Approval): Promise<ApprovalView> {
  const operation = await readOperation(db, approval.operationId);
  if (operation === null) throw new Error(`operation ${approval.operationId} is gone`);
  const { waitsFor, notBefore } = await standingOf(db, approval);
  const successor = approval.state === "VOIDED" && (await successorOf(db, approval.id)) !== null;
  const ticket = approval.ticketId === null ? null : await getTicket(db, approval.ticketId);
  const binding = { ...approval.binding, customerName: withoutAddresses(approval.binding.customerName) };
  return {
    approval: { ...approval, binding },
    operation: { ...operation, notBefore },
    waitsFor,
    successor,
    changedSince: approval.state === "PENDING" ? await changesSince(db, approval) : [],
    customerConfirmed: isConfirmed(approval, ticket),
    othersWait: await othersWait(db, approval),
    confirmedBy: ticket?.binding === "confirmed" ? ticket.boundBy : null,
    ...(await yesBefore(db, approval)),
    ...(await onWord(db, approval)),
    instead: approval.endCode === "binding_confirmed" ? await askedInstead(db, approval.operationId) : null,
  };
}

/** $1 operation, $2 the run that owns it. */
const OTHERS_WAIT = `
SELECT EXISTS (SELECT 1 FROM operation_waiters WHERE operation_id = $1 AND run_id IS DISTINCT FROM $2) AS others`;

/** Another ticket asks for the same and waits with it. */
export async function othersWait(db: SqlRunner, { operationId, runId }: Approval): Promise<boolean> {
  const [row] = await db.sql<{ others: boolean }>("slack.others_wait", OTHERS_WAIT, [operationId, runId]);
  return row?.others === true;
}

/** $1 approval. Votes on it as the log tells them, oldest first. An erased name is nobody's. */
const VOTED = `
SELECT each.* FROM (SELECT ${personNamed("e.actor")} AS actor, e.at, e.body, e.seq FROM operation_events e
WHERE e.subject = 'approval:' || $1 AND e.type = 'voted') each
WHERE each.actor IS NOT NULL ORDER BY each.seq`;

/** Who said no after a yes, and when that was given: the no has replaced that vote. What cannot be read of the log tells of none. */
async function yesBefore(db: SqlRunner, approval: Approval): Promise<Pick<ApprovalView, "yesBefore">> {
  const noes = approval.votes.filter(({ verdict }) => verdict === "deny").map(({ userId }) => userId);
  if (noes.length === 0) return {};
  const voted = await db.sql<{ actor: string; at: Date; body: string }>("slack.voted", VOTED, [approval.id]);
  const given = voted
    .filter(({ body }) => dataIn(body)["verdict"] === "approve")
    .map(({ actor, at }) => [actor.replace(/^slack:/u, ""), at] as const);
  return { yesBefore: new Map(given.filter(([who]) => noes.includes(who))) };
}

/** $1 operation, $2 when its card was made. What had been refunded on its payment by then and only on-call vouches for. */
const ON_WORD = `
SELECT coalesce(sum(o.amount_minor), 0)::bigint AS minor FROM operations this JOIN operations o
  ON o.order_id = this.order_id AND o.payment_intent = this.payment_intent AND o.currency = this.currency AND o.id <> this.id
WHERE this.id = $1 AND o.kind = 'refund' AND ${CONFIRMED_ON_WORD} AND NOT EXISTS (
  SELECT 1 FROM operation_events e
  WHERE e.operation_id = o.id AND e.to_status = 'CONFIRMED' AND e.from_status IS DISTINCT FROM e.to_status AND e.at > $2)`;

async function onWord(
  db: SqlRunner,
  { operationId, createdAt, binding }: Approval,
): Promise<Pick<ApprovalView, "onWordMinor">> {
  if (binding.kind !== "refund" || (binding.world.payment?.spent?.refundedMinor ?? 0n) === 0n) return {};
  const [row] = await db.sql<{ minor: bigint }>("slack.refunded_on_word", ON_WORD, [operationId, createdAt]);
  return row === undefined || row.minor === 0n ? {} : { onWordMinor: row.minor };
}

/** $1 operation that was let go. The next one of the same intent is what its run, or somebody faster, asked for in its place. */
const ASKED_INSTEAD = `
SELECT n.id FROM operations o JOIN LATERAL (
  SELECT id FROM operations WHERE key = o.key AND id > o.id ORDER BY id LIMIT 1) n ON true
WHERE o.id = $1`;

async function askedInstead(db: SqlRunner, id: OperationId): Promise<OperationFacts | null> {
  const [next] = await db.sql<{ id: OperationId }>("slack.asked_instead", ASKED_INSTEAD, [id]);
  return next === undefined ? null : readOperation(db, next.id);
}
