/** The control API over HTTP: what it answers, what it refuses, and what no foreign website can do with it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import WebSocket from "ws";
import { type SlackSandbox, type StreamEvent, startSlackSandbox } from "../../../src/sandbox/slack/index.js";
import { button, onEnd, sandbox, socketApp, until, web } from "./helpers.js";

interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

/** A request with any headers, also those that `fetch` does not let through. */
function call(
  sb: SlackSandbox,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const req = request(`${sb.url}${path}`, { method, headers }, (res) => {
      let text = "";
      res.on("data", (chunk) => {
        text += chunk;
      });
      res.on("end", () => resolve({ status: res.statusCode ?? 0, headers: res.headers, body: text }));
    });
    req.on("error", reject);
    req.end(body);
  });
}

const JSON_TYPE = { "content-type": "application/json" };

async function post(sb: SlackSandbox, path: string, body: unknown): Promise<{ status: number; body: never }> {
  const answer = await call(sb, "POST", `/sandbox/${path}`, JSON_TYPE, JSON.stringify(body));
  return { status: answer.status, body: JSON.parse(answer.body) as never };
}

async function get(sb: SlackSandbox, path: string): Promise<never> {
  return JSON.parse((await call(sb, "GET", `/sandbox/${path}`)).body) as never;
}

describe("a foreign website", () => {
  test("cannot reach anything under another host name, so a rebound name is no way in", async () => {
    const sb = await sandbox();
    for (const path of ["/sandbox/state?as=U_AGENT", "/api/auth.test", "/", "/hooks/actions/x"]) {
      const answer = await call(sb, path.startsWith("/hooks") ? "POST" : "GET", path, {
        host: "evil.example:4010",
      });
      expect(answer.status).toBe(403);
    }
    const port = new URL(sb.url).port;
    expect((await call(sb, "GET", "/sandbox/state?as=U_AGENT", { host: `localhost:${port}` })).status).toBe(
      200,
    );
    expect((await call(sb, "GET", "/sandbox/state?as=U_AGENT", { host: "127.0.0.1" })).status).toBe(403);
  });

  test("cannot act, post through the Web API or open a socket from its own origin", async () => {
    const sb = await sandbox();
    const foreign = { origin: "https://evil.example" };
    const act = JSON.stringify({ as: "U_SUP1", channel: "C_TICK", text: "forged" });
    expect((await call(sb, "POST", "/sandbox/act/post", { ...JSON_TYPE, ...foreign }, act)).status).toBe(403);
    expect((await call(sb, "POST", "/sandbox/act/post", { ...JSON_TYPE, origin: "null" }, act)).status).toBe(
      403,
    );
    const api = `token=${sb.botToken}&channel=C_TICK&text=forged`;
    const formType = { "content-type": "application/x-www-form-urlencoded" };
    expect((await call(sb, "POST", "/api/chat.postMessage", { ...formType, ...foreign }, api)).status).toBe(
      403,
    );
    const { url = "" } = await web(sb, sb.appToken).apps.connections.open({});
    const socket = new WebSocket(url, { origin: "https://evil.example" });
    const failed = new Promise((resolve) => socket.once("error", resolve));
    expect(String(await failed)).toContain("403");
    expect(sb.control.messages("U_AGENT", "C_TICK")).toHaveLength(0);
    expect((await call(sb, "POST", "/sandbox/act/post", { ...JSON_TYPE, origin: sb.url }, act)).status).toBe(
      200,
    );
  });

  test("cannot send a form that is taken for a control call, or read across sites", async () => {
    const sb = await sandbox();
    const act = JSON.stringify({ as: "U_SUP1", channel: "C_TICK", text: "forged" });
    for (const type of ["text/plain", "application/x-www-form-urlencoded"]) {
      expect((await call(sb, "POST", "/sandbox/act/post", { "content-type": type }, act)).status).toBe(403);
    }
    const crossSite = { "sec-fetch-site": "cross-site" };
    expect((await call(sb, "GET", "/sandbox/state?as=U_AGENT", crossSite)).status).toBe(403);
    const answer = await call(sb, "GET", "/sandbox/state?as=U_AGENT", { "sec-fetch-site": "same-origin" });
    expect(answer.status).toBe(200);
    expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
  });

  test("cannot frame the page or run script in it", async () => {
    const sb = await sandbox();
    const page = await call(sb, "GET", "/");
    expect(page.status).toBe(200);
    const policy = String(page.headers["content-security-policy"]);
    expect(policy).toContain("default-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain("script-src");
  });
});

describe("the page", () => {
  test("is served from its directory and nothing beside it is", async () => {
    const dir = mkdtempSync(join(tmpdir(), "sandbox-page-"));
    onEnd(async () => rmSync(dir, { recursive: true }));
    writeFileSync(join(dir, "index.html"), "<h1>here</h1>");
    writeFileSync(join(dir, "app.js"), "1;");
    writeFileSync(`${dir}-secret.json`, "{}");
    onEnd(async () => rmSync(`${dir}-secret.json`));
    const sb = await sandbox({ pageDir: dir });
    expect((await call(sb, "GET", "/")).body).toContain("here");
    expect((await call(sb, "GET", "/archives/C_TICK/p1796000000000100")).body).toContain("here");
    expect((await call(sb, "GET", "/app.js")).headers["content-type"]).toContain("javascript");
    const name = dir.split("/").at(-1);
    for (const path of [
      `/../${name}-secret.json`,
      `/%2e%2e/${name}-secret.json`,
      `/..%2f${name}-secret.json`,
      "/nope.js",
    ]) {
      expect((await call(sb, "GET", path)).status).toBe(404);
    }
  });
});

describe("control over HTTP", () => {
  test("a ticket is filed, a card clicked and a reply read without the process", async () => {
    const sb = await sandbox();
    await socketApp(sb, (app) => {
      app.message(/./u, async ({ message, say }) => {
        await say({ thread_ts: message.ts, text: "card", blocks: [button("go", "Approve £60.00")] });
      });
      app.action("go", async ({ ack, respond }) => {
        await ack();
        await respond({ text: "not you", replace_original: false });
      });
    });
    const filed = await post(sb, "act/post", { as: "U_AGENT", channel: "C_TICK", text: "ORD-1001 broken" });
    expect(filed).toMatchObject({ status: 200, body: { ok: true, channel: "C_TICK" } });
    const { ts } = filed.body as { ts: string };
    const thread = `messages?as=U_SUP1&channel=C_TICK&threadTs=${ts}`;
    const messages = async (path: string) =>
      ((await get(sb, path)) as { messages: { ts: string; text: string }[] }).messages;
    await until(async () => (await messages(thread)).length === 2);
    const at = { channel: "C_TICK", ts: (await messages(thread))[1]?.ts };
    expect((await post(sb, "act/click", { as: "U_SUP1", at, label: "Approve" })).body).toEqual({ ok: true });
    const all = `messages?as=U_SUP1&channel=C_TICK&ephemeral=1`;
    await until(async () => (await messages(all)).some((m) => m.text === "not you"));
    expect((await messages(all.replace("U_SUP1", "U_SUP2"))).some((m) => m.text === "not you")).toBe(false);
    expect(await get(sb, "state?as=U_SUP1")).toMatchObject({
      me: { id: "U_SUP1", userGroups: ["S_SUP"], canAct: true },
      connection: { mode: "socket", connected: 1 },
      commands: [{ command: "/ticket" }, { command: "/ops" }],
    });
  });

  test("unread and mention counts follow reading", async () => {
    const sb = await sandbox();
    await web(sb).chat.postMessage({ channel: "C_APPR", text: "<!subteam^S_SUP> please" });
    const { ts = "" } = await web(sb).chat.postMessage({ channel: "C_APPR", text: "second" });
    const count = (as: string) => {
      const channel = sb.control.state(as).channels.find((c) => c.id === "C_APPR");
      return [channel?.unreadCount, channel?.mentionCount];
    };
    expect(count("U_SUP1")).toEqual([2, 1]);
    expect(count("U_FIN1")).toEqual([2, 0]);
    await post(sb, "act/read", { as: "U_SUP1", channel: "C_APPR", ts });
    expect(count("U_SUP1")).toEqual([0, 0]);
    await sb.control.post({ as: "U_FIN1", channel: "C_APPR", text: "mine is read" });
    expect(count("U_FIN1")).toEqual([0, 0]);
    expect(count("U_SUP1")).toEqual([1, 0]);
  });

  test("a malformed request is 400 and says where; an unknown route 404", async () => {
    const sb = await sandbox();
    expect(await post(sb, "act/post", { as: "U_AGENT", chanel: "C_TICK", text: "x" })).toMatchObject({
      status: 400,
      body: { ok: false, error: "invalid_request" },
    });
    expect((await call(sb, "POST", "/sandbox/act/post", JSON_TYPE, "{")).status).toBe(400);
    expect((await post(sb, "faults/api", { method: "x", kind: "sulk", times: 1 })).status).toBe(400);
    expect((await post(sb, "settings", { ackTimeoutMs: -1 })).status).toBe(400);
    expect((await post(sb, "clock", { scale: 0 })).status).toBe(400);
    expect((await call(sb, "GET", "/sandbox/state?as=U_NOBODY")).status).toBe(400);
    expect((await post(sb, "admin/share-channel", { channel: "C_NOPE", on: true })).status).toBe(400);
    expect((await call(sb, "GET", "/sandbox/nope")).status).toBe(404);
    expect((await call(sb, "GET", "/sandbox/inspector/operations")).status).toBe(404);
  });

  test("every control route of docs/sandbox.md is there", async () => {
    const sb = await sandbox({
      productReadPort: { operations: async () => [] },
      paymentsControlUrl: "http://127.0.0.1:9/",
    });
    const docs = readFileSync(new URL("../../../docs/sandbox.md", import.meta.url), "utf8");
    const gets = [...docs.matchAll(/GET \/sandbox\/([\w/-]+)/gu)].map((m) => m[1] ?? "");
    const posts = [...docs.matchAll(/POST \/sandbox\/([\w/-]+)/gu)]
      .map((m) => m[1] ?? "")
      .filter((p) => !p.endsWith("/"));
    expect(gets.length + posts.length).toBeGreaterThan(12);
    for (const path of gets.filter((p) => p !== "stream")) {
      expect([path, (await call(sb, "GET", `/sandbox/${path}?as=U_AGENT&channel=C_TICK`)).status]).toEqual([
        path,
        200,
      ]);
    }
    for (const path of posts)
      expect([path, (await post(sb, path, { x: [] })).status]).not.toEqual([path, 404]);
  });

  test("administration reaches the app as events and the page as notices", async () => {
    const sb = await sandbox();
    const events: string[] = [];
    await socketApp(sb, (app) => {
      app.event(/.*/u, async ({ event }) => {
        events.push(event.type);
      });
    });
    await post(sb, "admin/share-channel", { channel: "C_APPR", on: true });
    await post(sb, "admin/person", { user: "U_SUP2", deleted: true });
    await post(sb, "admin/user-group", { id: "S_ONC", users: ["U_ONC1"] });
    await post(sb, "admin/archive-channel", { channel: "C_OPS", on: true });
    await post(sb, "admin/add-person", {
      id: "U_NEW",
      name: "nia",
      realName: "Nia New",
      channels: ["C_TICK"],
    });
    await until(() => new Set(events).size >= 4);
    expect(new Set(events)).toEqual(
      new Set(["channel_shared", "user_change", "subteam_members_changed", "subteam_updated"]),
    );
    expect((await post(sb, "act/post", { as: "U_NEW", channel: "C_TICK", text: "hi" })).body).toMatchObject({
      ok: true,
    });
    expect((await post(sb, "act/post", { as: "U_ONC1", channel: "C_OPS", text: "hi" })).body).toMatchObject({
      ok: false,
      error: "channel_archived",
    });
    const { ts = "" } = await web(sb).chat.postMessage({ channel: "C_TICK", text: "gone soon" });
    await post(sb, "admin/remove-message", { channel: "C_TICK", ts });
    expect(sb.control.messages("U_AGENT", "C_TICK").map((m) => m.text)).toEqual(["hi"]);
  });
});

describe("the live stream", () => {
  async function stream(
    sb: SlackSandbox,
    query: string,
    headers: Record<string, string> = {},
  ): Promise<StreamEvent[]> {
    const events: StreamEvent[] = [];
    const req = request(`${sb.url}/sandbox/stream?${query}`, { headers }, (res) => {
      let rest = "";
      res.on("data", (chunk) => {
        rest += chunk;
        const frames = rest.split("\n\n");
        rest = frames.pop() ?? "";
        for (const frame of frames) {
          const data = /^data: (.*)$/mu.exec(frame)?.[1];
          if (data !== undefined) events.push(JSON.parse(data) as StreamEvent);
        }
      });
    });
    req.on("error", () => undefined);
    req.end();
    onEnd(async () => req.destroy());
    return events;
  }
  const texts = (events: StreamEvent[]): string[] =>
    events.flatMap((e) => (e.type === "message" ? [e.message.text] : []));

  test("shows each person what they may see, at once", async () => {
    const sb = await sandbox();
    const agent = await stream(sb, "as=U_AGENT&after=0");
    const guest = await stream(sb, "as=U_GUEST&after=0");
    await web(sb).chat.postMessage({ channel: "C_TICK", text: "for both" });
    await sb.control.setMember("C_SHARED", "U_GUEST", false);
    await web(sb).chat.postMessage({ channel: "C_SHARED", text: "not for the guest" });
    await web(sb).chat.postEphemeral({ channel: "C_TICK", user: "U_GUEST", text: "for the guest alone" });
    await web(sb).chat.postMessage({ channel: "C_TICK", text: "last" });
    await until(() => texts(agent).includes("last") && texts(guest).includes("last"));
    expect(texts(agent)).toEqual(["for both", "not for the guest", "last"]);
    expect(texts(guest)).toEqual(["for both", "for the guest alone", "last"]);
  });

  test("carries on after a break, and says reset to whoever was away too long", async () => {
    const sb = await sandbox();
    const seq = sb.control.state("U_AGENT").streamSeq;
    await web(sb).chat.postMessage({ channel: "C_TICK", text: "missed" });
    const behind = await stream(sb, "as=U_AGENT", { "last-event-id": String(seq) });
    await until(() => texts(behind).includes("missed"));
    const strange = await stream(sb, "as=U_AGENT&after=999999");
    await until(() => strange.some((e) => e.type === "reset"));
    const reset = await stream(sb, `as=U_AGENT&after=${sb.control.state("U_AGENT").streamSeq}`);
    await sb.control.reset();
    await until(() => reset.some((e) => e.type === "reset"));
    expect(sb.control.messages("U_AGENT", "C_TICK")).toHaveLength(0);
  });
});

describe("beside the product", () => {
  test("operations come from the read port, payments calls are passed on", async () => {
    const seen: string[] = [];
    const payments = createServer((req, res) => {
      let body = "";
      req.on("data", (c) => {
        body += c;
      });
      req.on("end", () => {
        seen.push(`${req.method} ${req.url} ${body}`);
        res.setHeader("content-type", "application/json");
        res.end('{"faults":[]}');
      });
    });
    await new Promise<void>((resolve) => payments.listen(0, "127.0.0.1", resolve));
    onEnd(async () => {
      payments.closeAllConnections();
      payments.close();
    });
    const sb = await sandbox({
      productReadPort: { operations: async () => [{ id: "op_1", status: "CONFIRMED" }] },
      paymentsControlUrl: `http://127.0.0.1:${(payments.address() as AddressInfo).port}/_control/`,
    });
    expect(await get(sb, "inspector/operations")).toEqual({
      operations: [{ id: "op_1", status: "CONFIRMED" }],
    });
    expect(await get(sb, "payments/refunds?limit=5")).toEqual({ faults: [] });
    await post(sb, "payments/faults", { kind: "hang" });
    expect(seen).toEqual(["GET /_control/refunds?limit=5 ", 'POST /_control/faults {"kind":"hang"}']);
    const foreign = await call(
      sb,
      "POST",
      "/sandbox/payments/faults",
      { ...JSON_TYPE, origin: "https://evil.example" },
      "{}",
    );
    expect(foreign.status).toBe(403);
  });
});

describe("keeping the workspace", () => {
  test("a restarted sandbox shows the old messages and gives no id twice", async () => {
    const dir = mkdtempSync(join(tmpdir(), "sandbox-state-"));
    onEnd(async () => rmSync(dir, { recursive: true }));
    const stateFile = join(dir, "deep", "slack.json");
    const clock = { startMs: 1_796_000_000_000, frozen: true };
    const first = await sandbox({ stateFile, clock });
    await first.control.post({ as: "U_AGENT", channel: "C_TICK", text: "before" });
    await web(first).views.publish({ user_id: "U_AGENT", view: { type: "home", blocks: [] } as never });
    await web(first).chat.postEphemeral({ channel: "C_TICK", user: "U_AGENT", text: "psst" });
    await first.stop();
    const second = await sandbox({ stateFile, clock });
    expect(second.control.messages("U_AGENT", "C_TICK", { ephemeral: true }).map((m) => m.text)).toEqual([
      "before",
    ]);
    expect(second.control.home("U_AGENT").published).toBe(true);
    await second.control.post({ as: "U_AGENT", channel: "C_TICK", text: "after" });
    const ts = second.control.messages("U_AGENT", "C_TICK").map((m) => m.ts);
    expect(ts).toEqual([...new Set(ts)].sort());
    expect(ts).toHaveLength(2);
  });

  test("a state file that is no workspace stops the start and is left alone", async () => {
    const dir = mkdtempSync(join(tmpdir(), "sandbox-state-"));
    onEnd(async () => rmSync(dir, { recursive: true }));
    const stateFile = join(dir, "slack.json");
    writeFileSync(stateFile, '{"version":99}');
    await expect(sandbox({ stateFile })).rejects.toThrow(stateFile);
    expect(readFileSync(stateFile, "utf8")).toBe('{"version":99}');
  });

  test("a taken port rejects the start with EADDRINUSE", async () => {
    const sb = await sandbox();
    const port = Number(new URL(sb.url).port);
    await expect(startSlackSandbox({ mode: "socket", port })).rejects.toMatchObject({ code: "EADDRINUSE" });
  });

  test("reset brings back the seeded people, clock, settings and journal", async () => {
    const sb = await sandbox();
    await sb.control.changePerson({ user: "U_SUP1", deleted: true });
    sb.control.settings({ strict: false });
    sb.control.clock({ advanceMs: 3_600_000 });
    sb.control.addApiFault({ method: "*", kind: "hang", times: 9 });
    await sb.control.reset();
    expect(sb.control.state("U_SUP1").me.canAct).toBe(true);
    expect(sb.control.settings().strict).toBe(true);
    expect(sb.control.clock().offsetMs).toBe(0);
    expect(sb.control.faults()).toEqual([]);
    expect(sb.control.journal()).toEqual([]);
  });
});
