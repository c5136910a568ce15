/**
 * Web API clients, and what an answer of Slack's means for whoever wrote the row.
 *
 * 1. A client never repeats a call by itself: repeating is the outbox's business, because no write of Slack's is idempotent (facts B9).
 * 2. Four clients, so that a 429 on trajectory edits cannot hold an approval back (B10).
 * 3. Options objects are made fresh for each client and never carry `headers` (B7, B8).
 */

import { LogLevel, type Logger as SdkLogger, WebAPIPlatformError, type WebClient } from "@slack/web-api";
import { Agent, fetch as undiciFetch } from "undici";
import { CountersignError } from "../domain/errors.js";
import type { Logger } from "../domain/ports/logger.js";
import { cutText } from "../domain/text/cut.js";
import { responseFailure } from "./call-failure.js";
import { CountedClient, callFailed } from "./counted-client.js";
import { createReach } from "./reach.js";
import type { SlackConfig, SlackIdentity, SlackMetrics } from "./settings.js";
import { askIdentity } from "./transport/ask-identity.js";

export interface SlackWeb {
  /** Approval cards, decisions, one-off posts. */
  readonly approvals: WebClient;
  /** Live run cards. */
  readonly trajectory: WebClient;
  /** users.info, usergroups, conversations: short timeout, people wait for them. */
  readonly reads: WebClient;
  /** views.*, ephemerals: a person looks at the screen. */
  readonly interactive: WebClient;
  /** Who we are, from auth.test; asked until it is known, then remembered. Rejects with what Slack or the network said. */
  identity(): Promise<SlackIdentity>;
  /** Posts to a response_url; resolves to the HTTP status, or throws when nothing came back. */
  respond(url: string, body: object): Promise<number>;
  close(): Promise<void>;
}

/** Where links to messages begin; null: Slack has not told, and there are none. */
export const workspaceUrl = (web: Pick<SlackWeb, "identity">): Promise<string | null> =>
  web.identity().then(
    ({ url }) => url,
    () => null,
  );

/** The longest that a write may wait for its answer. */
export const WRITE_TIMEOUT_MS = 15_000;
/** A directory read stands between a click and its answer. */
const READ_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 30_000;
/** Under which answers to a response_url are counted among the methods. */
const RESPONSE_URL = "response_url";

export function createSlackWeb(
  config: Pick<SlackConfig, "botToken" | "apiUrl">,
  log: Logger,
  metrics: SlackMetrics,
): SlackWeb {
  const agent = new Agent({ keepAliveTimeout: KEEP_ALIVE_MS, connections: 64 });
  const seen = { metrics, log, reach: createReach(log) };
  const client = (timeout: number): WebClient =>
    new CountedClient(
      config.botToken,
      {
        slackApiUrl: config.apiUrl,
        logger: webLogger(log),
        retryConfig: { retries: 0 },
        rejectRateLimitedCalls: true,
        allowAbsoluteUrls: false,
        timeout,
        fetch: fetchWith(agent),
      },
      seen,
    );
  const reads = client(READ_TIMEOUT_MS);
  let identity: Promise<SlackIdentity> | null = null;
  return {
    approvals: client(WRITE_TIMEOUT_MS),
    trajectory: client(WRITE_TIMEOUT_MS),
    reads,
    identity: () => {
      identity ??= askIdentity(reads);
      const asked = identity;
      asked.catch(() => {
        if (identity === asked) identity = null;
      });
      return asked;
    },
    interactive: client(READ_TIMEOUT_MS),
    respond: async (url, body) => {
      try {
        const answer = await undiciFetch(url, {
          method: "POST",
          headers: { "content-type": "application/json; charset=utf-8" },
          body: JSON.stringify(body),
          redirect: "error",
          signal: AbortSignal.timeout(READ_TIMEOUT_MS),
          dispatcher: agent,
        });
        await answer.arrayBuffer();
        if (answer.ok) metrics.called(RESPONSE_URL, "ok");
        else callFailed(seen, RESPONSE_URL, responseFailure(answer.status));
        return answer.status;
      } catch (error) {
        callFailed(seen, RESPONSE_URL, { kind: "unknown", detail: String(error) });
        throw error;
      }
    },
    close: () => agent.close(),
  };
}

/** `fetch` on an agent of ours: keeps connections alive, and can be closed. */
export function fetchWith(
  agent: Agent,
): NonNullable<ConstructorParameters<typeof WebClient>[1]>["fetch"] & {} {
  return (url, init) =>
    undiciFetch(url, {
      dispatcher: agent,
      ...(init?.method === undefined ? {} : { method: init.method }),
      ...(init?.headers === undefined ? {} : { headers: init.headers }),
      ...(typeof init?.body === "string" ? { body: init.body } : {}),
      ...(init?.redirect === undefined ? {} : { redirect: init.redirect }),
      ...(init?.signal === undefined ? {} : { signal: init.signal }),
    });
}

/** Codes with which Slack says that a token is no good: trying again changes nothing. */
const TOKEN_REFUSALS: ReadonlySet<string> = new Set([
  "invalid_auth",
  "not_authed",
  "account_inactive",
  "token_revoked",
  "token_expired",
  "not_allowed_token_type",
  "user_removed_from_team",
  "team_disabled",
  "no_permission",
  "missing_scope",
]);

/** The code, when this is Slack refusing the token itself; else null. */
export function refusalCode(error: unknown): string | null {
  if (!(error instanceof WebAPIPlatformError)) return null;
  const code = (error.data as { error?: string }).error ?? "";
  return TOKEN_REFUSALS.has(code) ? code : null;
}

/** Ends a start: names the variable to look at. */
export function slackRefusedUs(variable: string, code: string): CountersignError {
  return new CountersignError(
    "slack_auth",
    `Slack refuses ${variable} (${code}); set it to the app's current token.`,
  );
}

/**
 * Slack's packages log through ours. Their debug lines hold whole payloads and are never let through; their level is fixed so
 * that they do not even build them.
 */
export function sdkLogger(log: Logger): SdkLogger {
  const join = (parts: unknown[]): string =>
    cutText(parts.map((part) => (part instanceof Error ? part.message : String(part))).join(" "), 500);
  return {
    debug: () => {},
    info: (...parts) => log.debug({ from: "slack-sdk" }, join(parts)),
    warn: (...parts) => log.warn({ from: "slack-sdk" }, join(parts)),
    error: (...parts) => log.warn({ from: "slack-sdk" }, join(parts)),
    setLevel: () => {},
    getLevel: () => LogLevel.INFO,
    setName: () => {},
  };
}

/** The same for a client whose failures are thrown to us: what cannot be reached is told by {@link createReach}, not at every call. */
function webLogger(log: Logger): SdkLogger {
  const all = sdkLogger(log);
  return {
    ...all,
    warn: (...parts) => (parts[0] === "http request failed" ? all.info(...parts) : all.warn(...parts)),
  };
}
