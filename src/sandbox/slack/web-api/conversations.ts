/** conversations.*, users.*, usergroups.*, reactions.*, and the small ones around them. */
import { ApiError } from "../app-post.js";
import type { SandboxContext } from "../context.js";
import type { Channel, JsonObject, Message } from "../model.js";
import { type MetadataShown, wireChannel, wireMessage } from "../wire.js";
import { directMessage, findMessage, findPerson, isMember, messagesOf } from "../workspace.js";
import { channelArg, conversationScopes, type Method, page, stringOf } from "./method.js";

const HISTORY_ARGS = {
  channel: "string",
  cursor: "string",
  limit: "int",
  oldest: "string",
  latest: "string",
  inclusive: "bool",
  include_all_metadata: "bool",
} as const;

const PAGE = { limit: 100, max: 1000 };

/** A channel whose messages the app may read. */
function readable(ctx: SandboxContext, args: JsonObject): Channel {
  const channel = channelArg(ctx, args);
  if (!isMember(channel, ctx.app.botUserId)) throw new ApiError("not_in_channel");
  return channel;
}

/** Timestamps have a fixed width, so they compare as strings. */
function between(args: JsonObject): (message: Message) => boolean {
  const oldest = stringOf(args, "oldest");
  const latest = stringOf(args, "latest");
  const inclusive = args["inclusive"] === true;
  const pad = (ts: string): string => (ts.includes(".") ? ts : `${ts}.000000`);
  return ({ ts }) => {
    if (oldest !== undefined && oldest !== "0" && (inclusive ? ts < pad(oldest) : ts <= pad(oldest))) {
      return false;
    }
    return !(latest !== undefined && (inclusive ? ts > pad(latest) : ts >= pad(latest)));
  };
}

function shown(args: JsonObject): MetadataShown {
  return args["include_all_metadata"] === true ? "full" : "type";
}

const info: Method = {
  scopes: conversationScopes("read"),
  token: "bot",
  tier: "tier3",
  args: { channel: "string", include_locale: "bool", include_num_members: "bool" },
  run(ctx, args) {
    const channel = channelArg(ctx, args);
    return { channel: wireChannel(ctx, channel, args["include_num_members"] === true) };
  },
};

const KINDS: Record<string, { kind: Channel["kind"]; scope: string }> = {
  public_channel: { kind: "channel", scope: "channels:read" },
  private_channel: { kind: "private", scope: "groups:read" },
  im: { kind: "dm", scope: "im:read" },
};

/** Conversations of the asked types; each type needs its scope. */
function listed(ctx: SandboxContext, args: JsonObject): Channel[] {
  const types = (stringOf(args, "types") ?? "public_channel").split(",").map((t) => t.trim());
  const kinds = types.map((type) => {
    if (type === "mpim") return null;
    const known = Object.hasOwn(KINDS, type) ? KINDS[type] : undefined;
    if (!known) throw new ApiError("invalid_types");
    if (!ctx.app.scopes.includes(known.scope)) {
      throw new ApiError("missing_scope", { needed: known.scope, provided: ctx.app.scopes.join(",") });
    }
    return known.kind;
  });
  return ctx.data.channels.filter(
    (c) =>
      kinds.includes(c.kind) &&
      (c.kind === "channel" || isMember(c, ctx.app.botUserId)) &&
      !(args["exclude_archived"] === true && c.isArchived),
  );
}

const list: Method = {
  scopes: ["channels:read", "groups:read", "im:read", "mpim:read"],
  token: "bot",
  tier: "tier2",
  args: { cursor: "string", limit: "int", types: "string", exclude_archived: "bool" },
  run(ctx, args) {
    const { items, nextCursor } = page(listed(ctx, args), args, PAGE);
    return {
      channels: items.map((c) => wireChannel(ctx, c, true)),
      response_metadata: { next_cursor: nextCursor },
    };
  },
};

const ofUser: Method = {
  scopes: ["channels:read", "groups:read", "im:read", "mpim:read"],
  token: "bot",
  tier: "tier3",
  args: { cursor: "string", limit: "int", types: "string", exclude_archived: "bool", user: "string" },
  run(ctx, args) {
    const user = stringOf(args, "user") ?? ctx.app.botUserId;
    const { items, nextCursor } = page(
      listed(ctx, args).filter((c) => isMember(c, user)),
      args,
      PAGE,
    );
    return {
      channels: items.map((c) => wireChannel(ctx, c, false)),
      response_metadata: { next_cursor: nextCursor },
    };
  },
};

const members: Method = {
  scopes: conversationScopes("read"),
  token: "bot",
  tier: "tier4",
  args: { channel: "string", cursor: "string", limit: "int" },
  run(ctx, args) {
    const { items, nextCursor } = page(channelArg(ctx, args).members, args, PAGE);
    return { members: items, response_metadata: { next_cursor: nextCursor } };
  },
};

const history: Method = {
  scopes: conversationScopes("history"),
  token: "bot",
  tier: "tier3",
  args: HISTORY_ARGS,
  run(ctx, args) {
    const channel = readable(ctx, args);
    const own = messagesOf(ctx, channel.id)
      .filter((m) => m.threadTs === null || m.threadTs === m.ts || m.broadcast)
      .filter(between(args))
      .reverse();
    const { items, nextCursor } = page(own, args, { limit: 100, max: 999 });
    return {
      messages: items.map((m) => wireMessage(ctx, m, shown(args))),
      has_more: nextCursor !== "",
      pin_count: 0,
      ...(nextCursor === "" ? {} : { response_metadata: { next_cursor: nextCursor } }),
    };
  },
};

const replies: Method = {
  scopes: conversationScopes("history"),
  token: "bot",
  tier: "tier3",
  args: { ...HISTORY_ARGS, ts: "string" },
  run(ctx, args) {
    const channel = readable(ctx, args);
    const ts = stringOf(args, "ts") ?? "";
    const asked = findMessage(ctx, channel.id, ts);
    if (!asked) throw new ApiError("thread_not_found");
    // Asked by a reply's ts, Slack answers with that message alone.
    const thread =
      asked.threadTs !== null && asked.threadTs !== asked.ts
        ? []
        : messagesOf(ctx, channel.id).filter((m) => m.threadTs === asked.ts && m.ts !== asked.ts);
    const { items, nextCursor } = page(thread.filter(between(args)), args, { limit: 999, max: 1000 });
    return {
      // The parent opens the first page only.
      messages: [...(stringOf(args, "cursor") === undefined ? [asked] : []), ...items].map((m) =>
        wireMessage(ctx, m, shown(args)),
      ),
      has_more: nextCursor !== "",
      ...(nextCursor === "" ? {} : { response_metadata: { next_cursor: nextCursor } }),
    };
  },
};

const open: Method = {
  scopes: ["im:write", "channels:manage", "groups:write", "mpim:write"],
  token: "bot",
  tier: "tier3",
  args: { users: "string", channel: "string", return_im: "bool", prevent_creation: "bool" },
  run(ctx, args) {
    const users = (stringOf(args, "users") ?? "").split(",").filter((u) => u !== "");
    const given = stringOf(args, "channel");
    if (given !== undefined) return { channel: { id: channelArg(ctx, args).id } };
    const [user, ...more] = users;
    if (user === undefined) throw new ApiError("users_list_not_supplied");
    if (more.length > 0) throw new ApiError("sandbox_not_implemented", { detail: "group direct messages" });
    const person = findPerson(ctx, user);
    if (!person) throw new ApiError("user_not_found");
    if (person.deleted) throw new ApiError("user_disabled");
    const before = ctx.data.channels.length;
    const channel = directMessage(ctx, person.id);
    const already = ctx.data.channels.length === before;
    return {
      ...(already ? { no_op: true, already_open: true } : {}),
      channel: args["return_im"] === true ? wireChannel(ctx, channel, false) : { id: channel.id },
    };
  },
};

export const CONVERSATIONS: Record<string, Method> = {
  "conversations.info": info,
  "conversations.list": list,
  "conversations.members": members,
  "conversations.history": history,
  "conversations.replies": replies,
  "conversations.open": open,
  "users.conversations": ofUser,
};
