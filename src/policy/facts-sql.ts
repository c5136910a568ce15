/** Sum of an edge's buckets of one width. */
const bucketsOf = (width: "minute" | "hour", within: string): string => `
    SELECT COALESCE(sum(b.count), 0) AS count, COALESCE(sum(b.amount_minor) FILTER (WHERE b.currency = $6), 0) AS amount
    FROM total_buckets b
    WHERE x.bucketed AND b.scope = x.scope AND b.kind = $5 AND b.width = '${width}' AND ${within}`;

/** What differs for an operation that exists already or follows a denied one: who is neither pays for neither. */
interface Known {
  readonly before: string;
  /** Both edges of each total asked for, with the sign of their sums. */
  readonly edges: string;
  /** What this operation holds itself, in minor units. */
  readonly held: string;
  /** Of the entry `e`. */
  readonly others: string;
  /** Of the operation `x`. */
  readonly otherLines: string;
  readonly denial: string;
  readonly joined: string;
}

const NEW: Known = {
  before: "",
  edges: "CROSS JOIN LATERAL (VALUES (1, a.since)) AS x(sign, at)",
  held: "0",
  others: "",
  otherLines: "",
  denial: "NULL AS denied_id, NULL AS denied_by, NULL::timestamptz AS denied_at, NULL AS denied_note",
  joined: "",
};

const KNOWN: Known = {
  before: `own AS (
  SELECT max(e.at) AS at FROM total_entries e WHERE e.scope = 'shop' AND e.operation_id = $10
), ancestors AS (
  SELECT o.id, o.status, o.predecessor_id, o.updated_at, 1 AS distance FROM operations o WHERE o.id = $11
  UNION ALL
  SELECT o.id, o.status, o.predecessor_id, o.updated_at, a.distance + 1
  FROM ancestors a JOIN operations o ON o.id = a.predecessor_id WHERE a.status <> 'DENIED' AND a.distance < 20
), denial AS (
  SELECT a.id, COALESCE(v.at, p.decided_at, a.updated_at) AS at, v.user_id AS by, COALESCE(p.deny_note, v.note) AS note
  FROM ancestors a
  LEFT JOIN LATERAL (SELECT id, decided_at, deny_note FROM approvals WHERE operation_id = a.id AND state = 'DENIED'
                     ORDER BY decided_at DESC LIMIT 1) p ON true
  LEFT JOIN LATERAL (SELECT user_id, note, at FROM votes WHERE approval_id = p.id AND verdict = 'deny'
                     ORDER BY at DESC LIMIT 1) v ON true
  WHERE a.status = 'DENIED' ORDER BY a.distance LIMIT 1
), `,
  edges: `CROSS JOIN own CROSS JOIN LATERAL (VALUES (1, a.since), (-1, GREATEST(a.since, own.at))) AS x(sign, at)
  WHERE x.sign = 1 OR own.at IS NOT NULL`,
  held: "COALESCE((SELECT x.reserved_minor FROM operations x WHERE x.id = $10), 0)",
  others: "AND e.operation_id IS DISTINCT FROM $10 AND (own.at IS NULL OR e.at < own.at)",
  otherLines: `AND x.id IS DISTINCT FROM $10
      AND (own.at IS NULL OR EXISTS (
        SELECT 1 FROM total_entries e WHERE e.scope = 'shop' AND e.operation_id = x.id AND e.at < own.at))`,
  denial: "d.id AS denied_id, d.by AS denied_by, d.at AS denied_at, d.note AS denied_note",
  joined: "CROSS JOIN own LEFT JOIN denial d ON true",
};

const factsText = (known: Known): string => `
WITH RECURSIVE ${known.before}t AS MATERIALIZED (
  SELECT countersign_now() AS now
), active AS MATERIALIZED (
  SELECT hash FROM active_policy FOR SHARE
), asked AS (
  SELECT n.per, n.hours, n.scope, n.ordinality,
         CASE WHEN n.per = 'day' THEN date_trunc('day', t.now AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'
              ELSE t.now - make_interval(secs => n.hours * 3600) END AS since
  FROM t CROSS JOIN unnest($7::text[], $8::float8[], $9::text[]) WITH ORDINALITY AS n(per, hours, scope, ordinality)
), edges AS (
  SELECT a.ordinality, a.scope, x.sign, x.at, total_is_bucketed(a.scope) AS bucketed,
         date_trunc('minute', x.at + interval '1 minute' - interval '1 microsecond', 'UTC') AS minute,
         date_trunc('hour', x.at + interval '1 hour' - interval '1 microsecond', 'UTC') AS hour
  FROM asked a ${known.edges}
), sums AS (
  -- Sums of each edge by themselves, so that only their part of the indexes is read, whatever the planner thinks of the tables.
  SELECT x.ordinality, sum(x.sign * (e.count + m.count + h.count))::int AS count,
         sum(x.sign * (e.amount + m.amount + h.amount))::bigint AS amount
  FROM edges x CROSS JOIN LATERAL (
    SELECT count(*) AS count, COALESCE(sum(r.amount_minor) FILTER (WHERE r.currency = $6), 0) AS amount
    FROM total_entries r
    WHERE r.scope = x.scope AND r.kind = $5 AND r.at >= x.at
      AND r.at < CASE WHEN x.bucketed THEN x.minute ELSE 'infinity' END
  ) e CROSS JOIN LATERAL (
    ${bucketsOf("minute", "b.starts_at >= x.minute AND b.starts_at < x.hour")}
  ) m CROSS JOIN LATERAL (
    ${bucketsOf("hour", "b.starts_at >= x.hour")}
  ) h
  GROUP BY x.ordinality
)
SELECT t.now, (SELECT hash FROM active) AS policy_hash,
  o.ref AS order_ref, o.status AS order_status, COALESCE(p.currency, o.currency) AS order_currency,
  o.placed_at, o.delivered_at, o.cancelled_at,
  payment_left(p) + CASE WHEN p.other_currency IS NULL THEN ${known.held} ELSE 0 END AS refundable,
  (COALESCE(p.refunded_elsewhere, 0) + COALESCE((
    SELECT sum(e.amount_minor) FROM total_entries e
    WHERE e.scope = $2 AND e.kind = 'refund'
      AND ($3::float8 IS NULL OR e.at >= t.now - make_interval(secs => $3::float8)) ${known.others}), 0))::bigint AS spent,
  ARRAY(
    SELECT DISTINCT r.ref FROM operations x CROSS JOIN LATERAL unnest(x.item_refs) AS r(ref)
    WHERE x.order_id = o.id AND x.kind = 'refund' AND r.ref = ANY($4::text[])
      AND x.status IN ('PREPARED','DISPATCHED','OUTCOME_UNKNOWN','RECONCILING','QUARANTINED','CONFIRMED') ${known.otherLines}
    ORDER BY r.ref) AS lines_taken,
  ARRAY(SELECT s.count FROM sums s ORDER BY s.ordinality) AS total_counts,
  ARRAY(SELECT s.amount FROM sums s ORDER BY s.ordinality) AS total_amounts,
  ${known.denial}
FROM t LEFT JOIN orders o ON o.id = $1 LEFT JOIN payments p ON p.order_id = o.id ${known.joined}`;

/**
 * Facts of one subject; always one row.
 *
 * $1 order id or null · $2 the order's scope name · $3 window of the order's earlier refunds in seconds, null: all ·
 * $4 item references · $5 kind · $6 currency · $7 $8 $9 totals asked for: per, hours, scope (arrays of one length).
 *
 * The active policy's row is locked in share mode by the same statement: its hash, which comes back with the facts, cannot change
 * before the caller's transaction ends.
 *
 * What counts since a moment is added up from whole hours, the minutes before the first of them, and the entries before the first of
 * those (`total_buckets`); both edges are exact. `total_counts` and `total_amounts` (minor units of $6) are in the order of $7 to $9.
 */
export const FACTS = { name: "policy.facts", text: factsText(NEW) };

/**
 * As `FACTS`, and $10 own operation id or null (does not count against itself) · $11 predecessor's operation id or null.
 *
 * An operation that is reserved already is judged in its place: only what was reserved before it counts, because what came
 * after was judged on top of it: up to our own entry, as the difference of two sums. (`shop` is the scope that every entry has.)
 *
 * The denial is the nearest DENIED operation along the predecessors, so that a drifted successor of a denied intent is still one.
 */
export const FACTS_OF_KNOWN = { name: "policy.facts_of_known", text: factsText(KNOWN) };
