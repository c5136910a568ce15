/** chat.*: post, change, delete, ephemeral, permalink, scheduled. Streams are in streams.ts. */
import { ApiError, isEmpty, MAX_POST_TEXT, readContents } from "../app-post.js";
import type { SandboxContext } from "../context.js";
import { changeMessage, deleteMessage, type MessageChange, postMessage, threadParent } from "../messages.js";
import type { JsonObject, Message } from "../model.js";
import { wireMessage } from "../wire.js";
import { findEphemeral, findMessage, findPerson, isMember } from "../workspace.js";
import { channelArg, intOf, type Method, mayPost, stringOf, targetArg } from "./method.js";

const TS = /^\d{10}\.\d{6}$/u;
/** Longest text that chat.update takes. */
const MAX_UPDATE_TEXT = 4_000;

const CONTENT_ARGS = {
  channel: "string",
  text: "string",
  markdown_text: "string",
  blocks: "json",
  attachments: "json",
  metadata: "json",
  link_names: "bool",
  parse: "string",
} as const;

const POST_ARGS = {
  ...CONTENT_ARGS,
  thread_ts: "string",
  reply_broadcast: "bool",
  unfurl_links: "bool",
  unfurl_media: "bool",
  mrkdwn: "bool",
} as const;

/** Scope: `chat:write`; a name or picture of one's own needs more, which is refused as Slack does. */
const postScopes: Method["scopes"] = (_ctx, args) =>
  ["username", "icon_emoji", "icon_url"].some((name) => args[name] !== undefined)
    ? ["chat:write.customize"]
    : ["chat:write"];

/** The parent for `thread_ts`, or null when the message is not a reply. */
export function threadArg(ctx: SandboxContext, args: JsonObject, channel: string): string | null {
  const given = stringOf(args, "thread_ts");
  if (given === undefined) return null;
  if (!TS.test(given)) throw new ApiError("invalid_thread_ts");
  const parent = threadParent(ctx, channel, given);
  if (!parent) throw new ApiError("thread_not_found");
  return parent.ts;
}

/** The app's own message at `ts`. */
export function ownMessage(ctx: SandboxContext, args: JsonObject, refusal: string): Message {
  const channel = channelArg(ctx, args);
  const ts = stringOf(args, "ts") ?? "";
  const message = findMessage(ctx, channel.id, ts);
  if (!message) {
    // Ephemeral messages have a ts and still cannot be named by it.
    if (findEphemeral(ctx, channel.id, ts)) throw new ApiError(refusal);
    throw new ApiError("message_not_found");
  }
  if (message.botId !== ctx.app.botId) throw new ApiError(refusal);
  return message;
}

const postMessageMethod: Method = {
  scopes: postScopes,
  token: "bot",
  tier: "post",
  args: { ...POST_ARGS, username: "string", icon_emoji: "string", icon_url: "string" },
  run(ctx, args) {
    const contents = readContents(ctx, args);
    const channel = targetArg(ctx, args);
    mayPost(ctx, channel);
    if (isEmpty(contents)) throw new ApiError("no_text");
    const threadTs = threadArg(ctx, args, channel.id);
    const text = contents.text ?? "";
    const message = postMessage(ctx, {
      channel: channel.id,
      user: ctx.app.botUserId,
      botId: ctx.app.botId,
      text: text.slice(0, MAX_POST_TEXT),
      blocks: contents.blocks ?? [],
      attachments: contents.attachments ?? [],
      metadata: contents.metadata ?? null,
      threadTs,
      broadcast: threadTs !== null && args["reply_broadcast"] === true,
    });
    return {
      channel: channel.id,
      ts: message.ts,
      message: wireMessage(ctx, message, "full"),
      ...(text.length > MAX_POST_TEXT
        ? { response_metadata: { warnings: ["message_truncated"] }, warning: "message_truncated" }
        : {}),
    };
  },
};

const update: Method = {
  scopes: ["chat:write"],
  token: "bot",
  tier: "tier3",
  args: { ...CONTENT_ARGS, ts: "string", as_user: "bool", reply_broadcast: "bool" },
  run(ctx, args) {
    const contents = readContents(ctx, args);
    const message = ownMessage(ctx, args, "cant_update_message");
    if (message.stream === "open") throw new ApiError("streaming_state_conflict");
    if (isEmpty(contents)) throw new ApiError("no_text");
    if (contents.text !== undefined && contents.text.length > MAX_UPDATE_TEXT) {
      throw new ApiError("msg_too_long");
    }
    const channel = channelArg(ctx, args);
    if (channel.isArchived) throw new ApiError("is_archived");
    const change: MessageChange = {};
    // Text without blocks takes the blocks away; attachments and metadata stay unless given.
    if (contents.blocks !== undefined) change.blocks = contents.blocks;
    else if (contents.text !== undefined) change.blocks = [];
    if (contents.text !== undefined) change.text = contents.text;
    else if (contents.blocks !== undefined) change.text = "";
    if (contents.attachments !== undefined) change.attachments = contents.attachments;
    if (contents.metadata !== undefined) change.metadata = contents.metadata;
    const markEdited = contents.text !== undefined && contents.blocks === undefined;
    changeMessage(ctx, message, change, markEdited ? ctx.app.botId : null);
    return {
      channel: message.channel,
      ts: message.ts,
      text: message.text,
      message: wireMessage(ctx, message, "full"),
    };
  },
};

const deleteMethod: Method = {
  scopes: ["chat:write"],
  token: "bot",
  tier: "tier3",
  args: { channel: "string", ts: "string", as_user: "bool" },
  run(ctx, args) {
    const message = ownMessage(ctx, args, "cant_delete_message");
    deleteMessage(ctx, message);
    return { channel: message.channel, ts: message.ts };
  },
};

const postEphemeral: Method = {
  scopes: postScopes,
  token: "bot",
  tier: "tier4",
  args: {
    ...CONTENT_ARGS,
    user: "string",
    thread_ts: "string",
    username: "string",
    icon_emoji: "string",
    icon_url: "string",
  },
  run(ctx, args) {
    const contents = readContents(ctx, args);
    const channel = channelArg(ctx, args);
    mayPost(ctx, channel);
    const person = findPerson(ctx, stringOf(args, "user") ?? "");
    if (!person || person.deleted || !isMember(channel, person.id)) throw new ApiError("user_not_in_channel");
    if (isEmpty(contents)) throw new ApiError("no_text");
    const message = postMessage(ctx, {
      channel: channel.id,
      user: ctx.app.botUserId,
      botId: ctx.app.botId,
      text: (contents.text ?? "").slice(0, MAX_POST_TEXT),
      blocks: contents.blocks ?? [],
      attachments: contents.attachments ?? [],
      threadTs: threadArg(ctx, args, channel.id),
      ephemeralFor: person.id,
    });
    return { message_ts: message.ts };
  },
};

const getPermalink: Method = {
  scopes: [],
  token: "bot",
  tier: "special",
  args: { channel: "string", message_ts: "string" },
  run(ctx, args) {
    const channel = channelArg(ctx, args);
    const message = findMessage(ctx, channel.id, stringOf(args, "message_ts") ?? "");
    if (!message) throw new ApiError("message_not_found");
    const thread =
      message.threadTs !== null && message.threadTs !== message.ts
        ? `?thread_ts=${message.threadTs}&cid=${channel.id}`
        : "";
    return {
      channel: channel.id,
      permalink: `${ctx.baseUrl}/archives/${channel.id}/p${message.ts.replace(".", "")}${thread}`,
    };
  },
};

const scheduleMessage: Method = {
  scopes: ["chat:write"],
  token: "bot",
  tier: "tier3",
  args: { ...POST_ARGS, post_at: "int", as_user: "bool" },
  run(ctx, args) {
    const contents = readContents(ctx, args);
    const channel = targetArg(ctx, args);
    mayPost(ctx, channel);
    if (isEmpty(contents)) throw new ApiError("no_text");
    const threadTs = threadArg(ctx, args, channel.id);
    const postAtMs = (intOf(args, "post_at") ?? 0) * 1000;
    const inMs = postAtMs - ctx.clock.now();
    if (inMs <= 0) throw new ApiError("time_in_past");
    if (inMs > 120 * 86_400_000) throw new ApiError("time_too_far");
    const id = ctx.ids.id("Q");
    const cancel = ctx.clock.after(inMs, () => {
      ctx.scheduled.delete(id);
      postMessage(ctx, {
        channel: channel.id,
        user: ctx.app.botUserId,
        botId: ctx.app.botId,
        text: contents.text ?? "",
        blocks: contents.blocks ?? [],
        attachments: contents.attachments ?? [],
        metadata: contents.metadata ?? null,
        threadTs,
      });
    });
    ctx.scheduled.set(id, { channel: channel.id, postAtMs, cancel, text: contents.text ?? "" });
    return { channel: channel.id, scheduled_message_id: id, post_at: postAtMs / 1000 };
  },
};

const deleteScheduled: Method = {
  scopes: ["chat:write"],
  token: "bot",
  tier: "tier3",
  args: { channel: "string", scheduled_message_id: "string", as_user: "bool" },
  run(ctx, args) {
    const id = stringOf(args, "scheduled_message_id") ?? "";
    const found = ctx.scheduled.get(id);
    if (!found) throw new ApiError("invalid_scheduled_message_id");
    found.cancel();
    ctx.scheduled.delete(id);
    return {};
  },
};

export const CHAT: Record<string, Method> = {
  "chat.postMessage": postMessageMethod,
  "chat.update": update,
  "chat.delete": deleteMethod,
  "chat.postEphemeral": postEphemeral,
  "chat.getPermalink": getPermalink,
  "chat.scheduleMessage": scheduleMessage,
  "chat.deleteScheduledMessage": deleteScheduled,
};
