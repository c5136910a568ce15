/** Who we are in Slack: auth.test once, again and again until Slack answers, so that the order of starting does not matter. */
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "../../domain/ports/logger.js";
import type { SlackIdentity } from "../settings.js";
import { refusalCode, type SlackWeb, slackRefusedUs } from "../web.js";

export interface IdentityReader {
  current(): SlackIdentity | null;
  /** Resolves when it is known; rejects when Slack refuses the bot token. */
  readonly known: Promise<SlackIdentity>;
  lastError(): string | null;
  stop(): void;
}

const BACKOFF_BASE_MS = 500;
const BACKOFF_MAX_MS = 30_000;

export function readIdentity(web: SlackWeb, log: Logger, random: () => number): IdentityReader {
  const stopping = new AbortController();
  let identity: SlackIdentity | null = null;
  let lastError: string | null = null;

  const known = (async (): Promise<SlackIdentity> => {
    for (let failures = 0; ; failures += 1) {
      try {
        identity = await web.identity();
        lastError = null;
        log.info({ team: identity.teamId, bot: identity.botUserId }, "Slack knows us");
        return identity;
      } catch (error) {
        const code = refusalCode(error);
        if (code !== null) throw slackRefusedUs("SLACK_BOT_TOKEN", code);
        lastError = error instanceof Error ? error.message : String(error);
        log.warn({ error: lastError, failures }, "Slack did not say who we are; asking again");
        const cap = Math.min(BACKOFF_MAX_MS, BACKOFF_BASE_MS * 2 ** Math.min(failures, 10));
        await delay(cap * (0.5 + random() / 2), undefined, { signal: stopping.signal });
      }
    }
  })();
  known.catch(() => {});
  return { current: () => identity, known, lastError: () => lastError, stop: () => stopping.abort() };
}
