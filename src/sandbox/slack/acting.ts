/** What a person may do at all, and the refusals as they would read them. */
import type { SandboxContext } from "./context.js";
import type { ActError } from "./control-types.js";
import type { Channel, Message, Person } from "./model.js";
import {
  canSee,
  findChannel,
  findEphemeral,
  findMessage,
  findPerson,
  isHome,
  isMember,
} from "./workspace.js";

/** Thrown inside an act; becomes `{ ok: false, error, message }`. */
export class Refusal extends Error {
  readonly code: ActError;

  constructor(code: ActError, message: string) {
    super(message);
    this.name = "Refusal";
    this.code = code;
  }
}

/** The person, able to act. */
export function actor(ctx: SandboxContext, id: string): Person {
  const person = findPerson(ctx, id);
  if (!person) throw new Refusal("unknown_user", `There is no one with the id ${id}.`);
  if (person.deleted) {
    throw new Refusal("user_deactivated", `${person.realName} is deactivated and cannot sign in.`);
  }
  if (person.kind === "invited") {
    throw new Refusal("user_cannot_act", `${person.realName} has not accepted the invitation yet.`);
  }
  if (person.isBot || person.kind === "bot")
    throw new Refusal("user_cannot_act", `${person.realName} is an app, not a person.`);
  return person;
}

export function channelFor(ctx: SandboxContext, person: Person, id: string): Channel {
  const channel = findChannel(ctx, id);
  if (!channel || !canSee(ctx, person, channel)) {
    throw new Refusal("unknown_channel", `${person.realName} sees no such channel.`);
  }
  return channel;
}

/** A channel that the person may write into. */
export function writableChannel(ctx: SandboxContext, person: Person, id: string): Channel {
  const channel = channelFor(ctx, person, id);
  if (channel.isArchived) throw new Refusal("channel_archived", `#${channel.name} is archived.`);
  if (!isMember(channel, person.id)) {
    throw new Refusal("not_a_member", `${person.realName} is not a member of #${channel.name}.`);
  }
  return channel;
}

/** A message that the person sees, their own ephemeral ones too. */
export function messageFor(ctx: SandboxContext, person: Person, channelId: string, ts: string): Message {
  const channel = channelFor(ctx, person, channelId);
  const stored = findMessage(ctx, channel.id, ts);
  const ephemeral = findEphemeral(ctx, channel.id, ts);
  const message = stored ?? (ephemeral?.ephemeralFor === person.id ? ephemeral : undefined);
  if (!message) throw new Refusal("unknown_message", "That message is not there (any more).");
  return message;
}

/** Slash commands and shortcuts belong to the installing workspace. */
export function homeOnly(ctx: SandboxContext, person: Person, what: string): void {
  if (isHome(ctx, person)) return;
  throw new Refusal("not_allowed_for_external", `${what} are only for members of ${ctx.team.name}.`);
}
