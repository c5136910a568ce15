/**
 * People's decisions as rows, held against the events that told of them when they were given: approvals and what they ask for, votes,
 * proposals and their second person. The log tells of these since migration 0010; of older ones it tells what came of them.
 *
 * A person who was erased has no name here any more, and is passed over; their number still counts.
 */
import type { SumCheck } from "./audit-records.js";
import { isErased, namedAs } from "./person-names.js";

/** SQL: since when the log tells of them. */
export const TOLD_SINCE = `(SELECT COALESCE(min(m.finished_at), 'infinity') FROM _prisma_migrations m WHERE m.migration_name = '0010_other_currency')`;

export const DECISION_CHECKS: readonly SumCheck[] = [
  {
    name: "ledger.audit_asked",
    readsEvents: true,
    what: "operation",
    problem: "its approval asks for something else than was asked for",
    text: `
SELECT DISTINCT o.id AS "where" FROM approvals a JOIN operations o ON o.id = a.operation_id
JOIN operation_events f ON f.operation_id = o.id AND f.seq = 1
LEFT JOIN LATERAL (
  SELECT e.body::jsonb -> 'data' AS data FROM operation_events e WHERE e.subject = 'approval:' || a.id AND e.type = 'approval_asked'
) asked ON true
WHERE CASE WHEN asked.data IS NULL THEN f.at > ${TOLD_SINCE}
  ELSE asked.data ->> 'operation' IS DISTINCT FROM a.operation_id OR asked.data ->> 'role' IS DISTINCT FROM a.role
    OR (asked.data ->> 'approvers')::int IS DISTINCT FROM a.approvers_needed
    OR asked.data ->> 'bindingHash' IS DISTINCT FROM a.binding_hash
    OR (asked.data ->> 'confirmAmount')::boolean IS DISTINCT FROM a.confirm_amount END
ORDER BY 1 LIMIT $1::int`,
  },
  {
    name: "ledger.audit_voted",
    readsEvents: true,
    what: "operation",
    problem: "a vote about it is not what was voted",
    text: `
SELECT DISTINCT a.operation_id AS "where" FROM approvals a
WHERE EXISTS (SELECT 1 FROM operation_events e WHERE e.subject = 'approval:' || a.id AND e.type = 'approval_asked')
AND (
  (SELECT count(*) FROM votes v WHERE v.approval_id = a.id) NOT BETWEEN
    (SELECT count(DISTINCT e.actor) FROM operation_events e WHERE e.subject = 'approval:' || a.id AND e.type = 'voted' AND NOT ${isErased("e.actor")})
    AND (SELECT count(DISTINCT e.actor) FROM operation_events e WHERE e.subject = 'approval:' || a.id AND e.type = 'voted')
  OR EXISTS (
    SELECT 1 FROM votes v
    WHERE v.approval_id = a.id AND NOT EXISTS (
      SELECT 1 FROM operation_events e WHERE e.subject = 'approval:' || a.id AND e.type = 'voted'
        AND (e.actor = ${namedAs("v.user_id")} OR ${isErased("e.actor")})
        AND e.body::jsonb #>> '{data,verdict}' = v.verdict AND e.body::jsonb #>> '{data,role}' = v.role
        AND (e.body::jsonb #>> '{data,cardVersion}')::int = v.card_version)))
ORDER BY 1 LIMIT $1::int`,
  },
  {
    name: "ledger.audit_approvals_gone",
    readsEvents: true,
    what: "operation",
    problem: "an approval of it is gone",
    text: `
SELECT DISTINCT e.body::jsonb #>> '{data,operation}' AS "where" FROM operation_events e
WHERE e.type = 'approval_asked' AND NOT EXISTS (SELECT 1 FROM approvals a WHERE e.subject = 'approval:' || a.id)
ORDER BY 1 LIMIT $1::int`,
  },
  {
    // What was applied stands in the operation's own event, whoever's hand it was; what waited for a second person, in its own chain.
    name: "ledger.audit_resolutions",
    readsEvents: true,
    what: "operation",
    problem: "a person's decision about it is not what the log tells",
    text: `
SELECT DISTINCT r.operation_id AS "where" FROM resolutions r
LEFT JOIN LATERAL (
  SELECT e.actor, e.body::jsonb -> 'data' AS data FROM operation_events e
  WHERE e.operation_id = r.operation_id AND e.body::jsonb #>> '{data,resolution}' = r.id AND e.type <> 'resend'
  ORDER BY e.seq DESC LIMIT 1
) applied ON true
LEFT JOIN LATERAL (
  SELECT e.actor, e.at, e.body::jsonb -> 'data' AS data FROM operation_events e
  WHERE e.subject = 'resolution:' || r.id AND e.type = 'resolution_proposed'
) proposed ON true
LEFT JOIN LATERAL (
  SELECT e.body::jsonb -> 'data' AS data FROM operation_events e
  WHERE e.subject = 'resolution:' || r.id AND e.type = 'resolution_ended'
) ended ON true
WHERE (r.state = 'applied') <> (applied.data IS NOT NULL)
  OR (applied.data IS NOT NULL AND (
    applied.data ->> 'verb' IS DISTINCT FROM r.verb
    OR NOT (COALESCE(applied.actor = ${namedAs("r.by")}, false) OR ${isErased("applied.actor")})
    OR (applied.data ->> 'second' IS NULL) <> (r.second_by IS NULL)
    OR NOT (COALESCE(applied.data ->> 'second' = ${namedAs("r.second_by")}, false) OR ${isErased("applied.data ->> 'second'")})))
  OR (proposed.data IS NULL AND r.created_at > ${TOLD_SINCE} AND (r.state <> 'applied' OR r.second_by IS NOT NULL))
  OR (proposed.data IS NOT NULL AND (
    proposed.data ->> 'operation' IS DISTINCT FROM r.operation_id OR proposed.data ->> 'verb' IS DISTINCT FROM r.verb
    OR NOT (COALESCE(proposed.actor = ${namedAs("r.by")}, false) OR ${isErased("proposed.actor")})
    OR COALESCE(ended.data ->> 'state', 'proposed') <> r.state
    OR ended.data ->> 'verdict' IS DISTINCT FROM r.second_verdict))
ORDER BY 1 LIMIT $1::int`,
  },
];
