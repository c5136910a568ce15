-- What was seen as made elsewhere on a payment is asked for again whenever its list is read: one list does not unsay another.
CREATE INDEX provider_evidence_elsewhere ON provider_evidence ((payload ->> 'paymentIntent')) WHERE operation_id IS NULL;

-- The log tells of every change of what was refunded elsewhere. What stands already begins its chain here.
WITH moment AS MATERIALIZED (
  SELECT countersign_now() AS at
), old AS (
  SELECT 'payment:' || p.id AS subject, '{"before":0,"effects":[],"minor":' || p.refunded_elsewhere || '}' AS data
  FROM payments p WHERE p.refunded_elsewhere <> 0
), told AS MATERIALIZED (
  SELECT o.subject, t.at,
         '{"actor":"system:migration","at":"' || to_char(t.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '","data":'
         || o.data || ',"seq":1,"subject":' || to_json(o.subject)::text || ',"type":"refunded_elsewhere"}' AS body
  FROM old o CROSS JOIN moment t
), hashed AS MATERIALIZED (
  SELECT told.*, encode(sha256(convert_to(E'\n' || told.body, 'UTF8')), 'hex') AS hash FROM told
), heads AS (
  INSERT INTO audit_heads (subject, event_count, head_hash) SELECT subject, 1, hash FROM hashed
)
INSERT INTO operation_events (subject, seq, at, type, actor, body, prev_hash, hash)
SELECT subject, 1, at, 'refunded_elsewhere', 'system:migration', body, '', hash FROM hashed;
