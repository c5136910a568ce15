/** Neighbours of the statements: refusals of Slack that no statement names and that an app meets all the same. */
import { expect, test, vi } from "vitest";
import { DEFAULT_MANIFEST } from "../../../src/sandbox/slack/seed.js";
import { refused, sandbox, section, socketApp, until, web } from "./helpers.js";

vi.setConfig({ testTimeout: 60_000 });

test("5 a body that is no JSON, no object or of a foreign type is refused with HTTP 200", async () => {
  const sb = await sandbox();
  const call = async (type: string, body: string): Promise<unknown> => {
    const response = await fetch(`${sb.apiUrl}auth.test`, {
      method: "POST",
      headers: { "content-type": type, authorization: `Bearer ${sb.botToken}` },
      body,
    });
    expect(response.status).toBe(200);
    return response.json();
  };
  expect(await call("application/json; charset=utf-8", "{")).toMatchObject({ error: "invalid_json" });
  expect(await call("application/json; charset=utf-8", "[]")).toMatchObject({ error: "json_not_object" });
  expect(await call("text/plain", "channel=C_TICK")).toMatchObject({ error: "invalid_post_type" });
});

test("7 a hundred attachments are taken, one more is not; without a messages tab nobody is written to", async () => {
  const sb = await sandbox();
  const attachments = (count: number) => Array.from({ length: count }, () => ({ text: "x", fallback: "x" }));
  await web(sb).chat.postMessage({ channel: "C_TICK", attachments: attachments(100) } as never);
  const many = web(sb).chat.postMessage({ channel: "C_TICK", attachments: attachments(101) } as never);
  expect((await refused(many)).error).toBe("too_many_attachments");
  const manifest = structuredClone(DEFAULT_MANIFEST) as {
    features: { app_home: { messages_tab_enabled: boolean } };
  };
  manifest.features.app_home.messages_tab_enabled = false;
  const silent = await sandbox({ manifest });
  const direct = web(silent).chat.postMessage({ channel: "U_AGENT", text: "psst" });
  expect((await refused(direct)).error).toBe("messages_tab_disabled");
});

test("13 an update of blocks that a post would refuse changes nothing, and one into an archived channel neither", async () => {
  const sb = await sandbox();
  const { chat } = web(sb);
  const { ts = "" } = await chat.postMessage({
    channel: "C_TICK",
    text: "card",
    blocks: [section("before")],
  });
  const tooLong = chat.update({ channel: "C_TICK", ts, text: "card", blocks: [section("x".repeat(3001))] });
  expect((await refused(tooLong)).response_metadata?.messages?.join()).toContain(
    "[json-pointer:/blocks/0/text/text]",
  );
  await sb.control.archiveChannel("C_TICK", true);
  expect((await refused(chat.update({ channel: "C_TICK", ts, text: "after" }))).error).toBe("is_archived");
  await sb.control.archiveChannel("C_TICK", false);
  expect(sb.control.messages("U_AGENT", "C_TICK")[0]).toMatchObject({
    text: "card",
    blocks: [{ type: "section", text: { text: "before" } }],
  });
});

/** Calls a minute, by Slack's tier of the method. Special ones have no number of Slack's and are not here. */
const A_MINUTE: [method: string, calls: number][] = [
  ["chat.update", 50],
  ["chat.delete", 50],
  ["chat.postEphemeral", 100],
  ["views.open", 100],
  ["views.push", 100],
  ["views.update", 100],
  ["views.publish", 100],
  ["conversations.info", 50],
  ["conversations.replies", 50],
  ["conversations.history", 50],
  ["conversations.list", 20],
  ["conversations.members", 100],
  ["users.info", 100],
  ["users.list", 20],
  ["usergroups.list", 20],
  ["usergroups.users.list", 20],
  ["reactions.add", 50],
];

test.each(A_MINUTE)(
  "6 %s is answered %i times a minute, then 429 with whole seconds to wait",
  async (method, calls) => {
    const sb = await sandbox({ rateLimits: true });
    const begun = performance.now();
    const answers = await Promise.all(
      Array.from({ length: calls * 2 }, async () => {
        const response = await fetch(`${sb.apiUrl}${method}`, {
          method: "POST",
          headers: { authorization: `Bearer ${sb.botToken}` },
        });
        await response.arrayBuffer();
        return { status: response.status, wait: response.headers.get("retry-after") };
      }),
    );
    // What the minute gives back while a busy machine is still at it.
    const givenBack = Math.ceil(((performance.now() - begun) / 60_000) * calls);
    const answered = answers.filter(({ status }) => status === 200).length;
    expect(answered).toBeGreaterThanOrEqual(calls);
    expect(answered).toBeLessThanOrEqual(calls + givenBack);
    const limited = answers.filter(({ status }) => status === 429);
    expect(limited.length).toBe(answers.length - answered);
    for (const { wait } of limited) expect(wait).toMatch(/^[1-9][0-9]*$/u);
  },
);

test("6 apps.connections.open is tier 1: as many sockets at once as there may be, then one a minute; tier 3 is a switch", async () => {
  const sb = await sandbox({ rateLimits: true });
  const open = () => web(sb, sb.appToken).apps.connections.open({});
  for (let n = 0; n < 10; n += 1) await open();
  await expect(open()).rejects.toMatchObject({ retryAfter: expect.any(Number) });
  sb.control.clock({ advanceMs: 60_000 });
  await open();
  await expect(open()).rejects.toMatchObject({ retryAfter: expect.any(Number) });
  sb.control.settings({ connectionTier: "tier3" });
  sb.control.clock({ advanceMs: 60_000 });
  for (let n = 0; n < 10; n += 1) await open();
});

test("2 an app that is uninstalled hears of it, and its token is worth nothing until it is installed again", async () => {
  const sb = await sandbox();
  const heard: string[] = [];
  await socketApp(sb, (app) => {
    app.event("tokens_revoked", async () => void heard.push("tokens_revoked"));
    app.event("app_uninstalled", async () => void heard.push("app_uninstalled"));
  });
  sb.control.settings({ installation: "uninstalled" });
  await until(() => heard.length === 2, "both events");
  expect(heard.sort()).toEqual(["app_uninstalled", "tokens_revoked"]);
  expect((await refused(web(sb).auth.test())).error).toBe("account_inactive");
  sb.control.settings({ installation: "token_revoked" });
  expect((await refused(web(sb).chat.postMessage({ channel: "C_TICK", text: "x" }))).error).toBe(
    "token_revoked",
  );
  sb.control.settings({ installation: "installed" });
  expect((await web(sb).auth.test()).ok).toBe(true);
});
