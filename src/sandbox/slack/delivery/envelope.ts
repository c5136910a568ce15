/** Events API bodies, and which events the app gets: subscribed, in scope, and where the bot is a member. */
import type { SandboxContext } from "../context.js";
import type { JsonObject } from "../model.js";
import { findChannel, isMember } from "../workspace.js";

/** The `event_callback` around an inner event. */
export function eventBody(ctx: SandboxContext, inner: JsonObject, channel: string | undefined): JsonObject {
  const found = channel === undefined ? undefined : findChannel(ctx, channel);
  return {
    token: ctx.tokens.verification,
    team_id: ctx.team.id,
    context_team_id: ctx.team.id,
    context_enterprise_id: null,
    api_app_id: ctx.app.id,
    event: inner,
    type: "event_callback",
    event_id: ctx.ids.id("Ev"),
    event_time: Math.floor(ctx.clock.now() / 1000),
    authorizations: [
      {
        enterprise_id: null,
        team_id: ctx.team.id,
        user_id: ctx.app.botUserId,
        is_bot: true,
        is_enterprise_install: false,
      },
    ],
    is_ext_shared_channel: found?.isExtShared ?? false,
    event_context: `4-${Buffer.from(JSON.stringify({ et: inner["type"], tid: ctx.team.id, aid: ctx.app.id, cid: channel ?? null })).toString("base64url")}`,
  };
}

interface Rule {
  subscription: string;
  scope: string | null;
}

function messageRule(kind: "channel" | "private" | "dm"): Rule {
  switch (kind) {
    case "channel":
      return { subscription: "message.channels", scope: "channels:history" };
    case "private":
      return { subscription: "message.groups", scope: "groups:history" };
    case "dm":
      return { subscription: "message.im", scope: "im:history" };
  }
}

const SCOPES: Record<string, string | null> = {
  app_mention: "app_mentions:read",
  reaction_added: "reactions:read",
  reaction_removed: "reactions:read",
  subteam_members_changed: "usergroups:read",
  subteam_updated: "usergroups:read",
  user_change: "users:read",
  channel_shared: "channels:read",
  channel_unshared: "channels:read",
  channel_archive: "channels:read",
  channel_unarchive: "channels:read",
  member_joined_channel: "channels:read",
  member_left_channel: "channels:read",
};

/** True when Slack would send this event to the app. */
export function isWanted(ctx: SandboxContext, inner: JsonObject, channel: string | undefined): boolean {
  const type = String(inner["type"]);
  const found = channel === undefined ? undefined : findChannel(ctx, channel);
  // An app that was just removed from a channel still hears that it left.
  const leaving = type === "member_left_channel" && inner["user"] === ctx.app.botUserId;
  if (found && !leaving && !isMember(found, ctx.app.botUserId)) return false;
  const rule =
    type === "message" && found
      ? messageRule(found.kind)
      : { subscription: type, scope: Object.hasOwn(SCOPES, type) ? (SCOPES[type] ?? null) : null };
  if (!ctx.app.botEvents.includes(rule.subscription)) return false;
  return rule.scope === null || ctx.app.scopes.includes(rule.scope);
}
