/**
 * Verifying what must add up between tables: payments and operations, totals and operations, buckets and entries, keys, attempts,
 * approvers. Each check is one statement and names the rows that are wrong.
 */

import type { SqlRunner } from "../db/connect.js";
import { isUnreadableValue } from "../db/sqlstate.js";
import { isOperationId } from "../domain/ids.js";
import { NOT_CANONICAL } from "./audit-check.js";
import { DECISION_CHECKS } from "./audit-decisions.js";
import { RECORD_CHECKS, type SumCheck } from "./audit-records.js";
import { isErased, namedAs } from "./person-names.js";
import type { BrokenLink } from "./types.js";

const RESERVED = "('PREPARED', 'DISPATCHED', 'OUTCOME_UNKNOWN', 'RECONCILING', 'QUARANTINED')";

/** SQL: what operations `o` have set aside of a payment, null where there is none. */
export const reservedSum = (o: string): string =>
  `sum(${o}.amount_minor) FILTER (WHERE ${o}.status IN ${RESERVED})`;

/** SQL: what operations `o` have refunded of a payment, null where there is none. */
export const confirmedSum = (o: string): string =>
  `sum(${o}.amount_minor) FILTER (WHERE ${o}.status = 'CONFIRMED')`;

export const CHECKS: readonly SumCheck[] = [
  {
    name: "ledger.audit_money",
    what: "payment",
    problem: "reserved and refunded are not the sums of its operations",
    text: `
SELECT p.id AS "where" FROM payments p
LEFT JOIN (
  SELECT a.payment_id, ${reservedSum("a")} AS reserved, ${confirmedSum("a")} AS refunded
  FROM operations a WHERE a.payment_id IS NOT NULL GROUP BY a.payment_id
) o ON o.payment_id = p.id
WHERE p.reserved <> COALESCE(o.reserved, 0) OR p.refunded <> COALESCE(o.refunded, 0)
ORDER BY p.id LIMIT $1::int`,
  },
  {
    name: "ledger.audit_elsewhere",
    readsEvents: true,
    what: "payment",
    problem: "what was refunded elsewhere is not what its events say",
    text: `
SELECT COALESCE(p.id, told.id) AS "where" FROM payments p
FULL JOIN (
  SELECT DISTINCT ON (e.subject) substr(e.subject, length('payment:') + 1) AS id, (e.body::jsonb #>> '{data,minor}')::bigint AS minor,
         e.body::jsonb #>> '{data,otherCurrency}' AS other_currency
  FROM operation_events e WHERE e.subject LIKE 'payment:%' AND e.type = 'refunded_elsewhere' ORDER BY e.subject, e.seq DESC
) told ON told.id = p.id
WHERE p.refunded_elsewhere IS DISTINCT FROM COALESCE(told.minor, 0) OR p.other_currency IS DISTINCT FROM told.other_currency
ORDER BY 1 LIMIT $1::int`,
  },
  {
    name: "ledger.audit_entries",
    what: "operation",
    problem: "what the totals count of it is not what it holds",
    text: `
SELECT o.id AS "where" FROM operations o
LEFT JOIN (
  SELECT operation_id, array_agg(scope ORDER BY scope) AS scopes, min(amount_minor) AS least, max(amount_minor) AS most,
         min(currency || '/' || kind) AS one, max(currency || '/' || kind) AS other
  FROM total_entries GROUP BY operation_id
) t ON t.operation_id = o.id
WHERE CASE WHEN o.status IN ${RESERVED} OR o.status = 'CONFIRMED'
  THEN COALESCE(t.scopes, '{}') IS DISTINCT FROM COALESCE((SELECT array_agg(DISTINCT s ORDER BY s) FROM unnest(o.scopes) s), '{}')
    OR (t.scopes IS NOT NULL AND (t.least, t.most, t.one, t.other)
        IS DISTINCT FROM (o.amount_minor, o.amount_minor, o.currency || '/' || o.kind, o.currency || '/' || o.kind))
  ELSE t.operation_id IS NOT NULL END
ORDER BY o.id LIMIT $1::int`,
  },
  {
    name: "ledger.audit_buckets",
    what: "total",
    problem: "its bucket is not the sum of its entries",
    text: `
WITH entries AS (
  SELECT e.scope, e.kind, e.currency, w.width, date_trunc(w.width, e.at, 'UTC') AS starts_at, count(*) AS count,
         sum(e.amount_minor) AS amount
  FROM total_entries e CROSS JOIN (VALUES ('minute'), ('hour')) AS w(width)
  WHERE total_is_bucketed(e.scope) GROUP BY 1, 2, 3, 4, 5
), buckets AS (
  SELECT scope, kind, currency, width, starts_at, sum(count) AS count, sum(amount_minor) AS amount
  FROM total_buckets GROUP BY 1, 2, 3, 4, 5
)
SELECT concat_ws(' ', scope, kind, currency, width, to_char(starts_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"')) AS "where"
FROM entries e FULL JOIN buckets b USING (scope, kind, currency, width, starts_at)
WHERE COALESCE(e.count, 0) <> COALESCE(b.count, 0) OR COALESCE(e.amount, 0) <> COALESCE(b.amount, 0)
ORDER BY 1 LIMIT $1::int`,
  },
  {
    name: "ledger.audit_keys",
    what: "operation",
    problem: "its key is free although it may have had an effect, or taken although it had none",
    text: `
SELECT o.id AS "where" FROM operations o
CROSS JOIN LATERAL (SELECT CASE WHEN o.status = 'REJECTED' THEN o.resolved_by_person
  ELSE o.status NOT IN ('DENIED', 'EXPIRED', 'VOIDED') END AS taken) k
WHERE o.key_live <> k.taken AND NOT (k.taken AND EXISTS (
  SELECT 1 FROM operations other WHERE other.key = o.key AND other.key_live AND other.id <> o.id))
ORDER BY o.id LIMIT $1::int`,
  },
  {
    name: "ledger.audit_attempts",
    what: "operation",
    problem: "its attempts are not numbered from 1 to what it counts",
    text: `
SELECT o.id AS "where" FROM operations o
LEFT JOIN (
  SELECT operation_id, count(*) AS count, min(number) AS first, max(number) AS last FROM attempts GROUP BY operation_id
) a ON a.operation_id = o.id
WHERE o.attempts <> COALESCE(a.count, 0) OR (a.count > 0 AND (a.first <> 1 OR a.last <> a.count))
ORDER BY o.id LIMIT $1::int`,
  },
  {
    // A person who was erased has no name here any more, and is passed over.
    name: "ledger.audit_approvers",
    readsEvents: true,
    what: "operation",
    problem: "who approved it is not who its release names",
    text: `
SELECT o.id AS "where" FROM operations o
JOIN LATERAL (
  SELECT e.body::jsonb #> '{data,approvedBy}' AS named FROM operation_events e
  WHERE e.operation_id = o.id AND e.type = 'release' ORDER BY e.seq DESC LIMIT 1
) r ON true
WHERE o.approval_id IS NOT NULL AND (
  jsonb_array_length(r.named) <> cardinality(o.approved_by)
  OR (NOT EXISTS (SELECT 1 FROM jsonb_array_elements_text(r.named) n(name) WHERE ${isErased("n.name")}) AND EXISTS (
    SELECT 1 FROM unnest(o.approved_by) u(id)
    WHERE NOT COALESCE(r.named ? ${namedAs("u.id")}, false))))
ORDER BY o.id LIMIT $1::int`,
  },
  {
    name: "ledger.audit_votes",
    what: "operation",
    problem: "it was released on more approvers than voted for it",
    text: `
SELECT o.id AS "where" FROM operations o JOIN approvals a ON a.id = o.approval_id
WHERE a.operation_id <> o.id OR cardinality(o.approved_by) < a.approvers_needed
  -- A no that came after the release, in time, has replaced its voter's yes.
  OR (o.status <> 'DENIED' AND cardinality(o.approved_by) > (
    SELECT count(*) FROM votes v WHERE v.approval_id = a.id AND v.verdict = 'approve'))
ORDER BY o.id LIMIT $1::int`,
  },
];

/** Appends what does not add up; at most `limit` rows of each check. */
export async function checkSums(db: SqlRunner, broken: BrokenLink[], limit: number): Promise<void> {
  const unreadable = broken.some(({ problem }) => problem === NOT_CANONICAL);
  for (const { name, what, problem, text, readsEvents } of [
    ...CHECKS,
    ...RECORD_CHECKS,
    ...DECISION_CHECKS,
  ]) {
    if (unreadable && readsEvents === true) continue;
    for (const { where } of await rowsOf(db, name, text, limit)) {
      broken.push({ what, where, operationId: idOf(what, where), seq: null, problem });
    }
  }
}

/** One finding without a name where a value that somebody stored by hand cannot even be compared. */
async function rowsOf(
  db: SqlRunner,
  name: string,
  text: string,
  limit: number,
): Promise<{ where: string }[]> {
  try {
    return await db.sql<{ where: string }>(name, text, [limit]);
  } catch (error) {
    if (!isUnreadableValue(error)) throw error;
    return [{ where: "a value that cannot be read" }];
  }
}

const idOf = (what: BrokenLink["what"], where: string): BrokenLink["operationId"] =>
  what === "operation" && isOperationId(where) ? where : null;
