/** Looking things up in the workspace, and who may see what. */
import type { SandboxContext } from "./context.js";
import type { Channel, Message, Person, UserGroup } from "./model.js";

export function findPerson(ctx: SandboxContext, id: string): Person | undefined {
  return ctx.data.people.find((p) => p.id === id);
}

export function findChannel(ctx: SandboxContext, id: string): Channel | undefined {
  return ctx.data.channels.find((c) => c.id === id);
}

export function findGroup(ctx: SandboxContext, id: string): UserGroup | undefined {
  return ctx.data.groups.find((g) => g.id === id);
}

/** Stored messages of a channel, oldest first. Ephemeral ones are kept apart. */
export function messagesOf(ctx: SandboxContext, channel: string): Message[] {
  const list = ctx.data.messages[channel];
  if (list) return list;
  const fresh: Message[] = [];
  ctx.data.messages[channel] = fresh;
  return fresh;
}

export function findMessage(ctx: SandboxContext, channel: string, ts: string): Message | undefined {
  // Recent messages are asked for most.
  return messagesOf(ctx, channel).findLast((m) => m.ts === ts);
}

export function findEphemeral(ctx: SandboxContext, channel: string, ts: string): Message | undefined {
  return ctx.ephemerals.find((m) => m.channel === channel && m.ts === ts);
}

export function repliesTo(ctx: SandboxContext, channel: string, parentTs: string): Message[] {
  return messagesOf(ctx, channel).filter((m) => m.threadTs === parentTs && m.ts !== parentTs);
}

export function isMember(channel: Channel, user: string): boolean {
  return channel.members.includes(user);
}

/** Belongs to the home workspace (not someone from a connected company). */
export function isHome(ctx: SandboxContext, person: Person): boolean {
  return person.teamId === ctx.team.id;
}

/** Full members see public channels without joining; everybody else sees what they are a member of. */
export function canSee(ctx: SandboxContext, person: Person, channel: Channel): boolean {
  if (isMember(channel, person.id)) return true;
  return (
    channel.kind === "channel" && isHome(ctx, person) && !person.isRestricted && person.kind === "member"
  );
}

/** The direct message between a person and the app, made when first needed. */
export function directMessage(ctx: SandboxContext, user: string): Channel {
  const bot = ctx.app.botUserId;
  const found = ctx.data.channels.find((c) => c.kind === "dm" && c.members.includes(user));
  if (found) return found;
  const channel: Channel = {
    id: ctx.ids.id("D"),
    name: "",
    kind: "dm",
    topic: "",
    purpose: "",
    members: [user, bot],
    isArchived: false,
    isExtShared: false,
    creator: bot,
    createdMs: ctx.clock.now(),
  };
  ctx.data.channels.push(channel);
  ctx.dirty();
  ctx.hub.emit({ type: "channel", channel: channel.id });
  return channel;
}

/** `channel`, `group`, `im`: what events call the kind of a conversation. */
export function channelType(channel: Channel): "channel" | "group" | "im" {
  switch (channel.kind) {
    case "channel":
      return "channel";
    case "private":
      return "group";
    case "dm":
      return "im";
  }
}
