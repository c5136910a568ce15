/** What `/metrics` shows of the rows: counted when asked, at most every few seconds. Costs what is open, not what is stored. */
import type { Db } from "../../db/connect.js";
import type { Queues } from "../../jobs/index.js";
import { KEPT_BY_FREEZE, openCounts } from "../../ledger/index.js";
import type { Snapshot } from "../../telemetry/index.js";

interface Row {
  unknown_age: number;
  quarantined_age: number;
  tried_age: number;
  pending: bigint;
  pending_age: number;
  outbox: bigint;
  outbox_lag: number;
  inbox: bigint;
  incidents: bigint;
  frozen: bigint;
  due_age: number;
}

const SNAPSHOT = `
SELECT
  COALESCE((SELECT extract(epoch FROM countersign_now() - min(unknown_since)) * 1000 FROM operations
    WHERE due_at IS NOT NULL AND status IN ('DISPATCHED', 'OUTCOME_UNKNOWN', 'RECONCILING')), 0)::float8 AS unknown_age,
  COALESCE((SELECT extract(epoch FROM countersign_now() - min(unknown_since)) * 1000 FROM operations
    WHERE due_at IS NOT NULL AND status = 'QUARANTINED'), 0)::float8 AS quarantined_age,
  COALESCE((SELECT extract(epoch FROM countersign_now() - min(first_claimed_at)) * 1000 FROM operations
    WHERE due_at IS NOT NULL AND status = 'PREPARED' AND attempts > 0 AND NOT ${KEPT_BY_FREEZE}), 0)::float8 AS tried_age,
  (SELECT count(*) FROM approvals WHERE state = 'PENDING') AS pending,
  COALESCE((SELECT extract(epoch FROM countersign_now() - min(created_at)) * 1000 FROM approvals
    WHERE state = 'PENDING'), 0)::float8 AS pending_age,
  (SELECT count(*) FROM slack_outbox WHERE due_at IS NOT NULL) AS outbox,
  COALESCE((SELECT extract(epoch FROM countersign_now() - min(due_at)) * 1000 FROM (
    SELECT min(due_at) AS due_at FROM slack_outbox WHERE due_at IS NOT NULL
    UNION ALL SELECT min(due_at) FROM slack_cards WHERE due_at IS NOT NULL AND kind <> 'home') late
    WHERE due_at <= countersign_now()), 0)::float8 AS outbox_lag,
  (SELECT count(*) FROM slack_inbox WHERE due_at IS NOT NULL) AS inbox,
  (SELECT count(*) FROM incidents WHERE status = 'open') AS incidents,
  (SELECT count(*) FROM freeze_switches WHERE frozen) AS frozen,
  COALESCE((SELECT extract(epoch FROM countersign_now() - min(due_at)) * 1000 FROM (
    SELECT min(due_at) AS due_at FROM operations WHERE due_at IS NOT NULL AND NOT ${KEPT_BY_FREEZE}
    UNION ALL SELECT min(due_at) FROM runs WHERE due_at IS NOT NULL
    UNION ALL SELECT min(due_at) FROM approvals WHERE due_at IS NOT NULL
    UNION ALL SELECT min(due_at) FROM slack_inbox WHERE due_at IS NOT NULL
    UNION ALL SELECT min(due_at) FROM provider_webhooks WHERE due_at IS NOT NULL) due
    WHERE due_at <= countersign_now()), 0)::float8 AS due_age`;

/** Takes one snapshot. @throws when the database does not answer */
export async function takeSnapshot(
  db: Db,
  queues: Pick<Queues, "depth">,
  connected: { slack: () => boolean | null },
): Promise<Snapshot> {
  const [[row], byStatus, runs, depth] = await Promise.all([
    db.sql<Row>("app.snapshot", SNAPSHOT),
    openCounts(db),
    db.sql<{ state: string; n: bigint }>(
      "app.snapshot_runs",
      `SELECT state, count(*) AS n FROM runs
        WHERE state IN ('queued','running','awaiting_binding','awaiting_approval','waiting') GROUP BY state`,
    ),
    queues.depth(),
  ]);
  if (row === undefined) throw new Error("the database gave no snapshot");
  return {
    operations: Object.entries(byStatus).map(([status, count]) => ({ kind: "all", status, count })),
    oldestUnknownAgeMs: row.unknown_age,
    oldestQuarantinedAgeMs: row.quarantined_age,
    oldestTriedAgeMs: row.tried_age,
    approvalsPending: Number(row.pending),
    oldestApprovalAgeMs: row.pending_age,
    runs: runs.map(({ state, n }) => ({ state, count: Number(n) })),
    outboxWaiting: Number(row.outbox),
    outboxLagMs: row.outbox_lag,
    inboxWaiting: Number(row.inbox),
    incidentsOpen: Number(row.incidents),
    frozenKinds: Number(row.frozen),
    oldestDueAgeMs: row.due_age,
    queues: depth === null ? [] : Object.entries(depth).map(([kind, waiting]) => ({ kind, waiting })),
    slackConnected: connected.slack(),
    queueConnected: depth !== null,
  };
}
