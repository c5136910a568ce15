/**
 * What an interaction hands to the app for a short while: trigger ids (3 s, once) and response urls (30 min, five uses).
 * Lifetimes are on the clock's `elapsed`, so advancing the clock ends them.
 */
import { ApiError } from "./app-post.js";
import type { ResponseUrl, SandboxContext, Trigger } from "./context.js";

export const TRIGGER_LIFE_MS = 3_000;
export const RESPONSE_URL_LIFE_MS = 30 * 60_000;
export const RESPONSE_URL_USES = 5;

/** A new trigger id for this person. */
export function issueTrigger(ctx: SandboxContext, user: string, viewId: string | null): string {
  const id = `${ctx.ids.pick(10 ** 9)}.${ctx.ids.pick(10 ** 9)}.${ctx.ids.hex(32)}`;
  ctx.triggers.set(id, { user, issuedMs: ctx.clock.elapsed(), used: false, viewId });
  return id;
}

/** Uses the trigger up. Throws `invalid_trigger_id`, `exchanged_trigger_id` or `expired_trigger_id`. */
export function useTrigger(ctx: SandboxContext, id: string): Trigger {
  const trigger = ctx.triggers.get(id);
  if (!trigger) throw new ApiError("invalid_trigger_id");
  if (trigger.used) throw new ApiError("exchanged_trigger_id");
  if (ctx.clock.elapsed() - trigger.issuedMs > TRIGGER_LIFE_MS) throw new ApiError("expired_trigger_id");
  trigger.used = true;
  return trigger;
}

/** A new response url; `kind` is the first part of its path, as on hooks.slack.com. */
export function issueResponseUrl(
  ctx: SandboxContext,
  kind: "actions" | "commands" | "app",
  target: Pick<ResponseUrl, "user" | "channel" | "messageTs">,
): string {
  const path = `/hooks/${kind}/${ctx.team.id}/${ctx.ids.pick(10 ** 12)}/${ctx.ids.hex(24)}`;
  ctx.responseUrls.set(path, { ...target, issuedMs: ctx.clock.elapsed(), uses: 0 });
  return ctx.baseUrl + path;
}
