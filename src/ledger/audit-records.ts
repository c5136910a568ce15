/**
 * What an operation's rows repeat of its events: what came of each attempt, what the policy answered and when sending might begin, who
 * asked, who voted with which authority; and that it points at the rows that it names.
 */
import { isErased, namedAs } from "./person-names.js";
import type { BrokenLink } from "./types.js";

/** One statement that names the rows that are wrong. */
export interface SumCheck {
  readonly name: string;
  readonly what: BrokenLink["what"];
  readonly problem: string;
  /** It reads what events say: nothing to compare with once one of them cannot be read, which is a finding already. */
  readonly readsEvents?: true;
  /** `where` of each row that is wrong; $1 rows at most. */
  readonly text: string;
}

/** SQL: `what` of the event `e` of the end of attempt `a`. */
export const endOfAttempt = (what: string): string => `
  SELECT ${what} FROM operation_events e
  WHERE e.operation_id = a.operation_id AND e.attempt = a.number AND e.actor = 'system:dispatch'
    AND e.type IN ('settle_confirmed', 'settle_rejected', 'settle_unknown', 'not_executed', 'late_answer')
  ORDER BY e.seq DESC LIMIT 1`;

/** SQL: what it says of the attempt: by the provider's answer, or by our own database for a local effect. */
const SAID = endOfAttempt("e.body::jsonb #> '{data,evidence}' AS said");

/** SQL: the verdict of attempt `a` is the one that `e.said` tells. */
const VERDICT_TOLD = `a.verdict = COALESCE(e.said ->> 'verdict',
  CASE e.said ->> 'ok' WHEN 'true' THEN 'committed' WHEN 'false' THEN 'rejected' END, 'open')`;

/** The event that began it. */
const BEGAN = `
  SELECT e.at, (e.body::jsonb ->> 'token')::bigint AS token, e.body::jsonb #>> '{data,worker}' AS worker FROM operation_events e
  WHERE e.operation_id = a.operation_id AND e.attempt = a.number AND e.type IN ('claim', 'resend')
  ORDER BY e.seq LIMIT 1`;

/** The event of the policy's last answer that counts: when it was proposed, or released by people. */
const DECIDED = `
  SELECT e.seq, e.at, e.body::jsonb -> 'data' AS data FROM operation_events e
  WHERE e.operation_id = o.id AND e.type IN ('prepare', 'hold', 'release') ORDER BY e.seq DESC LIMIT 1`;

/** Turned away by the provider and let go before the next try: its approval ended with it. */
const LET_GO = `EXISTS (
  SELECT 1 FROM operation_events e
  WHERE e.operation_id = o.id AND e.from_status = 'PREPARED' AND e.to_status IN ('DENIED', 'VOIDED'))`;

export const RECORD_CHECKS: readonly SumCheck[] = [
  {
    name: "ledger.audit_verdicts",
    readsEvents: true,
    what: "operation",
    problem: "an attempt of it is not what its events say",
    text: `
SELECT DISTINCT a.operation_id AS "where" FROM attempts a
LEFT JOIN LATERAL (${SAID}) e ON true
LEFT JOIN LATERAL (${BEGAN}) b ON true
WHERE a.evidence IS DISTINCT FROM e.said
  OR NOT ${VERDICT_TOLD}
  OR a.code IS DISTINCT FROM e.said ->> 'code'
  OR a.http_status IS DISTINCT FROM (e.said ->> 'httpStatus')::int
  OR a.provider_ref IS DISTINCT FROM COALESCE(e.said #>> '{effect,ref}', e.said ->> 'ref')
  OR a.request_id IS DISTINCT FROM e.said ->> 'requestId'
  OR a.lease_token IS DISTINCT FROM b.token OR a.worker IS DISTINCT FROM b.worker OR a.started_at IS DISTINCT FROM b.at
ORDER BY 1 LIMIT $1::int`,
  },
  {
    // A no that came after the release replaces its voter's yes.
    name: "ledger.audit_voters",
    readsEvents: true,
    what: "operation",
    problem: "the votes that released it are not those of its release",
    text: `
SELECT o.id AS "where" FROM operations o JOIN approvals a ON a.id = o.approval_id
JOIN LATERAL (
  SELECT e.body::jsonb #> '{data,votes}' AS votes FROM operation_events e
  WHERE e.operation_id = o.id AND e.type = 'release' ORDER BY e.seq DESC LIMIT 1
) r ON true
WHERE o.status <> 'DENIED' AND (
  ARRAY(SELECT v.user_id FROM votes v WHERE v.approval_id = a.id AND v.verdict = 'approve' ORDER BY 1)
    IS DISTINCT FROM ARRAY(SELECT u.id FROM unnest(o.approved_by) u(id) ORDER BY 1)
  OR ARRAY(SELECT v.role || '/' || v.card_version FROM votes v WHERE v.approval_id = a.id AND v.verdict = 'approve' ORDER BY 1)
    IS DISTINCT FROM ARRAY(SELECT (s ->> 'role') || '/' || (s ->> 'cardVersion') FROM jsonb_array_elements(r.votes) s ORDER BY 1))
ORDER BY o.id LIMIT $1::int`,
  },
  {
    // Who was denied late, or whose approval died before the claim, was not sent.
    name: "ledger.audit_released",
    readsEvents: true,
    what: "operation",
    problem: "its approval is not released, or gone, and it was sent",
    text: `
SELECT o.id AS "where" FROM operations o LEFT JOIN approvals a ON a.id = o.approval_id
WHERE o.attempts > 0 AND ((a.state <> 'RELEASED' AND NOT ${LET_GO}) OR (a.id IS NULL AND EXISTS (
  SELECT 1 FROM operation_events e WHERE e.operation_id = o.id AND e.type = 'release'
    AND jsonb_array_length(e.body::jsonb #> '{data,votes}') > 0)))
ORDER BY o.id LIMIT $1::int`,
  },
  {
    name: "ledger.audit_decision",
    readsEvents: true,
    what: "operation",
    problem: "its decision is not what its events say",
    text: `
SELECT o.id AS "where" FROM operations o JOIN LATERAL (${DECIDED}) d ON true
WHERE o.policy_hash IS DISTINCT FROM d.data ->> 'policyHash'
  OR o.decision ->> 'policyHash' IS DISTINCT FROM d.data ->> 'policyHash'
  OR o.decision ->> 'answerHash' IS DISTINCT FROM d.data ->> 'answerHash'
  OR COALESCE(o.decision -> 'rules', 'null') IS DISTINCT FROM COALESCE(d.data -> 'rules', 'null')
ORDER BY o.id LIMIT $1::int`,
  },
  {
    name: "ledger.audit_cooling_off",
    readsEvents: true,
    what: "operation",
    problem: "it was claimed before its cooling-off was over",
    text: `
SELECT o.id AS "where" FROM operations o JOIN LATERAL (${DECIDED}) d ON true
WHERE d.data ->> 'notBeforeMinutes' IS NOT NULL AND EXISTS (
  SELECT 1 FROM operation_events c WHERE c.operation_id = o.id AND c.type = 'claim' AND c.seq > d.seq
    AND c.at < d.at + (d.data ->> 'notBeforeMinutes')::float8 * interval '1 minute' - interval '1 millisecond')
ORDER BY o.id LIMIT $1::int`,
  },
  {
    // Who is erased has no name here any more, and is passed over; the number still counts.
    name: "ledger.audit_filers",
    readsEvents: true,
    what: "operation",
    problem: "who asked for it is not who its events name",
    text: `
SELECT o.id AS "where" FROM operations o
JOIN LATERAL (
  SELECT array_agg(DISTINCT n.name) AS names FROM operation_events e
  CROSS JOIN LATERAL jsonb_array_elements_text(e.body::jsonb #> '{data,filers}') n(name)
  WHERE e.operation_id = o.id AND e.type IN ('hold', 'join')
) f ON true
WHERE EXISTS (
  SELECT 1 FROM operation_events e WHERE e.operation_id = o.id AND e.type = 'hold' AND (e.body::jsonb -> 'data') ? 'filers')
AND (
  (SELECT count(DISTINCT u.id) FROM unnest(o.filers) u(id))
    NOT BETWEEN (SELECT count(*) FROM unnest(f.names) n(name) WHERE NOT ${isErased("n.name")}) AND COALESCE(cardinality(f.names), 0)
  OR (NOT EXISTS (SELECT 1 FROM unnest(f.names) n(name) WHERE ${isErased("n.name")}) AND EXISTS (
    SELECT 1 FROM unnest(o.filers) u(id)
    WHERE NOT COALESCE(${namedAs("u.id")} = ANY(f.names), false))))
ORDER BY o.id LIMIT $1::int`,
  },
  {
    name: "ledger.audit_links",
    what: "operation",
    problem: "it points at other rows than it names",
    text: `
SELECT o.id AS "where" FROM operations o
LEFT JOIN customers c ON c.id = o.customer_id
LEFT JOIN orders r ON r.id = o.order_id
LEFT JOIN payments p ON p.id = o.payment_id
LEFT JOIN subscriptions s ON s.id = o.subscription_id
WHERE c.ref IS DISTINCT FROM o.customer_ref OR r.ref IS DISTINCT FROM o.order_ref OR s.ref IS DISTINCT FROM o.subscription_ref
  OR (o.payment_id IS NOT NULL AND p.order_id IS DISTINCT FROM o.order_id)
ORDER BY o.id LIMIT $1::int`,
  },
  {
    name: "ledger.audit_policy_texts",
    readsEvents: true,
    what: "policy",
    problem: "its text is not the one that was put in force",
    text: `
SELECT v.hash AS "where" FROM policy_versions v
WHERE v.text_hash <> encode(sha256(convert_to(v.body, 'UTF8')), 'hex') OR EXISTS (
  SELECT 1 FROM (
    SELECT e.body::jsonb -> 'data' AS data FROM operation_events e
    WHERE e.subject = 'policy' AND e.type = 'policy_activated') a
  WHERE a.data ->> 'policy' = v.hash
  GROUP BY a.data ->> 'policy' HAVING bool_and(a.data ->> 'text' <> v.text_hash))
ORDER BY v.hash LIMIT $1::int`,
  },
];
