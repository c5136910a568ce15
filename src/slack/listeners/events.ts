/** Events that are not messages. */
import { z } from "zod";
import type { JsonObject } from "../../domain/json.js";
import { publishHome } from "../outbox/home.js";
import { forgetSharing } from "../outbox/sharing.js";
import type { SlackContext } from "../types.js";

const Event = z.looseObject({
  type: z.string(),
  user: z.string().optional(),
  tab: z.string().optional(),
  channel: z.string().optional(),
});

export async function eventArrived(ctx: SlackContext, body: JsonObject): Promise<void> {
  const parsed = Event.safeParse(body["event"]);
  if (!parsed.success) return;
  const { type, user, tab, channel } = parsed.data;
  switch (type) {
    case "app_home_opened":
      if (user !== undefined && tab !== "messages") await publishHome(ctx, user, null);
      return;
    case "channel_shared":
    case "channel_unshared":
      if (channel !== undefined) forgetSharing(ctx, channel);
      return;
    case "app_uninstalled":
    case "tokens_revoked":
      ctx.log.error({ type }, "Slack took the app's access away");
      return;
    default:
  }
}
