/** Statements 27 to 32: triggers, response urls, payload shapes, commands, confirm dialogs. */
import { describe, expect, test, vi } from "vitest";
import type { JsonObject, SlackSandbox } from "../../../src/sandbox/slack/index.js";
import { button, form, refused, sandbox, section, socketApp, until, web } from "./helpers.js";

vi.setConfig({ testTimeout: 60_000 });

/** An app that acknowledges everything and keeps the bodies. */
async function listening(sb: SlackSandbox): Promise<JsonObject[]> {
  const bodies: JsonObject[] = [];
  const keep = async ({ ack, body }: { ack: () => Promise<void>; body: unknown }): Promise<void> => {
    bodies.push(body as JsonObject);
    await ack();
  };
  await socketApp(sb, (app) => {
    app.action(/.*/u, keep as never);
    app.view(/.*/u, keep as never);
    app.view({ type: "view_closed", callback_id: /.*/u }, keep as never);
    app.shortcut(/.*/u, keep as never);
    app.command(/.*/u, keep as never);
  });
  return bodies;
}

async function card(sb: SlackSandbox, blocks: object[] = [button("go")], more: object = {}): Promise<string> {
  const { ts } = await web(sb).chat.postMessage({
    channel: "C_TICK",
    text: "card",
    blocks,
    ...more,
  } as never);
  return ts ?? "";
}

async function clicked(sb: SlackSandbox, bodies: JsonObject[], ts: string): Promise<JsonObject> {
  const result = await sb.control.click({ as: "U_SUP1", at: { channel: "C_TICK", ts }, actionId: "go" });
  expect(result).toEqual({ ok: true });
  return bodies.at(-1) ?? {};
}

const respondTo = (url: unknown, body: object): Promise<Response> =>
  fetch(String(url), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

describe("trigger ids", () => {
  test("27 a trigger opens one view within three seconds; used, late and unknown ones are told apart", async () => {
    const sb = await sandbox();
    const bodies = await listening(sb);
    const ts = await card(sb);
    const views = web(sb).views;
    const first = await clicked(sb, bodies, ts);
    await views.open({ trigger_id: String(first["trigger_id"]), view: form("f") });
    expect(
      (await refused(views.open({ trigger_id: String(first["trigger_id"]), view: form("f") }))).error,
    ).toBe("exchanged_trigger_id");
    const late = await clicked(sb, bodies, ts);
    sb.control.clock({ advanceMs: 3_001 });
    expect(
      (await refused(views.open({ trigger_id: String(late["trigger_id"]), view: form("f") }))).error,
    ).toBe("expired_trigger_id");
    expect((await refused(views.open({ trigger_id: "1.2.abc", view: form("f") }))).error).toBe(
      "invalid_trigger_id",
    );
  });

  test("27 a view that is refused does not use the trigger up", async () => {
    const sb = await sandbox();
    const bodies = await listening(sb);
    const body = await clicked(sb, bodies, await card(sb));
    const trigger_id = String(body["trigger_id"]);
    const bad = form("f", { title: { type: "plain_text", text: "x".repeat(25) } });
    const answer = await refused(web(sb).views.open({ trigger_id, view: bad }));
    expect(answer).toMatchObject({
      error: "invalid_arguments",
      response_metadata: {
        messages: ["[ERROR] must be less than 25 characters [json-pointer:/view/title/text]"],
      },
    });
    await web(sb).views.open({ trigger_id, view: form("f") });
    expect(sb.control.modals("U_SUP1")).toHaveLength(1);
  });
});

describe("response urls", () => {
  test("28 five posts, then no more; after thirty minutes none", async () => {
    const sb = await sandbox();
    const bodies = await listening(sb);
    const ts = await card(sb);
    const { response_url: url } = await clicked(sb, bodies, ts);
    for (let i = 0; i < 5; i += 1) expect((await respondTo(url, { text: `n${i}` })).status).toBe(200);
    const sixth = await respondTo(url, { text: "n5" });
    expect(sixth.status).toBe(404);
    expect(await sixth.json()).toMatchObject({ ok: false, error: "used_url" });
    const { response_url: slow } = await clicked(sb, bodies, ts);
    sb.control.clock({ advanceMs: 30 * 60_000 + 1 });
    expect(await (await respondTo(slow, { text: "late" })).json()).toMatchObject({ error: "expired_url" });
    sb.control.settings({ responseUrlGoneStatus: 410 });
    expect((await respondTo(slow, { text: "late" })).status).toBe(410);
  });

  test("28 it answers in private by default, in the channel or thread when asked, and replaces or deletes the original", async () => {
    const sb = await sandbox();
    const bodies = await listening(sb);
    const ts = await card(sb);
    const { response_url: url } = await clicked(sb, bodies, ts);
    const seen = (as: string): string[] =>
      sb.control.messages(as, "C_TICK", { ephemeral: true }).map((m) => m.text);
    await respondTo(url, { text: "for one", replace_original: false });
    expect(seen("U_SUP1")).toEqual(["card", "for one"]);
    expect(seen("U_SUP2")).toEqual(["card"]);
    await respondTo(url, { text: "for all", response_type: "in_channel" });
    expect(seen("U_SUP2")).toEqual(["card", "for all"]);
    await respondTo(url, { text: "in thread", response_type: "in_channel", thread_ts: ts });
    expect(sb.control.messages("U_SUP2", "C_TICK", { threadTs: ts }).map((m) => m.text)).toEqual([
      "card",
      "in thread",
    ]);
    await respondTo(url, { text: "decided", blocks: [section("decided")], replace_original: true });
    expect(seen("U_SUP2")).toEqual(["decided", "for all"]);
    await respondTo(url, { delete_original: true });
    // It had a reply, so a tombstone holds the thread.
    expect(seen("U_SUP2")).toEqual(["This message was deleted.", "for all"]);
  });

  test("28 an ephemeral message stays private whatever is asked, and its payload carries no message", async () => {
    const sb = await sandbox();
    const bodies = await listening(sb);
    const { message_ts } = await web(sb).chat.postEphemeral({
      channel: "C_TICK",
      user: "U_SUP1",
      text: "psst",
      blocks: [button("go")],
    });
    const body = await clicked(sb, bodies, message_ts ?? "");
    expect(body["message"]).toBeUndefined();
    expect(body["container"]).toMatchObject({ is_ephemeral: true, message_ts });
    const url = body["response_url"];
    await respondTo(url, { text: "still private", replace_original: true, response_type: "in_channel" });
    await respondTo(url, { text: "also private", response_type: "in_channel" });
    expect(sb.control.messages("U_SUP2", "C_TICK", { ephemeral: true })).toHaveLength(0);
    expect(sb.control.messages("U_SUP1", "C_TICK", { ephemeral: true }).map((m) => m.text)).toEqual([
      "still private",
      "also private",
    ]);
  });

  test("28 what a post would refuse is refused here too, and Bolt's respond() says so", async () => {
    const sb = await sandbox();
    let failure: unknown = null;
    await socketApp(sb, (app) => {
      app.action("go", async ({ ack, respond }) => {
        await ack();
        failure = await respond({ text: "x", blocks: [section("x".repeat(3001))] }).catch((e) => e);
      });
    });
    const ts = await card(sb);
    await sb.control.click({ as: "U_SUP1", at: { channel: "C_TICK", ts }, actionId: "go" });
    await until(() => failure !== null);
    expect(failure).toMatchObject({ statusCode: 400 });
  });
});

describe("payload shapes", () => {
  test("29 a click in a message has container, message, state and response url; one in a view has none of them", async () => {
    const sb = await sandbox();
    const bodies = await listening(sb);
    const select = {
      type: "static_select",
      action_id: "pick",
      options: [{ text: { type: "plain_text", text: "One" }, value: "1" }],
    };
    const ts = await card(sb, [
      { type: "actions", block_id: "acts", elements: [...button("go").elements, select] },
    ]);
    const body = await clicked(sb, bodies, ts);
    expect(Object.keys(body).sort()).toEqual(
      [
        "actions",
        "api_app_id",
        "channel",
        "container",
        "enterprise",
        "is_enterprise_install",
        "message",
        "response_url",
        "state",
        "team",
        "token",
        "trigger_id",
        "type",
        "user",
      ].sort(),
    );
    expect(body).toMatchObject({
      type: "block_actions",
      api_app_id: "A_CS",
      is_enterprise_install: false,
      team: { id: "T_HOME", domain: "northwind" },
      user: { id: "U_SUP1", username: "sam", name: "sam", team_id: "T_HOME" },
      container: { type: "message", message_ts: ts, channel_id: "C_TICK", is_ephemeral: false },
      channel: { id: "C_TICK", name: "support-tickets" },
      message: { ts, bot_id: "B_CS", text: "card" },
      state: { values: { acts: { pick: { type: "static_select", selected_option: null } } } },
      actions: [
        { type: "button", action_id: "go", block_id: "acts", text: { type: "plain_text", text: "Press" } },
      ],
    });
    await sb.control.click({ as: "U_SUP1", at: { channel: "C_TICK", ts }, actionId: "pick", value: "One" });
    expect(bodies.at(-1)).toMatchObject({
      actions: [{ type: "static_select", selected_option: { value: "1" } }],
      state: { values: { acts: { pick: { selected_option: { value: "1" } } } } },
    });

    await web(sb).views.publish({
      user_id: "U_SUP1",
      view: { type: "home", blocks: [button("in-home")] } as never,
    });
    const home = sb.control.home("U_SUP1");
    await sb.control.click({ as: "U_SUP1", at: { viewId: home.viewId ?? "" }, actionId: "in-home" });
    const inView = bodies.at(-1) ?? {};
    expect(inView).toMatchObject({
      container: { type: "view", view_id: home.viewId },
      view: { type: "home" },
    });
    for (const absent of ["channel", "message", "response_url", "state"])
      expect(inView[absent]).toBeUndefined();
  });

  test("29 a click in a thread names the thread, and metadata comes with the message", async () => {
    const sb = await sandbox();
    const bodies = await listening(sb);
    const root = await card(sb, [section("root")]);
    const metadata = { event_type: "approval_card", event_payload: { id: "apr_1" } };
    const ts = await card(sb, [button("go")], { thread_ts: root, metadata });
    expect(await clicked(sb, bodies, ts)).toMatchObject({
      container: { thread_ts: root },
      message: { thread_ts: root, parent_user_id: "U_CS", metadata },
    });
  });

  test("30 a global shortcut has neither channel nor response url, a message shortcut has both", async () => {
    const manifest = (await import("../../../src/sandbox/slack/seed.js")).DEFAULT_MANIFEST;
    const wanted = structuredClone(manifest) as { features: { shortcuts: object[] } };
    wanted.features.shortcuts.push({
      name: "File",
      type: "global",
      callback_id: "file_ticket",
      description: "File",
    });
    const sb = await sandbox({ manifest: wanted });
    const bodies = await listening(sb);
    expect((await sb.control.shortcut({ as: "U_AGENT", callbackId: "file_ticket" })).ok).toBe(true);
    const global = bodies.at(-1) ?? {};
    expect(global).toMatchObject({ type: "shortcut", callback_id: "file_ticket" });
    expect(global["channel"]).toBeUndefined();
    expect(global["response_url"]).toBeUndefined();
    const posted = await sb.control.post({ as: "U_AGENT", channel: "C_TICK", text: "ORD-1001 broken" });
    if (!posted.ok) throw new Error("post");
    await sb.control.shortcut({
      as: "U_SUP1",
      callbackId: "Resolve with Countersign",
      message: { channel: "C_TICK", ts: posted.ts },
    });
    expect(bodies.at(-1)).toMatchObject({
      type: "message_action",
      callback_id: "resolve_with_countersign",
      channel: { id: "C_TICK" },
      message_ts: posted.ts,
      message: { text: "ORD-1001 broken", user: "U_AGENT" },
      user: { id: "U_SUP1", name: "sam" },
    });
    expect(bodies.at(-1)?.["response_url"]).toMatch(/\/hooks\/app\//u);
  });

  test("31 a command cannot be run in a thread; should_escape turns mentions into ids; the reply is private", async () => {
    const sb = await sandbox();
    await socketApp(sb, (app) => {
      app.command("/ops", async ({ ack, command }) => {
        await ack({ text: `got ${command.text}`, response_type: "ephemeral" });
      });
    });
    const inThread = await sb.control.command({
      as: "U_ONC1",
      channel: "C_OPS",
      command: "/ops",
      text: "x",
      threadTs: "1.1",
    });
    expect(inThread).toMatchObject({ ok: false, error: "not_allowed_in_thread" });
    await sb.control.command({
      as: "U_ONC1",
      channel: "C_OPS",
      command: "/ops",
      text: "show @ada in #approvals & <b>",
    });
    const [reply] = sb.control.messages("U_ONC1", "C_OPS", { ephemeral: true });
    expect(reply?.text).toBe("got show <@U_AGENT|ada> in <#C_APPR|approvals> &amp; &lt;b&gt;");
    expect(sb.control.messages("U_ONC2", "C_OPS", { ephemeral: true })).toHaveLength(0);
    expect(
      await sb.control.command({ as: "U_ONC1", channel: "C_OPS", command: "/oops", text: "" }),
    ).toMatchObject({
      error: "unknown_command",
    });
  });

  test("32 a confirm dialog stands before the dispatch and leaves no trace in it; a URL button dispatches too", async () => {
    const sb = await sandbox();
    const bodies = await listening(sb);
    const confirm = { text: { type: "plain_text", text: "Refund £60.00?" } };
    const ts = await card(
      sb,
      [
        button("go", "Approve £60.00", { confirm }),
        {
          type: "actions",
          elements: [
            { type: "button", action_id: "ask", confirm, text: { type: "plain_text", text: "Approve" } },
            {
              type: "button",
              action_id: "link",
              url: "https://x.example",
              text: { type: "plain_text", text: "Open" },
            },
          ],
        },
      ].slice(1),
    );
    const at = { channel: "C_TICK", ts };
    expect(await sb.control.click({ as: "U_SUP1", at, actionId: "ask" })).toMatchObject({
      error: "confirm_required",
    });
    expect(await sb.control.click({ as: "U_SUP1", at, actionId: "ask", confirm: false })).toMatchObject({
      error: "cancelled",
    });
    expect(bodies).toHaveLength(0);
    expect((await sb.control.click({ as: "U_SUP1", at, actionId: "ask", confirm: true })).ok).toBe(true);
    expect((await sb.control.click({ as: "U_SUP1", at, label: "Open" })).ok).toBe(true);
    expect(bodies.map((b) => (b["actions"] as JsonObject[])[0]?.["action_id"])).toEqual(["ask", "link"]);
  });

  test("32 an element that is not there, or that two elements fit, is not pressed", async () => {
    const sb = await sandbox();
    await listening(sb);
    const ts = await card(sb, [button("go"), button("go", "Press again")]);
    const at = { channel: "C_TICK", ts };
    expect(await sb.control.click({ as: "U_SUP1", at, actionId: "gone" })).toMatchObject({
      error: "unknown_element",
    });
    expect(await sb.control.click({ as: "U_SUP1", at, actionId: "go" })).toMatchObject({
      error: "ambiguous_element",
    });
    expect((await sb.control.click({ as: "U_SUP1", at, label: "Press again" })).ok).toBe(true);
    await web(sb).chat.update({ channel: "C_TICK", ts, text: "decided" });
    expect(await sb.control.click({ as: "U_SUP1", at, label: "Press again" })).toMatchObject({
      error: "unknown_element",
    });
  });
});
