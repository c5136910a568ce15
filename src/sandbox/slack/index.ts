/**
 * A Slack workspace on this machine: Web API, Socket Mode, signed HTTP, control API and page on one port.
 * What it promises is in docs/sandbox.md; what it refuses is tested statement by statement in test/sandbox/slack.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { type ClockOptions, SandboxClock } from "./clock.js";
import { type SandboxContext, WorkCount } from "./context.js";
import { createControl } from "./control.js";
import { createControlHttp } from "./control-http.js";
import type { ProductReadPort, SettingsView, SlackSandboxControl } from "./control-types.js";
import { Dispatcher } from "./delivery/dispatcher.js";
import { HttpTransport } from "./delivery/http-transport.js";
import { SocketTransport } from "./delivery/socket-transport.js";
import { Faults } from "./faults.js";
import { refusal } from "./guard.js";
import { Hub } from "./hub.js";
import { Journal } from "./journal.js";
import { readManifest } from "./manifest.js";
import { readStored, Store } from "./persistence.js";
import { passOn } from "./proxy.js";
import { json } from "./reply.js";
import { useResponseUrl } from "./response-url.js";
import { APP_IDS, DEFAULT_MANIFEST, HOME_TEAM, seedWorkspace } from "./seed.js";
import { SeededIds } from "./seeded-ids.js";
import { servePage } from "./static-page.js";
import { readBody } from "./web-api/parse.js";
import { RateLimiter } from "./web-api/rate-limit.js";
import { createWebApi } from "./web-api/server.js";

export * from "./control-types.js";

export interface SlackSandboxOptions {
  /** Default 4010; 0 takes any free one. */
  port?: number;
  /** Addresses of this machine only. Default 127.0.0.1. */
  host?: "127.0.0.1" | "::1" | "localhost";
  /** Ids and hashes come from it. Default `countersign`. */
  seed?: string;
  signingSecret?: string;
  botToken?: string;
  appToken?: string;
  mode: "socket" | "http";
  /** HTTP mode: where the app listens, for example `http://127.0.0.1:3000/slack/events`. */
  requestUrl?: string;
  clock?: ClockOptions;
  /** Default true. */
  rateLimits?: boolean;
  /** Other switches of {@link SettingsView}; each has Slack's documented default. */
  settings?: Partial<SettingsView>;
  /** The app's manifest as JSON; scopes, events, commands and shortcuts come from it. */
  manifest?: unknown;
  /** JSON file that keeps the workspace between starts; none: in memory only. */
  stateFile?: string;
  /** Files of the page. Default: `page` beside this directory. */
  pageDir?: string;
  productReadPort?: ProductReadPort;
  /** Base url of the payments sandbox's control API, reached through `/sandbox/payments/`. */
  paymentsControlUrl?: string;
}

export interface SlackSandbox {
  /** `http://127.0.0.1:4010` */
  url: string;
  /** For `SLACK_API_URL`; ends in `/api/`. */
  apiUrl: string;
  signingSecret: string;
  botToken: string;
  appToken: string;
  control: SlackSandboxControl;
  /** Closes every socket and timer, stores the workspace. */
  stop(): Promise<void>;
}

/** Tokens of the local workspace. They open nothing but this sandbox. */
export const SANDBOX_CREDENTIALS = {
  botToken: "xoxb-sandbox-countersign",
  appToken: "xapp-1-A_CS-sandbox",
  signingSecret: "sandbox-signing-secret",
} as const;

function defaultSettings(options: SlackSandboxOptions): SettingsView {
  return {
    mode: options.mode,
    strict: true,
    rateLimits: options.rateLimits ?? true,
    delayedEvents: false,
    orgInstall: false,
    freePlan: false,
    installation: "installed",
    editsNotify: false,
    retryInteractivity: false,
    responseUrlGoneStatus: 404,
    metadataMaxBytes: 8000,
    socketRedeliveryMs: 3000,
    connectionTier: "tier1",
    ackTimeoutMs: 3000,
    ...options.settings,
  };
}

/** Starts the sandbox. Rejects when the port is taken (`EADDRINUSE`), the manifest is bad or the state file is unreadable. */
export async function startSlackSandbox(options: SlackSandboxOptions): Promise<SlackSandbox> {
  const clock = new SandboxClock(options.clock);
  const seed = options.seed ?? "countersign";
  const stored = options.stateFile === undefined ? null : readStored(options.stateFile);
  const hub = new Hub();
  const limiter = new RateLimiter(clock);
  let store: Store | null = null;
  const ctx: SandboxContext = {
    team: HOME_TEAM,
    app: readManifest(options.manifest ?? DEFAULT_MANIFEST, APP_IDS),
    tokens: {
      bot: options.botToken ?? SANDBOX_CREDENTIALS.botToken,
      app: options.appToken ?? SANDBOX_CREDENTIALS.appToken,
      signingSecret: options.signingSecret ?? SANDBOX_CREDENTIALS.signingSecret,
      verification: "sandbox-verification-token",
    },
    baseUrl: "",
    clock,
    ids: new SeededIds(seed, stored?.ids),
    data: stored ?? seedWorkspace(clock.now(), new SeededIds(seed).state),
    hub,
    journal: new Journal(clock, hub),
    faults: new Faults(hub),
    settings: defaultSettings(options),
    requestUrl: options.requestUrl ?? null,
    ephemerals: [],
    modals: new Map(),
    triggers: new Map(),
    responseUrls: new Map(),
    scheduled: new Map(),
    delivery: {
      event: async () => false,
      interaction: async () => ({ acked: false, error: "not_connected" }),
    },
    work: new WorkCount(),
    dirty: () => store?.dirty(),
  };
  if (options.stateFile !== undefined) {
    store = new Store(options.stateFile, clock, () => ({ ...ctx.data, ids: ctx.ids.state }));
  }
  const http = new HttpTransport(ctx);
  const socket = new SocketTransport(ctx);
  const dispatcher = new Dispatcher(ctx, http, socket);
  ctx.delivery = dispatcher;
  const reset = async (): Promise<void> => {
    // What is on its way ends first, so that nothing of the old workspace turns up in the new one.
    clock.release();
    dispatcher.reset();
    await ctx.work.idle();
    clock.reset();
    socket.reset();
    limiter.clear();
    ctx.ids = new SeededIds(seed);
    ctx.data = seedWorkspace(clock.now(), ctx.ids.state);
    ctx.settings = { ...defaultSettings(options), mode: ctx.settings.mode };
    ctx.faults.clear();
    ctx.journal.clear();
    ctx.ephemerals = [];
    for (const map of [ctx.modals, ctx.triggers, ctx.responseUrls, ctx.scheduled]) map.clear();
    ctx.dirty();
    hub.emit({ type: "reset" });
  };
  const control = createControl(ctx, { http, socket, dispatcher, reset });
  const api = createWebApi(ctx, limiter, () => socket.newUrl());
  const controlHttp = createControlHttp(ctx, control, options.productReadPort);
  const pageDir = options.pageDir ?? fileURLToPath(new URL("../page", import.meta.url));

  const server = createServer((req, res) => {
    void route(req, res).catch((error: unknown) => {
      // A fault of the sandbox itself: seen in the journal, never only as a closed connection.
      const request = {
        path: req.url ?? "",
        error: error instanceof Error ? (error.stack ?? error.message) : "?",
      };
      ctx.journal.add({ kind: "admin", what: "sandbox_error", request });
      if (!res.headersSent) json(res, 500, { ok: false, error: "fatal_error" });
      else res.destroy();
    });
  });

  async function route(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const url = new URL(req.url ?? "/", ctx.baseUrl);
    const path = url.pathname;
    const isControl = path.startsWith("/sandbox/");
    const why = refusal(req, port(), isControl);
    if (why !== null) return json(res, 403, { ok: false, error: "forbidden", message: why });
    if (path.startsWith("/api/")) return api.handle(req, res, url);
    if (path.startsWith("/hooks/") && req.method === "POST") {
      const answer = useResponseUrl(ctx, path, await readBody(req));
      return json(res, answer.status, answer.body);
    }
    if (path.startsWith("/sandbox/payments/") && options.paymentsControlUrl !== undefined) {
      return passOn(
        req,
        res,
        options.paymentsControlUrl,
        path.slice("/sandbox/payments/".length) + url.search,
      );
    }
    if (isControl) return controlHttp.handle(req, res, path.slice("/sandbox/".length), url);
    if (req.method === "GET") return servePage(res, pageDir, path);
    return json(res, 404, { ok: false, error: "not_found" });
  }

  const port = (): number => (server.address() as AddressInfo | null)?.port ?? 0;
  server.on("upgrade", (req, raw, head) => {
    const url = new URL(req.url ?? "/", ctx.baseUrl);
    if (url.pathname !== "/link/" || refusal(req, port(), false) !== null) {
      raw.end("HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n");
      return;
    }
    socket.upgrade(req, raw, head, url);
  });

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 4010, options.host ?? "127.0.0.1", () => {
      server.off("error", reject);
      resolve();
    });
  });
  const name = options.host === "::1" ? "[::1]" : (options.host ?? "127.0.0.1");
  ctx.baseUrl = `http://${name}:${port()}`;

  return {
    url: ctx.baseUrl,
    apiUrl: `${ctx.baseUrl}/api/`,
    signingSecret: ctx.tokens.signingSecret,
    botToken: ctx.tokens.bot,
    appToken: ctx.tokens.app,
    control,
    async stop() {
      clock.stop();
      dispatcher.reset();
      await socket.stop();
      await http.stop();
      server.closeAllConnections();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      store?.flush();
    },
  };
}
