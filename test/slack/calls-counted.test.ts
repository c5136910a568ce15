/** Every call to Slack is counted, and each 429 said in the log: whoever made the call may have swallowed it. */
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SlackSandbox, startSlackSandbox } from "../../src/sandbox/slack/index.js";
import { SILENT_METRICS } from "../../src/slack/settings.js";
import { startSockets } from "../../src/slack/transport/sockets.js";
import { createSlackWeb, type SlackWeb } from "../../src/slack/web.js";
import { waitFor } from "../support/wait.js";

let sandbox: SlackSandbox;
let web: SlackWeb;
const called: string[] = [];
const limited: string[] = [];
const logs: { level: string; fields: object; message: string }[] = [];
const metrics = {
  ...SILENT_METRICS,
  called: (method: string, outcome: string) => void called.push(`${method} ${outcome}`),
  rateLimited: (method: string) => void limited.push(method),
};
const at = (level: string) => (fields: object, message: string) => void logs.push({ level, fields, message });
const log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };

beforeAll(async () => {
  sandbox = await startSlackSandbox({ port: 0, mode: "socket", rateLimits: false });
  web = createSlackWeb({ botToken: sandbox.botToken, apiUrl: sandbox.apiUrl }, log, metrics);
});
afterAll(async () => {
  await web.close();
  await sandbox.stop();
});

const channel = "C_TICK";
const view = { type: "home" as const, blocks: [] };
const modal = { type: "modal" as const, title: { type: "plain_text" as const, text: "T" }, blocks: [] };
/** Each method that the room calls, by one of the clients that calls it. */
const CALLS: Readonly<Record<string, () => Promise<unknown>>> = {
  "auth.test": () => web.reads.auth.test(),
  "bots.info": () => web.reads.bots.info({ bot: "B_APP" }),
  "chat.postEphemeral": () => web.interactive.chat.postEphemeral({ channel, user: "U_AGENT", text: "x" }),
  "chat.postMessage": () => web.approvals.chat.postMessage({ channel, text: "x" }),
  "chat.update": () => web.trajectory.chat.update({ channel, ts: "1.000001", text: "x" }),
  "conversations.history": () => web.reads.conversations.history({ channel }),
  "conversations.info": () => web.reads.conversations.info({ channel }),
  "conversations.replies": () => web.reads.conversations.replies({ channel, ts: "1.000001" }),
  "usergroups.users.list": () => web.reads.usergroups.users.list({ usergroup: "S_SUP" }),
  "users.info": () => web.reads.users.info({ user: "U_AGENT" }),
  "views.open": () => web.interactive.views.open({ trigger_id: "t", view: modal }),
  "views.publish": () => web.interactive.views.publish({ user_id: "U_AGENT", view }),
  "views.update": () => web.interactive.views.update({ view_id: "V_1", view: modal }),
};

describe("a 429 is counted by method and logged", () => {
  for (const [method, call] of Object.entries(CALLS)) {
    it(method, async () => {
      sandbox.control.addApiFault({ method, kind: "ratelimited", retryAfterSeconds: 7, times: 1 });
      await expect(call()).rejects.toThrow();
      expect([limited.splice(0), called.splice(0)]).toEqual([[method], [`${method} rate_limited`]]);
      expect(logs.splice(0)).toEqual([
        { level: "warn", fields: { method, retryAfterMs: 7_000 }, message: "Slack asks us to slow down" },
      ]);
    });
  }

  it("apps.connections.open, and the next try waits as long as Slack says", async () => {
    const method = "apps.connections.open";
    sandbox.control.addApiFault({ method, kind: "ratelimited", retryAfterSeconds: 1, times: 1 });
    const began = performance.now();
    const sockets = startSockets({
      appToken: sandbox.appToken,
      apiUrl: sandbox.apiUrl,
      log,
      metrics,
      processEvent: async () => {},
      monotonicMs: () => performance.now(),
      random: () => 0,
      timing: { connections: 1, backoffBaseMs: 1 },
    });
    try {
      await sockets.ready;
      expect(performance.now() - began).toBeGreaterThan(990);
      await waitFor(async () => called.length === 2, { what: "the call that went well to be counted" });
    } finally {
      await sockets.stop();
    }
    expect([limited.splice(0), called.splice(0)]).toEqual([
      [method],
      [`${method} rate_limited`, `${method} ok`],
    ]);
    expect(logs.splice(0).map(({ message }) => message)).toContain("Slack asks us to slow down");
  });
});

it("what went well and what was refused is counted as that, and is no 429", async () => {
  await CALLS["users.info"]?.();
  await expect(web.reads.users.info({ user: "U_NOBODY" })).rejects.toThrow();
  sandbox.control.addApiFault({ method: "users.info", kind: "reset", times: 1 });
  await expect(CALLS["users.info"]?.()).rejects.toThrow();
  expect([limited, called.splice(0)]).toEqual([
    [],
    ["users.info ok", "users.info user_not_found", "users.info unknown"],
  ]);
});

it("an outage is told once and when it grows, not at every call, and so is its end", async () => {
  await CALLS["users.info"]?.();
  logs.splice(0);
  sandbox.control.addApiFault({ method: "users.info", kind: "reset", times: 12 });
  for (let n = 1; n <= 12; n += 1) await expect(CALLS["users.info"]?.()).rejects.toThrow();
  await expect(web.reads.users.info({ user: "U_NOBODY" })).rejects.toThrow();
  await CALLS["users.info"]?.();
  const said = logs
    .splice(0)
    .filter(({ level }) => level !== "debug")
    .map(({ level, fields, message }) => [level, message, (fields as { failures?: number }).failures]);
  const away = "Slack cannot be reached; what waits for it is tried again";
  expect(said).toEqual([
    ["warn", away, 1],
    ["warn", away, 10],
    ["info", "Slack answers again", 12],
  ]);
});

it("leaves out no method that the room calls", () => {
  const files = readdirSync("src/slack", { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  const found = files.flatMap((name) =>
    [
      ...readFileSync(`src/slack/${name}`, "utf8").matchAll(
        /\b(?:web\.(?:approvals|trajectory|reads|interactive)|client)\.((?:[a-z]+\.)+[a-zA-Z]+)\(/gu,
      ),
    ].map(([, method]) => method ?? ""),
  );
  expect([...new Set(found)].sort()).toEqual(Object.keys(CALLS).sort());
});
