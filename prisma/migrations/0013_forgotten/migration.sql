-- What a machine should look at and nobody would, because somebody took away when it is due: as long as nobody does that, nothing is in
-- these indexes and they cost nothing.
CREATE INDEX operations_forgotten ON operations (id)
  WHERE due_at IS NULL AND status IN ('PREPARED', 'DISPATCHED', 'OUTCOME_UNKNOWN', 'RECONCILING', 'QUARANTINED');
CREATE INDEX approvals_forgotten ON approvals (id) WHERE state = 'PENDING' AND (due_at IS NULL OR due_at > expires_at);
CREATE INDEX runs_forgotten ON runs (id) WHERE due_at IS NULL AND state IN ('queued', 'running');
