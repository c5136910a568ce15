/** The handed wire samples: every key that a real payload has, ours has too, with the same kind of value. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { SocketModeReceiver } from "@slack/bolt";
import { describe, expect, test } from "vitest";
import type { Json, JsonObject, SlackSandbox } from "../../../src/sandbox/slack/index.js";
import { button, form, sandbox, section, socketApp, until, web } from "./helpers.js";

function samplesDir(): string | null {
  const given = process.env["COUNTERSIGN_DATA"];
  let at = dirname(fileURLToPath(import.meta.url));
  if (given)
    return existsSync(join(resolve(given), "slack-samples")) ? join(resolve(given), "slack-samples") : null;
  for (;;) {
    const dir = join(at, "shared", "data", "slack-samples");
    if (existsSync(dir)) return dir;
    if (dirname(at) === at) return null;
    at = dirname(at);
  }
}

const DIR = samplesDir();
const read = (file: string): JsonObject =>
  JSON.parse(readFileSync(join(DIR ?? "", file), "utf8")) as JsonObject;

/**
 * What the samples have and this workspace does not: it is no Grid organisation, and the fields that depend on what a
 * person or an older installation did.
 */
const ELSEWHERE = new Set([
  "enterprise_id",
  "enterprise_name",
  "context",
  "subscribed",
  "last_read",
  "unread_count",
]);

function kind(value: Json | undefined): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** Paths that the sample has and ours lacks, or has as another kind of value. Lists are compared by their first entry. */
function missing(sample: Json, ours: Json | undefined, at = ""): string[] {
  if (kind(sample) !== kind(ours)) {
    const nullable = sample === null || ours === null;
    return nullable && ours !== undefined ? [] : [`${at} is ${kind(ours)}, not ${kind(sample)}`];
  }
  if (Array.isArray(sample) && Array.isArray(ours)) {
    const [first] = sample;
    return first === undefined || ours.length === 0 ? [] : missing(first, ours[0], `${at}[0]`);
  }
  if (typeof sample !== "object" || sample === null) return [];
  const have = ours as JsonObject;
  return Object.entries(sample).flatMap(([key, value]) =>
    ELSEWHERE.has(key) ? [] : missing(value, have[key], `${at}.${key}`),
  );
}

/** Everything that goes to the app, as the socket client gets it. */
async function wire(sb: SlackSandbox): Promise<JsonObject[]> {
  const bodies: JsonObject[] = [];
  const { receiver } = await socketApp(sb, (app) => {
    const ack = async ({ ack }: { ack: () => Promise<void> }): Promise<void> => ack();
    app.action(/.*/u, ack as never);
    app.view(/.*/u, ack as never);
    app.view({ type: "view_closed", callback_id: /.*/u }, ack as never);
    app.shortcut(/.*/u, ack as never);
    app.command(/.*/u, ack as never);
  });
  (receiver as SocketModeReceiver).client.on("slack_event", ({ body }: { body: JsonObject }) =>
    bodies.push(body),
  );
  return bodies;
}

async function heard(
  bodies: JsonObject[],
  fits: (body: JsonObject, event: JsonObject) => boolean,
): Promise<JsonObject> {
  const find = (): JsonObject | undefined => bodies.find((b) => fits(b, (b["event"] ?? {}) as JsonObject));
  await until(() => find() !== undefined);
  return find() ?? {};
}

describe.skipIf(DIR === null)(
  "keys of the handed samples (left out where ../shared/data is not beside the checkout)",
  () => {
    test("49 events: message, mention, reply, broadcast, own post, own edit, home", async () => {
      const sb = await sandbox();
      const bodies = await wire(sb);
      const post = await sb.control.post({ as: "U_AGENT", channel: "C_TICK", text: "@countersign 1" });
      if (!post.ok) throw new Error("post");
      const at = { as: "U_AGENT", channel: "C_TICK", threadTs: post.ts };
      await sb.control.post({ ...at, text: "2" });
      await sb.control.post({ ...at, text: "3", broadcast: true });
      const own = await web(sb).chat.postMessage({
        channel: "C_TICK",
        thread_ts: post.ts,
        text: "x",
        blocks: [section("x")],
      });
      await web(sb).chat.update({ channel: "C_TICK", ts: own.ts ?? "", text: "y", blocks: [section("y")] });
      await web(sb).chat.update({ channel: "C_TICK", ts: own.ts ?? "", text: "z" });
      await sb.control.openHome({ as: "U_AGENT", tab: "messages" });

      const plain = await heard(bodies, (_b, e) => e["type"] === "message" && e["ts"] === post.ts);
      expect(missing(read("event.message.channel.json"), plain)).toEqual([]);
      const mention = await heard(bodies, (_b, e) => e["type"] === "app_mention");
      expect(missing(read("event.app_mention.json"), mention)).toEqual([]);
      expect(missing(read("event.app_mention.slack_connect.json"), mention)).toEqual([]);
      const reply = await heard(bodies, (_b, e) => e["text"] === "2");
      expect(missing(read("event.message.thread_reply.json"), reply)).toEqual([]);
      const broadcast = await heard(bodies, (_b, e) => e["subtype"] === "thread_broadcast");
      expect(missing(read("event.message.thread_broadcast.json"), broadcast)).toEqual([]);
      const bot = await heard(bodies, (_b, e) => e["bot_id"] === "B_CS");
      // Rich text is what Slack makes of a text; the blocks that we posted are sections.
      const noElements = (found: string[]): string[] => found.filter((f) => !f.includes(".elements"));
      expect(noElements(missing(read("event.message.bot_in_thread.json"), bot))).toEqual([]);
      const edit = await heard(
        bodies,
        (_b, e) => e["subtype"] === "message_changed" && (e["message"] as JsonObject)["text"] === "z",
      );
      // Text without blocks took the blocks away.
      expect(
        noElements(missing(read("event.message.changed.json"), edit)).filter(
          (f) => !f.startsWith(".event.message.blocks"),
        ),
      ).toEqual([]);
      const home = await heard(bodies, (_b, e) => e["type"] === "app_home_opened");
      expect(missing(read("event.app_home_opened.agent_messages_tab.json"), home)).toEqual([]);
    });

    test("49 interactions: click, submission, closing, shortcuts, command", async () => {
      const { DEFAULT_MANIFEST } = await import("../../../src/sandbox/slack/seed.js");
      const manifest = structuredClone(DEFAULT_MANIFEST) as { features: { shortcuts: object[] } };
      manifest.features.shortcuts.push({ name: "G", type: "global", callback_id: "g", description: "G" });
      const sb = await sandbox({ manifest });
      const bodies = await wire(sb);
      const { ts = "" } = await web(sb).chat.postMessage({
        channel: "C_TICK",
        text: "card",
        blocks: [button("go", "Go", {})].map((b) => ({
          ...b,
          elements: b.elements.map((e) => ({ ...e, value: "click_me" })),
        })),
      });
      await sb.control.click({ as: "U_SUP1", at: { channel: "C_TICK", ts }, actionId: "go" });
      const click = await heard(bodies, (b) => b["type"] === "block_actions");
      expect(missing(read("block_actions.message.json"), click)).toEqual([]);
      await web(sb).views.open({
        trigger_id: String(click["trigger_id"]),
        view: form("f", { notify_on_close: true, close: { type: "plain_text", text: "No" } }),
      });
      const modal = () => sb.control.modals("U_SUP1")[0]?.id ?? "";
      await sb.control.submitView({ as: "U_SUP1", viewId: modal(), values: { Reason: "x" } });
      const submission = await heard(bodies, (b) => b["type"] === "view_submission");
      const named = (found: string[]): string[] =>
        found.filter((f) => !/\.values\.|view\.state\.values/u.test(f));
      expect(named(missing(read("view_submission.json"), submission))).toEqual([]);
      expect(named(missing(read("view_submission.slack_connect.json"), submission))).toEqual(
        // That form had a dispatch config of its own.
        [".view.blocks[0].element.dispatch_action_config is undefined, not object"],
      );
      await sb.control.click({ as: "U_SUP1", at: { channel: "C_TICK", ts }, actionId: "go" });
      const again = bodies.filter((b) => b["type"] === "block_actions").at(-1) ?? {};
      await web(sb).views.open({
        trigger_id: String(again["trigger_id"]),
        view: form("f", { notify_on_close: true, close: { type: "plain_text", text: "No" } }),
      });
      await sb.control.closeView({ as: "U_SUP1", viewId: modal() });
      const closed = await heard(bodies, (b) => b["type"] === "view_closed");
      expect(missing(read("view_closed.json"), closed)).toEqual([]);
      await sb.control.shortcut({ as: "U_SUP1", callbackId: "g" });
      const global = await heard(bodies, (b) => b["type"] === "shortcut");
      expect(missing(read("shortcut.global.json"), global)).toEqual([]);
      const post = await sb.control.post({ as: "U_AGENT", channel: "C_TICK", text: "@sam look" });
      if (!post.ok) throw new Error("post");
      await sb.control.shortcut({
        as: "U_SUP1",
        callbackId: "resolve_with_countersign",
        message: { channel: "C_TICK", ts: post.ts },
      });
      const message = await heard(bodies, (b) => b["type"] === "message_action");
      expect(missing(read("shortcut.message_action.json"), message)).toEqual([]);
      await sb.control.command({ as: "U_ONC1", channel: "C_OPS", command: "/ops", text: "Hi" });
      const command = await heard(bodies, (b) => b["command"] === "/ops");
      const sample = new URLSearchParams(
        readFileSync(join(DIR ?? "", "slash_command.form.txt"), "utf8").trim(),
      );
      expect([...sample.keys()].filter((k) => !ELSEWHERE.has(k) && !(k in command))).toEqual([]);
    });

    test("49 answers of the Web API", async () => {
      const sb = await sandbox();
      const api = web(sb);
      const ok = (file: string): Json => read(file)["ok"] as Json;
      const { ts = "" } = await api.chat.postMessage({ channel: "C_TICK", text: "x" });
      await api.chat.postMessage({ channel: "C_TICK", text: "y", thread_ts: ts });
      const answer = async (call: Promise<unknown>): Promise<Json> => (await call) as Json;
      expect(missing(ok("api.auth.test.json"), await answer(api.auth.test()))).toEqual([]);
      expect(
        missing(
          ok("api.conversations.info.json"),
          await answer(api.conversations.info({ channel: "C_TICK" })),
        ),
      ).toEqual([".channel.locale is undefined, not string"]);
      expect(
        missing(ok("api.conversations.list.json"), await answer(api.conversations.list({ limit: 1 }))),
      ).toEqual([]);
      const replies = missing(
        ok("api.conversations.replies.json"),
        await answer(api.conversations.replies({ channel: "C_TICK", ts })),
      );
      // One page is all there is: no cursor.
      expect(replies).toEqual([".response_metadata.next_cursor is undefined, not string"]);
      const user = missing(ok("api.users.info.json"), await answer(api.users.info({ user: "U_SUP1" })));
      expect(user.filter((f) => !/image_|email|has_2fa/u.test(f))).toEqual([]);
    });
  },
);
