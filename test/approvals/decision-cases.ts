/** Rows of the decision table as rows of the database, and what a click may have changed in them. */
import { expect } from "vitest";
import { systemIds } from "../../src/app/system.js";
import { bindingHash, bindingToJson } from "../../src/approvals/binding-json.js";
import { getApproval } from "../../src/approvals/index.js";
import type { Db } from "../../src/db/connect.js";
import type { Approval } from "../../src/domain/approval.js";
import type { ApprovalId, OperationId } from "../../src/domain/ids.js";
import { bindingOf, cardOf, stateOf, votersOf } from "./decision-situations.js";
import type { DecisionRow } from "./decision-table.js";

export interface CaseOptions {
  /** One value for one human, as the directory of the test makes it. */
  readonly personKeyOf: (userId: string) => string;
  /** Of the card that is shown now. */
  readonly cardVersion: number;
}

/**
 * Written directly: these rows are about the click, in states that take long to reach. Needs order ORD-10042 of CUS-7 and a policy
 * version.
 */
export async function insertCase(db: Db, row: DecisionRow, options: CaseOptions): Promise<ApprovalId> {
  const card = cardOf(row.card);
  const state = stateOf(row.state);
  const id: ApprovalId = systemIds.next("apr_");
  const operationId: OperationId = systemIds.next("op_");
  const binding = { ...bindingOf(card), operationId };
  const prepared = !["AWAITING_APPROVAL", "DENIED", "EXPIRED", "VOIDED"].includes(state.operation);
  await db.sql(undefined, OPERATION, [
    operationId,
    card.kind,
    state.operation,
    card.amountMinor,
    card.currency,
    card.filersNow,
    prepared && state.operation !== "CONFIRMED" ? card.amountMinor : 0n,
    state.operation === "CONFIRMED" ? "re_1" : null,
    card.kind === "cancel_subscription" ? null : "ORD-10042",
  ]);
  await db.sql(undefined, APPROVAL, [
    id,
    operationId,
    state.state,
    JSON.stringify(bindingToJson(binding)),
    bindingHash(binding),
    card.role,
    card.approvers,
    card.confirmAmount,
    state.overdue ? -1 : 3600,
    options.cardVersion,
  ]);
  for (const { userId, verdict } of votersOf(card, state)) {
    await db.sql(
      undefined,
      `INSERT INTO votes (id, approval_id, person, user_id, verdict, role, card_version) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
      [
        systemIds.next("vote_"),
        id,
        options.personKeyOf(userId),
        userId,
        verdict,
        card.role,
        options.cardVersion,
      ],
    );
  }
  return id;
}

/** How an approval and its operation stand. */
export interface Stand {
  readonly approval: Approval;
  readonly status: string;
}

export async function standOf(db: Db, id: ApprovalId): Promise<Stand> {
  const approval = await getApproval(db, id);
  if (approval === null) throw new Error("no approval");
  const [operation] = await db.sql<{ status: string }>(
    undefined,
    "SELECT status FROM operations WHERE id = $1",
    [approval.operationId],
  );
  return { approval, status: operation?.status ?? "gone" };
}

/** The rows whose click may change anything, and what it changes. */
export function expectOnlyWhatIsAllowed(row: DecisionRow, before: Stand, after: Stand): void {
  const changes = ["approved", "recorded", "denied", "denied-late"].includes(row.expected);
  const expires = row.expected === "ended:EXPIRED" && before.approval.state === "PENDING";
  if (!changes && !expires) expect(after).toEqual(before);
  else {
    const counted = after.approval.votes.length > before.approval.votes.length;
    expect(counted || after.approval.version > before.approval.version).toBe(true);
  }
  if (row.expected.startsWith("denied"))
    expect([after.approval.state, after.status]).toEqual(["DENIED", "DENIED"]);
  if (expires) expect([after.approval.state, after.status]).toEqual(["EXPIRED", "EXPIRED"]);
  if (row.expected === "approved")
    expect([after.approval.state, after.status]).toEqual(["APPROVED", "AWAITING_APPROVAL"]);
  if (row.expected === "recorded")
    expect(after.approval.votes).toHaveLength(before.approval.votes.length + 1);
}

// $7 sets the payment's reservation aside too.
const OPERATION = `
WITH paid AS (
  UPDATE payments p SET reserved = p.reserved + $7::bigint FROM orders r
  WHERE r.ref = $9 AND p.order_id = r.id RETURNING p.id
)
INSERT INTO operations (id, key, occurrence, kind, status, customer_id, customer_ref, order_id, order_ref, payment_id, amount_minor,
  currency, fingerprint, contract_version, idempotency_key, policy_hash, decision, filers, reserved_minor, provider_ref, key_live,
  unknown_since)
SELECT $1, $1, 1, $2, $3, c.id, c.ref, r.id, $9, (SELECT id FROM paid), $4, $5, repeat('f', 64), 'v', $1, a.hash, '{}', $6, $7, $8,
  $3 NOT IN ('DENIED', 'EXPIRED', 'VOIDED'), CASE WHEN $3 IN ('OUTCOME_UNKNOWN', 'QUARANTINED') THEN countersign_now() END
FROM customers c CROSS JOIN (SELECT hash FROM policy_versions ORDER BY hash LIMIT 1) a LEFT JOIN orders r ON r.ref = $9 WHERE c.ref = 'CUS-7'`;

const APPROVAL = `
INSERT INTO approvals (id, operation_id, state, binding, binding_hash, policy_hash, answer_hash, role, approvers_needed,
  confirm_amount, expires_at, decided_at, card_version)
SELECT $1, $2, $3, $4::jsonb, $5, a.hash, 'answer', $6, $7, $8, countersign_now() + make_interval(secs => $9),
  CASE WHEN $3 <> 'PENDING' THEN countersign_now() END, $10
FROM (SELECT hash FROM policy_versions ORDER BY hash LIMIT 1) a`;
