/** An approval as its card shows it. */
import { changesSince, getApproval, standingOf, successorOf } from "../../approvals/index.js";
import type { SqlRunner } from "../../db/connect.js";
import type { Approval } from "../../domain/approval.js";
import type { ApprovalId, OperationId } from "../../domain/ids.js";
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
    confirmedBy: ticket?.binding === "confirmed" ? ticket.boundBy : null,
    instead: approval.endCode === "binding_confirmed" ? await askedInstead(db, approval.operationId) : null,
  };
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
