/**
 * What the sandbox promises of Slack, statement by statement, and where each is tested. The numbers stand at the head of the
 * test titles; a statement without a test, or a test of a statement that is not here, fails.
 */
import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const STATEMENTS: [number: number, promise: string, ...files: string[]][] = [
  [1, "forms and JSON bodies are read, nested JSON among them; an unknown team_id is ignored", "web-api"],
  [2, "no token, an unknown, revoked or wrong one are told apart", "neighbours", "web-api"],
  [3, "scopes are enforced by method, and told in body and headers", "web-api"],
  [4, "an unknown method is refused with HTTP 200", "web-api"],
  [5, "business errors are HTTP 200; broken answers come only when asked for", "neighbours", "web-api"],
  [6, "rate limits by method, and by channel for posts, with whole seconds to wait", "neighbours", "web-api"],
  [7, "who may be posted to, and what", "messages", "neighbours"],
  [8, "text is cut at 40,000 on post and refused above 4,000 on update", "messages"],
  [9, "markdown_text stands alone", "messages"],
  [10, "Block Kit limits, with the place as a JSON pointer", "blocks"],
  [11, "block ids and action ids are unique", "blocks"],
  [12, "blocks that the surface does not take", "blocks"],
  [13, "chat.update: own messages only; what stays and what goes", "messages", "neighbours"],
  [14, "an edit comes back as message_changed without a user", "messages"],
  [15, "own posts come back; a mention comes twice", "messages"],
  [16, "timestamps grow; threads hang on their parent", "messages"],
  [17, "ephemeral messages: one member, until a reload", "messages"],
  [18, "metadata in full only when asked for", "messages"],
  [19, "reactions", "messages"],
  [20, "text of people is data; mentions in edits do not notify", "messages"],
  [21, "v0 signatures over the exact bytes", "http-delivery"],
  [22, "url_verification first", "http-delivery"],
  [23, "retries at 0, 1 and 5 minutes with number and reason; no-retry stops them", "http-delivery"],
  [
    24,
    "only subscribed events, in scope, where the bot is; none without a connection",
    "http-delivery",
    "socket-mode",
  ],
  [25, "duplicates, changed order, delay, app_rate_limited", "http-delivery"],
  [26, "an unanswered interaction is an error for that person", "http-delivery"],
  [27, "trigger ids: three seconds, once", "interactivity"],
  [28, "response urls: five times, thirty minutes, their rules", "interactivity"],
  [29, "payloads of clicks by place", "interactivity"],
  [30, "shortcuts: global and of a message", "interactivity"],
  [31, "slash commands: not in threads; mentions as ids", "interactivity"],
  [32, "confirm dialogs; URL buttons dispatch", "interactivity"],
  [33, "limits of views", "blocks", "views"],
  [34, "three views at most; a push comes from inside", "views"],
  [35, "hash, external id, unknown view", "views"],
  [36, "checks before a submission; all response actions", "views"],
  [37, "what survives an update; view_closed", "views"],
  [38, "App Home and its event", "views"],
  [39, "hello, one-time tickets, ten connections", "socket-mode"],
  [40, "one connection at random; redelivery without acknowledgement", "socket-mode"],
  [41, "warning, refresh, link_disabled; rude and deaf", "socket-mode"],
  [42, "an acknowledgement's content only where it is accepted", "socket-mode"],
  [43, "Socket Mode and HTTP exclude each other", "socket-mode"],
  [44, "kinds of people in users.info; lists to the end", "identity"],
  [45, "what the deactivated and outsiders can do", "identity"],
  [46, "user groups", "identity"],
  [47, "streams", "messages"],
  [48, "unknown arguments fail loudly; nothing of the sandbox under Slack's paths", "web-api"],
  [49, "keys of payloads as in samples of the real service", "sample-shapes"],
];

const TITLE = /\btest(?:\.each\(\w+\))?\(\s*"(\d+) /gu;

it("every statement has its tests, in the files named, and every numbered test its statement", () => {
  const dir = new URL(".", import.meta.url);
  const found = new Map<number, Set<string>>();
  for (const file of readdirSync(dir).filter((name) => name.endsWith(".test.ts"))) {
    const name = file.replace(/(?:\.fidelity)?\.test\.ts$/u, "");
    for (const [, number] of readFileSync(new URL(file, dir), "utf8").matchAll(TITLE)) {
      found.set(Number(number), (found.get(Number(number)) ?? new Set()).add(name));
    }
  }
  const listed = STATEMENTS.map(([number, , ...files]) => [number, files.sort()]);
  expect([...found].sort(([a], [b]) => a - b).map(([number, files]) => [number, [...files].sort()])).toEqual(
    listed,
  );
});
