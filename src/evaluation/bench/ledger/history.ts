/**
 * A history to look through: rows as the ledger and the approvals would have left them, put down in bulk in a database that is
 * thrown away. What is open stays the same at every size; only what is over grows.
 */
import type { SqlRunner } from "../../../db/connect.js";

/** Rows that somebody must look at, at every size. */
export const BACKLOG = { unknown: 500, quarantined: 100, pending: 200 } as const;

/**
 * Numbers from $1 to $2, status $3, whether it is due $4; oldest first. All on the second half of the orders: an order has a few
 * operations in life, and the first half is left for looking at one.
 */
const OPERATIONS = `
WITH m AS (SELECT countersign_now() AS now, (SELECT hash FROM active_policy) AS policy),
target AS (
  SELECT o.*, c.ref AS customer_ref, p.id AS payment_id, p.payment_intent, row_number() OVER (ORDER BY o.id) - 1 AS n,
         count(*) OVER () AS many
  FROM orders o JOIN customers c ON c.id = o.customer_id JOIN payments p ON p.order_id = o.id
)
INSERT INTO operations (id, key, key_live, occurrence, kind, status, customer_id, customer_ref, order_id, order_ref, payment_id,
  payment_intent, amount_minor, currency, fingerprint, contract_version, idempotency_key, policy_hash, decision, filers,
  provider_ref, result, due_at, event_count, head_hash, created_at, updated_at, scopes)
SELECT 'op_' || lpad(to_hex(g), 32, '0'), md5(g::text), $3::text NOT IN ('DENIED', 'EXPIRED', 'VOIDED'), 1, 'refund', $3::text,
  t.customer_id, t.customer_ref, t.id, t.ref, t.payment_id, t.payment_intent, 1000, t.currency, md5(g::text), '1', md5(g::text),
  m.policy, '{}', ARRAY['U_FILER' || lpad((g % 50)::text, 6, '0')], CASE WHEN $3::text = 'CONFIRMED' THEN 're_' || g END,
  CASE WHEN $3::text = 'CONFIRMED' THEN '{}'::jsonb END, CASE WHEN $4::boolean THEN m.now - interval '1 minute' END, 1, md5(g::text),
  m.now - interval '30 days' + g * interval '2 seconds', m.now - interval '30 days' + g * interval '2 seconds',
  ARRAY['shop']
FROM generate_series($1::bigint, $2::bigint) g CROSS JOIN m
  JOIN target t ON t.n = t.many / 2 + g % (t.many / 2)`;

const EVENTS = `
INSERT INTO operation_events (operation_id, seq, at, type, from_status, to_status, actor, body, prev_hash, hash)
SELECT o.id, 1, o.created_at, 'prepare', NULL, 'PREPARED', 'run:bench', '{"data":{}}', '', o.head_hash
FROM operations o WHERE o.id BETWEEN 'op_' || lpad(to_hex($1::bigint), 32, '0') AND 'op_' || lpad(to_hex($2::bigint), 32, '0')`;

/** The shop's entries, the orders' and one filer's, spread over the last day in their order: a window that holds the whole history. */
const ENTRIES = `
INSERT INTO total_entries (scope, operation_id, kind, currency, amount_minor, at)
SELECT s.scope, o.id, 'refund', o.currency, o.amount_minor, 
  m.now - interval '24 hours' + (row_number() OVER (ORDER BY o.id)) / ($2::float8 - $1::float8 + 2) * interval '24 hours'
FROM (SELECT countersign_now() AS now) m, operations o
  JOIN LATERAL (VALUES ('shop', true), ('order:' || o.order_ref, true), ('filer:' || o.filers[1], o.filers[1] = 'U_FILER000007')) AS s(scope, wanted) ON s.wanted
WHERE o.id BETWEEN 'op_' || lpad(to_hex($1::bigint), 32, '0') AND 'op_' || lpad(to_hex($2::bigint), 32, '0')
ORDER BY o.id, s.scope`;

/** What an approval of operation `o` is bound to, in the form in which the approvals read it. */
const BINDING = `jsonb_build_object('operationId', o.id, 'kind', o.kind, 'customerRef', o.customer_ref, 'customerName', 'Customer',
  'orderRef', o.order_ref, 'subscriptionRef', NULL, 'itemRefs', '[]'::jsonb, 'amountMinor', o.amount_minor, 'currency', o.currency,
  'atPeriodEnd', NULL, 'occurrence', 1, 'fingerprint', o.fingerprint, 'filers', '[]'::jsonb, 'bindingUnconfirmed', false,
  'world', jsonb_build_object('customerRef', o.customer_ref, 'ticketCustomerRef', NULL, 'order', NULL, 'payment', NULL,
    'subscription', NULL),
  'policy', jsonb_build_object('answer', 'hold', 'answerHash', 'h', 'policyHash', o.policy_hash, 'reasons', '[]'::jsonb,
    'role', 'supervisor', 'approvers', 1, 'line', 0, 'isLastLine', true, 'ladderMinor', o.amount_minor, 'confirmAmount', false,
    'coolingOffMinutes', 0, 'selfApproval', false),
  'earlier', '[]'::jsonb)`;

/** $3 state, $4 due in minutes from now. */
const APPROVALS = `
INSERT INTO approvals (id, operation_id, state, binding, binding_hash, policy_hash, answer_hash, role, approvers_needed, expires_at,
  due_at, decided_at)
SELECT 'apr_' || substr(o.id, 4), o.id, $3::text, ${BINDING}, 'h', o.policy_hash, 'h', 'supervisor', 1, m.now + $4::int * interval '1 minute',
  CASE WHEN $3::text = 'PENDING' THEN m.now + $4::int * interval '1 minute' END, CASE WHEN $3::text <> 'PENDING' THEN m.now END
FROM (SELECT countersign_now() AS now) m, operations o
WHERE o.id BETWEEN 'op_' || lpad(to_hex($1::bigint), 32, '0') AND 'op_' || lpad(to_hex($2::bigint), 32, '0')`;

const AT_A_TIME = 50_000;
/** One in so many is of a status that only a few have, and one in so many had an approval. */
const RARE = 5_000;
const APPROVED = 50;
const HOUR_MINUTES = 60;

/** What is open: the last rows by number, so that they are the newest. */
export async function putBacklog(on: SqlRunner, from: number): Promise<void> {
  let next = from;
  const put = async (status: string, count: number, due: boolean): Promise<[number, number]> => {
    const range: [number, number] = [next, next + count - 1];
    next += count;
    await on.sql(undefined, OPERATIONS, [...range, status, due]);
    await on.sql(undefined, EVENTS, range);
    return range;
  };
  await put("OUTCOME_UNKNOWN", BACKLOG.unknown, true);
  await put("QUARANTINED", BACKLOG.quarantined, true);
  const held = await put("AWAITING_APPROVAL", BACKLOG.pending, false);
  await on.sql(undefined, APPROVALS, [...held, "PENDING", HOUR_MINUTES]);
}

/** What is over: numbers from `from` up to and including `to`. Foreign keys are not looked up again where the role may leave that out. */
export async function putHistory(on: SqlRunner, from: number, to: number): Promise<void> {
  const [role] = await on.sql<{ rolsuper: boolean }>(
    undefined,
    "SELECT rolsuper FROM pg_roles WHERE rolname = current_user",
  );
  const unchecked = async (text: string, parameters: readonly unknown[]): Promise<void> => {
    if (role?.rolsuper === true) await on.sql(undefined, "SET session_replication_role = replica");
    await on.sql(undefined, text, parameters);
    if (role?.rolsuper === true) await on.sql(undefined, "SET session_replication_role = origin");
  };
  for (let next = from; next <= to; next += AT_A_TIME) {
    const range: [number, number] = [next, Math.min(to, next + AT_A_TIME - 1)];
    const rare = Math.floor((range[1] - range[0]) / RARE);
    const [first, last] = range;
    await unchecked(OPERATIONS, [first, last - rare, "CONFIRMED", false]);
    if (rare > 0) await unchecked(OPERATIONS, [last - rare + 1, last, "REJECTED", false]);
    await unchecked(EVENTS, range);
    await on.sql(undefined, ENTRIES, [first, last - rare]);
    await unchecked(APPROVALS, [
      first,
      first + Math.floor((last - first) / APPROVED),
      "RELEASED",
      -HOUR_MINUTES,
    ]);
  }
}
