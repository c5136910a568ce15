/** Statements 39 to 43: Socket Mode, with the real client and, where the client hides the wire, a bare socket. */
import type { SocketModeReceiver } from "@slack/bolt";
import { describe, expect, test, vi } from "vitest";
import WebSocket from "ws";
import type { JsonObject, SlackSandbox } from "../../../src/sandbox/slack/index.js";
import { httpApp, onEnd, sandbox, socketApp, until, web } from "./helpers.js";

vi.setConfig({ testTimeout: 60_000 });

interface Bare {
  socket: WebSocket;
  frames: JsonObject[];
  ack(envelopeId: string, payload?: unknown): void;
  envelopes(): JsonObject[];
}

async function bare(sb: SlackSandbox, url?: string): Promise<Bare> {
  const target = url ?? (await web(sb, sb.appToken).apps.connections.open({})).url ?? "";
  const socket = new WebSocket(target);
  const frames: JsonObject[] = [];
  socket.on("message", (data) => frames.push(JSON.parse(String(data)) as JsonObject));
  socket.on("error", () => undefined);
  onEnd(async () => socket.terminate());
  await until(() => frames.length > 0 || socket.readyState === WebSocket.CLOSED, "the first frame");
  return {
    socket,
    frames,
    ack: (envelope_id, payload = {}) => socket.send(JSON.stringify({ envelope_id, payload })),
    envelopes: () => frames.filter((f) => typeof f["envelope_id"] === "string"),
  };
}

const post = (sb: SlackSandbox, text = "hello"): Promise<unknown> =>
  sb.control.post({ as: "U_AGENT", channel: "C_TICK", text });

describe("Socket Mode", () => {
  test("39 hello is first, says how many connections and how long; a ticket opens once; the eleventh connection is told and closed", async () => {
    const sb = await sandbox();
    const { url = "" } = await web(sb, sb.appToken).apps.connections.open({});
    const first = await bare(sb, url);
    expect(first.frames[0]).toMatchObject({
      type: "hello",
      num_connections: 1,
      connection_info: { app_id: "A_CS" },
      debug_info: { approximate_connection_time: 3600 },
    });
    const again = await bare(sb, url);
    expect(again.frames).toHaveLength(0);
    for (let n = 2; n <= 10; n += 1) {
      expect((await bare(sb)).frames[0]).toMatchObject({ type: "hello", num_connections: n });
    }
    const eleventh = await bare(sb);
    expect(eleventh.frames[0]).toMatchObject({ type: "disconnect", reason: "too_many_websockets" });
    await until(() => eleventh.socket.readyState === WebSocket.CLOSED);
    expect(sb.control.connection().connected).toBe(10);
  });

  test("40 an envelope goes to one connection; without acknowledgement it comes again, marked; an unknown acknowledgement is ignored", async () => {
    const sb = await sandbox({ settings: { socketRedeliveryMs: 150 } });
    const sockets = [await bare(sb), await bare(sb), await bare(sb)];
    const all = (): JsonObject[] => sockets.flatMap((s) => s.envelopes());
    await post(sb);
    await until(() => all().length === 1);
    sockets[0]?.ack("00000000-0000-4000-8000-000000000000");
    await until(() => all().length === 2);
    const [one, two] = all().sort((a, b) => Number(a["retry_attempt"]) - Number(b["retry_attempt"]));
    expect(one).toMatchObject({ type: "events_api", accepts_response_payload: false, retry_attempt: 0 });
    expect(two).toMatchObject({
      envelope_id: one?.["envelope_id"],
      retry_attempt: 1,
      retry_reason: "http_timeout",
    });
    const eventId = (envelope: JsonObject | undefined): unknown =>
      (envelope?.["payload"] as JsonObject | undefined)?.["event_id"];
    expect(eventId(two)).toBe(eventId(one));
    expect(eventId(one)).toMatch(/^Ev/u);
    for (const socket of sockets) socket.ack(String(one?.["envelope_id"]));
    await sb.control.idle();
    sb.control.clock({ advanceMs: 10 * 60_000 });
    await sb.control.idle();
    expect(all()).toHaveLength(2);
  });

  test("40 a random connection is chosen, and all of them get some", async () => {
    const sb = await sandbox();
    const sockets = [await bare(sb), await bare(sb)];
    for (let i = 0; i < 20; i += 1) await post(sb, `n${i}`);
    await until(() => sockets.reduce((n, s) => n + s.envelopes().length, 0) === 20);
    for (const socket of sockets) {
      expect(socket.envelopes().length).toBeGreaterThan(0);
      for (const envelope of socket.envelopes()) socket.ack(String(envelope["envelope_id"]));
    }
  });

  test("40 the real client acknowledges through Bolt, and what it does not acknowledge comes again to it", async () => {
    const sb = await sandbox({ settings: { socketRedeliveryMs: 200 } });
    const attempts: unknown[] = [];
    const { receiver } = await socketApp(sb, () => undefined);
    (receiver as SocketModeReceiver).client.on("slack_event", (e: { retry_num: number }) =>
      attempts.push(e.retry_num),
    );
    sb.control.addDeliveryFault({ kind: "drop", times: 1 });
    await post(sb);
    await sb.control.idle();
    expect(attempts).toEqual([1]);
    const deliveries = sb.control.journal().filter((e) => e.kind === "delivery");
    expect(deliveries.map((d) => d.outcome)).toEqual(["dropped", "acked"]);
  });

  test("41 a refresh closes the socket and the client comes back", async () => {
    const sb = await sandbox();
    await socketApp(sb, () => undefined, { clientPingTimeout: 1000 });
    const hellos = (): number =>
      sb.control.journal().filter((e) => e.kind === "socket" && e.what === "connected").length;
    expect(hellos()).toBe(1);
    sb.control.socket({ kind: "refresh" });
    await until(() => hellos() === 2 && sb.control.connection().connected === 1, "the reconnect");
  });

  test("41 link_disabled closes what is open and keeps everybody out until it is enabled", async () => {
    const sb = await sandbox();
    const one = await bare(sb);
    sb.control.socket({ kind: "link_disabled" });
    await until(() => one.frames.some((f) => f["reason"] === "link_disabled"));
    await until(() => one.socket.readyState === WebSocket.CLOSED);
    const kept = await bare(sb);
    expect(kept.frames[0]).toMatchObject({ type: "disconnect", reason: "link_disabled" });
    sb.control.socket({ kind: "enable" });
    expect((await bare(sb)).frames[0]).toMatchObject({ type: "hello" });
  });

  test("41 a warning comes ten seconds before the refresh", async () => {
    const sb = await sandbox();
    const one = await bare(sb);
    sb.control.socket({ kind: "warning" });
    await until(() => one.frames.some((f) => f["reason"] === "warning"));
    expect(one.socket.readyState).toBe(WebSocket.OPEN);
    sb.control.clock({ advanceMs: 10_000 });
    await until(() => one.frames.some((f) => f["reason"] === "refresh_requested"));
    await until(() => one.socket.readyState === WebSocket.CLOSED);
  });

  test("41 rude keeps TCP open and never answers the close frame; polite answers it", async () => {
    const sb = await sandbox();
    const rude = await bare(sb);
    sb.control.socket({ kind: "rude" });
    sb.control.socket({ kind: "refresh" });
    await until(() => rude.frames.some((f) => f["reason"] === "refresh_requested"));
    let closed = false;
    rude.socket.on("close", () => {
      closed = true;
    });
    rude.socket.close(1000);
    // Everything that a polite peer would do has happened by the time another socket has come and gone.
    sb.control.socket({ kind: "polite" });
    const polite = await bare(sb);
    polite.socket.close(1000);
    await until(() => polite.socket.readyState === WebSocket.CLOSED);
    expect(closed).toBe(false);
    expect(rude.socket.readyState).toBe(WebSocket.CLOSING);
  });

  test("41 the real client survives a rude refresh with a later reconnect", async () => {
    const sb = await sandbox();
    await socketApp(sb, () => undefined, { clientPingTimeout: 1000 });
    sb.control.socket({ kind: "rude" });
    sb.control.socket({ kind: "refresh" });
    expect(sb.control.connection().connected).toBe(0);
    sb.control.socket({ kind: "polite" });
    await until(() => sb.control.connection().connected === 1, "the reconnect");
  });

  test("41 deaf answers no ping, and the real client notices and reconnects", async () => {
    const sb = await sandbox();
    await socketApp(sb, () => undefined, { clientPingTimeout: 1000 });
    const hellos = (): number =>
      sb.control.journal().filter((e) => e.kind === "socket" && e.what === "connected").length;
    sb.control.socket({ kind: "deaf" });
    await until(() => hellos() >= 2, "the reconnect of a client that hears no pong");
    sb.control.socket({ kind: "polite" });
    await until(() => sb.control.connection().connected >= 1);
  });

  test("42 content of an acknowledgement counts only where the envelope accepts it", async () => {
    const sb = await sandbox();
    const one = await bare(sb);
    const command = sb.control.command({ as: "U_ONC1", channel: "C_OPS", command: "/ops", text: "help" });
    await until(() => one.envelopes().length === 1);
    const [slash] = one.envelopes();
    expect(slash).toMatchObject({ type: "slash_commands", accepts_response_payload: true });
    one.ack(String(slash?.["envelope_id"]), { text: "from the acknowledgement" });
    expect((await command).ok).toBe(true);
    const seen = sb.control.messages("U_ONC1", "C_OPS", { ephemeral: true });
    expect(seen.map((m) => m.text)).toEqual(["from the acknowledgement"]);
    await post(sb);
    await until(() => one.envelopes().length === 2);
    one.ack(String(one.envelopes()[1]?.["envelope_id"]), { text: "must not appear" });
    await sb.control.idle();
    expect(sb.control.messages("U_AGENT", "C_TICK", { ephemeral: true })).toHaveLength(1);
  });

  test("43 in Socket Mode nothing goes over HTTP, and in HTTP mode no socket opens", async () => {
    const sb = await sandbox();
    let overHttp = 0;
    await httpApp(sb, (app) => {
      app.use(async ({ next }) => {
        overHttp += 1;
        await next();
      });
    });
    const one = await bare(sb);
    await post(sb);
    await until(() => one.envelopes().length === 1);
    one.ack(String(one.envelopes()[0]?.["envelope_id"]));
    await sb.control.idle();
    expect(overHttp).toBe(0);
    sb.control.settings({ mode: "http" });
    const late = await bare(sb);
    expect(late.frames).toHaveLength(0);
    await post(sb);
    await sb.control.idle();
    expect(overHttp).toBeGreaterThan(0);
    expect(one.envelopes()).toHaveLength(1);
  });

  test("24 without a connection an event is lost and a click shows an error", async () => {
    const sb = await sandbox();
    const { ts } = await web(sb).chat.postMessage({
      channel: "C_TICK",
      text: "card",
      blocks: [
        {
          type: "actions",
          elements: [{ type: "button", action_id: "go", text: { type: "plain_text", text: "Go" } }],
        },
      ],
    });
    await post(sb);
    await sb.control.idle();
    const click = await sb.control.click({
      as: "U_SUP1",
      at: { channel: "C_TICK", ts: ts ?? "" },
      actionId: "go",
    });
    expect(click).toMatchObject({ ok: false, error: "not_connected" });
    const one = await bare(sb);
    sb.control.clock({ advanceMs: 3_600_000 });
    await sb.control.idle();
    expect(one.envelopes()).toHaveLength(0);
  });
});
