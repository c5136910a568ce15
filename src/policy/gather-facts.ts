/**
 * The facts that the gate asks for, read in one statement after the caller has locked order, payment and the totals' scopes.
 *
 * What may have been spent counts as spent: entries of `total_entries` stand from PREPARE until it is proven that nothing
 * can have committed. An operation that is judged again does not count against itself.
 */
import type { SqlRunner } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import { isOrderStatus } from "../domain/order.js";
import {
  type Denial,
  type Facts,
  neededTotals,
  type OrderFacts,
  scopesFor,
  type TotalFact,
  type TotalSubject,
} from "../domain/policy/facts.js";
import type { KindRules } from "../domain/policy/policy.js";
import type { JudgeSubject } from "../domain/ports/judge.js";
import { noActivePolicy } from "./active-policy.js";
import { FACTS, FACTS_OF_KNOWN } from "./facts-sql.js";

export interface GatheredFacts {
  readonly facts: Facts;
  /** The policy in force, locked against change until the caller's transaction ends. */
  readonly policyHash: string;
}

/**
 * Reads the facts of one subject under the rules of its kind. Throws `CountersignError('bad_row')` for a row that fits no type,
 * `no_active_policy` before the first one was activated.
 */
export async function gatherFacts(
  on: SqlRunner,
  subject: JudgeSubject,
  rules: KindRules,
): Promise<GatheredFacts> {
  const { intent } = subject;
  const scopes = scopeSubject(subject);
  const asked = neededTotals(rules).flatMap((need) =>
    scopesFor(need.per, scopes).map((scope) => ({ ...need, scope })),
  );
  const { operationId, predecessorId } = subject;
  const known = operationId !== null || predecessorId !== null;
  const { name, text } = known ? FACTS_OF_KNOWN : FACTS;
  const [row] = await on.sql<FactsRow>(name, text, [
    subject.orderId,
    `order:${intent.orderRef ?? ""}`,
    rules.windowDays === null ? null : rules.windowDays * 86_400,
    subject.itemRefs,
    intent.kind,
    intent.currency,
    asked.map(({ per }) => per),
    asked.map(({ windowHours }) => windowHours),
    asked.map(({ scope }) => scope),
    ...(known ? [operationId, predecessorId] : []),
  ]);
  if (row === undefined) throw new CountersignError("bad_row", "the database gave no facts");
  if (row.policy_hash === null) throw noActivePolicy();
  const facts: Facts = {
    now: row.now,
    bindingConfirmed: subject.bindingConfirmed,
    order: subject.orderId === null ? null : orderFacts(row, subject.orderId),
    spentOnOrderMinor: row.spent,
    refundableMinor: intent.kind === "refund" ? (row.refundable ?? 0n) : null,
    linesTaken: row.lines_taken,
    totals: [...asked.map((each, index) => totalFact(each, row, index)), ...nobodysTotals(rules, asked)],
    denied: denialOf(row),
  };
  return { facts, policyHash: row.policy_hash };
}

/** Whom and what the subject counts for. */
export const scopeSubject = (subject: JudgeSubject): TotalSubject => ({
  orderRef: subject.intent.orderRef,
  customerRef: subject.intent.customerRef,
  filers: subject.filers,
});

type Asked = Pick<TotalFact, "per" | "windowHours" | "scope">;

function totalFact(asked: Asked, row: FactsRow, index: number): TotalFact {
  const count = row.total_counts[index];
  const amountMinor = row.total_amounts[index];
  if (count === undefined || amountMinor === undefined) {
    throw new CountersignError("bad_row", "the database gave fewer totals than were asked for");
  }
  return { ...asked, count, amountMinor };
}

/** A total of somebody who is not there (no filer, started from the shell) is nothing so far. */
function nobodysTotals(rules: KindRules, asked: readonly Asked[]): TotalFact[] {
  return neededTotals(rules)
    .filter((need) => !asked.some((each) => each.per === need.per && each.windowHours === need.windowHours))
    .map((need) => ({ ...need, scope: "nobody", count: 0, amountMinor: 0n }));
}

interface FactsRow {
  now: Date;
  policy_hash: string | null;
  order_ref: string | null;
  order_status: string;
  order_currency: string;
  placed_at: Date;
  delivered_at: Date | null;
  cancelled_at: Date | null;
  refundable: bigint | null;
  spent: bigint;
  lines_taken: string[];
  total_counts: number[];
  total_amounts: bigint[];
  denied_id: string | null;
  denied_by: string | null;
  denied_at: Date | null;
  denied_note: string | null;
}

function orderFacts(row: FactsRow, orderId: string): OrderFacts {
  if (row.order_ref === null || !isOrderStatus(row.order_status)) {
    throw new CountersignError("bad_row", "the order of an operation cannot be read", { ids: { orderId } });
  }
  return {
    ref: row.order_ref,
    status: row.order_status,
    currency: row.order_currency,
    placedAt: row.placed_at,
    deliveredAt: row.delivered_at,
    cancelledAt: row.cancelled_at,
  };
}

function denialOf(row: FactsRow): Denial | null {
  if (row.denied_id === null || row.denied_at === null) return null;
  return { operationId: row.denied_id, by: row.denied_by ?? "", at: row.denied_at, note: row.denied_note };
}
