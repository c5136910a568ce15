/**
 * Approval cards are not shown in channels that another company can read. Asked of Slack before the first post of a card into a
 * channel, and again after half a minute.
 */
import type { SlackSendContext } from "../types.js";
import { callFailure } from "../web.js";

export type Sharing = "internal" | "shared" | "unknown";

const CACHE_MS = 30_000;
const cache = new WeakMap<object, Map<string, { readonly sharing: Sharing; readonly atMs: number }>>();

type Ctx = Pick<SlackSendContext, "web" | "clock" | "log">;

/** `unknown`: Slack could not be asked now; ask again before posting. */
export async function mayShowApprovals(ctx: Ctx, channel: string): Promise<Sharing> {
  const known = cacheOf(ctx).get(channel);
  const nowMs = ctx.clock.now().getTime();
  if (known !== undefined && nowMs - known.atMs < CACHE_MS && nowMs >= known.atMs) return known.sharing;
  const sharing = await ask(ctx, channel);
  if (sharing !== "unknown") cacheOf(ctx).set(channel, { sharing, atMs: nowMs });
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
    return shared ? "shared" : "internal";
  } catch (error) {
    const failure = callFailure(error);
    if (failure.kind !== "refused") return "unknown";
    // Where Slack will never tell (no such scope, no such channel for us), the post itself decides; it is said in the log.
    ctx.log.warn(
      { channel, code: failure.code },
      "Slack does not say whether a channel is shared with others",
    );
    return "internal";
  }
}
