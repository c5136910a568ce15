/** Statements 7 to 20: posting, changing, ephemeral messages, metadata, reactions, text. */
import type { SocketModeReceiver } from "@slack/bolt";
import { describe, expect, test, vi } from "vitest";
import type { JsonObject } from "../../../src/sandbox/slack/index.js";
import { button, refused, sandbox, section, socketApp, until, web } from "./helpers.js";

vi.setConfig({ testTimeout: 60_000 });

const LONG = (n: number): string => "x".repeat(n);

describe("posting", () => {
  test("7 a channel that is not there, not joined, archived, or a post without content is refused", async () => {
    const sb = await sandbox();
    const chat = web(sb).chat;
    expect((await refused(chat.postMessage({ channel: "C_NOWHERE", text: "x" }))).error).toBe(
      "channel_not_found",
    );
    expect((await refused(chat.postMessage({ channel: "G_FIN", text: "x" }))).error).toBe(
      "channel_not_found",
    );
    expect((await refused(chat.postMessage({ channel: "C_GENERAL", text: "x" }))).error).toBe(
      "not_in_channel",
    );
    expect((await refused(chat.postMessage({ channel: "C_OLD", text: "x" }))).error).toBe("is_archived");
    expect((await refused(chat.postMessage({ channel: "C_TICK", text: "" }))).error).toBe("no_text");
    expect((await refused(chat.postMessage({ channel: "C_TICK", text: " \n " }))).error).toBe("no_text");
    expect(
      (await refused(chat.postMessage({ channel: "C_TICK", text: "x", thread_ts: "1600000000.000100" })))
        .error,
    ).toBe("thread_not_found");
    const byName = await chat.postMessage({ channel: "#support-tickets", text: "x" });
    expect(byName.channel).toBe("C_TICK");
    const direct = await chat.postMessage({ channel: "U_AGENT", text: "psst" });
    expect(direct.channel).toMatch(/^D/u);
  });

  test("8 text above 40,000 characters is cut on post; an update above 4,000 is msg_too_long", async () => {
    const sb = await sandbox();
    const chat = web(sb).chat;
    const { ts } = await chat.postMessage({ channel: "C_TICK", text: LONG(40_001) });
    expect(sb.control.messages("U_AGENT", "C_TICK")[0]?.text).toHaveLength(40_000);
    const at = { channel: "C_TICK", ts: ts ?? "" };
    expect((await refused(chat.update({ ...at, text: LONG(4_001) }))).error).toBe("msg_too_long");
    await chat.update({ ...at, text: LONG(4_000) });
  });

  test("9 markdown_text beside text or blocks is a conflict; alone it becomes a markdown block", async () => {
    const sb = await sandbox();
    const chat = web(sb).chat;
    const both = { channel: "C_TICK", markdown_text: "**a**", text: "a" };
    expect((await refused(chat.postMessage(both as never))).error).toBe("markdown_text_conflict");
    const withBlocks = { channel: "C_TICK", markdown_text: "**a**", blocks: [section("a")] };
    expect((await refused(chat.postMessage(withBlocks as never))).error).toBe("markdown_text_conflict");
    await chat.postMessage({ channel: "C_TICK", markdown_text: "**a**" });
    expect(sb.control.messages("U_AGENT", "C_TICK")[0]?.blocks[0]?.type).toBe("markdown");
  });

  test("16 ts grow strictly, and a reply to a reply hangs on the parent", async () => {
    const sb = await sandbox({ clock: { startMs: 1_796_000_000_000, frozen: true } });
    const chat = web(sb).chat;
    const all: string[] = [];
    for (let i = 0; i < 30; i += 1)
      all.push((await chat.postMessage({ channel: "C_TICK", text: `${i}` })).ts ?? "");
    expect([...all].sort()).toEqual(all);
    expect(new Set(all).size).toBe(30);
    expect(all[0]).toBe("1796000000.000100");
    const parent = all[0] ?? "";
    const reply = await chat.postMessage({ channel: "C_TICK", text: "reply", thread_ts: parent });
    const deeper = await chat.postMessage({ channel: "C_TICK", text: "deeper", thread_ts: reply.ts ?? "" });
    expect((deeper.message as { thread_ts?: string }).thread_ts).toBe(parent);
    const thread = await web(sb).conversations.replies({ channel: "C_TICK", ts: parent });
    expect(thread.messages?.map((m) => m.text)).toEqual(["0", "reply", "deeper"]);
    expect(thread.messages?.[0]).toMatchObject({ reply_count: 2, latest_reply: deeper.ts });
    expect(sb.control.messages("U_AGENT", "C_TICK")).toHaveLength(30);
  });

  test("16 the same seed gives the same ids and timestamps", async () => {
    const play = async (seed: string): Promise<unknown> => {
      const sb = await sandbox({ seed, clock: { startMs: 1_796_000_000_000, frozen: true } });
      await sb.control.post({ as: "U_AGENT", channel: "C_TICK", text: "refund please" });
      await web(sb).chat.postMessage({ channel: "C_TICK", text: "card", blocks: [section("card")] });
      return sb.control.messages("U_AGENT", "C_TICK").map((m) => [m.ts, m.blocks]);
    };
    expect(await play("one")).toEqual(await play("one"));
    expect(await play("one")).not.toEqual(await play("two"));
  });
});

describe("changing", () => {
  test("13 another author's message, an unknown ts and an ephemeral one cannot be updated", async () => {
    const sb = await sandbox();
    const client = web(sb);
    const post = await sb.control.post({ as: "U_AGENT", channel: "C_TICK", text: "mine" });
    if (!post.ok) throw new Error("post");
    const update = (ts: string): Promise<unknown> => client.chat.update({ channel: "C_TICK", ts, text: "x" });
    expect((await refused(update(post.ts))).error).toBe("cant_update_message");
    expect((await refused(update("1600000000.000100"))).error).toBe("message_not_found");
    const { message_ts } = await client.chat.postEphemeral({
      channel: "C_TICK",
      user: "U_AGENT",
      text: "psst",
    });
    expect((await refused(update(message_ts ?? ""))).error).toBe("cant_update_message");
    expect((await refused(client.chat.delete({ channel: "C_TICK", ts: post.ts }))).error).toBe(
      "cant_delete_message",
    );
  });

  test("13 text without blocks takes the blocks away; metadata and attachments stay unless given; blocks alone leave no edited mark", async () => {
    const sb = await sandbox();
    const client = web(sb);
    const metadata = { event_type: "outbox", event_payload: { id: "out_1" } };
    const { ts } = await client.chat.postMessage({
      channel: "C_TICK",
      text: "card",
      blocks: [section("card")],
      attachments: [{ text: "old" }],
      metadata,
    });
    const at = { channel: "C_TICK", ts: ts ?? "" };
    const seen = () => sb.control.messages("U_AGENT", "C_TICK")[0];
    await client.chat.update({ ...at, blocks: [section("new")], text: "new" });
    expect(seen()).toMatchObject({ edited: false, text: "new", attachments: [{ text: "old" }] });
    await client.chat.update({ ...at, text: "plain" });
    expect(seen()).toMatchObject({ blocks: [], edited: true });
    const full = await client.conversations.history({ channel: "C_TICK", include_all_metadata: true });
    expect(full.messages?.[0]?.metadata).toEqual(metadata);
    await client.chat.update({ ...at, text: "plain", metadata: {} as never, attachments: [] });
    expect(seen()?.attachments).toEqual([]);
    const none = await client.conversations.history({ channel: "C_TICK", include_all_metadata: true });
    expect(none.messages?.[0]?.metadata).toBeUndefined();
  });

  test("14 the app hears of its own edit as message_changed without a top-level user", async () => {
    const sb = await sandbox();
    const heard: JsonObject[] = [];
    await socketApp(sb, (app) => {
      app.event("message", async ({ event }) => {
        heard.push(event as unknown as JsonObject);
      });
    });
    const { ts } = await web(sb).chat.postMessage({ channel: "C_TICK", text: "one" });
    await web(sb).chat.update({ channel: "C_TICK", ts: ts ?? "", text: "two" });
    await until(() => heard.some((e) => e["subtype"] === "message_changed"));
    const change = heard.find((e) => e["subtype"] === "message_changed") ?? {};
    expect(change["user"]).toBeUndefined();
    expect(change).toMatchObject({
      hidden: true,
      message: { ts, text: "two", bot_id: "B_CS", edited: { user: "B_CS" } },
      previous_message: { ts, text: "one" },
    });
    expect(change["ts"]).not.toBe(ts);
  });

  test("15 own posts come back with bot_id; a mention comes as message and app_mention with one ts and two event ids", async () => {
    const sb = await sandbox();
    const bodies: JsonObject[] = [];
    // Bolt leaves out what the app itself said, so the socket client below it is asked.
    const { receiver } = await socketApp(sb, () => undefined);
    (receiver as SocketModeReceiver).client.on("slack_event", ({ body }: { body: JsonObject }) => {
      bodies.push(body);
    });
    const posted = await web(sb).chat.postMessage({ channel: "C_TICK", text: "hello" });
    await sb.control.post({ as: "U_AGENT", channel: "C_TICK", text: "@countersign refund ORD-1001" });
    await until(() => bodies.length >= 3);
    const events = bodies.map((b) => b["event"] as JsonObject);
    const own = events.find((e) => e["ts"] === posted.ts);
    expect(own).toMatchObject({ type: "message", bot_id: "B_CS", app_id: "A_CS", user: "U_CS" });
    expect(own?.["subtype"]).toBeUndefined();
    const mention = events.find((e) => e["type"] === "app_mention");
    const twin = events.find((e) => e["type"] === "message" && e["ts"] === mention?.["ts"]);
    expect(twin?.["text"]).toBe("<@U_CS> refund ORD-1001");
    expect(mention?.["channel_type"]).toBeUndefined();
    expect(new Set(bodies.map((b) => b["event_id"])).size).toBe(bodies.length);
  });
});

describe("deleting", () => {
  test("a parent with replies leaves a tombstone that the thread hangs on; a lone message is gone", async () => {
    const sb = await sandbox();
    const heard: JsonObject[] = [];
    await socketApp(sb, (app) => {
      app.event("message", async ({ event }) => {
        heard.push(event as unknown as JsonObject);
      });
    });
    const ticket = await sb.control.post({ as: "U_AGENT", channel: "C_TICK", text: "ticket" });
    const lone = await sb.control.post({ as: "U_AGENT", channel: "C_TICK", text: "lone" });
    if (!ticket.ok || !lone.ok) throw new Error("post");
    await web(sb).chat.postMessage({ channel: "C_TICK", thread_ts: ticket.ts, text: "working on it" });
    for (const { ts } of [ticket, lone]) {
      expect(await sb.control.deleteMessage({ as: "U_SUP1", channel: "C_TICK", ts })).toMatchObject({
        error: "not_author",
      });
      expect(await sb.control.deleteMessage({ as: "U_AGENT", channel: "C_TICK", ts })).toEqual({ ok: true });
    }
    expect(sb.control.messages("U_SUP1", "C_TICK")).toMatchObject([
      { ts: ticket.ts, subtype: "tombstone", replyCount: 1 },
    ]);
    await web(sb).chat.postMessage({ channel: "C_TICK", thread_ts: ticket.ts, text: "still here" });
    const thread = await web(sb).conversations.replies({ channel: "C_TICK", ts: ticket.ts });
    expect(thread.messages?.map((m) => m.text)).toEqual([
      "This message was deleted.",
      "working on it",
      "still here",
    ]);
    await until(() => heard.some((e) => e["subtype"] === "message_deleted"));
    expect(heard.find((e) => e["subtype"] === "message_deleted")).toMatchObject({ deleted_ts: lone.ts });
    expect(heard.find((e) => e["subtype"] === "message_changed")).toMatchObject({
      message: { subtype: "tombstone", user: "USLACKBOT" },
      previous_message: { text: "ticket" },
    });
  });

  test("a long thread comes page by page, its parent once", async () => {
    const sb = await sandbox();
    const { ts = "" } = await web(sb).chat.postMessage({ channel: "C_TICK", text: "parent" });
    for (let i = 0; i < 7; i += 1)
      await web(sb).chat.postMessage({ channel: "C_TICK", thread_ts: ts, text: `${i}` });
    const texts: unknown[] = [];
    for await (const answer of web(sb).paginate("conversations.replies", {
      channel: "C_TICK",
      ts,
      limit: 3,
    })) {
      texts.push(...(answer as unknown as { messages: { text: string }[] }).messages.map((m) => m.text));
    }
    expect(texts).toEqual(["parent", "0", "1", "2", "3", "4", "5", "6"]);
  });
});

describe("who sees what", () => {
  test("17 an ephemeral message reaches one member, and nobody after a reload", async () => {
    const sb = await sandbox();
    const chat = web(sb).chat;
    const live: string[] = [];
    sb.control.subscribe("U_AGENT", (e) => live.push(e.type === "message" ? `agent ${e.message.text}` : ""));
    sb.control.subscribe("U_SUP1", (e) =>
      live.push(e.type === "message" ? `supervisor ${e.message.text}` : ""),
    );
    await chat.postEphemeral({ channel: "C_TICK", user: "U_AGENT", text: "only you" });
    expect(live.filter((l) => l !== "")).toEqual(["agent only you"]);
    expect(sb.control.messages("U_AGENT", "C_TICK")).toHaveLength(0);
    expect(sb.control.messages("U_AGENT", "C_TICK", { ephemeral: true })).toHaveLength(1);
    expect(sb.control.messages("U_SUP1", "C_TICK", { ephemeral: true })).toHaveLength(0);
    expect((await refused(chat.postEphemeral({ channel: "C_OPS", user: "U_AGENT", text: "x" }))).error).toBe(
      "user_not_in_channel",
    );
    expect((await refused(chat.postEphemeral({ channel: "C_TICK", user: "U_GONE", text: "x" }))).error).toBe(
      "user_not_in_channel",
    );
    const history = await web(sb).conversations.history({ channel: "C_TICK" });
    expect(history.messages).toHaveLength(0);
  });

  test("18 metadata comes in full only when asked for; one that is malformed or too large is refused", async () => {
    const sb = await sandbox();
    const client = web(sb);
    const metadata = { event_type: "outbox", event_payload: { id: "out_7" } };
    const { ts } = await client.chat.postMessage({ channel: "C_TICK", text: "x", metadata });
    await client.chat.postMessage({ channel: "C_TICK", text: "y", thread_ts: ts ?? "", metadata });
    const brief = await client.conversations.replies({ channel: "C_TICK", ts: ts ?? "" });
    expect(brief.messages?.map((m) => m.metadata)).toEqual([
      { event_type: "outbox" },
      { event_type: "outbox" },
    ]);
    const full = await client.conversations.replies({
      channel: "C_TICK",
      ts: ts ?? "",
      include_all_metadata: true,
    });
    expect(full.messages?.map((m) => m.metadata)).toEqual([metadata, metadata]);
    const post = (m: object): Promise<unknown> =>
      client.chat.postMessage({ channel: "C_TICK", text: "z", metadata: m as never });
    expect((await refused(post({ event_type: "x" }))).error).toBe("invalid_metadata_format");
    expect((await refused(post({ event_type: "x", event_payload: { deep: { er: 1 } } }))).error).toBe(
      "invalid_metadata_schema",
    );
    expect((await refused(post({ event_type: "x", event_payload: { id: LONG(9_000) } }))).error).toBe(
      "metadata_too_large",
    );
  });

  test("19 a reaction twice is already_reacted, an unknown name invalid_name", async () => {
    const sb = await sandbox();
    const client = web(sb);
    const { ts } = await client.chat.postMessage({ channel: "C_TICK", text: "x" });
    const at = { channel: "C_TICK", timestamp: ts ?? "" };
    await client.reactions.add({ ...at, name: "eyes" });
    expect((await refused(client.reactions.add({ ...at, name: "eyes" }))).error).toBe("already_reacted");
    expect((await refused(client.reactions.add({ ...at, name: "no_such_face_9" }))).error).toBe(
      "invalid_name",
    );
    expect((await refused(client.reactions.add({ ...at, timestamp: "yesterday", name: "eyes" }))).error).toBe(
      "bad_timestamp",
    );
    expect((await refused(client.reactions.remove({ ...at, name: "tada" }))).error).toBe("no_reaction");
    await client.reactions.remove({ ...at, name: "eyes" });
    expect(sb.control.messages("U_AGENT", "C_TICK")[0]?.reactions).toEqual([]);
  });

  test("20 what people type is escaped, linked and mentioned on the wire, never markup", async () => {
    const sb = await sandbox();
    const result = await sb.control.post({
      as: "U_AGENT",
      channel: "C_TICK",
      text: "R&D <script>alert(1)</script> <!channel> @sam @supervisors tom.w@shop.example https://x.example/a?b=1&c=2",
    });
    expect(result.ok).toBe(true);
    const [message] = sb.control.messages("U_SUP1", "C_TICK");
    expect(message?.text).toBe(
      "R&amp;D &lt;script&gt;alert(1)&lt;/script&gt; &lt;!channel&gt; <@U_SUP1> <!subteam^S_SUP> " +
        "<mailto:tom.w@shop.example|tom.w@shop.example> <https://x.example/a?b=1&amp;c=2>",
    );
    expect(message?.mentionsMe).toBe(true);
    expect(sb.control.messages("U_FIN1", "C_TICK")[0]?.mentionsMe).toBe(false);
    expect(message?.blocks[0]).toMatchObject({
      type: "rich_text",
      elements: [
        {
          elements: [
            { type: "text", text: "R&D <script>alert(1)</script> <!channel> " },
            { type: "user", user_id: "U_SUP1" },
            { type: "text", text: " " },
            { type: "usergroup", usergroup_id: "S_SUP" },
            { type: "text", text: " " },
            { type: "link", url: "mailto:tom.w@shop.example", text: "tom.w@shop.example" },
            { type: "text", text: " " },
            { type: "link", url: "https://x.example/a?b=1&c=2" },
          ],
        },
      ],
    });
  });

  test("20 a group mention in a post pings its members, one added by an edit does not unless that is switched on", async () => {
    const sb = await sandbox();
    const pings: string[] = [];
    sb.control.subscribe("U_SUP2", (e) => {
      if (e.type === "notify") pings.push(e.text);
    });
    const chat = web(sb).chat;
    await chat.postMessage({
      channel: "C_APPR",
      text: "fallback",
      blocks: [section("<!subteam^S_SUP> please look")],
    });
    expect(pings).toEqual(["fallback"]);
    const { ts } = await chat.postMessage({ channel: "C_APPR", text: "quiet" });
    await chat.update({ channel: "C_APPR", ts: ts ?? "", text: "<!subteam^S_SUP> now" });
    expect(pings).toHaveLength(1);
    sb.control.settings({ editsNotify: true });
    await chat.update({ channel: "C_APPR", ts: ts ?? "", text: "<!subteam^S_SUP> again" });
    expect(pings).toHaveLength(2);
    await chat.postMessage({ channel: "C_APPR", text: "&lt;!channel&gt; &lt;@U_SUP2&gt;" });
    expect(pings).toHaveLength(2);
  });

  test("47 a stream needs recipients in a channel, takes nothing after its stop, and blocks updates meanwhile", async () => {
    const sb = await sandbox();
    const client = web(sb);
    const { ts: root } = await client.chat.postMessage({
      channel: "C_TICK",
      text: "run",
      blocks: [button("x")],
    });
    const where = { channel: "C_TICK", thread_ts: root ?? "" };
    expect((await refused(client.chat.startStream({ ...where, markdown_text: "a" }))).error).toBe(
      "missing_recipient_team_id",
    );
    const started = await client.chat.startStream({
      ...where,
      recipient_team_id: "T_HOME",
      recipient_user_id: "U_AGENT",
      markdown_text: "one ",
    });
    const at = { channel: "C_TICK", ts: started.ts ?? "" };
    await client.chat.appendStream({ ...at, markdown_text: "two" });
    await client.chat.appendStream({
      ...at,
      chunks: [{ type: "task_update", id: "t1", title: "Look up", status: "in_progress" } as never],
    });
    expect((await refused(client.chat.update({ ...at, text: "x" }))).error).toBe("streaming_state_conflict");
    const thread = () => sb.control.messages("U_AGENT", "C_TICK", { threadTs: root ?? "" });
    expect(thread()[1]).toMatchObject({ text: "one two", streaming: true });
    await client.chat.stopStream({ ...at, blocks: [section("done")] });
    expect(thread()[1]).toMatchObject({ streaming: false });
    expect((await refused(client.chat.appendStream({ ...at, markdown_text: "late" }))).error).toBe(
      "message_not_in_streaming_state",
    );
    expect((await refused(client.chat.stopStream(at))).error).toBe("message_not_in_streaming_state");
    await client.chat.update({ ...at, text: "now" });
  });
});
