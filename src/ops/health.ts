/** Whether the product is well, as on-call asks it: parts that answer, what is open, what is due and waits. */
import type { OperationId } from "../domain/ids.js";
import { freezeStates, getOperation, KEPT_BY_FREEZE, openCounts } from "../ledger/index.js";
import { authorise } from "./authorise.js";
import type { OpsContext } from "./context.js";
import type { HealthPart, HealthView, Refused } from "./types.js";

export async function health(ctx: OpsContext, request: { userId: string }): Promise<HealthView | Refused> {
  const caller = await authorise(ctx, request.userId);
  return caller.outcome === "refused" ? caller : healthNow(ctx);
}

/** For whoever may look at the database anyway. */
export async function healthNow(ctx: Pick<OpsContext, "db" | "healthParts">): Promise<HealthView> {
  const [row] = await ctx.db.sql<{
    oldest_unknown: OperationId | null;
    pending: number;
    oldest_pending: Date | null;
    incidents: number;
    cooling: number;
    cooling_first: Date | null;
    cooling_last: Date | null;
    tried: number;
    tried_since: Date | null;
  }>("ops.health", OPEN);
  const due = await ctx.db.sql<DueRow>("ops.backlog", BACKLOG);
  return {
    outcome: "health",
    parts: [await databasePart(ctx), workerPart(due), ...(await ctx.healthParts())],
    counts: await openCounts(ctx.db),
    oldestUnknown:
      row === undefined || row.oldest_unknown === null
        ? null
        : await getOperation(ctx.db, row.oldest_unknown),
    coolingOff:
      row === undefined || row.cooling_first === null || row.cooling_last === null
        ? null
        : { count: row.cooling, firstUntil: row.cooling_first, lastUntil: row.cooling_last },
    triedAgain:
      row === undefined || row.tried_since === null ? null : { count: row.tried, since: row.tried_since },
    pendingApprovals: row?.pending ?? 0,
    oldestPendingAt: row?.oldest_pending ?? null,
    openIncidents: row?.incidents ?? 0,
    frozen: (await freezeStates(ctx.db)).filter((state) => state.frozen),
    backlog: due.map(({ what, due: count, oldest }) => ({ what, due: count, oldestDueAt: oldest })),
  };
}

interface DueRow {
  what: string;
  due: number;
  oldest: Date | null;
  /** How long the oldest has been due, in milliseconds; null: nothing is. */
  waiting_ms: number | null;
}

/** A sweeper is at most a second behind: what has been due for longer than this, nobody takes. */
const NOBODY_WORKS_AFTER_MS = 60_000;

/** Processes do not know of each other; what is due and not taken says that no worker runs, or none keeps up. */
function workerPart(due: readonly DueRow[]): HealthPart {
  const ours = due.filter(({ what }) => !PACED_BY_SLACK.has(what));
  const longest = Math.max(0, ...ours.map(({ waiting_ms }) => waiting_ms ?? 0));
  const name = "worker";
  return longest < NOBODY_WORKS_AFTER_MS
    ? { name, ok: true, sentence: "What is due is taken." }
    : {
        name,
        ok: false,
        sentence: `Rows have been due for ${Math.floor(longest / 1000)} s and nobody takes them: is a worker running?`,
      };
}

async function databasePart(ctx: Pick<OpsContext, "db">): Promise<HealthPart> {
  try {
    await ctx.db.sql("ops.ping", "SELECT 1");
    return { name: "database", ok: true, sentence: "The database answers." };
  } catch (error) {
    return {
      name: "database",
      ok: false,
      sentence: `The database does not answer (${ctx.db.failureOf(error)?.kind ?? "unknown"}).`,
    };
  }
}

const OPEN = `
SELECT (SELECT id FROM operations WHERE due_at IS NOT NULL AND unknown_since IS NOT NULL ORDER BY unknown_since, id LIMIT 1) AS oldest_unknown,
  (SELECT count(*)::int FROM approvals WHERE state = 'PENDING') AS pending,
  (SELECT min(created_at) FROM approvals WHERE state = 'PENDING') AS oldest_pending,
  (SELECT count(*)::int FROM incidents WHERE status = 'open') AS incidents,
  cooling.count AS cooling, cooling.first AS cooling_first, cooling.last AS cooling_last, tried.count AS tried, tried.since AS tried_since
FROM (SELECT count(*)::int, min(not_before) AS first, max(not_before) AS last FROM operations
  WHERE due_at IS NOT NULL AND status = 'PREPARED' AND attempts = 0 AND not_before > countersign_now()) AS cooling,
  (SELECT count(*)::int, min(first_claimed_at) AS since FROM operations
  WHERE due_at IS NOT NULL AND status = 'PREPARED' AND attempts > 0) AS tried`;

/** Rows that may be due for long although everything works, by table. SQL conditions. */
const NOT_LATE: Readonly<Record<string, string>> = {
  slack_cards: "(kind = 'home')",
  operations: KEPT_BY_FREEZE,
};

/** What Slack's pace holds up is no sign of a missing worker. */
const PACED_BY_SLACK: ReadonlySet<string> = new Set(["slack_outbox", "slack_cards"]);

// Rows that a worker should have taken by now, by what they are. Costs what is due. An open Home is looked at again and again.
const BACKLOG = [
  "operations",
  "runs",
  "approvals",
  "slack_inbox",
  "slack_outbox",
  "slack_cards",
  "provider_webhooks",
]
  .map(
    (table) => `SELECT '${table}' AS what, count(*)::int AS due, min(due_at) AS oldest,
  (extract(epoch FROM countersign_now() - min(due_at)) * 1000)::float8 AS waiting_ms FROM ${table}
WHERE due_at IS NOT NULL AND due_at <= countersign_now()${NOT_LATE[table] === undefined ? "" : ` AND NOT ${NOT_LATE[table]}`}`,
  )
  .join("\nUNION ALL\n");
