/** A policy that no process with a secret of ours put in force: on-call hears of it before anything is decided under it. */
import { dataIn } from "./audit-check.js";
import type { LedgerCtx } from "./context.js";
import { policyHolds, UNKNOWN_ACTIVATION } from "./decision-seals.js";
import { openIncident } from "./incidents.js";

/** The last word about the policy, if it was given since policies are sealed (migration 0014). */
const LAST = `
SELECT e.seq, e.body FROM operation_events e
WHERE e.subject = 'policy' AND e.at > (
  SELECT COALESCE(min(m.finished_at), 'infinity') FROM _prisma_migrations m WHERE m.migration_name = '0014_sealed_decisions')
ORDER BY e.seq DESC LIMIT 1`;

/**
 * On-call hears, once, of a policy that was put in force under no secret that this process knows: by somebody who wrote to the database,
 * or by a process with another secret, whose decisions this one sends as little as that one sends ours.
 */
export async function tellUnknownPolicy(
  ctx: Pick<LedgerCtx, "db" | "ids" | "notices" | "seals">,
): Promise<void> {
  const [last] = await ctx.db.sql<{ seq: number; body: string }>("ledger.last_policy_told", LAST);
  if (last === undefined) return;
  const data = dataIn(last.body);
  if (policyHolds(ctx.seals, data, last.seq)) return;
  await ctx.db.tx((tx) =>
    openIncident(tx, ctx, {
      kind: "row_changed",
      dedupeKey: `row_changed:policy:${last.seq}`,
      operationId: null,
      paymentId: null,
      detail: {
        policy: typeof data["policy"] === "string" ? data["policy"] : "not readable",
        problems: [UNKNOWN_ACTIVATION],
      },
    }),
  );
}
