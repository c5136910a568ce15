/** Statements 21 to 26: signed HTTP deliveries, checked by Bolt's own receiver and by a bare server. */
import { createHmac } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test, vi } from "vitest";
import { signature } from "../../../src/sandbox/slack/delivery/http-transport.js";
import type { JsonObject, SlackSandbox } from "../../../src/sandbox/slack/index.js";
import { button, httpApp, onEnd, sandbox, until, web } from "./helpers.js";

vi.setConfig({ testTimeout: 60_000 });

interface Received {
  headers: IncomingHttpHeaders;
  body: string;
}

/** A bare app: echoes the challenge, answers everything else as told. */
async function bareApp(
  sb: SlackSandbox,
  answer: (received: Received, res: ServerResponse, count: number) => void,
): Promise<Received[]> {
  const events: Received[] = [];
  const server = createServer((req, res) => {
    let body = "";
    req.on("data", (chunk) => {
      body += chunk;
    });
    req.on("end", () => {
      if (body.includes('"url_verification"')) {
        const { challenge } = JSON.parse(body) as { challenge: string };
        res.end(challenge);
        return;
      }
      events.push({ headers: req.headers, body });
      answer({ headers: req.headers, body }, res, events.length);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onEnd(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  sb.control.settings({
    requestUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/slack/events`,
  });
  return events;
}

const post = (sb: SlackSandbox, text = "hello"): Promise<unknown> =>
  sb.control.post({ as: "U_AGENT", channel: "C_TICK", text });

describe("HTTP deliveries", () => {
  test("21 the signature is Slack's own worked example", () => {
    const body =
      "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    expect(signature("8f742231b10e8888abcd99yyyzzz85a5", "1531420618", body)).toBe(
      "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    );
  });

  test("21 Bolt's receiver accepts events, clicks and commands; each is signed over the exact bytes with the exact content type", async () => {
    const sb = await sandbox({ mode: "http" });
    const got: string[] = [];
    await httpApp(sb, (app) => {
      app.event("message", async () => {
        got.push("event");
      });
      app.action("go", async ({ ack }) => {
        got.push("action");
        await ack();
      });
      app.command("/ops", async ({ ack, command }) => {
        got.push(`command ${String(command["is_enterprise_install"])}`);
        await ack("pong");
      });
    });
    await post(sb);
    await sb.control.idle();
    const { ts } = await web(sb).chat.postMessage({
      channel: "C_TICK",
      text: "card",
      blocks: [button("go")],
    });
    expect(
      (await sb.control.click({ as: "U_SUP1", at: { channel: "C_TICK", ts: ts ?? "" }, actionId: "go" })).ok,
    ).toBe(true);
    expect(
      (await sb.control.command({ as: "U_ONC1", channel: "C_OPS", command: "/ops", text: "ping" })).ok,
    ).toBe(true);
    await sb.control.idle();
    expect(got).toContain("event");
    expect(got.slice(-2)).toEqual(["action", "command false"]);

    const events = await bareApp(sb, (_received, res) => res.end());
    await post(sb, "ünïcode ✓");
    await sb.control.click({ as: "U_SUP1", at: { channel: "C_TICK", ts: ts ?? "" }, actionId: "go" });
    await sb.control.idle();
    const types = events.map((e) => e.headers["content-type"]);
    expect(types).toContain("application/json");
    expect(types).toContain("application/x-www-form-urlencoded");
    for (const { headers, body } of events) {
      const stamp = String(headers["x-slack-request-timestamp"]);
      const expected = createHmac("sha256", sb.signingSecret).update(`v0:${stamp}:${body}`).digest("hex");
      expect(headers["x-slack-signature"]).toBe(`v0=${expected}`);
      expect(Math.abs(Number(stamp) - Date.now() / 1000)).toBeLessThan(60);
    }
  });

  test("21 a skewed timestamp is refused by Bolt, so nothing reaches a listener", async () => {
    const sb = await sandbox({ mode: "http" });
    let heard = 0;
    await httpApp(sb, (app) => {
      app.event("message", async () => {
        heard += 1;
      });
    });
    expect(await sb.control.verifyRequestUrl()).toBe(true);
    sb.control.clock({ signatureSkewMs: -10 * 60_000 });
    await post(sb);
    await sb.control.idle();
    expect(heard).toBe(0);
    expect(sb.control.journal().some((e) => e.kind === "delivery" && e.outcome === "http_error")).toBe(true);
  });

  test("22 no event leaves before the challenge is echoed", async () => {
    const sb = await sandbox({ mode: "http" });
    const bodies: string[] = [];
    let honest = false;
    const server = createServer((req, res) => {
      let body = "";
      req.on("data", (c) => {
        body += c;
      });
      req.on("end", () => {
        bodies.push(body);
        const parsed = JSON.parse(body) as { challenge?: string };
        res.end(honest ? parsed.challenge : "something else");
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onEnd(async () => {
      server.closeAllConnections();
      server.close();
    });
    sb.control.settings({ requestUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` });
    await post(sb);
    await sb.control.idle();
    expect(bodies.length).toBeGreaterThan(0);
    expect(bodies.every((b) => b.includes("url_verification"))).toBe(true);
    expect(sb.control.connection().connected).toBe(0);
    honest = true;
    expect(await sb.control.verifyRequestUrl()).toBe(true);
    await post(sb);
    await sb.control.idle();
    expect(bodies.some((b) => b.includes("event_callback"))).toBe(true);
  });

  test("23 a failed event comes again at once, after one and after five minutes with number and reason, then is dropped", async () => {
    const sb = await sandbox({ mode: "http" });
    const events = await bareApp(sb, (_received, res) => {
      res.statusCode = 500;
      res.end();
    });
    await post(sb);
    await until(() => events.length === 2);
    await sb.control.idle();
    expect(events).toHaveLength(2);
    sb.control.clock({ advanceMs: 59_000 });
    await sb.control.idle();
    expect(events).toHaveLength(2);
    sb.control.clock({ advanceMs: 1_100 });
    await until(() => events.length === 3);
    await sb.control.idle();
    sb.control.clock({ advanceMs: 5 * 60_000 });
    await until(() => events.length === 4);
    await sb.control.idle();
    sb.control.clock({ advanceMs: 26 * 3_600_000 });
    await sb.control.idle();
    expect(events).toHaveLength(4);
    expect(events.map((e) => e.headers["x-slack-retry-num"])).toEqual([undefined, "1", "2", "3"]);
    expect(events[3]?.headers["x-slack-retry-reason"]).toBe("http_error");
    expect(new Set(events.map((e) => (JSON.parse(e.body) as JsonObject)["event_id"])).size).toBe(1);
  });

  test("23 no answer in time is http_timeout; x-slack-no-retry stops; Delayed Events go on hourly", async () => {
    const sb = await sandbox({ mode: "http", settings: { ackTimeoutMs: 150 } });
    const silent = await bareApp(sb, () => undefined);
    await post(sb);
    await until(() => silent.length === 2);
    expect(silent[1]?.headers["x-slack-retry-reason"]).toBe("http_timeout");
    await sb.control.idle();
    sb.control.settings({ ackTimeoutMs: 3000 });

    const final = await bareApp(sb, (_received, res) => {
      res.statusCode = 500;
      res.setHeader("x-slack-no-retry", "1");
      res.end();
    });
    await post(sb);
    await sb.control.idle();
    expect(final).toHaveLength(1);

    sb.control.settings({ delayedEvents: true });
    const delayed = await bareApp(sb, (_received, res) => {
      res.statusCode = 500;
      res.end();
    });
    await post(sb);
    await until(() => delayed.length === 2);
    for (const minutes of [1, 5, 60, 60]) {
      const before = delayed.length;
      await sb.control.idle();
      sb.control.clock({ advanceMs: minutes * 60_000 + 1_000 });
      await until(() => delayed.length > before);
    }
    expect(delayed.length).toBeGreaterThanOrEqual(6);
  });

  test("24 only what is subscribed, in scope and where the bot is a member is delivered", async () => {
    const sb = await sandbox({ mode: "http" });
    const events = await bareApp(sb, (_received, res) => res.end());
    await sb.control.post({ as: "U_AGENT", channel: "C_GENERAL", text: "not there" });
    await sb.control.post({ as: "U_FIN1", channel: "G_FIN", text: "private" });
    const [dm] = [await sb.control.openDm("U_AGENT")];
    if (!dm?.ok) throw new Error("dm");
    await sb.control.post({ as: "U_AGENT", channel: dm.channel, text: "message.im is not subscribed" });
    await sb.control.idle();
    expect(events).toHaveLength(0);
    await sb.control.setMember("G_FIN", "U_CS", true);
    await sb.control.post({ as: "U_FIN1", channel: "G_FIN", text: "now" });
    await sb.control.idle();
    expect(events).toHaveLength(1);
    expect((JSON.parse(events[0]?.body ?? "{}") as { event: JsonObject }).event).toMatchObject({
      channel_type: "group",
      text: "now",
    });
  });

  test("25 duplicates, changed order, delay and app_rate_limited can be had", async () => {
    const sb = await sandbox({ mode: "http" });
    const events = await bareApp(sb, (_received, res) => res.end());
    const texts = (): unknown[] =>
      events.map((e) => ((JSON.parse(e.body) as JsonObject)["event"] as JsonObject | undefined)?.["text"]);
    sb.control.addDeliveryFault({ kind: "duplicate", times: 1 });
    await post(sb, "twice");
    await sb.control.idle();
    expect(texts()).toEqual(["twice", "twice"]);
    expect(new Set(events.map((e) => (JSON.parse(e.body) as JsonObject)["event_id"])).size).toBe(1);
    sb.control.addDeliveryFault({ kind: "reorder", times: 1, type: "message" });
    await post(sb, "first");
    await post(sb, "second");
    await sb.control.idle();
    expect(texts().slice(2)).toEqual(["second", "first"]);
    sb.control.addDeliveryFault({ kind: "delay", times: 1, delayMs: 3_600_000 });
    await post(sb, "late");
    await post(sb, "punctual");
    await until(() => events.length === 5);
    sb.control.clock({ advanceMs: 3_600_000 });
    await sb.control.idle();
    expect(texts().slice(4)).toEqual(["punctual", "late"]);
    await sb.control.injectAppRateLimited();
    const last = JSON.parse(events.at(-1)?.body ?? "{}") as JsonObject;
    expect(last).toMatchObject({ type: "app_rate_limited", api_app_id: "A_CS" });
    expect(last["event"]).toBeUndefined();
    await sb.control.injectEvent({
      type: "message",
      channel: "C_TICK",
      user: "U_AGENT",
      text: "made up",
      ts: "1.1",
    });
    expect(texts().at(-1)).toBe("made up");
  });

  test("26 a click that is not answered with 200, or not in time, shows an error to that person and is not sent again", async () => {
    const sb = await sandbox({ mode: "http" });
    const { ts } = await web(sb).chat.postMessage({
      channel: "C_TICK",
      text: "card",
      blocks: [button("go")],
    });
    const click = (): ReturnType<typeof sb.control.click> =>
      sb.control.click({ as: "U_SUP1", at: { channel: "C_TICK", ts: ts ?? "" }, actionId: "go" });
    const toasts: string[] = [];
    sb.control.subscribe("U_SUP1", (e) => {
      if (e.type === "toast") toasts.push(e.error);
    });
    sb.control.subscribe("U_SUP2", (e) => {
      if (e.type === "toast") toasts.push("somebody else");
    });
    const failing = await bareApp(sb, (_received, res) => {
      res.statusCode = 404;
      res.end();
    });
    expect(await click()).toMatchObject({ ok: false, error: "dispatch_failed" });
    sb.control.settings({ ackTimeoutMs: 150 });
    const silent = await bareApp(sb, () => undefined);
    expect(await click()).toMatchObject({ ok: false, error: "operation_timeout" });
    expect(
      await sb.control.command({ as: "U_SUP1", channel: "C_TICK", command: "/ops", text: "x" }),
    ).toMatchObject({
      ok: false,
      error: "operation_timeout",
    });
    sb.control.clock({ advanceMs: 3_600_000 });
    await sb.control.idle();
    // The echo of the card is an event and follows the events' own schedule.
    const forms = (list: Received[]): Received[] =>
      list.filter((r) => r.headers["content-type"] === "application/x-www-form-urlencoded");
    expect(forms(failing)).toHaveLength(1);
    expect(forms(silent)).toHaveLength(2);
    expect(toasts).toEqual(["dispatch_failed", "operation_timeout", "operation_timeout"]);
    sb.control.settings({ retryInteractivity: true });
    await click();
    expect(forms(silent)).toHaveLength(4);
    expect(forms(silent)[3]?.headers["x-slack-retry-num"]).toBe("1");
  });
});
