/**
 * Socket Mode: tickets, hello, envelopes, acknowledgements, refresh, and the bad manners that can be switched on.
 *
 * 1. A ticket opens one socket. `hello` is the first frame. At most ten sockets; the eleventh is told and closed.
 * 2. An envelope goes to exactly one open socket, chosen at random. An acknowledgement counts whichever attempt it
 *    answers, and one with an unknown envelope id is ignored.
 * 3. Content in an acknowledgement counts only where the envelope said `accepts_response_payload`.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { isObject } from "../blocks/check.js";
import type { SandboxContext } from "../context.js";
import type { SocketFault } from "../control-types.js";
import type { Json, JsonObject } from "../model.js";
import type { Attempt, AttemptResult, Transport } from "./transport.js";

const MAX_CONNECTIONS = 10;
/** Said in `hello`; real connections are refreshed about as often. */
const CONNECTION_TIME_S = 3600;
/** Between the warning frame and the refresh. */
const WARNING_LEAD_MS = 10_000;

interface Connection {
  socket: WebSocket;
  raw: Duplex;
  /** Told to go: gets nothing new. */
  leaving: boolean;
}

interface Pending {
  accepts: boolean;
  settle: (result: AttemptResult) => void;
}

export class SocketTransport implements Transport {
  readonly #ctx: SandboxContext;
  readonly #wss: WebSocketServer;
  readonly #tickets = new Set<string>();
  #connections: Connection[] = [];
  readonly #pending = new Map<string, Pending>();
  /** Acknowledged before, or while no attempt was waiting for it. */
  readonly #ackedLate = new Map<string, unknown>();
  #rude = false;
  #deaf = false;
  #disabled = false;
  #count = 0;

  constructor(ctx: SandboxContext) {
    this.#ctx = ctx;
    // Pongs are sent by hand, so that deafness can be switched on.
    this.#wss = new WebSocketServer({ noServer: true, autoPong: false, clientTracking: true });
  }

  connected(): number {
    return this.#open().length;
  }

  #open(): Connection[] {
    return this.#connections.filter((c) => !c.leaving && c.socket.readyState === c.socket.OPEN);
  }

  /** A one-time url for `apps.connections.open`. */
  newUrl(): string {
    const ticket = this.#ctx.ids.uuid();
    this.#tickets.add(ticket);
    const base = this.#ctx.baseUrl.replace(/^http/u, "ws");
    return `${base}/link/?ticket=${ticket}&app_id=${this.#ctx.app.id}`;
  }

  upgrade(req: IncomingMessage, raw: Duplex, head: Buffer, url: URL): void {
    const ticket = url.searchParams.get("ticket") ?? "";
    if (!this.#tickets.delete(ticket) || this.#ctx.settings.mode !== "socket") {
      raw.end("HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n");
      return;
    }
    this.#wss.handleUpgrade(req, raw, head, (socket) => this.#accept(socket, raw));
  }

  #accept(socket: WebSocket, raw: Duplex): void {
    socket.on("error", () => undefined);
    if (this.#disabled || this.#open().length >= MAX_CONNECTIONS) {
      const reason = this.#disabled ? "link_disabled" : "too_many_websockets";
      this.#note(`refused: ${reason}`);
      socket.send(JSON.stringify({ type: "disconnect", reason, debug_info: { host: "sandbox" } }));
      socket.close(1000);
      return;
    }
    const connection: Connection = { socket, raw, leaving: false };
    this.#connections.push(connection);
    socket.on("ping", (data) => {
      if (!this.#deaf) socket.pong(data);
    });
    socket.on("message", (data) => this.#receive(String(data)));
    socket.on("close", () => {
      this.#connections = this.#connections.filter((c) => c !== connection);
      this.#note("closed");
    });
    this.#count += 1;
    socket.send(
      JSON.stringify({
        type: "hello",
        num_connections: this.#open().length,
        debug_info: {
          host: `sandbox-${this.#count}`,
          build_number: 1,
          approximate_connection_time: CONNECTION_TIME_S,
        },
        connection_info: { app_id: this.#ctx.app.id },
      }),
    );
    this.#note("connected");
  }

  #note(what: string): void {
    this.#ctx.journal.add({ kind: "socket", what, connections: this.#open().length });
    this.#ctx.hub.emit({ type: "connection" });
  }

  #receive(text: string): void {
    let frame: unknown;
    try {
      frame = JSON.parse(text);
    } catch {
      return;
    }
    if (!isObject(frame) || typeof frame["envelope_id"] !== "string") return;
    const id = frame["envelope_id"];
    const pending = this.#pending.get(id);
    const body = frame["payload"] ?? {};
    if (!pending) {
      this.#ackedLate.set(id, body);
      return;
    }
    this.#pending.delete(id);
    pending.settle({ outcome: "acked", body: pending.accepts ? body : {} });
  }

  attempt(attempt: Attempt): Promise<AttemptResult> {
    const { deliveryId } = attempt;
    if (this.#ackedLate.has(deliveryId)) {
      const body = this.#ackedLate.get(deliveryId);
      this.#ackedLate.delete(deliveryId);
      return Promise.resolve({ outcome: "acked", body: attempt.acceptsResponse ? body : {} });
    }
    const open = this.#open();
    const chosen = open[this.#ctx.ids.pick(open.length)];
    if (!chosen) return Promise.resolve({ outcome: "not_connected" });
    const envelope: JsonObject = {
      envelope_id: deliveryId,
      payload: attempt.payload,
      type: attempt.kind,
      accepts_response_payload: attempt.acceptsResponse,
      ...(attempt.kind === "events_api"
        ? { retry_attempt: attempt.retryNum, retry_reason: attempt.retryReason ?? "" }
        : {}),
    };
    const waitMs =
      attempt.kind === "events_api" ? this.#ctx.settings.socketRedeliveryMs : this.#ctx.settings.ackTimeoutMs;
    return new Promise((resolve) => {
      const cancel = this.#ctx.clock.timeout(waitMs, () => {
        this.#pending.delete(deliveryId);
        resolve({ outcome: "timeout" });
      });
      this.#pending.set(deliveryId, {
        accepts: attempt.acceptsResponse,
        settle: (result) => {
          cancel();
          resolve(result);
        },
      });
      chosen.socket.send(JSON.stringify(envelope));
    });
  }

  /** Sends the same envelope again without waiting for it: a duplicate. */
  repeat(attempt: Attempt): void {
    const open = this.#open();
    const envelope: Json = {
      envelope_id: attempt.deliveryId,
      payload: attempt.payload,
      type: attempt.kind,
      accepts_response_payload: attempt.acceptsResponse,
    };
    open[this.#ctx.ids.pick(open.length)]?.socket.send(JSON.stringify(envelope));
  }

  fault(fault: SocketFault): void {
    const targets =
      fault.connection === undefined
        ? this.#open()
        : this.#open().slice(fault.connection, fault.connection + 1);
    switch (fault.kind) {
      case "rude":
        this.#rude = true;
        break;
      case "deaf":
        this.#deaf = true;
        break;
      case "polite":
        this.#rude = false;
        this.#deaf = false;
        break;
      case "enable":
        this.#disabled = false;
        break;
      case "kill":
        for (const connection of targets) connection.raw.destroy();
        break;
      case "link_disabled":
        this.#disabled = true;
        for (const connection of targets) this.#disconnect(connection, "link_disabled");
        break;
      case "refresh":
        for (const connection of targets) this.#disconnect(connection, "refresh_requested");
        break;
      case "warning":
        for (const connection of targets) {
          connection.socket.send(
            JSON.stringify({ type: "disconnect", reason: "warning", debug_info: { host: "sandbox" } }),
          );
          this.#ctx.clock.after(WARNING_LEAD_MS, () => this.#disconnect(connection, "refresh_requested"));
        }
        break;
    }
    this.#note(fault.kind);
  }

  #disconnect(connection: Connection, reason: string): void {
    if (connection.socket.readyState !== connection.socket.OPEN) return;
    connection.leaving = true;
    connection.socket.send(JSON.stringify({ type: "disconnect", reason, debug_info: { host: "sandbox" } }));
    if (this.#rude) {
      // The peer's close frame is never answered and TCP stays open: frames from it are no longer read.
      connection.raw.pause();
      connection.raw.removeAllListeners("data");
      return;
    }
    connection.socket.close(1000);
  }

  async stop(): Promise<void> {
    for (const socket of this.#wss.clients) socket.terminate();
    for (const connection of this.#connections) connection.raw.destroy();
    this.#connections = [];
    for (const pending of this.#pending.values()) pending.settle({ outcome: "not_connected" });
    this.#pending.clear();
    this.#ackedLate.clear();
    this.#tickets.clear();
    this.#wss.close();
  }

  /** Back to good manners; sockets stay open. */
  reset(): void {
    this.#rude = false;
    this.#deaf = false;
    this.#disabled = false;
    this.#ackedLate.clear();
  }
}
