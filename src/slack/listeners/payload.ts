/** Slack's payloads as the listeners use them: parsed at this edge, everything else left out. */
import { z } from "zod";
import type { PersonAhead } from "../../approvals/index.js";
import type { JsonObject } from "../../domain/json.js";
import type { FormMeta, FormPlace } from "../cards/forms.js";

const text = z.string();

const Action = z.looseObject({
  user: z.looseObject({ id: text }),
  trigger_id: text.optional(),
  response_url: text.optional(),
  channel: z.looseObject({ id: text }).nullish(),
  message: z.looseObject({ ts: text.optional(), thread_ts: text.optional() }).nullish(),
  container: z
    .looseObject({ message_ts: text.optional(), channel_id: text.optional(), thread_ts: text.optional() })
    .nullish(),
  view: z.looseObject({ id: text, type: text.optional() }).nullish(),
  actions: z.array(z.looseObject({ action_id: text.optional(), value: text.optional() })).min(1),
});

export interface Click {
  readonly userId: string;
  readonly actionId: string;
  readonly value: string;
  readonly triggerId: string | null;
  readonly responseUrl: string | null;
  readonly place: FormPlace;
  readonly body: JsonObject;
  /** The person is being read since the click arrived. */
  readonly ahead?: PersonAhead;
}

/** Null for an action without id or value: one that is not ours any more. */
export function clickOf(body: JsonObject): Click | null {
  const parsed = Action.safeParse(body);
  if (!parsed.success) return null;
  const { user, actions, trigger_id, response_url, channel, message, container, view } = parsed.data;
  const [action] = actions;
  return {
    userId: user.id,
    actionId: action?.action_id ?? "",
    value: action?.value ?? "",
    triggerId: trigger_id ?? null,
    responseUrl: response_url ?? null,
    place: {
      channelId: channel?.id ?? container?.channel_id ?? null,
      messageTs: message?.ts ?? container?.message_ts ?? null,
      threadTs: container?.thread_ts ?? message?.thread_ts ?? null,
      home: view?.type === "home",
    },
    body,
  };
}

const Submission = z.looseObject({
  user: z.looseObject({ id: text }),
  view: z.looseObject({
    id: text,
    callback_id: text.optional(),
    private_metadata: text.optional(),
    state: z.looseObject({ values: z.record(text, z.record(text, z.looseObject({}))).optional() }).optional(),
  }),
});

export interface Submitted {
  readonly userId: string;
  /** When it came first, however late it is carried out; null: that is not known. */
  readonly receivedAt: Date | null;
  readonly viewId: string;
  readonly callbackId: string;
  readonly meta: FormMeta | null;
  /** What was typed into this block; empty when nothing was. */
  typed(block: string): string;
  /** The value chosen in this block; null when none was. */
  chosen(block: string): string | null;
  readonly body: JsonObject;
}

export function submittedOf(body: JsonObject, receivedAt: Date | null): Submitted | null {
  const parsed = Submission.safeParse(body);
  if (!parsed.success) return null;
  const { user, view } = parsed.data;
  const values = view.state?.values ?? {};
  const first = (block: string) => Object.values(values[block] ?? {})[0];
  return {
    userId: user.id,
    receivedAt,
    viewId: view.id,
    callbackId: view.callback_id ?? "",
    meta: metaOf(view.private_metadata ?? ""),
    typed: (block) => {
      const value = first(block)?.["value"];
      return typeof value === "string" ? value : "";
    },
    chosen: (block) => {
      const option = first(block)?.["selected_option"] as { value?: unknown } | null | undefined;
      return typeof option?.value === "string" ? option.value : null;
    },
    body,
  };
}

const Meta = z.object({
  about: text,
  verb: z.enum(["confirm", "reject", "retry"]).optional(),
  place: z.object({
    channelId: text.nullable(),
    messageTs: text.nullable(),
    threadTs: text.nullable(),
    home: z.boolean(),
  }),
});

function metaOf(json: string): FormMeta | null {
  try {
    const parsed = Meta.safeParse(JSON.parse(json));
    if (!parsed.success) return null;
    const { about, verb, place } = parsed.data;
    return verb === undefined ? { about, place } : { about, verb, place };
  } catch {
    return null;
  }
}

const Command = z.looseObject({
  command: text,
  text: text.optional(),
  user_id: text,
  channel_id: text.optional(),
  team_id: text.optional(),
  trigger_id: text.optional(),
  response_url: text.optional(),
});

export interface SlashCommand {
  readonly command: string;
  readonly text: string;
  readonly userId: string;
  /** Which command it is, also when it is taken again; null: Slack did not say. */
  readonly id: string | null;
  /** null: it is too late to open a form. */
  readonly triggerId: string | null;
  readonly responseUrl: string | null;
  readonly place: FormPlace;
}

export function commandOf(body: JsonObject): SlashCommand | null {
  const parsed = Command.safeParse(body);
  if (!parsed.success) return null;
  const { command, user_id, channel_id, trigger_id, response_url } = parsed.data;
  return {
    command,
    text: parsed.data.text ?? "",
    userId: user_id,
    id: trigger_id ?? null,
    triggerId: trigger_id ?? null,
    responseUrl: response_url ?? null,
    place: { channelId: channel_id ?? null, messageTs: null, threadTs: null, home: false },
  };
}

const File = z.looseObject({
  id: text,
  name: text.nullish(),
  title: text.nullish(),
  mimetype: text.nullish(),
});

const Message = z.looseObject({
  type: text,
  channel: text,
  ts: text,
  thread_ts: text.optional(),
  user: text,
  text: text.nullish(),
  files: z.array(File).nullish(),
});

export interface PersonsMessage {
  readonly channelId: string;
  readonly ts: string;
  /** The root, when this is a reply. */
  readonly threadTs: string | null;
  readonly userId: string;
  /** Slack's wire form. */
  readonly wireText: string;
  readonly files: readonly { id: string; name: string; mimetype: string }[];
  /** Arrived as a mention of the app. */
  readonly mention: boolean;
}

export function messageOf(body: JsonObject): PersonsMessage | null {
  const parsed = Message.safeParse(body["event"]);
  if (!parsed.success) return null;
  const { type, channel, ts, thread_ts, user, files } = parsed.data;
  return {
    channelId: channel,
    ts,
    threadTs: thread_ts === undefined || thread_ts === ts ? null : thread_ts,
    userId: user,
    wireText: parsed.data.text ?? "",
    files: filesOf(files ?? []),
    mention: type === "app_mention",
  };
}

const filesOf = (files: readonly z.infer<typeof File>[]): PersonsMessage["files"] =>
  files.map((file) => ({
    id: file.id,
    name: file.name ?? file.title ?? "a file",
    mimetype: file.mimetype ?? "application/octet-stream",
  }));

const Shortcut = z.looseObject({
  type: text,
  callback_id: text,
  user: z.looseObject({ id: text }),
  trigger_id: text.optional(),
  response_url: text.optional(),
  channel: z.looseObject({ id: text }).optional(),
  message: z
    .looseObject({
      ts: text.optional(),
      thread_ts: text.optional(),
      user: text.nullish(),
      bot_id: text.nullish(),
      text: text.nullish(),
      files: z.array(File).nullish(),
    })
    .optional(),
});

export interface MessageShortcut {
  readonly callbackId: string;
  readonly userId: string;
  readonly responseUrl: string | null;
  readonly channelId: string;
  readonly ts: string;
  readonly threadTs: string | null;
  /** Null when an app wrote it. */
  readonly author: string | null;
  readonly wireText: string;
  readonly files: PersonsMessage["files"];
}

export function shortcutOf(body: JsonObject): MessageShortcut | null {
  const parsed = Shortcut.safeParse(body);
  if (!parsed.success || parsed.data.type !== "message_action") return null;
  const { callback_id, user, response_url, channel, message } = parsed.data;
  if (channel === undefined || message?.ts === undefined) return null;
  const byApp = message.bot_id !== undefined && message.bot_id !== null;
  const threadTs = message.thread_ts;
  return {
    callbackId: callback_id,
    userId: user.id,
    responseUrl: response_url ?? null,
    channelId: channel.id,
    ts: message.ts,
    threadTs: threadTs === undefined || threadTs === message.ts ? null : threadTs,
    author: byApp ? null : (message.user ?? null),
    wireText: message.text ?? "",
    files: filesOf(message.files ?? []),
  };
}
