/** Statements 1 to 6: transport and authentication of the Web API. */
import { request } from "node:http";
import { describe, expect, test } from "vitest";
import { DEFAULT_MANIFEST } from "../../../src/sandbox/slack/seed.js";
import { refused, sandbox, web } from "./helpers.js";

const TIMEOUT = 60_000;

interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Record<string, unknown>;
}

/** A call written by hand, to see exactly what is on the wire. */
function raw(url: string, headers: Record<string, string>, body: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const req = request(url, { method: "POST", headers }, (res) => {
      let text = "";
      res.on("data", (chunk) => {
        text += chunk;
      });
      res.on("end", () =>
        resolve({ status: res.statusCode ?? 0, headers: res.headers, body: JSON.parse(text || "{}") }),
      );
    });
    req.on("error", reject);
    req.end(body);
  });
}

const FORM = "application/x-www-form-urlencoded";

describe("Web API, transport and authentication", () => {
  test(
    "1 forms without charset, nested JSON strings and JSON bodies are read; an unknown team_id is ignored",
    async () => {
      const sb = await sandbox();
      const viaClient = await web(sb).chat.postMessage({
        channel: "C_TICK",
        text: "from the client",
        blocks: [{ type: "section", text: { type: "mrkdwn", text: "nested" } }],
        team_id: "T_NOWHERE",
      } as never);
      expect(viaClient.message?.blocks?.[0]?.type).toBe("section");
      const json = await raw(
        `${sb.apiUrl}chat.postMessage`,
        { "content-type": "application/json; charset=utf-8", authorization: `Bearer ${sb.botToken}` },
        JSON.stringify({ channel: "C_TICK", text: "from JSON" }),
      );
      expect(json.body["ok"]).toBe(true);
      expect(json.body["warning"]).toBeUndefined();
      const noCharset = await raw(
        `${sb.apiUrl}auth.test`,
        { "content-type": "application/json", authorization: `Bearer ${sb.botToken}` },
        "{}",
      );
      expect(noCharset.body).toMatchObject({ ok: true, warning: "missing_charset" });
      const form = await raw(
        `${sb.apiUrl}auth.test`,
        { "content-type": `${FORM}; charset=utf-8` },
        `token=${sb.botToken}`,
      );
      expect(form.body).toMatchObject({
        ok: true,
        warning: "superfluous_charset",
        team_id: "T_HOME",
        bot_id: "B_CS",
      });
    },
    TIMEOUT,
  );

  test(
    "2 no token, an unknown one, the wrong kind, and an app token outside the header are refused",
    async () => {
      const sb = await sandbox();
      const none = await raw(`${sb.apiUrl}auth.test`, { "content-type": FORM }, "");
      expect(none).toMatchObject({ status: 200, body: { ok: false, error: "not_authed" } });
      expect((await refused(web(sb, "xoxb-stranger").auth.test())).error).toBe("invalid_auth");
      expect((await refused(web(sb).apps.connections.open({}))).error).toBe("not_allowed_token_type");
      expect(
        (await refused(web(sb, sb.appToken).chat.postMessage({ channel: "C_TICK", text: "x" }))).error,
      ).toBe("not_allowed_token_type");
      const inBody = await raw(
        `${sb.apiUrl}apps.connections.open`,
        { "content-type": FORM },
        `token=${sb.appToken}`,
      );
      expect(inBody.body).toMatchObject({ ok: false, error: "not_authed" });
      expect((await web(sb, sb.appToken).apps.connections.open({})).url).toMatch(
        /^ws:\/\/127\.0\.0\.1:\d+\/link\//u,
      );
    },
    TIMEOUT,
  );

  test(
    "3 a method whose scope the manifest lacks says what is needed and what was provided, in body and headers",
    async () => {
      const sb = await sandbox();
      const answer = await refused(web(sb).reactions.get({ channel: "C_TICK", timestamp: "1.1" }));
      expect(answer).toMatchObject({ error: "missing_scope", needed: "reactions:read" });
      expect(answer.provided).toContain("chat:write");
      expect(answer.response_metadata?.acceptedScopes).toEqual(["reactions:read"]);
      expect(answer.response_metadata?.scopes).toContain("users:read");
      const dm = await refused(web(sb).conversations.open({ users: "U_AGENT" }));
      expect(dm.error).toBe("missing_scope");
      const customised = await refused(
        web(sb).chat.postMessage({ channel: "C_TICK", text: "x", username: "Boss" }),
      );
      expect(customised).toMatchObject({ error: "missing_scope", needed: "chat:write.customize" });
    },
    TIMEOUT,
  );

  test(
    "4 an unknown method is refused with HTTP 200",
    async () => {
      const sb = await sandbox();
      const answer = await raw(
        `${sb.apiUrl}chat.postTelegram`,
        { "content-type": FORM },
        `token=${sb.botToken}`,
      );
      expect(answer).toMatchObject({ status: 200, body: { ok: false, error: "unknown_method" } });
    },
    TIMEOUT,
  );

  test(
    "5 business errors are HTTP 200; 5xx, resets and answers lost after the effect come only when asked for",
    async () => {
      const sb = await sandbox();
      const client = web(sb);
      const business = await raw(
        `${sb.apiUrl}chat.postMessage`,
        { "content-type": FORM, authorization: `Bearer ${sb.botToken}` },
        "channel=C_NOWHERE&text=x",
      );
      expect(business).toMatchObject({ status: 200, body: { error: "channel_not_found" } });
      sb.control.addApiFault({ method: "chat.postMessage", kind: "http", status: 503, times: 1 });
      await expect(client.chat.postMessage({ channel: "C_TICK", text: "a" })).rejects.toMatchObject({
        statusCode: 503,
      });
      sb.control.addApiFault({ method: "chat.postMessage", kind: "reset", times: 1 });
      await expect(client.chat.postMessage({ channel: "C_TICK", text: "b" })).rejects.toThrow();
      expect(sb.control.messages("U_AGENT", "C_TICK")).toHaveLength(0);
      sb.control.addApiFault({ method: "chat.postMessage", kind: "accept_then_drop", times: 1 });
      await expect(client.chat.postMessage({ channel: "C_TICK", text: "c" })).rejects.toThrow();
      expect(sb.control.messages("U_AGENT", "C_TICK").map((m) => m.text)).toEqual(["c"]);
      sb.control.addApiFault({ method: "*", kind: "error", error: "internal_error", times: 1, skip: 1 });
      await client.auth.test();
      expect((await refused(client.auth.test())).error).toBe("internal_error");
      await client.auth.test();
      expect(sb.control.faults()).toHaveLength(0);
    },
    TIMEOUT,
  );

  test(
    "6 the limiter counts by method: a 429 on chat.update leaves chat.postMessage free; posts are one a second and channel after a burst",
    async () => {
      const sb = await sandbox({ rateLimits: true });
      const client = web(sb);
      const { ts } = await client.chat.postMessage({ channel: "C_TICK", text: "card" });
      let limited: { retryAfter?: number } | null = null;
      for (let i = 0; i < 400 && limited === null; i += 1) {
        await client.chat.update({ channel: "C_TICK", ts: ts ?? "", text: `edit ${i}` }).catch((error) => {
          limited = error;
        });
      }
      expect(limited).not.toBeNull();
      expect((limited as unknown as { retryAfter: number }).retryAfter).toBeGreaterThanOrEqual(1);
      expect(Number.isInteger((limited as unknown as { retryAfter: number }).retryAfter)).toBe(true);
      await web(sb).chat.postMessage({ channel: "C_APPR", text: "still free" });
      const burst = await Promise.allSettled(
        Array.from({ length: 12 }, () => web(sb).chat.postMessage({ channel: "C_OPS", text: "quick" })),
      );
      expect(burst.some((r) => r.status === "rejected")).toBe(true);
      await web(sb).chat.postMessage({ channel: "C_SHARED", text: "another channel is free" });
      sb.control.clock({ advanceMs: 60_000 });
      await web(sb).chat.update({ channel: "C_TICK", ts: ts ?? "", text: "after a minute" });
      sb.control.settings({ rateLimits: false });
      for (let i = 0; i < 70; i += 1)
        await web(sb).chat.update({ channel: "C_TICK", ts: ts ?? "", text: `free ${i}` });
    },
    TIMEOUT,
  );

  test(
    "6 Retry-After of an injected 429 is the one asked for, and the call has no effect",
    async () => {
      const sb = await sandbox();
      sb.control.addApiFault({ method: "chat.update", kind: "ratelimited", retryAfterSeconds: 30, times: 1 });
      const client = web(sb);
      const { ts } = await client.chat.postMessage({ channel: "C_TICK", text: "before" });
      await expect(
        client.chat.update({ channel: "C_TICK", ts: ts ?? "", text: "after" }),
      ).rejects.toMatchObject({
        retryAfter: 30,
      });
      expect(sb.control.messages("U_AGENT", "C_TICK")[0]?.text).toBe("before");
    },
    TIMEOUT,
  );

  test(
    "48 an unknown argument fails loudly in strict mode, and is ignored without it",
    async () => {
      const sb = await sandbox();
      const call = (): Promise<unknown> =>
        web(sb).apiCall("chat.postMessage", { channel: "C_TICK", text: "x", markdown: "y" });
      const answer = await refused(call());
      expect(answer.error).toBe("sandbox_unknown_argument");
      expect(answer.response_metadata?.messages?.[0]).toContain("[json-pointer:/markdown]");
      sb.control.settings({ strict: false });
      await call();
    },
    TIMEOUT,
  );

  test(
    "48 the default manifest is one that the sandbox itself reads, and a scope less is enforced",
    async () => {
      const manifest = structuredClone(DEFAULT_MANIFEST) as { oauth_config: { scopes: { bot: string[] } } };
      manifest.oauth_config.scopes.bot = manifest.oauth_config.scopes.bot.filter((s) => s !== "chat:write");
      const sb = await sandbox({ manifest });
      expect((await refused(web(sb).chat.postMessage({ channel: "C_TICK", text: "x" }))).error).toBe(
        "missing_scope",
      );
    },
    TIMEOUT,
  );
});
