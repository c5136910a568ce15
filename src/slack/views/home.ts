/** What a person's App Home shows, from rows and from what Slack says of the person. Reads only. */
import type { SqlRunner } from "../../db/connect.js";
import type { ApprovalId, OperationId, RunId } from "../../domain/ids.js";
import { runsOfFiler } from "../../runs/index.js";
import type { ApprovalView } from "../cards/approval-card.js";
import { HOME_APPROVALS, HOME_STOPPABLE, HOME_TICKETS, type HomeFacts } from "../cards/home.js";
import type { OperationFacts } from "../cards/sentences.js";
import type { SlackContext } from "../types.js";
import { approvalViewOf, readApprovalView } from "./approval.js";
import { readOperations } from "./operation.js";
import { readFrozen } from "./ops.js";

/** `maxAgeMs`: how old what Slack said of the person may be. Who may decide is asked again at the click. */
export async function readHome(
  ctx: SlackContext,
  userId: string,
  maxAgeMs: number,
): Promise<Omit<HomeFacts, "notice" | "now">> {
  const [pending, stoppable, tickets, oncall, frozen] = await Promise.all([
    ctx.useCases.pendingFor({ userId, limit: HOME_APPROVALS, maxAgeMs }),
    stoppableBy(ctx, userId, maxAgeMs),
    runsOfFiler(ctx.db, userId, HOME_TICKETS),
    ctx.useCases.ops.home({ userId, maxAgeMs }).catch(() => null),
    readFrozen(ctx.db),
  ]);
  return {
    approvals: pending.ok
      ? {
          ok: true,
          views: await Promise.all(pending.approvals.map(({ approval }) => approvalViewOf(ctx.db, approval))),
          more: pending.next !== null,
        }
      : { ok: false, reason: pending.reason },
    stoppable,
    tickets,
    asked: await askedBy(
      ctx.db,
      tickets.map(({ run }) => run.id),
    ),
    oncall: oncall !== null && oncall.outcome === "home" ? oncall : null,
    frozen,
  };
}

// $1 runs. What each asked for, in the order of its calls.
const ASKED_BY = `
SELECT run_id, operation_id FROM tool_calls WHERE run_id = ANY ($1) AND operation_id IS NOT NULL
GROUP BY run_id, operation_id ORDER BY min(created_at), operation_id`;

async function askedBy(
  db: SqlRunner,
  runs: readonly RunId[],
): Promise<ReadonlyMap<RunId, readonly OperationFacts[]>> {
  if (runs.length === 0) return new Map();
  const rows = await db.sql<{ run_id: RunId; operation_id: OperationId }>("slack.asked_by", ASKED_BY, [
    [...runs],
  ]);
  const operations = await readOperations(
    db,
    rows.map((row) => row.operation_id),
  );
  return new Map(
    runs.map((run) => [
      run,
      rows.flatMap((row) => {
        const operation = operations.get(row.operation_id);
        return row.run_id === run && operation !== undefined ? [operation] : [];
      }),
    ]),
  );
}

// $1 roles, $2 how many. What cools off first: that is soon too late. The conditions before the others are the indexes': what was ever
// decided or sent is not read.
const STOPPABLE = `
SELECT id FROM (
  SELECT a.id, o.not_before FROM operations o JOIN approvals a ON a.id = o.approval_id
   WHERE o.due_at IS NOT NULL AND o.status = 'PREPARED' AND o.not_before IS NOT NULL AND a.state = 'RELEASED' AND a.role = ANY ($1)
  UNION ALL
  SELECT id, NULL FROM approvals WHERE state IN ('PENDING','APPROVED') AND state = 'APPROVED' AND role = ANY ($1)) AS stoppable
 ORDER BY not_before NULLS LAST, id LIMIT $2`;

/** Approved in a role of this person's and not sent yet. Who may stop them is asked again at the click. */
async function stoppableBy(ctx: SlackContext, userId: string, maxAgeMs: number): Promise<ApprovalView[]> {
  const reading = await ctx.directory.person(userId, { maxAgeMs });
  if (!reading.ok || reading.person.standing !== "member") return [];
  const rows = await ctx.db.sql<{ id: ApprovalId }>("slack.stoppable", STOPPABLE, [
    [...reading.person.roles],
    HOME_STOPPABLE,
  ]);
  const views = await Promise.all(rows.map(({ id }) => readApprovalView(ctx.db, id)));
  return views.filter((view) => view !== null);
}
