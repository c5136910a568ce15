/**
 * The one HTTP server: Slack's requests in HTTP mode, and in both modes the routes that the composition root hands in.
 *
 * Bolt verifies the signature. Before it, this file refuses what Bolt lets through: a timestamp from the future (facts §1.4), and
 * reads what Bolt does not: a form content type with a charset, a body that is `null`.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { HTTPReceiver } from "@slack/bolt";
import type { Logger } from "../../domain/ports/logger.js";
import { ArrivalRefused } from "../inbox/gate.js";
import type { SlackMetrics } from "../settings.js";
import type { HttpRoutes } from "../types.js";
import { sdkLogger } from "../web.js";

const MAX_SKEW_S = 300;
const HEADERS_TIMEOUT_MS = 15_000;
const REQUEST_TIMEOUT_MS = 30_000;
/**
 * Longer than whoever is in front keeps an idle connection (a load balancer: usually 60 s). Closing first would meet a click that is
 * being sent just then, and Slack sends a click once.
 */
const KEEP_ALIVE_MS = 75_000;
const CLOSE_PATIENCE_MS = 5_000;
/** Bolt's own limit. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
const FORM = "application/x-www-form-urlencoded";

export const EVENTS_PATH = "/slack/events";

/** Bolt's receiver without a server of its own; its answers to what the gate refuses are the gate's. */
export function createHttpReceiver(signingSecret: string, log: Logger): HTTPReceiver {
  return new HTTPReceiver({
    signingSecret,
    endpoints: [EVENTS_PATH],
    logger: sdkLogger(log),
    processEventErrorHandler: async ({ error, response }) => {
      const refused = error instanceof ArrivalRefused ? error : null;
      if (refused === null) log.error({ error: String(error) }, "an arrival could not be processed");
      if (!response.headersSent) {
        response.writeHead(
          refused?.status ?? 500,
          refused?.again === false ? { "x-slack-no-retry": "1" } : {},
        );
        response.end();
      }
      // "Acknowledged" here means answered: Bolt must not answer 404 three seconds later.
      return true;
    },
    unhandledRequestHandler: ({ response }) => {
      if (response.headersSent) return;
      log.error({}, "an arrival was not acknowledged within three seconds");
      response.writeHead(503);
      response.end();
    },
  });
}

export interface HttpServer {
  readonly port: number;
  close(): Promise<void>;
}

export interface HttpServerOptions {
  readonly port: number;
  readonly routes: HttpRoutes;
  /** Null in Socket Mode: then nothing is served on Slack's path. */
  readonly receiver: HTTPReceiver | null;
  readonly nowMs: () => number;
  readonly log: Logger;
  readonly metrics: SlackMetrics;
}

/** Listens. Rejects with the server's error (EADDRINUSE) when the port is taken. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const server = createServer((req, res) => serve(options, req, res));
  server.headersTimeout = HEADERS_TIMEOUT_MS;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, () => {
      server.off("error", reject);
      resolve();
    });
  });
  server.on("error", (error) => options.log.error({ error: error.message }, "HTTP server error"));
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : options.port,
    close: () => closeServer(server),
  };
}

function serve(options: HttpServerOptions, req: IncomingMessage, res: ServerResponse): void {
  const path = (req.url ?? "/").split("?", 1)[0] ?? "/";
  const method = (req.method ?? "GET").toUpperCase();
  if (options.receiver !== null && path === EVENTS_PATH && method === "POST") {
    slackRequest(options, options.receiver, req, res);
    return;
  }
  const route = options.routes[`${method} ${path}`];
  if (route === undefined) {
    res.writeHead(404, { "content-type": "text/plain" }).end("not found\n");
    return;
  }
  Promise.resolve()
    .then(() => route(req, res))
    .catch((error: unknown) => {
      options.log.error({ path, error: String(error) }, "a route failed");
      if (!res.headersSent) res.writeHead(500);
      res.end();
    });
}

function slackRequest(
  options: HttpServerOptions,
  receiver: HTTPReceiver,
  req: IncomingMessage,
  res: ServerResponse,
): void {
  const stamp = req.headers["x-slack-request-timestamp"];
  const seconds = typeof stamp === "string" && /^\d{1,12}$/.test(stamp) ? Number(stamp) : null;
  if (seconds === null || Math.abs(options.nowMs() / 1000 - seconds) > MAX_SKEW_S) {
    options.metrics.refused("timestamp");
    res.writeHead(401).end();
    return;
  }
  const type = req.headers["content-type"];
  if (type?.startsWith(`${FORM};`)) req.headers["content-type"] = FORM;
  // Bolt answers a bad signature by itself, before anything of ours sees it.
  res.once("finish", () => {
    if (res.statusCode === 401) options.metrics.refused("signature");
  });
  passOn(receiver, req, res).catch((error: unknown) => {
    options.log.warn({ error: String(error) }, "a request of Slack's could not be read");
    if (!res.headersSent) res.writeHead(400).end();
  });
}

/** Reads the body here and lets Bolt find it read: a body that says `null` would end the process in Bolt's own async handler. */
async function passOn(receiver: HTTPReceiver, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const body = await readBody(req);
  if (body === null) {
    res.writeHead(413, { connection: "close" }).end();
    return;
  }
  if (saysNull(body.toString(), req.headers["content-type"])) {
    res.writeHead(400).end();
    return;
  }
  receiver.requestListener(Object.assign(req, { rawBody: body }), res);
}

/** Null when there is more than Slack ever sends. */
async function readBody(req: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function saysNull(body: string, type: string | undefined): boolean {
  const document = type === FORM ? (new URLSearchParams(body).get("payload") ?? "{}") : body;
  return document.trim() === "null";
}

async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), CLOSE_PATIENCE_MS);
  await closed;
  clearTimeout(timer);
}
