/** Reads Slack's app manifest (as JSON) into what the sandbox enforces: scopes, subscribed events, commands, shortcuts. */
import { z } from "zod";
import type { AppInfo } from "./model.js";

const manifestSchema = z.looseObject({
  display_information: z.looseObject({ name: z.string().min(1).max(35) }),
  features: z.looseObject({
    app_home: z
      .looseObject({ home_tab_enabled: z.boolean().optional(), messages_tab_enabled: z.boolean().optional() })
      .optional(),
    bot_user: z.looseObject({ display_name: z.string().max(80) }),
    shortcuts: z
      .array(
        z.looseObject({
          name: z.string().max(24),
          type: z.enum(["message", "global"]),
          callback_id: z.string().max(255),
          description: z.string().max(150),
        }),
      )
      .max(10)
      .default([]),
    slash_commands: z
      .array(
        z.looseObject({
          command: z.string().startsWith("/").max(32),
          description: z.string().max(2000),
          usage_hint: z.string().max(1000).default(""),
          should_escape: z.boolean().default(false),
        }),
      )
      .max(50)
      .default([]),
  }),
  oauth_config: z.looseObject({ scopes: z.looseObject({ bot: z.array(z.string()) }) }),
  settings: z.looseObject({
    event_subscriptions: z.looseObject({ bot_events: z.array(z.string()).max(100).default([]) }).optional(),
    interactivity: z.looseObject({ is_enabled: z.boolean() }).optional(),
  }),
});

/** Throws a zod error that names the path when the manifest is not one that Slack would take. */
export function readManifest(manifest: unknown, ids: Pick<AppInfo, "id" | "botUserId" | "botId">): AppInfo {
  const parsed = manifestSchema.parse(manifest);
  return {
    ...ids,
    name: parsed.features.bot_user.display_name,
    scopes: parsed.oauth_config.scopes.bot,
    botEvents: parsed.settings.event_subscriptions?.bot_events ?? [],
    commands: parsed.features.slash_commands.map((c) => ({
      command: c.command,
      description: c.description,
      usageHint: c.usage_hint,
      shouldEscape: c.should_escape,
    })),
    shortcuts: parsed.features.shortcuts.map((s) => ({
      kind: s.type,
      callbackId: s.callback_id,
      name: s.name,
      description: s.description,
    })),
    messagesTab: parsed.features.app_home?.messages_tab_enabled ?? false,
  };
}
