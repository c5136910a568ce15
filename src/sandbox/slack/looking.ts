/** The workspace as one person sees it. */
import type { SandboxContext } from "./context.js";
import type {
  ChannelView,
  ClockView,
  ConnectionView,
  HomeView,
  MessageView,
  ModalView,
  PersonView,
  StreamEvent,
  UserGroupView,
  WorkspaceView,
} from "./control-types.js";
import type { Change } from "./hub.js";
import type { Channel, Message, Person, View } from "./model.js";
import { stackOf } from "./views.js";
import {
  canSee,
  findChannel,
  findEphemeral,
  findMessage,
  findPerson,
  isMember,
  messagesOf,
  repliesTo,
} from "./workspace.js";

export function personView(ctx: SandboxContext, person: Person): PersonView {
  return {
    id: person.id,
    teamId: person.teamId,
    name: person.name,
    realName: person.realName,
    title: person.title,
    kind: person.deleted ? "deactivated" : person.kind,
    color: person.color,
    tz: person.tz,
    userGroups: ctx.data.groups.filter((g) => g.users.includes(person.id)).map((g) => g.id),
    canAct: !person.deleted && !person.isBot && person.kind !== "bot" && person.kind !== "invited",
  };
}

export function groupView(ctx: SandboxContext): UserGroupView[] {
  return ctx.data.groups.map(({ id, handle, name, users, disabled }) => ({
    id,
    handle,
    name,
    users,
    disabled,
  }));
}

export function channelView(ctx: SandboxContext, person: Person, channel: Channel): ChannelView {
  const lastRead = ctx.data.reads[person.id]?.[channel.id] ?? null;
  const unread = messagesOf(ctx, channel.id).filter(
    (m) => m.user !== person.id && (lastRead === null || m.ts > lastRead),
  );
  const inChannel = unread.filter((m) => m.threadTs === null || m.threadTs === m.ts || m.broadcast);
  return {
    id: channel.id,
    name: channel.name,
    kind: channel.kind,
    topic: channel.topic,
    memberIds: channel.members,
    isMember: isMember(channel, person.id),
    isArchived: channel.isArchived,
    isExtShared: channel.isExtShared,
    dmWith: channel.kind === "dm" ? (channel.members.find((m) => m !== person.id) ?? null) : null,
    unreadCount: inChannel.length,
    mentionCount: unread.filter((m) => m.pinged.includes(person.id)).length,
    lastReadTs: lastRead,
  };
}

/** `known`: the replies, where the caller has them at hand. */
export function messageView(
  ctx: SandboxContext,
  person: Person,
  message: Message,
  known?: Message[],
): MessageView {
  const replies = known ?? (message.ephemeralFor === null ? repliesTo(ctx, message.channel, message.ts) : []);
  const isReply = message.threadTs !== null && message.threadTs !== message.ts;
  return {
    channel: message.channel,
    ts: message.ts,
    threadTs: isReply ? message.threadTs : null,
    user: message.user,
    botId: message.botId,
    authorName: findPerson(ctx, message.user)?.realName ?? message.user,
    text: message.text,
    blocks: message.blocks,
    attachments: message.attachments,
    files: message.files,
    reactions: message.reactions,
    edited: message.edited !== null,
    ephemeral: message.ephemeralFor !== null,
    broadcast: message.broadcast,
    subtype: message.subtype,
    replyCount: replies.length,
    replyUsers: [...new Set(replies.map((r) => r.user))],
    latestReplyTs: replies.at(-1)?.ts ?? null,
    streaming: message.stream === "open",
    mentionsMe: message.pinged.includes(person.id),
  };
}

/** Messages of a channel, or of one thread with its parent, oldest first. */
export function messagesFor(
  ctx: SandboxContext,
  person: Person,
  channelId: string,
  options: { threadTs?: string; ephemeral?: boolean } = {},
): MessageView[] {
  const channel = findChannel(ctx, channelId);
  if (!channel || !canSee(ctx, person, channel)) return [];
  const { threadTs } = options;
  const wanted = (m: Message): boolean => {
    const reply = m.threadTs !== null && m.threadTs !== m.ts;
    if (threadTs !== undefined) return m.ts === threadTs || m.threadTs === threadTs;
    return !reply || m.broadcast;
  };
  const ephemerals =
    options.ephemeral === true
      ? ctx.ephemerals.filter((m) => m.channel === channelId && m.ephemeralFor === person.id)
      : [];
  const stored = messagesOf(ctx, channelId);
  const replies = new Map<string, Message[]>();
  for (const message of stored) {
    if (message.threadTs === null || message.threadTs === message.ts) continue;
    const list = replies.get(message.threadTs) ?? [];
    list.push(message);
    replies.set(message.threadTs, list);
  }
  return [...stored, ...ephemerals]
    .filter(wanted)
    .sort((a, b) => (a.ts < b.ts ? -1 : 1))
    .map((m) => messageView(ctx, person, m, m.ephemeralFor === null ? (replies.get(m.ts) ?? []) : []));
}

const plain = (value: View["title"]): string | null =>
  value !== null && typeof value["text"] === "string" ? value["text"] : null;

export function modalView(view: View): ModalView {
  return {
    id: view.id,
    callbackId: view.callbackId,
    title: plain(view.title) ?? "",
    submitLabel: plain(view.submit),
    closeLabel: plain(view.close) ?? "Cancel",
    blocks: view.blocks,
    values: view.values,
    errors: view.errors,
    hash: view.hash,
  };
}

export function modalsFor(ctx: SandboxContext, user: string): ModalView[] {
  return stackOf(ctx, user).map(modalView);
}

export function homeFor(ctx: SandboxContext, user: string): HomeView {
  const view = ctx.data.homes[user];
  if (!view) return { published: false, viewId: null, blocks: [], hash: null };
  return { published: true, viewId: view.id, blocks: view.blocks, hash: view.hash };
}

export function connectionView(ctx: SandboxContext, connected: number): ConnectionView {
  return { mode: ctx.settings.mode, connected, requestUrl: ctx.requestUrl };
}

export function clockView(ctx: SandboxContext): ClockView {
  return { nowMs: ctx.clock.now(), offsetMs: ctx.clock.offsetMs, scale: ctx.clock.scale };
}

export function workspaceView(ctx: SandboxContext, person: Person, connected: number): WorkspaceView {
  return {
    team: { ...ctx.team },
    app: { id: ctx.app.id, name: ctx.app.name, botUserId: ctx.app.botUserId, botId: ctx.app.botId },
    me: personView(ctx, person),
    people: ctx.data.people.map((p) => personView(ctx, p)),
    channels: ctx.data.channels.filter((c) => canSee(ctx, person, c)).map((c) => channelView(ctx, person, c)),
    userGroups: groupView(ctx),
    commands: ctx.app.commands.map(({ command, description, usageHint }) => ({
      command,
      description,
      usageHint,
    })),
    shortcuts: ctx.app.shortcuts.map((s) => ({ ...s })),
    modals: modalsFor(ctx, person.id),
    home: homeFor(ctx, person.id),
    connection: connectionView(ctx, connected),
    clock: clockView(ctx),
    settings: { ...ctx.settings },
    streamSeq: ctx.hub.seq,
  };
}

/** What this person's page is told of a change; nothing when they cannot see it. */
export function eventsFor(
  ctx: SandboxContext,
  person: Person,
  change: Change,
  connected: () => number,
): StreamEvent[] {
  const sees = (id: string): Channel | null => {
    const channel = findChannel(ctx, id);
    return channel && canSee(ctx, person, channel) ? channel : null;
  };
  switch (change.type) {
    case "message": {
      const channel = sees(change.channel);
      const message = findMessage(ctx, change.channel, change.ts);
      if (!channel || !message) return [];
      return [
        { type: "message", message: messageView(ctx, person, message) },
        { type: "channel", channel: channelView(ctx, person, channel) },
      ];
    }
    case "ephemeral": {
      const message = findEphemeral(ctx, change.channel, change.ts);
      if (change.user !== person.id || !message) return [];
      return [{ type: "message", message: messageView(ctx, person, message) }];
    }
    case "message_deleted":
      if (change.onlyFor !== null && change.onlyFor !== person.id) return [];
      return sees(change.channel)
        ? [{ type: "message_deleted", channel: change.channel, ts: change.ts }]
        : [];
    case "channel":
    case "read": {
      if (change.type === "read" && change.user !== person.id) return [];
      const channel = sees(change.channel);
      return channel ? [{ type: "channel", channel: channelView(ctx, person, channel) }] : [];
    }
    case "modals":
      return change.user === person.id ? [{ type: "modals", modals: modalsFor(ctx, person.id) }] : [];
    case "home":
      return change.user === person.id ? [{ type: "home", home: homeFor(ctx, person.id) }] : [];
    case "people":
      return [
        {
          type: "people",
          people: ctx.data.people.map((p) => personView(ctx, p)),
          userGroups: groupView(ctx),
        },
      ];
    case "toast":
      return change.user === person.id
        ? [{ type: "toast", error: change.error, message: change.message }]
        : [];
    case "notify":
      return change.users.includes(person.id)
        ? [{ type: "notify", channel: change.channel, ts: change.ts, text: change.text }]
        : [];
    case "connection":
      return [{ type: "connection", connection: connectionView(ctx, connected()) }];
    case "journal":
      return [{ type: "journal", entry: change.entry }];
    case "faults":
      return [{ type: "faults", faults: ctx.faults.list() }];
    case "reset":
      return [{ type: "reset" }];
  }
}
