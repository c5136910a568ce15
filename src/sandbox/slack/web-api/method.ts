/** How a Web API method is described: who may call it, how often, with which arguments, and what it does. */
import { ApiError } from "../app-post.js";
import type { SandboxContext } from "../context.js";
import type { Channel, JsonObject, Person } from "../model.js";
import { directMessage, findChannel, findPerson, isMember } from "../workspace.js";

/** Calls a minute for a method and workspace; posts are counted by channel as well. */
export type Tier = "tier1" | "tier2" | "tier3" | "tier4" | "post" | "special";

export type ArgType = "string" | "bool" | "int" | "json";

export interface Method {
  /** Any one of these scopes suffices; none: any valid token. */
  scopes: string[] | ((ctx: SandboxContext, args: JsonObject) => string[]);
  token: "bot" | "app" | "any";
  tier: Tier;
  /** Arguments beside `token` and `team_id`. Others are refused in strict mode. */
  args: Record<string, ArgType>;
  run(ctx: SandboxContext, args: JsonObject): JsonObject | Promise<JsonObject>;
}

export function stringOf(args: JsonObject, name: string): string | undefined {
  const value = args[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function intOf(args: JsonObject, name: string): number | undefined {
  const value = args[name];
  return typeof value === "number" ? value : undefined;
}

const PUBLIC_ID = /^[CGD][A-Z0-9_]+$/u;

/** A conversation that the app may know of: by id, or by name with or without a number sign. */
export function channelArg(ctx: SandboxContext, args: JsonObject, name = "channel"): Channel {
  const given = stringOf(args, name);
  if (given === undefined) throw new ApiError("channel_not_found");
  const bare = given.replace(/^#/u, "");
  const channel = PUBLIC_ID.test(given)
    ? findChannel(ctx, given)
    : ctx.data.channels.find((c) => c.name === bare && c.kind !== "dm");
  if (!channel) throw new ApiError("channel_not_found");
  if (channel.kind !== "channel" && !isMember(channel, ctx.app.botUserId)) {
    throw new ApiError("channel_not_found");
  }
  return channel;
}

/** Where a message goes: a conversation, or the direct message of a user id. */
export function targetArg(ctx: SandboxContext, args: JsonObject): Channel {
  const given = stringOf(args, "channel");
  if (given !== undefined && /^[UW][A-Z0-9_]+$/u.test(given)) {
    const person = findPerson(ctx, given);
    if (!person || person.isBot) throw new ApiError("channel_not_found");
    return directMessage(ctx, person.id);
  }
  return channelArg(ctx, args);
}

/** Refuses what the app may not post into. */
export function mayPost(ctx: SandboxContext, channel: Channel): void {
  if (channel.isArchived) throw new ApiError("is_archived");
  const uninvited =
    !isMember(channel, ctx.app.botUserId) &&
    !(channel.kind === "channel" && ctx.app.scopes.includes("chat:write.public"));
  if (uninvited) throw new ApiError("not_in_channel");
  if (channel.kind === "dm" && !ctx.app.messagesTab) throw new ApiError("messages_tab_disabled");
}

export function userArg(ctx: SandboxContext, args: JsonObject, name = "user"): Person {
  const person = findPerson(ctx, stringOf(args, name) ?? "");
  if (!person) throw new ApiError("user_not_found");
  return person;
}

/** Scope that reading a conversation of this kind needs; `what` is `read` or `history`. */
export function conversationScopes(what: "read" | "history"): Method["scopes"] {
  return (ctx, args) => {
    const channel = findChannel(ctx, stringOf(args, "channel") ?? "");
    switch (channel?.kind) {
      case undefined:
      case "channel":
        return [`channels:${what}`];
      case "private":
        return [`groups:${what}`];
      case "dm":
        return [`im:${what}`];
    }
  };
}

/** One page of a list by cursor. `max` is the largest limit that the method takes. */
export function page<T>(
  items: T[],
  args: JsonObject,
  defaults: { limit: number; max: number },
): { items: T[]; nextCursor: string } {
  const limit = intOf(args, "limit") ?? defaults.limit;
  if (limit < 1 || limit > defaults.max) throw new ApiError("invalid_limit");
  const cursor = stringOf(args, "cursor");
  let start = 0;
  if (cursor !== undefined) {
    const [, offset] = /^next:(\d+)$/u.exec(Buffer.from(cursor, "base64").toString("utf8")) ?? [];
    if (offset === undefined) throw new ApiError("invalid_cursor");
    start = Number(offset);
  }
  const end = start + limit;
  return {
    items: items.slice(start, end),
    nextCursor: end < items.length ? Buffer.from(`next:${end}`).toString("base64") : "",
  };
}
