import { describe, expect, it } from "vitest";
import { systemIds } from "../../src/app/system.js";
import { bindingHash, bindingToJson } from "../../src/approvals/binding-json.js";
import { type DecideOutcome, decide, getApproval, undo } from "../../src/approvals/index.js";
import type { Approval } from "../../src/domain/approval.js";
import type { ApprovalId, OperationId } from "../../src/domain/ids.js";
import { withDatabase } from "../support/database.js";
import { bindingOf, cardOf, personKeyOf, readingOf, stateOf, votersOf } from "./decision-situations.js";
import { type DecisionRow, decisionRows } from "./decision-table.js";
import { type Harness, harness, POLICY } from "./harness.js";

describe("every row of the decision table, on the database", () => {
  const database = withDatabase({ reset: "never" });
  let ready: Promise<Harness> | null = null;
  const world = (): Promise<Harness> => {
    ready ??= prepareWorld();
    return ready;
  };

  async function prepareWorld(): Promise<Harness> {
    const made = await harness(database.db);
    await made.order({ ref: "ORD-10042", captured: 1_000_000 });
    return made;
  }

  it.each(decisionRows().map((row) => [row.line, row] as const))("%s", async (_line, row) => {
    const { db, ctx, policy } = await world();
    await policy(
      cardOf(row.card).selfNow ? POLICY.replace("selfApproval: false", "selfApproval: true") : POLICY,
    );
    const id = await insertCase(row);
    const before = await snapshot(id);
    const context = {
      ...ctx,
      directory: {
        ...ctx.directory,
        person: async (userId: string) => readingOf(userId),
        members: async () => ({ ok: false as const, reason: "not asked" }),
      },
    };
    const click = { approvalId: id, userId: row.person };
    const outcome =
      row.click.verb === "undo"
        ? await undo(context, click)
        : await decide(context, {
            ...click,
            verdict: row.click.verb,
            cardVersion: row.click.card ?? 1,
            repeatedAmount: row.click.amount,
            suggestedMinor: row.click.suggest,
          });
    expect(spoken(outcome)).toBe(row.expected);
    const after = await snapshot(id);
    const changes = ["approved", "recorded", "denied", "denied-late"].includes(row.expected);
    const expires = row.expected === "ended:EXPIRED" && before.approval.state === "PENDING";
    if (!changes && !expires) expect(after).toEqual(before);
    else
      expect(after.approval.version > before.approval.version || after.approval.votes.length > 0).toBe(true);
    if (row.expected.startsWith("denied"))
      expect([after.approval.state, after.status]).toEqual(["DENIED", "DENIED"]);
    if (expires) expect([after.approval.state, after.status]).toEqual(["EXPIRED", "EXPIRED"]);
    if (row.expected === "approved")
      expect([after.approval.state, after.status]).toEqual(["APPROVED", "AWAITING_APPROVAL"]);

    async function snapshot(approvalId: ApprovalId): Promise<{ approval: Approval; status: string }> {
      const approval = await getApproval(db, approvalId);
      if (approval === null) throw new Error("no approval");
      const [operation] = await db.sql<{ status: string }>(
        undefined,
        "SELECT status FROM operations WHERE id = $1",
        [approval.operationId],
      );
      return { approval, status: operation?.status ?? "gone" };
    }
  });

  async function insertCase(row: DecisionRow): Promise<ApprovalId> {
    const { db } = await world();
    const card = cardOf(row.card);
    const state = stateOf(row.state);
    const id = systemIds.next("apr_");
    const operationId = systemIds.next("op_") as OperationId;
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
    ]);
    for (const { userId, verdict } of votersOf(card, state)) {
      await db.sql(
        undefined,
        `INSERT INTO votes (id, approval_id, person, user_id, verdict, role, card_version) VALUES ($1, $2, $3, $4, $5, $6, 1)`,
        [systemIds.next("vote_"), id, personKeyOf(userId), userId, verdict, card.role],
      );
    }
    return id;
  }
});

// Written directly: these rows are about the click, in states that take long to reach. $7 sets the payment's reservation aside too.
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
FROM customers c CROSS JOIN active_policy a LEFT JOIN orders r ON r.ref = $9 WHERE c.ref = 'CUS-7'`;

const APPROVAL = `
INSERT INTO approvals (id, operation_id, state, binding, binding_hash, policy_hash, answer_hash, role, approvers_needed,
  confirm_amount, expires_at, decided_at)
SELECT $1, $2, $3, $4::jsonb, $5, a.hash, 'answer', $6, $7, $8, countersign_now() + make_interval(secs => $9),
  CASE WHEN $3 <> 'PENDING' THEN countersign_now() END
FROM active_policy a`;

function spoken(outcome: DecideOutcome): string {
  switch (outcome.outcome) {
    case "ended":
      return `ended:${outcome.approval.state}`;
    case "denied":
      return outcome.late ? "denied-late" : "denied";
    case "refused":
      return `refused:${outcome.reason}`;
    default:
      return outcome.outcome;
  }
}
