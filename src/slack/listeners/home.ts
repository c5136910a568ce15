/** App Home, published when it is opened and after each click in it. */

import type { ApprovalId } from "../../domain/ids.js";
import { listRuns } from "../../runs/index.js";
import type { ApprovalView } from "../cards/approval-card.js";
import { HOME_APPROVALS, HOME_STOPPABLE, HOME_TICKETS, type HomeFacts, homeView } from "../cards/home.js";
import type { SlackContext } from "../types.js";
import { approvalViewOf, readApprovalView } from "../views/approval.js";
import { callFailure } from "../web.js";

export async function publishHome(ctx: SlackContext, userId: string, notice: string | null): Promise<void> {
  const view = homeView(await homeFacts(ctx, userId, notice));
  try {
    await ctx.web.interactive.views.publish({ user_id: userId, view });
    ctx.metrics.called("views.publish", "ok");
  } catch (error) {
    const failure = callFailure(error);
    ctx.metrics.called("views.publish", failure.kind === "refused" ? failure.code : failure.kind);
    ctx.log.warn({ failure }, "Home could not be published");
  }
}

async function homeFacts(ctx: SlackContext, userId: string, notice: string | null): Promise<HomeFacts> {
  const [pending, stoppable, tickets, oncall] = await Promise.all([
    ctx.useCases.pendingFor(userId, HOME_APPROVALS),
    stoppableBy(ctx, userId),
    listRuns(ctx.db, { filer: userId, limit: HOME_TICKETS }),
    ctx.useCases.ops.home({ userId }).catch(() => null),
  ]);
  return {
    notice,
    approvals: pending.ok
      ? {
          ok: true,
          views: await Promise.all(pending.approvals.map(({ approval }) => approvalViewOf(ctx.db, approval))),
          more: pending.next !== null,
        }
      : { ok: false, reason: pending.reason },
    stoppable,
    tickets: tickets.runs,
    oncall: oncall !== null && oncall.outcome === "home" ? oncall : null,
    now: ctx.clock.now(),
  };
}

const READING_MAX_AGE_MS = 5_000;

/** Approved in a role of this person's and not released yet. Who may stop them is asked again at the click. */
async function stoppableBy(ctx: SlackContext, userId: string): Promise<ApprovalView[]> {
  const reading = await ctx.directory.person(userId, { maxAgeMs: READING_MAX_AGE_MS });
  if (!reading.ok || reading.person.standing !== "member") return [];
  // The first condition is the index's: it holds what is open, not what was ever decided.
  const rows = await ctx.db.sql<{ id: ApprovalId }>(
    "slack.stoppable",
    `SELECT id FROM approvals WHERE state IN ('PENDING','APPROVED') AND state = 'APPROVED' AND role = ANY ($1)
      ORDER BY id LIMIT $2`,
    [[...reading.person.roles], HOME_STOPPABLE],
  );
  const views = await Promise.all(rows.map(({ id }) => readApprovalView(ctx.db, id)));
  return views.filter((view) => view !== null);
}
