/**
 * Socket Mode: two connections at any time, each a fresh `SocketModeReceiver` that lives for one connection only.
 *
 * The package's own reconnecting is off. It waits after it has closed (5 to 12 seconds deaf, facts B1), ends the process when a
 * reconnect fails (B3, B4), and shares timers between connections (B6). Here instead:
 *
 * 1. When Slack announces that it will close a connection, a replacement says hello first; only then is the announcement let
 *    through, so that the old socket goes on receiving and acknowledging meanwhile.
 * 2. A connection that never says hello is given up after `HELLO_DEADLINE_MS`; `start()` alone would wait for ever.
 * 3. No promise of the package is left without a handler: what fails is a number in `health` and a later try with backoff.
 *    `apps.connections.open` may be tier 1: a Retry-After is waited for, and one open socket is enough meanwhile.
 * 4. An envelope without an inner event (`app_rate_limited`) never reaches the package's code that throws on it (B2).
 */
import { setTimeout as delay } from "node:timers/promises";
import { type ReceiverEvent, SocketModeReceiver } from "@slack/bolt";
import type { SocketModeClient } from "@slack/socket-mode";
import type { JsonObject } from "../../domain/json.js";
import type { Logger } from "../../domain/ports/logger.js";
import { callFailure } from "../call-failure.js";
import { callFailed } from "../counted-client.js";
import type { SlackMetrics } from "../settings.js";
import { refusalCode, sdkLogger, slackRefusedUs } from "../web.js";

export interface SocketOptions {
  readonly appToken: string;
  readonly apiUrl: string;
  readonly log: Logger;
  readonly metrics: Pick<SlackMetrics, "called" | "rateLimited">;
  readonly processEvent: (event: ReceiverEvent) => Promise<void>;
  readonly monotonicMs: () => number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Tests shorten the waits. */
  readonly timing?: Partial<SocketTiming>;
}

export interface SocketTiming {
  readonly connections: number;
  readonly helloDeadlineMs: number;
  readonly backoffBaseMs: number;
  readonly backoffMaxMs: number;
  /** Pongs may be this late before a socket counts as dead; the package's 5 s are too short on a busy host (B15). */
  readonly clientPingTimeoutMs: number;
  readonly closePatienceMs: number;
}

const TIMING: SocketTiming = {
  connections: 2,
  helloDeadlineMs: 20_000,
  backoffBaseMs: 500,
  // apps.connections.open may be tier 1: about one a minute when things go on failing.
  backoffMaxMs: 60_000,
  clientPingTimeoutMs: 15_000,
  closePatienceMs: 5_000,
};

/** The call with which each connection begins. */
const OPEN_SOCKET = "apps.connections.open";

interface Connection {
  readonly receiver: SocketModeReceiver;
  readonly helloAtMs: number;
  readonly appId: string | null;
  lastFrameAtMs: number;
  /** Resolves when the socket is gone, whoever closed it. */
  readonly gone: Promise<void>;
  /** Resolves when Slack announced the end, or the socket is gone. */
  readonly ending: Promise<void>;
  /** Lets the held announcement through: the package closes the socket. */
  close(): void;
}

export interface Sockets {
  /** Resolves when the first connection has said hello; rejects with Slack's refusal of the app token. */
  readonly ready: Promise<void>;
  open(): number;
  youngestHelloMs(): number | null;
  lastFrameMs(): number | null;
  lastError(): string | null;
  /** The app that Slack's hello names; null before the first. */
  appId(): string | null;
  stop(): Promise<void>;
}

export function startSockets(options: SocketOptions): Sockets {
  const timing = { ...TIMING, ...options.timing };
  const live = new Set<Connection>();
  const stopping = new AbortController();
  let lastError: string | null = null;
  let appId: string | null = null;
  let resolveReady: () => void = () => {};
  let rejectReady: (error: Error) => void = () => {};
  const ready = new Promise<void>((resolve, reject) => {
    resolveReady = resolve;
    rejectReady = reject;
  });
  ready.catch(() => {});

  const slot = async (): Promise<void> => {
    let failures = 0;
    let before: Connection | null = null;
    while (!stopping.signal.aborted) {
      try {
        const connection: Connection = await connect(options, timing, stopping.signal);
        options.metrics.called(OPEN_SOCKET, "ok");
        appId = connection.appId ?? appId;
        failures = 0;
        lastError = null;
        live.add(connection);
        void connection.gone.then(() => live.delete(connection));
        resolveReady();
        before?.close();
        before = connection;
        await connection.ending;
      } catch (error) {
        if (stopping.signal.aborted) break;
        lastError = error instanceof Error ? error.message : String(error);
        const refusal = refusalCode(error);
        if (refusal !== null) rejectReady(slackRefusedUs("SLACK_APP_TOKEN", refusal));
        options.log.warn({ error: lastError, failures }, "no socket connection; trying again");
        const failure = callFailure(error);
        if (failure.kind !== "unknown") callFailed(options, OPEN_SOCKET, failure);
        const waitMs = Math.max(
          backoff(timing, failures, options.random()),
          failure.kind === "rate_limited" ? failure.retryAfterMs : 0,
        );
        await delay(waitMs, undefined, {
          signal: stopping.signal,
        }).catch(() => {});
        failures += 1;
      }
    }
    before?.close();
  };
  const slots = Array.from({ length: timing.connections }, slot);

  return {
    ready,
    open: () => live.size,
    youngestHelloMs: () => newest(live, (connection) => connection.helloAtMs),
    lastFrameMs: () => newest(live, (connection) => connection.lastFrameAtMs),
    lastError: () => lastError,
    appId: () => appId,
    stop: async () => {
      stopping.abort();
      for (const connection of live) connection.close();
      const gone = Promise.all([...slots, ...[...live].map((connection) => connection.gone)]);
      const patience = new AbortController();
      await Promise.race([
        gone,
        delay(timing.closePatienceMs, undefined, { signal: patience.signal }).catch(() => {}),
      ]);
      patience.abort();
    },
  };
}

function newest(live: ReadonlySet<Connection>, of: (connection: Connection) => number): number | null {
  return live.size === 0 ? null : Math.max(...[...live].map(of));
}

function backoff(timing: SocketTiming, failures: number, random: number): number {
  const cap = Math.min(timing.backoffMaxMs, timing.backoffBaseMs * 2 ** Math.min(failures, 16));
  return cap * (0.5 + random / 2);
}

/** One connection that has said hello. */
async function connect(
  options: SocketOptions,
  timing: SocketTiming,
  signal: AbortSignal,
): Promise<Connection> {
  const receiver = new SocketModeReceiver({
    appToken: options.appToken,
    logger: sdkLogger(options.log),
    autoReconnectEnabled: false,
    clientPingTimeout: timing.clientPingTimeoutMs,
    // An object of its own: the package writes into it (B7), and must not find `headers` in it (B8).
    installerOptions: {
      clientOptions: {
        slackApiUrl: options.apiUrl,
        retryConfig: { retries: 0 },
        rejectRateLimitedCalls: true,
      },
    },
    processEventErrorHandler: async ({ error }) => {
      options.log.warn(
        { error: String(error) },
        "an envelope was not acknowledged; Slack will send it again",
      );
      return false;
    },
  });
  receiver.init({ processEvent: options.processEvent } as Parameters<typeof receiver.init>[0]);
  const { client } = receiver;

  let announceEnd: () => void = () => {};
  const ending = new Promise<void>((resolve) => {
    announceEnd = resolve;
  });
  const gone = new Promise<void>((resolve) => {
    client.once("disconnected", () => {
      announceEnd();
      resolve();
    });
  });
  const frames = interceptFrames(options, client, announceEnd);

  await sayHello(receiver, timing, signal);
  let closing = false;
  const connection: Connection = {
    receiver,
    helloAtMs: options.monotonicMs(),
    appId: frames.appId(),
    lastFrameAtMs: options.monotonicMs(),
    gone,
    ending,
    close: () => {
      if (closing) return;
      closing = true;
      // Slack's own announcement closes the socket; where there was none, we do. A peer that never answers the close frame is cut
      // off by a second call.
      if (!frames.release()) client.disconnect().catch(() => {});
      const force = setTimeout(() => void client.disconnect().catch(() => {}), timing.closePatienceMs);
      void gone.then(() => clearTimeout(force));
    },
  };
  frames.attach(connection);
  return connection;
}

async function sayHello(
  receiver: SocketModeReceiver,
  timing: SocketTiming,
  signal: AbortSignal,
): Promise<void> {
  const deadline = new AbortController();
  const started = receiver.start().then(
    () => "hello" as const,
    (error: unknown) => {
      throw error instanceof Error ? error : new Error("the socket closed before it said hello");
    },
  );
  const late = delay(timing.helloDeadlineMs, "late" as const, {
    signal: AbortSignal.any([deadline.signal, signal]),
  }).catch(() => "late" as const);
  try {
    const first = await Promise.race([started, late]);
    if (first === "hello") return;
    started.catch(() => {});
    receiver.client.disconnect().catch(() => {});
    throw new Error(`Slack did not say hello within ${timing.helloDeadlineMs} ms`);
  } finally {
    deadline.abort();
  }
}

/**
 * Stands between the socket and the package. The frames that the package handles badly are handled here; all others go through
 * to the listeners that it registered itself.
 */
function interceptFrames(options: SocketOptions, client: SocketModeClient, announceEnd: () => void) {
  const originals = client.listeners("ws_message") as ((data: unknown, isBinary: boolean) => unknown)[];
  client.removeAllListeners("ws_message");
  let connection: Connection | null = null;
  let appId: string | null = null;
  let held: (() => void) | null = null;

  const through = (data: unknown, isBinary: boolean): void => {
    for (const original of originals) {
      Promise.resolve()
        .then(() => original(data, isBinary))
        .catch((error: unknown) =>
          options.log.warn({ error: String(error) }, "a socket frame could not be handled"),
        );
    }
  };
  client.on("ws_message", (data: unknown, isBinary: boolean) => {
    if (connection !== null) connection.lastFrameAtMs = options.monotonicMs();
    const frame = isBinary || typeof data !== "string" ? null : parse(data);
    if (frame?.["type"] === "hello") appId = appOf(frame);
    if (frame?.["type"] === "disconnect") {
      options.log.info(
        { reason: frame["reason"] },
        "Slack is about to close a socket; opening another first",
      );
      held = () => through(data, isBinary);
      announceEnd();
      return;
    }
    if (frame?.["type"] === "events_api" && !hasInnerEvent(frame)) {
      eventless(client, frame);
      return;
    }
    through(data, isBinary);
  });
  return {
    appId: () => appId,
    attach: (to: Connection) => {
      connection = to;
    },
    /** Passes the held announcement on; false when there is none. */
    release: (): boolean => {
      const pass = held;
      held = null;
      pass?.();
      return pass !== null;
    },
  };
}

/** The package would read `event.type` of nothing. Its own event for receivers is made here instead, acknowledgement included. */
function eventless(client: SocketModeClient, frame: JsonObject): void {
  const envelopeId = String(frame["envelope_id"]);
  client.emit("slack_event", {
    ack: (response?: Record<string, unknown>) => client["send"](envelopeId, response),
    envelope_id: envelopeId,
    type: frame["type"],
    body: frame["payload"],
    retry_num: frame["retry_attempt"],
    retry_reason: frame["retry_reason"],
    accepts_response_payload: frame["accepts_response_payload"],
  });
}

function appOf(hello: JsonObject): string | null {
  const info = hello["connection_info"];
  if (typeof info !== "object" || info === null || Array.isArray(info)) return null;
  return typeof info["app_id"] === "string" ? info["app_id"] : null;
}

function hasInnerEvent(frame: JsonObject): boolean {
  const payload = frame["payload"];
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) return false;
  const event = payload["event"];
  return typeof event === "object" && event !== null;
}

function parse(data: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === "object" && value !== null ? (value as JsonObject) : null;
  } catch {
    return null;
  }
}
