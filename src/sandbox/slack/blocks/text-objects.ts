/** Composition objects: texts, options, confirm dialogs. Limits: types 3.2 and the facts collected from Slack's docs. */
import { anySchema, bool, byType, type Check, list, object, oneOf, str } from "./check.js";

/** `{ type: "plain_text", text }` of `min` to `max` characters. */
export function plainText(max: number, min = 1): Check {
  return object({
    required: { type: oneOf("plain_text"), text: str(max, min) },
    optional: { emoji: bool },
  });
}

export function mrkdwn(max: number, min = 1): Check {
  return object({ required: { type: oneOf("mrkdwn"), text: str(max, min) }, optional: { verbatim: bool } });
}

/** Plain text or mrkdwn. */
export function anyText(max: number, min = 1): Check {
  return anySchema(byType({ plain_text: plainText(max, min), mrkdwn: mrkdwn(max, min) }));
}

export const confirmDialog: Check = object({
  required: { text: anyText(300) },
  optional: {
    title: plainText(100),
    confirm: plainText(30),
    deny: plainText(30),
    style: oneOf("primary", "danger"),
  },
});

/** Text, description and value of an option: 75 characters each. Radio buttons and checkboxes may use mrkdwn. */
export function option(kind: "plain" | "any" | "overflow"): Check {
  return object({
    required: { text: kind === "any" ? anyText(75) : plainText(75), value: str(75, 1) },
    optional: {
      description: kind === "any" ? anyText(75) : plainText(75),
      ...(kind === "overflow" ? { url: str(3000, 1) } : {}),
    },
  });
}

export const optionGroup: Check = object({
  required: { label: plainText(75), options: list(option("plain"), 100, 1) },
});

export const dispatchConfig: Check = object({
  optional: { trigger_actions_on: list(oneOf("on_enter_pressed", "on_character_entered"), 2, 1) },
});

export const conversationFilter: Check = object({
  optional: {
    include: list(oneOf("im", "mpim", "private", "public"), 4, 1),
    exclude_external_shared_channels: bool,
    exclude_bot_users: bool,
  },
});
