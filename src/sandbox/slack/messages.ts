/**
 * Posting, changing and deleting messages: the store, the notices to readers, and the events that the app gets.
 *
 * 1. `ts` is unique and grows over the whole workspace.
 * 2. A reply to a reply is attached to the parent.
 * 3. The app hears of its own posts and edits too, as on Slack.
 */
import type { SandboxContext } from "./context.js";
import type { Block, FileInfo, JsonObject, Message, Metadata } from "./model.js";
import { mentions, pingedUsers } from "./text.js";
import { wireMessage } from "./wire.js";
import { channelType, findChannel, findMessage, isMember, messagesOf, repliesTo } from "./workspace.js";

export interface MessageDraft {
  channel: string;
  user: string;
  botId?: string | null;
  clientMsgId?: string | null;
  subtype?: string | null;
  text: string;
  blocks: Block[];
  attachments?: JsonObject[];
  files?: FileInfo[];
  threadTs?: string | null;
  broadcast?: boolean;
  metadata?: Metadata | null;
  stream?: "open" | null;
  ephemeralFor?: string | null;
}

/** The parent that a reply to `ts` belongs to, or null when there is no such message. */
export function threadParent(ctx: SandboxContext, channel: string, ts: string): Message | null {
  const found = findMessage(ctx, channel, ts);
  if (!found) return null;
  if (found.threadTs === null || found.threadTs === found.ts) return found;
  return findMessage(ctx, channel, found.threadTs) ?? null;
}

/** Stores the message, tells readers and the app. `threadTs` must be a parent (see {@link threadParent}). */
export function postMessage(ctx: SandboxContext, draft: MessageDraft): Message {
  const channel = findChannel(ctx, draft.channel);
  const message: Message = {
    channel: draft.channel,
    ts: ctx.ids.ts(ctx.clock.now()),
    threadTs: draft.threadTs ?? null,
    subtype: draft.subtype ?? (draft.broadcast ? "thread_broadcast" : null),
    user: draft.user,
    botId: draft.botId ?? null,
    clientMsgId: draft.clientMsgId ?? null,
    text: draft.text,
    blocks: draft.blocks,
    attachments: draft.attachments ?? [],
    files: draft.files ?? [],
    reactions: [],
    metadata: draft.metadata ?? null,
    edited: null,
    broadcast: draft.broadcast ?? false,
    pinged: [],
    stream: draft.stream ?? null,
    ephemeralFor: draft.ephemeralFor ?? null,
  };
  if (message.ephemeralFor !== null) {
    ctx.ephemerals.push(message);
    ctx.hub.emit({ type: "ephemeral", user: message.ephemeralFor, channel: message.channel, ts: message.ts });
    return message;
  }
  message.pinged = pingedUsers(
    ctx,
    message.user,
    message.text,
    message.botId === null ? [] : message.blocks,
    channel?.members ?? [],
  );
  messagesOf(ctx, message.channel).push(message);
  ctx.dirty();
  ctx.hub.emit({ type: "message", channel: message.channel, ts: message.ts });
  if (message.threadTs !== null) {
    ctx.hub.emit({ type: "message", channel: message.channel, ts: message.threadTs });
  }
  notify(ctx, message, message.pinged);
  emitMessageEvents(ctx, message);
  return message;
}

function notify(ctx: SandboxContext, message: Message, users: string[]): void {
  const channel = findChannel(ctx, message.channel);
  if (!channel) return;
  const seen = users.filter((user) => isMember(channel, user));
  const dm = channel.kind === "dm" ? channel.members.filter((m) => m !== message.user) : [];
  const all = [...new Set([...seen, ...dm])];
  if (all.length > 0) {
    ctx.hub.emit({
      type: "notify",
      users: all,
      channel: message.channel,
      ts: message.ts,
      text: message.text,
    });
  }
}

/** `message`, and `app_mention` with the same ts where the app is mentioned. */
function emitMessageEvents(ctx: SandboxContext, message: Message): void {
  const channel = findChannel(ctx, message.channel);
  if (!channel) return;
  const { type: _type, ...rest } = wireMessage(ctx, message, "full", { thread: false });
  const root =
    message.broadcast && message.threadTs !== null
      ? findMessage(ctx, message.channel, message.threadTs)
      : undefined;
  const inner: JsonObject = {
    type: "message",
    ...rest,
    ...(root ? { root: wireMessage(ctx, root) } : {}),
    channel: message.channel,
    event_ts: message.ts,
  };
  send(ctx, { ...inner, channel_type: channelType(channel) }, message.channel);
  if (message.botId === null && mentions(message.text, ctx.app.botUserId) && channel.kind !== "dm") {
    send(ctx, { ...inner, type: "app_mention" }, message.channel);
  }
}

/** Hands an event to the delivery without waiting for it. */
export function send(ctx: SandboxContext, inner: JsonObject, channel?: string): void {
  void ctx.work.run(() => ctx.delivery.event(inner, channel === undefined ? {} : { channel }));
}

export interface MessageChange {
  subtype?: string;
  user?: string;
  botId?: null;
  reactions?: [];
  pinged?: [];
  text?: string;
  blocks?: Block[];
  attachments?: JsonObject[];
  metadata?: Metadata | null;
  files?: FileInfo[];
  broadcast?: boolean;
  stream?: "open" | "closed" | null;
}

/** Changes a stored message. `editor` marks it as edited; null leaves it unmarked (blocks only, link previews, streams). */
export function changeMessage(
  ctx: SandboxContext,
  message: Message,
  change: MessageChange,
  editor: string | null,
  options: { event?: boolean } = {},
): void {
  const before = wireMessage(ctx, message, "full", { thread: false });
  Object.assign(message, change);
  const ts = ctx.ids.ts(ctx.clock.now());
  if (editor !== null) message.edited = { user: editor, ts: `${ts.slice(0, 10)}.000000` };
  const channel = findChannel(ctx, message.channel);
  if (ctx.settings.editsNotify) {
    const now = pingedUsers(ctx, message.user, message.text, message.blocks, channel?.members ?? []);
    const added = now.filter((user) => !message.pinged.includes(user));
    message.pinged = [...message.pinged, ...added];
    notify(ctx, message, added);
  }
  ctx.dirty();
  if (message.ephemeralFor !== null) {
    ctx.hub.emit({ type: "ephemeral", user: message.ephemeralFor, channel: message.channel, ts: message.ts });
    return;
  }
  ctx.hub.emit({ type: "message", channel: message.channel, ts: message.ts });
  if (!channel || options.event === false) return;
  send(
    ctx,
    {
      type: "message",
      subtype: "message_changed",
      message: {
        ...wireMessage(ctx, message, "full", { thread: false }),
        source_team: ctx.team.id,
        user_team: ctx.team.id,
      },
      previous_message: before,
      channel: message.channel,
      hidden: true,
      ts,
      event_ts: ts,
      channel_type: channelType(channel),
    },
    message.channel,
  );
}

/** What stays of a deleted parent: its thread hangs on it. */
const TOMBSTONE: MessageChange = {
  subtype: "tombstone",
  user: "USLACKBOT",
  botId: null,
  text: "This message was deleted.",
  blocks: [],
  attachments: [],
  files: [],
  reactions: [],
  metadata: null,
  pinged: [],
  stream: null,
};

/** Removes a message; a parent with replies becomes a tombstone, which the app hears of as a change. */
export function deleteMessage(ctx: SandboxContext, message: Message): void {
  if (message.ephemeralFor !== null) {
    ctx.ephemerals = ctx.ephemerals.filter((m) => m !== message);
    ctx.hub.emit({
      type: "message_deleted",
      channel: message.channel,
      ts: message.ts,
      onlyFor: message.ephemeralFor,
    });
    return;
  }
  if (repliesTo(ctx, message.channel, message.ts).length > 0) {
    changeMessage(ctx, message, { ...structuredClone(TOMBSTONE) }, null);
    return;
  }
  const before = wireMessage(ctx, message, "full", { thread: false });
  const kept = messagesOf(ctx, message.channel).filter((m) => m !== message);
  ctx.data.messages[message.channel] = kept;
  ctx.dirty();
  ctx.hub.emit({ type: "message_deleted", channel: message.channel, ts: message.ts, onlyFor: null });
  if (message.threadTs !== null) {
    ctx.hub.emit({ type: "message", channel: message.channel, ts: message.threadTs });
  }
  const channel = findChannel(ctx, message.channel);
  if (!channel) return;
  const ts = ctx.ids.ts(ctx.clock.now());
  send(
    ctx,
    {
      type: "message",
      subtype: "message_deleted",
      previous_message: before,
      channel: message.channel,
      hidden: true,
      deleted_ts: message.ts,
      ts,
      event_ts: ts,
      channel_type: channelType(channel),
    },
    message.channel,
  );
}
