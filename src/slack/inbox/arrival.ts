/**
 * What arrived, and the one key under which it is stored.
 *
 * 1. Pure. Reads only what it needs to tell kinds apart; facts are read again when the row is processed.
 * 2. Noise can never start anything (our own echoes, edits, joins, bots): it is acknowledged and not stored, because every edit of
 *    a live card comes back as an event (facts/slack §1.3).
 * 3. A message and its mention are one arrival: both have the key of channel and ts. Other events have `event_id`.
 *    Interactions have no id of their own: who, what, where and when.
 */
import { z } from "zod";
import { sha256Hex } from "../../domain/canonical.js";
import type { Json, JsonObject } from "../../domain/json.js";

export const INBOX_KINDS = ["message", "event", "action", "view", "command", "shortcut"] as const;
export type InboxKind = (typeof INBOX_KINDS)[number];

export type Arrival =
  | { readonly kind: InboxKind; readonly key: string; readonly stored: JsonObject }
  /** Acknowledge, remember nothing. */
  | { readonly kind: "noise"; readonly why: string }
  /** Slack dropped events: there was no inner event. */
  | { readonly kind: "rate_limited"; readonly minute: number | null }
  /** Answered on the spot, without a row: a form was closed, a menu wants options. */
  | { readonly kind: "closed" | "options" }
  | { readonly kind: "unreadable"; readonly why: string };

/** Subtypes under which a person's own words come. */
const PERSON_SUBTYPES: ReadonlySet<string> = new Set(["file_share", "thread_broadcast", "me_message"]);
const HANDLED_EVENTS: ReadonlySet<string> = new Set([
  "app_home_opened",
  "channel_shared",
  "channel_unshared",
  "app_uninstalled",
  "tokens_revoked",
]);

const id = z.string().min(1).max(255);
const EventBody = z.looseObject({
  type: z.literal("event_callback"),
  event_id: id,
  event: z.looseObject({ type: id }),
});
const MessageEvent = z.looseObject({
  type: z.string(),
  subtype: z.string().optional(),
  hidden: z.boolean().optional(),
  bot_id: z.string().nullish(),
  bot_profile: z.unknown().optional(),
  user: z.string().optional(),
  channel: z.string().optional(),
  ts: z.string().optional(),
  thread_ts: z.string().optional(),
});
const ActionBody = z.looseObject({
  type: z.enum(["block_actions", "interactive_message"]),
  user: z.looseObject({ id }),
  trigger_id: z.string().optional(),
  container: z.looseObject({ message_ts: z.string().optional() }).optional(),
  message: z.looseObject({ ts: z.string().optional(), thread_ts: z.string().optional() }).optional(),
  view: z.looseObject({ id: z.string(), hash: z.string().optional() }).optional(),
  channel: z.looseObject({ id: z.string() }).nullish(),
  actions: z
    .array(z.looseObject({ action_id: z.string().optional(), action_ts: z.string().optional() }))
    .min(1),
});
const ViewBody = z.looseObject({
  type: z.enum(["view_submission", "view_closed"]),
  user: z.looseObject({ id }),
  view: z.looseObject({
    id,
    hash: z.string().optional(),
    state: z.looseObject({ values: z.unknown().optional() }).optional(),
  }),
});
const CommandBody = z.looseObject({ command: id, user_id: id, trigger_id: z.string().optional() });
const ShortcutBody = z.looseObject({
  type: z.enum(["message_action", "shortcut"]),
  callback_id: z.string(),
  user: z.looseObject({ id }),
  trigger_id: z.string().optional(),
  action_ts: z.string().optional(),
});

export function arrivalOf(body: unknown, channels: { readonly tickets: string }): Arrival {
  if (typeof body !== "object" || body === null) return { kind: "unreadable", why: "not an object" };
  const raw = body as JsonObject;
  if (raw["type"] === "app_rate_limited") {
    const minute = raw["minute_rate_limited"];
    return { kind: "rate_limited", minute: typeof minute === "number" ? minute : null };
  }
  if (raw["event"] !== undefined || raw["type"] === "event_callback") return eventArrival(raw, channels);
  if (raw["command"] !== undefined) return commandArrival(raw);
  switch (raw["type"]) {
    case "block_actions":
    case "interactive_message":
      return actionArrival(raw);
    case "view_submission":
      return viewArrival(raw);
    case "view_closed":
      return { kind: "closed" };
    case "block_suggestion":
      return { kind: "options" };
    case "message_action":
    case "shortcut":
      return shortcutArrival(raw);
    default:
      return { kind: "unreadable", why: `type ${JSON.stringify(raw["type"])?.slice(0, 100)}` };
  }
}

function eventArrival(raw: JsonObject, channels: { readonly tickets: string }): Arrival {
  const parsed = EventBody.safeParse(raw);
  if (!parsed.success) return { kind: "unreadable", why: "event without event_id or inner event" };
  const { event, event_id } = parsed.data;
  const stored = without(raw, ["token", "event_context"]);
  if (event.type === "message" || event.type === "app_mention") {
    const message = MessageEvent.safeParse(event);
    return message.success
      ? messageArrival(message.data, event_id, stored, channels)
      : { kind: "unreadable", why: "message whose fields have other types than Slack's" };
  }
  if (!HANDLED_EVENTS.has(event.type)) return { kind: "noise", why: `event ${event.type}` };
  return { kind: "event", key: `event:${event_id}`, stored };
}

function messageArrival(
  event: z.infer<typeof MessageEvent>,
  eventId: string,
  stored: JsonObject,
  channels: { readonly tickets: string },
): Arrival {
  if (event.subtype !== undefined && !PERSON_SUBTYPES.has(event.subtype)) {
    return { kind: "noise", why: `subtype ${event.subtype}` };
  }
  if (event.hidden === true) return { kind: "noise", why: "hidden" };
  if (event.bot_id !== undefined && event.bot_id !== null) return { kind: "noise", why: "bot" };
  if (event.bot_profile !== undefined && event.bot_profile !== null) return { kind: "noise", why: "bot" };
  if (event.user === undefined || event.user === "USLACKBOT") return { kind: "noise", why: "nobody" };
  if (event.channel === undefined || event.ts === undefined)
    return { kind: "unreadable", why: "message without ts" };
  const reply = event.thread_ts !== undefined && event.thread_ts !== event.ts;
  if (!reply && event.channel !== channels.tickets && event.type === "message") {
    return { kind: "noise", why: "another channel" };
  }
  const key = event.ts === "" ? `event:${eventId}` : `message:${event.channel}:${event.ts}`;
  return { kind: "message", key, stored };
}

function actionArrival(raw: JsonObject): Arrival {
  const parsed = ActionBody.safeParse(raw);
  if (!parsed.success) return { kind: "unreadable", why: "action without user or actions" };
  const { user, actions, container, message, view, channel, trigger_id } = parsed.data;
  const [action] = actions;
  const place = view?.id ?? `${channel?.id ?? ""}/${message?.ts ?? container?.message_ts ?? ""}`;
  const key = ["action", place, action?.action_id, action?.action_ts ?? trigger_id, user.id].join(":");
  // The message and the view are ours and are never trusted: only where the click happened is kept.
  const stored = without(raw, ["token", "message", "state"]);
  if (view !== undefined) stored["view"] = viewPlace(view);
  if (message?.ts !== undefined) {
    stored["message"] = {
      ts: message.ts,
      ...(message.thread_ts === undefined ? {} : { thread_ts: message.thread_ts }),
    };
  }
  return { kind: "action", key: bounded(key), stored };
}

function viewArrival(raw: JsonObject): Arrival {
  const parsed = ViewBody.safeParse(raw);
  if (!parsed.success) return { kind: "unreadable", why: "view without id" };
  const { view, user } = parsed.data;
  // The values are in the key: after "errors" the corrected form comes with the same id and hash.
  const values = sha256Hex(JSON.stringify(view.state?.values ?? {})).slice(0, 16);
  const stored = without(raw, ["token"]);
  stored["view"] = { ...viewPlace(view), state: (view["state"] ?? {}) as Json };
  return { kind: "view", key: bounded(`view:${view.id}:${view.hash ?? ""}:${user.id}:${values}`), stored };
}

function viewPlace(view: { readonly [key: string]: unknown }): JsonObject {
  const kept: JsonObject = {};
  for (const key of [
    "id",
    "hash",
    "type",
    "callback_id",
    "private_metadata",
    "root_view_id",
    "app_installed_team_id",
  ]) {
    const value = view[key];
    if (typeof value === "string") kept[key] = value;
  }
  return kept;
}

function commandArrival(raw: JsonObject): Arrival {
  const parsed = CommandBody.safeParse(raw);
  if (!parsed.success) return { kind: "unreadable", why: "command without user" };
  const { command, user_id, trigger_id } = parsed.data;
  const nonce = trigger_id ?? sha256Hex(JSON.stringify(raw)).slice(0, 24);
  return {
    kind: "command",
    key: bounded(`command:${command}:${user_id}:${nonce}`),
    stored: without(raw, ["token"]),
  };
}

function shortcutArrival(raw: JsonObject): Arrival {
  const parsed = ShortcutBody.safeParse(raw);
  if (!parsed.success) return { kind: "unreadable", why: "shortcut without callback_id" };
  const { callback_id, user, trigger_id, action_ts } = parsed.data;
  const key = `shortcut:${callback_id}:${user.id}:${action_ts ?? ""}:${trigger_id ?? ""}`;
  return { kind: "shortcut", key: bounded(key), stored: without(raw, ["token"]) };
}

const without = (raw: JsonObject, keys: readonly string[]): JsonObject =>
  Object.fromEntries(Object.entries(raw).filter(([key]) => !keys.includes(key)));

/** A unique index holds at most about 2700 bytes: longer keys become their digest. */
const bounded = (key: string): string => (key.length <= 500 ? key : `digest:${sha256Hex(key)}`);

/** Whoever clicked, sent a form or typed a command, as its payload says; null: it says nobody. */
export function personOf(stored: JsonObject): string | null {
  const { user, user_id: typedBy } = stored as { user?: { id?: unknown }; user_id?: unknown };
  const id = user?.id ?? typedBy;
  return typeof id === "string" ? id : null;
}
