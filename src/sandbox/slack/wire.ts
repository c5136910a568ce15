/** Workspace objects as Slack's JSON: messages, users, conversations, user groups, views. */
import type { SandboxContext } from "./context.js";
import type { Channel, Json, JsonObject, Message, Metadata, Person, UserGroup, View } from "./model.js";
import { OTHER_TEAM } from "./seed.js";
import { findMessage, findPerson, isHome, isMember, repliesTo } from "./workspace.js";

const seconds = (ms: number): number => Math.floor(ms / 1000);

export function botProfile(ctx: SandboxContext): JsonObject {
  return {
    id: ctx.app.botId,
    deleted: false,
    name: ctx.app.name,
    updated: seconds(findPerson(ctx, ctx.app.botUserId)?.updatedMs ?? 0),
    app_id: ctx.app.id,
    user_id: ctx.app.botUserId,
    icons: {
      image_36: `${ctx.baseUrl}/assets/bot_36.png`,
      image_48: `${ctx.baseUrl}/assets/bot_48.png`,
      image_72: `${ctx.baseUrl}/assets/bot_72.png`,
    },
    team_id: ctx.team.id,
  };
}

/** Metadata as asked for: in full, only its type, or not at all. */
export type MetadataShown = "full" | "type" | "none";

function metadataJson(metadata: Metadata | null, shown: MetadataShown): JsonObject {
  if (metadata === null || shown === "none") return {};
  return {
    metadata:
      shown === "full"
        ? { event_type: metadata.event_type, event_payload: metadata.event_payload }
        : { event_type: metadata.event_type },
  };
}

/** A message as events, histories and payloads carry it. */
export function wireMessage(
  ctx: SandboxContext,
  message: Message,
  shown: MetadataShown = "none",
  options: { thread?: boolean } = {},
): JsonObject {
  const author = findPerson(ctx, message.user);
  const out: JsonObject = {
    ...(message.subtype === null ? {} : { subtype: message.subtype }),
    user: message.user,
    type: "message",
    ts: message.ts,
    ...(message.clientMsgId === null ? {} : { client_msg_id: message.clientMsgId }),
    ...(message.botId === null
      ? {}
      : message.botId === ctx.app.botId
        ? { bot_id: message.botId, app_id: ctx.app.id }
        : { bot_id: message.botId }),
    text: message.text,
    team: author?.teamId ?? ctx.team.id,
    ...(message.botId === ctx.app.botId ? { bot_profile: botProfile(ctx) } : {}),
  };
  if (message.edited !== null) out["edited"] = { user: message.edited.user, ts: message.edited.ts };
  if (message.threadTs !== null) {
    const parent = findMessage(ctx, message.channel, message.threadTs);
    out["thread_ts"] = message.threadTs;
    if (message.threadTs !== message.ts && parent) out["parent_user_id"] = parent.user;
  }
  if (message.blocks.length > 0) out["blocks"] = message.blocks;
  if (message.attachments.length > 0) out["attachments"] = message.attachments;
  if (message.files.length > 0) {
    out["files"] = message.files.map((f) => ({
      id: f.id,
      name: f.name,
      title: f.name,
      mimetype: f.mimetype,
      size: f.size,
      mode: "hosted",
      user: message.user,
      url_private: `${ctx.baseUrl}/files/${f.id}/${encodeURIComponent(f.name)}`,
    }));
  }
  if (message.reactions.length > 0) {
    out["reactions"] = message.reactions.map((r) => ({
      name: r.name,
      users: r.users,
      count: r.users.length,
    }));
  }
  if (message.stream === "open") out["streaming_state"] = "in_progress";
  Object.assign(out, metadataJson(message.metadata, shown));
  if (options.thread !== false) Object.assign(out, threadInfo(ctx, message));
  return out;
}

/** Reply counts on a parent. */
function threadInfo(ctx: SandboxContext, message: Message): JsonObject {
  if (message.threadTs !== null && message.threadTs !== message.ts) return {};
  const replies = repliesTo(ctx, message.channel, message.ts);
  const last = replies.at(-1);
  if (!last) return {};
  const users = [...new Set(replies.map((r) => r.user))];
  return {
    thread_ts: message.ts,
    reply_count: replies.length,
    reply_users_count: users.length,
    latest_reply: last.ts,
    reply_users: users,
    is_locked: false,
    subscribed: false,
  };
}

/** `users.info`'s user. Someone from another company shows less. */
export function wireUser(ctx: SandboxContext, person: Person, includeLocale: boolean): JsonObject {
  const home = isHome(ctx, person);
  const sharesChannel = ctx.data.channels.some(
    (c) => isMember(c, person.id) && isMember(c, ctx.app.botUserId),
  );
  const profile: JsonObject = {
    real_name: person.realName,
    real_name_normalized: person.realName,
    display_name: person.name,
    display_name_normalized: person.name,
    status_text: "",
    status_emoji: "",
    avatar_hash: person.color,
    image_24: `${ctx.baseUrl}/avatars/${person.id}/24`,
    image_72: `${ctx.baseUrl}/avatars/${person.id}/72`,
    team: person.teamId,
    ...(ctx.app.scopes.includes("users:read.email") && home ? { email: person.email } : {}),
    ...(person.isBot ? { bot_id: person.id === ctx.app.botUserId ? ctx.app.botId : "B_OTHER" } : {}),
  };
  const base: JsonObject = {
    id: person.id,
    team_id: person.teamId,
    name: person.name,
    deleted: person.deleted,
    color: person.color,
    real_name: person.realName,
    tz: person.tz,
    tz_label: person.tz,
    tz_offset: person.tzOffsetSeconds,
    profile,
    is_bot: person.isBot,
    is_app_user: false,
    updated: seconds(person.updatedMs),
    who_can_share_contact_card: "EVERYONE",
  };
  if (!home) return { ...base, is_stranger: !sharesChannel, is_email_confirmed: false };
  return {
    ...base,
    is_admin: person.isAdmin,
    is_owner: person.isAdmin,
    is_primary_owner: person.isAdmin,
    is_restricted: person.isRestricted,
    is_ultra_restricted: person.isUltraRestricted,
    ...(person.kind === "invited" ? { is_invited_user: true } : {}),
    is_email_confirmed: person.kind !== "invited",
    ...(includeLocale ? { locale: person.locale } : {}),
    ...(person.enterpriseUserId === undefined ? {} : { enterprise_user: enterpriseUser(person) }),
  };
}

const enterpriseUser = (person: Person): JsonObject => ({
  id: person.enterpriseUserId ?? "",
  enterprise_id: "E_ORG",
  enterprise_name: "Northwind Group",
  is_admin: person.isAdmin,
  is_owner: person.isAdmin,
  teams: [person.teamId],
});

export function wireChannel(ctx: SandboxContext, channel: Channel, numMembers: boolean): JsonObject {
  if (channel.kind === "dm") {
    return {
      id: channel.id,
      created: seconds(channel.createdMs),
      is_archived: false,
      is_im: true,
      is_org_shared: false,
      user: channel.members.find((m) => m !== ctx.app.botUserId) ?? "",
      is_user_deleted: false,
      priority: 0,
    };
  }
  return {
    id: channel.id,
    name: channel.name,
    name_normalized: channel.name,
    is_channel: channel.kind === "channel",
    is_group: channel.kind === "private",
    is_im: false,
    is_mpim: false,
    is_private: channel.kind === "private",
    is_archived: channel.isArchived,
    is_general: channel.id === "C_GENERAL",
    is_shared: channel.isExtShared,
    is_ext_shared: channel.isExtShared,
    is_org_shared: false,
    is_pending_ext_shared: false,
    is_read_only: false,
    pending_shared: [],
    previous_names: [],
    parent_conversation: null,
    created: seconds(channel.createdMs),
    creator: channel.creator,
    unlinked: 0,
    is_member: isMember(channel, ctx.app.botUserId),
    context_team_id: ctx.team.id,
    ...(channel.isExtShared
      ? { shared_team_ids: [ctx.team.id, OTHER_TEAM.id], connected_team_ids: [OTHER_TEAM.id] }
      : { shared_team_ids: [ctx.team.id] }),
    topic: { value: channel.topic, creator: channel.creator, last_set: seconds(channel.createdMs) },
    purpose: { value: channel.purpose, creator: channel.creator, last_set: seconds(channel.createdMs) },
    ...(numMembers ? { num_members: channel.members.length } : {}),
  };
}

export function wireGroup(ctx: SandboxContext, group: UserGroup, withUsers: boolean): JsonObject {
  return {
    id: group.id,
    team_id: ctx.team.id,
    is_usergroup: true,
    is_subteam: true,
    name: group.name,
    description: group.description,
    handle: group.handle,
    is_external: false,
    date_create: seconds(group.updatedMs),
    date_update: seconds(group.updatedMs),
    date_delete: group.disabled ? seconds(group.updatedMs) : 0,
    auto_type: null,
    created_by: "U_ADMIN",
    updated_by: "U_ADMIN",
    deleted_by: group.disabled ? "U_ADMIN" : null,
    prefs: { channels: [], groups: [] },
    user_count: group.users.length,
    ...(withUsers ? { users: group.users } : {}),
  };
}

/** A view as answers and payloads carry it. `values` is the state at that moment. */
export function wireView(ctx: SandboxContext, view: View, values: Json): JsonObject {
  const owner = findPerson(ctx, view.owner);
  return {
    id: view.id,
    team_id: owner?.teamId ?? ctx.team.id,
    type: view.type,
    blocks: view.blocks,
    private_metadata: view.privateMetadata,
    callback_id: view.callbackId,
    state: { values },
    hash: view.hash,
    ...(view.type === "modal" ? { title: view.title } : {}),
    clear_on_close: view.clearOnClose,
    notify_on_close: view.notifyOnClose,
    close: view.close,
    submit: view.submit,
    previous_view_id: view.previousViewId,
    root_view_id: view.rootViewId,
    app_id: ctx.app.id,
    external_id: view.externalId,
    app_installed_team_id: ctx.team.id,
    bot_id: ctx.app.botId,
  };
}
