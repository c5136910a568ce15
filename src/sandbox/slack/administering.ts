/** What an administrator changes: people, groups, channels; with the events that the app gets for it. */
import type { SandboxContext } from "./context.js";
import type { NewPerson, PersonChange, SettingsView } from "./control-types.js";
import { deleteMessage, send } from "./messages.js";
import type { Channel, Person, UserGroup } from "./model.js";
import { makePerson, OTHER_TEAM } from "./seed.js";
import { wireGroup, wireUser } from "./wire.js";
import { findChannel, findGroup, findMessage, findPerson } from "./workspace.js";

function ts(ctx: SandboxContext): string {
  return ctx.ids.ts(ctx.clock.now());
}

function must<T>(found: T | undefined, what: string): T {
  if (found === undefined) throw new RangeError(`there is no ${what}`);
  return found;
}

function personChanged(ctx: SandboxContext, person: Person): void {
  person.updatedMs = ctx.clock.now();
  ctx.dirty();
  ctx.hub.emit({ type: "people" });
  send(ctx, { type: "user_change", user: wireUser(ctx, person, true), cache_ts: 0, event_ts: ts(ctx) });
}

export function changePerson(ctx: SandboxContext, change: PersonChange): void {
  const person = must(findPerson(ctx, change.user), `person ${change.user}`);
  if (change.deleted !== undefined) person.deleted = change.deleted;
  if (change.isRestricted !== undefined) person.isRestricted = change.isRestricted;
  if (change.isUltraRestricted !== undefined) person.isUltraRestricted = change.isUltraRestricted;
  if (change.realName !== undefined) person.realName = change.realName;
  if (change.tz !== undefined) person.tz = change.tz;
  if (change.enterpriseUserId !== undefined) person.enterpriseUserId = change.enterpriseUserId;
  if (person.kind === "member" || person.kind === "guest" || person.kind === "single_channel_guest") {
    person.kind = person.isUltraRestricted
      ? "single_channel_guest"
      : person.isRestricted
        ? "guest"
        : "member";
  }
  personChanged(ctx, person);
}

/** The app hears that it was uninstalled, or that its token was revoked; the token is worth nothing from then on. */
export function installationChanged(ctx: SandboxContext, now: SettingsView["installation"]): void {
  if (now === "installed") return;
  send(ctx, { type: "tokens_revoked", tokens: { oauth: [], bot: [ctx.app.botUserId] }, event_ts: ts(ctx) });
  if (now === "uninstalled") send(ctx, { type: "app_uninstalled", event_ts: ts(ctx) });
}

export function addPerson(ctx: SandboxContext, wanted: NewPerson): void {
  if (findPerson(ctx, wanted.id)) throw new RangeError(`${wanted.id} exists already`);
  const kind = wanted.kind ?? "member";
  const outside = kind === "external" || kind === "stranger";
  const person = makePerson(
    {
      id: wanted.id,
      name: wanted.name,
      realName: wanted.realName,
      title: wanted.title ?? "",
      color: ctx.ids.hex(6),
      kind,
      isRestricted: kind === "guest" || kind === "single_channel_guest",
      isUltraRestricted: kind === "single_channel_guest",
      isBot: kind === "bot",
      deleted: kind === "deactivated",
      ...(wanted.enterpriseUserId === undefined ? {} : { enterpriseUserId: wanted.enterpriseUserId }),
      ...(wanted.teamId !== undefined || outside ? { teamId: wanted.teamId ?? OTHER_TEAM.id } : {}),
    },
    ctx.clock.now(),
  );
  ctx.data.people.push(person);
  for (const id of wanted.channels ?? []) setMember(ctx, id, wanted.id, true);
  personChanged(ctx, person);
}

/** New members of a group, or the group on and off. Emits `subteam_members_changed` and `subteam_updated`. */
export function setUserGroup(
  ctx: SandboxContext,
  id: string,
  change: { users?: string[]; disabled?: boolean },
): void {
  const group: UserGroup = must(findGroup(ctx, id), `user group ${id}`);
  const before = group.users;
  const now = Math.floor(ctx.clock.now() / 1000);
  const previous = Math.floor(group.updatedMs / 1000);
  group.updatedMs = ctx.clock.now();
  if (change.disabled !== undefined) group.disabled = change.disabled;
  if (change.users !== undefined) group.users = [...change.users];
  ctx.dirty();
  ctx.hub.emit({ type: "people" });
  if (change.users !== undefined) {
    const added = group.users.filter((u) => !before.includes(u));
    const removed = before.filter((u) => !group.users.includes(u));
    send(ctx, {
      type: "subteam_members_changed",
      subteam_id: group.id,
      team_id: ctx.team.id,
      date_previous_update: previous,
      date_update: now,
      added_users: added,
      added_users_count: added.length,
      removed_users: removed,
      removed_users_count: removed.length,
      event_ts: ts(ctx),
    });
  }
  send(ctx, { type: "subteam_updated", subteam: wireGroup(ctx, group, true), event_ts: ts(ctx) });
}

function channelChanged(ctx: SandboxContext, channel: Channel): void {
  ctx.dirty();
  ctx.hub.emit({ type: "channel", channel: channel.id });
}

export function shareChannel(ctx: SandboxContext, id: string, shared: boolean): void {
  const channel = must(findChannel(ctx, id), `channel ${id}`);
  channel.isExtShared = shared;
  channelChanged(ctx, channel);
  send(
    ctx,
    {
      type: shared ? "channel_shared" : "channel_unshared",
      connected_team_id: OTHER_TEAM.id,
      channel: id,
      event_ts: ts(ctx),
    },
    id,
  );
}

export function archiveChannel(ctx: SandboxContext, id: string, archived: boolean): void {
  const channel = must(findChannel(ctx, id), `channel ${id}`);
  channel.isArchived = archived;
  channelChanged(ctx, channel);
  send(
    ctx,
    {
      type: archived ? "channel_archive" : "channel_unarchive",
      channel: id,
      user: "U_ADMIN",
      event_ts: ts(ctx),
    },
    id,
  );
}

export function setMember(ctx: SandboxContext, id: string, user: string, member: boolean): void {
  const channel = must(findChannel(ctx, id), `channel ${id}`);
  must(findPerson(ctx, user), `person ${user}`);
  if (channel.members.includes(user) === member) return;
  channel.members = member ? [...channel.members, user] : channel.members.filter((m) => m !== user);
  channelChanged(ctx, channel);
  send(
    ctx,
    {
      type: member ? "member_joined_channel" : "member_left_channel",
      user,
      channel: id,
      channel_type: channel.kind === "private" ? "G" : "C",
      team: ctx.team.id,
      event_ts: ts(ctx),
    },
    id,
  );
}

export function removeMessage(ctx: SandboxContext, channel: string, messageTs: string): void {
  deleteMessage(ctx, must(findMessage(ctx, channel, messageTs), `message ${messageTs}`));
}
