/** Starting and stopping the Slack side of the app role: one HTTP server, Bolt on one of two transports, health. */
import { setTimeout as delay } from "node:timers/promises";
import { App, type HTTPReceiver, type Receiver } from "@slack/bolt";
import { counted } from "../domain/text/counted.js";
import { createGate, type Gate } from "./inbox/gate.js";
import { createTakeBack, type TakeBack } from "./inbox/take-back.js";
import { readAheadOf } from "./listeners/ahead.js";
import { registerListeners } from "./listeners/register.js";
import type { SlackIdentity } from "./settings.js";
import { createHttpReceiver, type HttpServer, startHttpServer } from "./transport/http.js";
import { type IdentityReader, readIdentity } from "./transport/identity.js";
import { type Sockets, type SocketTiming, startSockets } from "./transport/sockets.js";
import type { HttpRoutes, SlackContext, SlackHandle, SlackHealth } from "./types.js";
import { sdkLogger } from "./web.js";

export interface StartOptions {
  /** Other paths on the same port, by `METHOD /path`. */
  readonly routes: HttpRoutes;
  /** Tests shorten the waits of Socket Mode. */
  readonly socketTiming?: Partial<SocketTiming>;
}

/** How long the start waits for Slack before it goes on and connects in the background. */
const READY_PATIENCE_MS = 10_000;
const DRAIN_PATIENCE_MS = 8_000;

/**
 * Starts listening. Resolves when the port is open and Slack has answered, or after ten seconds without Slack, which is then
 * asked on in the background. Rejects with EADDRINUSE, or with `slack_auth` when Slack refuses a token.
 */
export async function startSlack(ctx: SlackContext, options: StartOptions): Promise<SlackHandle> {
  // Nothing could prove that a delivery is Slack's.
  if (ctx.config.transport.mode === "none")
    throw new Error("no secret is set that proves Slack's deliveries");
  const identity = readIdentity(ctx.web, ctx.log, () => ctx.ids.random());
  const socketsRef: SocketsRef = { current: null };
  const takeBack = createTakeBack({ db: ctx.arrivals, ids: ctx.ids, log: ctx.log, monotonicMs });
  const { app, gate, http } = buildApp(ctx, identity, socketsRef, takeBack);
  const server = await startHttpServer({
    port: ctx.config.port,
    routes: options.routes,
    receiver: http,
    nowMs: () => ctx.clock.now().getTime(),
    log: ctx.log,
    metrics: ctx.metrics,
  });
  registerListeners(app, ctx, monotonicMs);
  const sockets = openSockets(ctx, gate, options.socketTiming);
  socketsRef.current = sockets;
  const parts: Parts = { ctx, identity, gate, takeBack, server, sockets };
  try {
    await patiently(Promise.all([identity.known, sockets?.ready]));
  } catch (error) {
    await stop(parts);
    throw error;
  }
  return { port: server.port, health: () => health(parts), stop: () => stop(parts) };
}

const monotonicMs = (): number => performance.now();

interface Parts {
  readonly ctx: SlackContext;
  readonly identity: IdentityReader;
  readonly gate: Gate;
  readonly takeBack: TakeBack;
  readonly server: HttpServer;
  readonly sockets: Sockets | null;
}

interface SocketsRef {
  current: Sockets | null;
}

/** auth.test need not name the app; the sockets' hello does. */
function knownIdentity(identity: IdentityReader, sockets: Sockets | null): SlackIdentity | null {
  const known = identity.current();
  return known === null || known.appId !== null ? known : { ...known, appId: sockets?.appId() ?? null };
}

/** Bolt with the gate in front of it. `authorize` instead of a token: Bolt then never calls auth.test by itself (facts §1.3). */
function buildApp(
  ctx: SlackContext,
  identity: IdentityReader,
  sockets: SocketsRef,
  takeBack: TakeBack,
): { app: App; gate: Gate; http: HTTPReceiver | null } {
  const { transport, botToken, apiUrl } = ctx.config;
  const http = transport.mode === "http" ? createHttpReceiver(transport.signingSecret, ctx.log) : null;
  const app = new App({
    receiver: NO_RECEIVER,
    authorize: async () => {
      const known = await identity.known;
      return {
        botToken,
        botUserId: known.botUserId,
        teamId: known.teamId,
        ...(known.botId === null ? {} : { botId: known.botId }),
        ...(known.enterpriseId === null ? {} : { enterpriseId: known.enterpriseId }),
      };
    },
    convoStore: false,
    logger: sdkLogger(ctx.log),
    clientOptions: { slackApiUrl: apiUrl, retryConfig: { retries: 0 }, rejectRateLimitedCalls: true },
  });
  const gate = createGate({
    ctx,
    app,
    takeBack,
    identity: () => knownIdentity(identity, sockets.current),
    monotonicMs,
    readAhead: (arrival) => readAheadOf(ctx, arrival),
  });
  http?.init({ processEvent: (event) => gate.processEvent(event) } as Parameters<HTTPReceiver["init"]>[0]);
  return { app, gate, http };
}

/** Bolt wants one receiver; ours are wired to the gate, which is wired to Bolt. */
const NO_RECEIVER: Receiver = { init: () => {}, start: async () => undefined, stop: async () => undefined };

function openSockets(
  ctx: SlackContext,
  gate: Gate,
  timing: Partial<SocketTiming> | undefined,
): Sockets | null {
  const { transport, apiUrl } = ctx.config;
  if (transport.mode !== "socket") return null;
  return startSockets({
    appToken: transport.appToken,
    apiUrl,
    log: ctx.log,
    metrics: ctx.metrics,
    processEvent: (event) => gate.processEvent(event),
    monotonicMs,
    random: () => ctx.ids.random(),
    ...(timing === undefined ? {} : { timing }),
  });
}

async function patiently(ready: Promise<unknown>): Promise<void> {
  const patience = new AbortController();
  const late = delay(READY_PATIENCE_MS, undefined, { signal: patience.signal }).catch(() => {});
  try {
    await Promise.race([ready, late]);
  } finally {
    patience.abort();
  }
}

function health({ identity, sockets }: Parts): SlackHealth {
  const known = identity.current() !== null;
  if (sockets === null) {
    const detail = known
      ? "listening for Slack"
      : `Slack does not answer: ${identity.lastError() ?? "not asked yet"}`;
    return { connected: known, mode: "http", sockets: 0, socketAgeMs: null, silentMs: null, detail };
  }
  const now = monotonicMs();
  const hello = sockets.youngestHelloMs();
  const frame = sockets.lastFrameMs();
  const open = sockets.open();
  const why = sockets.lastError() ?? identity.lastError();
  const socketAgeMs = hello === null ? null : Math.round(now - hello);
  const silentMs = frame === null ? null : Math.round(now - frame);
  return {
    connected: known && open > 0,
    mode: "socket",
    sockets: open,
    socketAgeMs,
    silentMs,
    detail:
      open > 0
        ? `${counted(open, "connection")}, the newest ${ago(socketAgeMs)} old; last heard ${ago(silentMs)} ago.`
        : `No connection: ${why ?? "connecting"}.`,
  };
}

const ago = (ms: number | null): string => (ms === null ? "an unknown time" : `${Math.round(ms / 1000)} s`);

async function stop({ ctx, identity, gate, takeBack, server, sockets }: Parts): Promise<void> {
  identity.stop();
  await Promise.all([sockets?.stop(), server.close()]);
  const until = monotonicMs() + DRAIN_PATIENCE_MS;
  while (gate.busy() > 0 && monotonicMs() < until) await delay(50);
  if (gate.busy() > 0) ctx.log.warn({ busy: gate.busy() }, "stopped while arrivals were still worked on");
  await takeBack.stop();
}
