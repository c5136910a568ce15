/** reactions.*: add, remove, get. */
import { ApiError } from "../app-post.js";
import type { SandboxContext } from "../context.js";
import type { JsonObject, Message } from "../model.js";
import { react } from "../reactions.js";
import { wireMessage } from "../wire.js";
import { findMessage, isMember } from "../workspace.js";
import { channelArg, type Method, stringOf } from "./method.js";

function item(ctx: SandboxContext, args: JsonObject): Message {
  const ts = stringOf(args, "timestamp");
  if (stringOf(args, "channel") === undefined || ts === undefined) throw new ApiError("no_item_specified");
  const channel = channelArg(ctx, args);
  if (!/^\d{10}\.\d{6}$/u.test(ts)) throw new ApiError("bad_timestamp");
  const message = findMessage(ctx, channel.id, ts);
  if (!message) throw new ApiError("message_not_found");
  if (channel.isArchived) throw new ApiError("is_archived");
  if (!isMember(channel, ctx.app.botUserId)) throw new ApiError("not_in_channel");
  return message;
}

const ARGS = { channel: "string", timestamp: "string", name: "string" } as const;

const add: Method = {
  scopes: ["reactions:write"],
  token: "bot",
  tier: "tier3",
  args: ARGS,
  run(ctx, args) {
    const problem = react(ctx, item(ctx, args), ctx.app.botUserId, stringOf(args, "name") ?? "", true);
    if (problem) throw new ApiError(problem);
    return {};
  },
};

const remove: Method = {
  scopes: ["reactions:write"],
  token: "bot",
  tier: "tier2",
  args: ARGS,
  run(ctx, args) {
    const problem = react(ctx, item(ctx, args), ctx.app.botUserId, stringOf(args, "name") ?? "", false);
    if (problem) throw new ApiError(problem);
    return {};
  },
};

const get: Method = {
  scopes: ["reactions:read"],
  token: "bot",
  tier: "tier3",
  args: { channel: "string", timestamp: "string", full: "bool" },
  run(ctx, args) {
    const message = item(ctx, args);
    return { type: "message", channel: message.channel, message: wireMessage(ctx, message) };
  },
};

export const REACTIONS: Record<string, Method> = {
  "reactions.add": add,
  "reactions.remove": remove,
  "reactions.get": get,
};
