/** A held refund with its approval, written as the rooms that own the rows would; these tests are about showing and deciding it. */
import { systemIds } from "../../../src/app/system.js";
import { bindingHash, bindingToJson } from "../../../src/approvals/binding-json.js";
import type { ApprovalBinding } from "../../../src/domain/approval.js";
import type { ApprovalId, OperationId, TicketId } from "../../../src/domain/ids.js";
import type { World } from "./world.js";

export interface HeldOptions {
  readonly orderRef?: string;
  readonly amountMinor?: bigint;
  readonly currency?: string;
  readonly customerName?: string;
  readonly filers?: readonly string[];
  readonly role?: string;
  readonly approvers?: number;
  readonly confirmAmount?: boolean;
  readonly itemRefs?: readonly string[];
  readonly reason?: string;
  /** Seconds from now. */
  readonly expiresIn?: number;
  /** No ticket: the approval stands in the approvals channel alone. */
  readonly ticketId?: TicketId | null;
}

export interface Held {
  readonly approvalId: ApprovalId;
  readonly operationId: OperationId;
}

const POLICY = "policy-of-the-test";

/** Stores it and shows its cards. */
export async function hold(world: World, options: HeldOptions = {}): Promise<Held> {
  const { db } = world;
  const orderRef = options.orderRef ?? "ORD-10042";
  const amountMinor = options.amountMinor ?? 18_000n;
  const currency = options.currency ?? "GBP";
  const filers = options.filers ?? ["U_AGENT"];
  const role = options.role ?? "supervisor";
  const approvers = options.approvers ?? 1;
  const operationId: OperationId = systemIds.next("op_");
  const approvalId: ApprovalId = systemIds.next("apr_");
  await db.sql(
    undefined,
    `INSERT INTO policy_versions (hash, text_hash, body, parsed) VALUES ($1, $1, '', '{}') ON CONFLICT DO NOTHING`,
    [POLICY],
  );
  const [order] = await db.sql<{
    customer_ref: string;
    customer_name: string;
    status: string;
    currency: string;
    captured: bigint;
    left: bigint;
    paid_in: string;
  }>(
    undefined,
    `SELECT c.ref AS customer_ref, c.name AS customer_name, o.status, o.currency, p.captured, payment_left(p) AS left, p.currency AS paid_in
     FROM orders o JOIN customers c ON c.id = o.customer_id JOIN payments p ON p.order_id = o.id WHERE o.ref = $1`,
    [orderRef],
  );
  if (order === undefined) throw new Error(`no order ${orderRef}`);
  const binding: ApprovalBinding = {
    operationId,
    kind: "refund",
    customerRef: order.customer_ref,
    customerName: options.customerName ?? order.customer_name,
    orderRef,
    subscriptionRef: null,
    itemRefs: options.itemRefs ?? [],
    amountMinor,
    currency,
    atPeriodEnd: null,
    occurrence: 1,
    fingerprint: `f-${operationId}`,
    filers,
    bindingUnconfirmed: false,
    world: {
      customerRef: order.customer_ref,
      ticketCustomerRef: order.customer_ref,
      order: {
        ref: orderRef,
        status: order.status,
        currency: order.currency,
        customerRef: order.customer_ref,
      },
      payment: {
        capturedMinor: order.captured,
        refundableMinor: order.left,
        currency: order.paid_in,
      },
      subscription: null,
    },
    policy: {
      answer: "hold",
      answerHash: "a",
      policyHash: POLICY,
      reasons: ["£180.00 GBP is more than £50.00 GBP, up to which nobody is asked."],
      role,
      approvers,
      line: 0,
      confirmAmount: options.confirmAmount ?? false,
      coolingOffMinutes: 0,
      selfApproval: false,
      isLastLine: role === "finance",
      ladderMinor: amountMinor,
    },
    earlier: [],
  };
  await db.tx(async (tx) => {
    await tx.sql(
      undefined,
      `INSERT INTO operations (id, key, occurrence, kind, status, customer_id, customer_ref, order_id, order_ref, payment_id, payment_intent,
         amount_minor, currency, refund_scope, item_refs, reason, fingerprint, contract_version, idempotency_key, policy_hash, decision,
         approval_id, ticket_id, filers)
       SELECT $1, $1, 1, 'refund', 'AWAITING_APPROVAL', o.customer_id, c.ref, o.id, o.ref, p.id, p.payment_intent, $2, $3, 'everything_left', $4, $5,
         'f-' || $1, '1', 'k-' || $1, $6, '{}', $7, $8, $9
       FROM orders o JOIN customers c ON c.id = o.customer_id JOIN payments p ON p.order_id = o.id WHERE o.ref = $10`,
      [
        operationId,
        amountMinor,
        currency,
        options.itemRefs ?? [],
        options.reason ?? "",
        POLICY,
        approvalId,
        options.ticketId ?? null,
        filers,
        orderRef,
      ],
    );
    await tx.sql(
      undefined,
      `INSERT INTO approvals (id, operation_id, ticket_id, state, binding, binding_hash, policy_hash, answer_hash, role, approvers_needed,
         confirm_amount, expires_at)
       VALUES ($1, $2, $3, 'PENDING', $4::jsonb, $5, $6, 'a', $7, $8, $9, countersign_now() + make_interval(secs => $10))`,
      [
        approvalId,
        operationId,
        options.ticketId ?? null,
        JSON.stringify(bindingToJson(binding)),
        bindingHash(binding),
        POLICY,
        role,
        approvers,
        options.confirmAmount ?? false,
        options.expiresIn ?? 86_400,
      ],
    );
    await world.notices.touch(tx, { kind: "approval", id: approvalId });
  });
  return { approvalId, operationId };
}

/** Moves the operation along its table, as the ledger would, and shows it. */
export async function moveOperation(world: World, held: Held, path: readonly string[]): Promise<void> {
  await world.db.tx(async (tx) => {
    for (const status of path) {
      await tx.sql(
        undefined,
        `UPDATE operations SET status = $2, version = version + 1, provider_ref = CASE WHEN $2 = 'CONFIRMED' THEN 're_1' ELSE provider_ref END WHERE id = $1`,
        [held.operationId, status],
      );
    }
    await world.notices.touch(tx, { kind: "approval", id: held.approvalId });
  });
}

/** Moves the approval along its table and shows it. */
export async function moveApproval(world: World, held: Held, state: string, detail = ""): Promise<void> {
  await world.db.tx(async (tx) => {
    await tx.sql(
      undefined,
      `UPDATE approvals SET state = $2, version = version + 1, end_detail = $3, decided_at = countersign_now() WHERE id = $1`,
      [held.approvalId, state, detail],
    );
    await world.notices.touch(tx, { kind: "approval", id: held.approvalId });
  });
}
