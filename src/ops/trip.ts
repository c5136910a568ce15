/**
 * The freeze switch trips by itself when unknown outcomes, duplicates or orphans reach the policy's lines.
 *
 * 1. Only what happened since the switch was last turned counts: a thaw is a person's word that the past is understood.
 * 2. Unknown outcomes freeze their kind; a duplicate or an orphan freezes everything, because something is wrong that no
 *    rule foresaw.
 * 3. A line of 0 or 1 trips at the first one.
 */
import { OPERATION_KINDS, type OperationKind } from "../domain/operation.js";
import type { Policy } from "../domain/policy/policy.js";
import * as ledger from "../ledger/index.js";
import type { OpsContext } from "./context.js";
import { TRIPPED } from "./freeze.js";
import { showSwitch } from "./show-switch.js";
import type { FreezeKind, FreezeState } from "./types.js";

export interface Trip {
  readonly kind: FreezeKind;
  readonly reason: string;
}

/** What was counted since the switches were last turned. */
export interface TripCounts {
  readonly unknownLastHour: Readonly<Record<OperationKind, number>>;
  readonly duplicates: number;
  readonly orphans: number;
}

/** The switches to turn, purely. A kind that is frozen already, by itself or with all, is not frozen twice. */
export function tripsOf(
  counts: TripCounts,
  lines: Policy["freeze"]["tripOn"],
  frozen: ReadonlySet<FreezeKind>,
): readonly Trip[] {
  if (frozen.has("all")) return [];
  const all = [
    ...over(counts.duplicates, lines.duplicates, "duplicate effect", "duplicate effects"),
    ...over(
      counts.orphans,
      lines.orphans,
      "effect that no operation explains",
      "effects that no operation explains",
    ),
  ];
  if (all.length > 0) return [{ kind: "all", reason: all.join("; ") }];
  return OPERATION_KINDS.filter((kind) => !frozen.has(kind)).flatMap((kind) =>
    over(
      counts.unknownLastHour[kind],
      lines.unknownPerHour,
      "unknown outcome in an hour",
      "unknown outcomes in an hour",
    ).map((reason) => ({ kind, reason })),
  );
}

function over(count: number, line: number, one: string, many: string): string[] {
  const limit = Math.max(1, line);
  return count >= limit ? [`${count} ${count === 1 ? one : many} (the policy's line is ${line})`] : [];
}

/** What looking at the lines needs of the context. */
type TripContext = Pick<OpsContext, "db" | "ledger" | "activePolicy" | "log">;

/** Looks at the lines and freezes where one is reached. Returns what it froze. */
export async function checkTrips(ctx: TripContext): Promise<readonly Trip[]> {
  const policy = await ctx.activePolicy(ctx.db);
  const switches = await ledger.freezeStates(ctx.db);
  const frozen = new Set(switches.filter((state) => state.frozen).map((state) => state.kind));
  const trips = tripsOf(await countsSince(ctx, switches), policy.freeze.tripOn, frozen);
  for (const trip of trips) {
    const { state, already } = await ledger.freeze(ctx.ledger, { ...trip, by: TRIPPED, tripped: true });
    if (already) continue;
    ctx.log.error({ kind: trip.kind, reason: trip.reason }, "the freeze switch tripped by itself");
    await showSwitch(ctx, state);
  }
  return trips;
}

async function countsSince(
  ctx: Pick<OpsContext, "db">,
  switches: readonly FreezeState[],
): Promise<TripCounts> {
  const turned = (kind: FreezeKind): Date | null => switches.find((state) => state.kind === kind)?.at ?? null;
  const sinceAll = turned("all");
  const rows = await ctx.db.sql<{ kind: OperationKind; unknown: number }>("ops.unknown_last_hour", UNKNOWN, [
    sinceAll,
    OPERATION_KINDS.map((kind) => kind),
    OPERATION_KINDS.map((kind) => turned(kind)),
  ]);
  const [incidents] = await ctx.db.sql<{ duplicates: number; orphans: number }>(
    "ops.trip_incidents",
    INCIDENTS,
    [sinceAll],
  );
  const unknownOf = (kind: OperationKind): number => rows.find((row) => row.kind === kind)?.unknown ?? 0;
  return {
    unknownLastHour: {
      refund: unknownOf("refund"),
      cancel_order: unknownOf("cancel_order"),
      cancel_subscription: unknownOf("cancel_subscription"),
    },
    duplicates: incidents?.duplicates ?? 0,
    orphans: incidents?.orphans ?? 0,
  };
}

// $1 when the switch of all was last turned, $2 kinds, $3 when each of theirs was. Operations that became unknown, once each.
const UNKNOWN = `
SELECT o.kind, count(DISTINCT e.operation_id)::int AS unknown
FROM operation_events e JOIN operations o ON o.id = e.operation_id
JOIN unnest($2::text[], $3::timestamptz[]) AS s(kind, turned) ON s.kind = o.kind
WHERE e.to_status = 'OUTCOME_UNKNOWN' AND e.from_status = 'DISPATCHED' AND e.at > countersign_now() - interval '1 hour'
  AND e.at > coalesce(greatest($1::timestamptz, s.turned), '-infinity')
GROUP BY o.kind`;

// $1 when the switch of all was last turned. Open incidents only.
const INCIDENTS = `
SELECT count(*) FILTER (WHERE kind = 'duplicate_effect')::int AS duplicates,
  count(*) FILTER (WHERE kind = 'orphan_effect')::int AS orphans
FROM incidents WHERE status = 'open' AND created_at > coalesce($1::timestamptz, '-infinity')`;
