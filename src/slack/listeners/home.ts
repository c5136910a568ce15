/** App Home, published when it is opened and after each click in it. */
import { listRuns } from "../../runs/index.js";
import { HOME_APPROVALS, HOME_TICKETS, type HomeFacts, homeView } from "../cards/home.js";
import type { SlackContext } from "../types.js";
import { approvalViewOf } from "../views/approval.js";
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
  const [pending, tickets, oncall] = await Promise.all([
    ctx.useCases.pendingFor(userId, HOME_APPROVALS),
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
    tickets: tickets.runs,
    oncall: oncall !== null && oncall.outcome === "home" ? oncall : null,
    now: ctx.clock.now(),
  };
}
