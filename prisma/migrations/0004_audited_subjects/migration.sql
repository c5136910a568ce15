-- The audit log also tells of what is no operation: freeze switches, incidents, the active policy. Each has a chain of its own,
-- in the same log, under the same seal.
ALTER TABLE operation_events ALTER COLUMN operation_id DROP NOT NULL;
ALTER TABLE operation_events ADD COLUMN subject text;
ALTER TABLE operation_events ADD CONSTRAINT operation_events_are_about_one_thing
  CHECK ((operation_id IS NULL) <> (subject IS NULL));
CREATE UNIQUE INDEX operation_events_seq_is_unique_in_subject ON operation_events (subject, seq) WHERE subject IS NOT NULL;
CREATE UNIQUE INDEX operation_events_have_one_successor_in_subject ON operation_events (subject, prev_hash)
  WHERE subject IS NOT NULL;

-- What `operations.event_count` and `head_hash` are to an operation.
CREATE TABLE audit_heads (
  subject text PRIMARY KEY,
  event_count integer NOT NULL DEFAULT 0,
  head_hash text NOT NULL DEFAULT ''
);

-- What stands already begins its chain here. One moment for all, read once: a body is hashed as it is stored.
WITH moment AS MATERIALIZED (
  SELECT countersign_now() AS at
), old AS (
  SELECT 'incident:' || i.id AS subject, 'incident_opened' AS type,
         '{"dedupeKey":' || to_json(i.dedupe_key)::text || ',"kind":' || to_json(i.kind)::text || '}' AS data
  FROM incidents i
  UNION ALL
  SELECT 'freeze:' || s.kind, 'freeze', '{}' FROM freeze_switches s WHERE s.frozen
), told AS MATERIALIZED (
  SELECT o.subject, o.type, t.at,
         '{"actor":"system:migration","at":"' || to_char(t.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '","data":'
         || o.data || ',"seq":1,"subject":' || to_json(o.subject)::text || ',"type":"' || o.type || '"}' AS body
  FROM old o CROSS JOIN moment t
), hashed AS (
  SELECT told.*, encode(sha256(convert_to(E'\n' || told.body, 'UTF8')), 'hex') AS hash FROM told
), heads AS (
  INSERT INTO audit_heads (subject, event_count, head_hash) SELECT subject, 1, hash FROM hashed
)
INSERT INTO operation_events (subject, seq, at, type, actor, body, prev_hash, hash)
SELECT subject, 1, at, type, 'system:migration', body, '', hash FROM hashed;
-- Closed before: their chains say so too, so that the row and its events agree.
WITH moment AS MATERIALIZED (
  SELECT countersign_now() AS at
), told AS MATERIALIZED (
  SELECT h.subject, h.head_hash, t.at,
         '{"actor":"system:migration","at":"' || to_char(t.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
         || '","data":{},"seq":2,"subject":' || to_json(h.subject)::text || ',"type":"incident_closed"}' AS body
  FROM audit_heads h JOIN incidents i ON h.subject = 'incident:' || i.id AND i.status = 'closed'
    CROSS JOIN moment t
), hashed AS (
  SELECT told.*, encode(sha256(convert_to(told.head_hash || E'\n' || told.body, 'UTF8')), 'hex') AS hash FROM told
), events AS (
  INSERT INTO operation_events (subject, seq, at, type, actor, body, prev_hash, hash)
  SELECT subject, 2, at, 'incident_closed', 'system:migration', body, head_hash, hash FROM hashed
)
UPDATE audit_heads h SET event_count = 2, head_hash = x.hash FROM hashed x WHERE x.subject = h.subject;
