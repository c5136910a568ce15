/**
 * Approval cards are not shown in channels that another company can read, nor where Slack does not say whether one can. Asked of
 * Slack before a card is shown in a channel, and again after half a minute.
 */

import { callFailure } from "../call-failure.js";
import type { SlackSendContext } from "../types.js";

export type Sharing =
  | { readonly is: "internal" }
  | { readonly is: "shared" }
  /** Slack will not say, for a reason that somebody has to mend: a scope is missing, the app is not in the channel. */
  | { readonly is: "closed"; readonly code: string }
  /** Slack could not be asked now; ask again before posting. */
  | { readonly is: "unknown" };

const CACHE_MS = 30_000;
const cache = new WeakMap<object, Map<string, { readonly sharing: Sharing; readonly atMs: number }>>();

type Ctx = Pick<SlackSendContext, "web" | "clock" | "log">;

export async function mayShowApprovals(ctx: Ctx, channel: string): Promise<Sharing> {
  const known = cacheOf(ctx).get(channel);
  const nowMs = ctx.clock.now().getTime();
  if (known !== undefined && nowMs - known.atMs < CACHE_MS && nowMs >= known.atMs) return known.sharing;
  const sharing = await ask(ctx, channel);
  if (sharing.is !== "unknown") cacheOf(ctx).set(channel, { sharing, atMs: nowMs });
  return sharing;
}

/** An event said that sharing changed. */
export function forgetSharing(ctx: Pick<SlackSendContext, "web">, channel: string): void {
  cacheOf(ctx).delete(channel);
}

function cacheOf(
  ctx: Pick<SlackSendContext, "web">,
): Map<string, { readonly sharing: Sharing; readonly atMs: number }> {
  const own = cache.get(ctx.web) ?? new Map();
  cache.set(ctx.web, own);
  return own;
}

async function ask(ctx: Ctx, channel: string): Promise<Sharing> {
  try {
    const { channel: info } = await ctx.web.reads.conversations.info({ channel });
    const shared = info?.is_ext_shared === true || info?.is_pending_ext_shared === true;
    return { is: shared ? "shared" : "internal" };
  } catch (error) {
    const failure = callFailure(error);
    if (failure.kind !== "refused") return { is: "unknown" };
    // A Slack that has no such method has no shared channels.
    if (failure.code === "unknown_method") return { is: "internal" };
    ctx.log.error(
      { channel, code: failure.code },
      "Slack does not say whether a channel is shared with others: no approval is shown there",
    );
    return { is: "closed", code: failure.code };
  }
}
