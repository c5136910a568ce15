/**
 * Interactive payloads, key by key as Slack sends them. What differs by place: a payload from a message has container,
 * channel, message, state and response url; one from a view has the view and none of these.
 */
import type { Located } from "./blocks/elements-of.js";
import { actionJson, stateOf } from "./blocks/state.js";
import type { SandboxContext } from "./context.js";
import type { ElementState, JsonObject, Message, Person, ShortcutDef, StateValues, View } from "./model.js";
import { HOME_TEAM, OTHER_TEAM } from "./seed.js";
import { issueResponseUrl, issueTrigger } from "./triggers.js";
import { wireMessage, wireView } from "./wire.js";
import { findChannel } from "./workspace.js";

/** What every interactive payload of this person begins with. `team` is null for an org-wide installation. */
function common(ctx: SandboxContext, person: Person): JsonObject {
  const team = person.teamId === OTHER_TEAM.id ? OTHER_TEAM : HOME_TEAM;
  return {
    user: { id: person.id, username: person.name, name: person.name, team_id: person.teamId },
    api_app_id: ctx.app.id,
    token: ctx.tokens.verification,
    team: ctx.settings.orgInstall ? null : { id: team.id, domain: team.domain },
    enterprise: ctx.settings.orgInstall ? { id: "E_ORG", name: "Northwind Group" } : null,
    is_enterprise_install: ctx.settings.orgInstall,
  };
}

function actionTs(ctx: SandboxContext): string {
  return ctx.ids.ts(ctx.clock.now());
}

export function messageAction(
  ctx: SandboxContext,
  person: Person,
  message: Message,
  located: Located,
  chosen: ElementState | null,
  state: StateValues,
): JsonObject {
  const channel = findChannel(ctx, message.channel);
  const ephemeral = message.ephemeralFor !== null;
  return {
    type: "block_actions",
    ...common(ctx, person),
    container: {
      type: "message",
      message_ts: message.ts,
      channel_id: message.channel,
      is_ephemeral: ephemeral,
      ...(message.threadTs === null ? {} : { thread_ts: message.threadTs }),
    },
    trigger_id: issueTrigger(ctx, person.id, null),
    channel: { id: message.channel, name: channel?.kind === "dm" ? "directmessage" : (channel?.name ?? "") },
    // Ephemeral messages are not stored: their payloads carry no message.
    ...(ephemeral ? {} : { message: wireMessage(ctx, message, "full") }),
    state: { values: state },
    response_url: issueResponseUrl(ctx, "actions", {
      user: person.id,
      channel: message.channel,
      messageTs: message.ts,
    }),
    actions: [{ ...actionJson(located, chosen), action_ts: actionTs(ctx) }],
  };
}

export function viewAction(
  ctx: SandboxContext,
  person: Person,
  view: View,
  located: Located,
  chosen: ElementState | null,
): JsonObject {
  return {
    type: "block_actions",
    ...common(ctx, person),
    container: { type: "view", view_id: view.id },
    trigger_id: issueTrigger(ctx, person.id, view.id),
    view: wireView(ctx, view, { ...stateOf(view.blocks, view.values) }),
    actions: [{ ...actionJson(located, chosen), action_ts: actionTs(ctx) }],
  };
}

export function viewSubmission(ctx: SandboxContext, person: Person, view: View): JsonObject {
  return {
    type: "view_submission",
    ...common(ctx, person),
    trigger_id: issueTrigger(ctx, person.id, view.id),
    view: wireView(ctx, view, { ...stateOf(view.blocks, view.values) }),
    response_urls: [],
  };
}

export function viewClosed(ctx: SandboxContext, person: Person, view: View, cleared: boolean): JsonObject {
  return {
    type: "view_closed",
    ...common(ctx, person),
    view: wireView(ctx, view, { ...stateOf(view.blocks, view.values) }),
    is_cleared: cleared,
    response_urls: [],
  };
}

export function globalShortcut(ctx: SandboxContext, person: Person, shortcut: ShortcutDef): JsonObject {
  return {
    type: "shortcut",
    ...common(ctx, person),
    action_ts: actionTs(ctx),
    callback_id: shortcut.callbackId,
    trigger_id: issueTrigger(ctx, person.id, null),
  };
}

export function messageShortcut(
  ctx: SandboxContext,
  person: Person,
  shortcut: ShortcutDef,
  message: Message,
): JsonObject {
  const { user: _user, api_app_id: _app, ...rest } = common(ctx, person);
  return {
    type: "message_action",
    ...rest,
    action_ts: actionTs(ctx),
    user: { id: person.id, username: person.name, team_id: person.teamId, name: person.name },
    channel: { id: message.channel, name: findChannel(ctx, message.channel)?.name ?? "directmessage" },
    callback_id: shortcut.callbackId,
    trigger_id: issueTrigger(ctx, person.id, null),
    response_url: issueResponseUrl(ctx, "app", {
      user: person.id,
      channel: message.channel,
      messageTs: message.ts,
    }),
    message_ts: message.ts,
    message: wireMessage(ctx, message, "full"),
    api_app_id: ctx.app.id,
  };
}

/** Fields of a slash command; over HTTP they become a form, so booleans are strings. */
export function slashCommand(
  ctx: SandboxContext,
  person: Person,
  channelId: string,
  command: string,
  text: string,
): JsonObject {
  const channel = findChannel(ctx, channelId);
  return {
    token: ctx.tokens.verification,
    team_id: ctx.team.id,
    team_domain: ctx.team.domain,
    ...(ctx.settings.orgInstall ? { enterprise_id: "E_ORG", enterprise_name: "Northwind Group" } : {}),
    channel_id: channelId,
    channel_name: channel?.kind === "dm" ? "directmessage" : (channel?.name ?? ""),
    user_id: person.id,
    user_name: person.name,
    command,
    text,
    api_app_id: ctx.app.id,
    is_enterprise_install: String(ctx.settings.orgInstall),
    response_url: issueResponseUrl(ctx, "commands", {
      user: person.id,
      channel: channelId,
      messageTs: null,
    }),
    trigger_id: issueTrigger(ctx, person.id, null),
  };
}
