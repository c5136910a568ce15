import type { WebClient } from "@slack/web-api";
import type { SlackIdentity } from "../settings.js";

/** auth.test, and where it names no app the app of our bot. */
export async function askIdentity(client: WebClient): Promise<SlackIdentity> {
  const me = await client.auth.test();
  const { team_id, user_id, bot_id, enterprise_id, is_enterprise_install } = me;
  if (team_id === undefined || user_id === undefined) throw new Error("auth.test names no team or user");
  const named = (me as { app_id?: unknown }).app_id;
  return {
    teamId: team_id,
    enterpriseId: enterprise_id ?? null,
    isEnterpriseInstall: is_enterprise_install === true,
    botUserId: user_id,
    botId: bot_id ?? null,
    url: me.url === undefined || !/^https?:\/\/[^\s<>|]+\/$/u.test(me.url) ? null : me.url,
    appId: typeof named === "string" ? named : bot_id === undefined ? null : await appOfBot(client, bot_id),
  };
}

/** bots.info names the app of a bot. Not knowing it is no failure: the signing secret is the app's own. */
async function appOfBot(client: WebClient, botId: string): Promise<string | null> {
  try {
    const answer = await client.bots.info({ bot: botId });
    return answer.bot?.id === botId ? (answer.bot.app_id ?? null) : null;
  } catch {
    return null;
  }
}
