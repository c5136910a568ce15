/** The HTTP front: authentication, decoding, the sockets' end of each fault, and the control paths. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { assertNever } from "../../domain/assert-never.js";
import { API_VERSION } from "./engine.js";
import { type FormObject, FormSyntaxError, parseForm } from "./form.js";
import type { Incoming, Pipeline } from "./pipeline.js";
import { type Delivery, errorReply, type Reply, replyWith, serverErrorReply } from "./reply.js";
import { WireError, wireErrors } from "./wire-error.js";

const MAX_BODY_BYTES = 1_000_000;
/** Longer than any client keeps an idle connection, so that the server is not the one to close it. */
const KEEP_ALIVE_MS = 65_000;

export interface ServerContext {
  secretKey: string;
  pipeline: Pipeline;
  /** Answers paths under `/_control/`. */
  control(method: string, path: string, query: URLSearchParams, body: string): Promise<Reply>;
  nextRequestId(): { ordinal: number; id: string };
  /** Writes the request down before anything is done about it. */
  note(
    request: Omit<Incoming, "requestId" | "operationId">,
    identity: { ordinal: number; id: string },
  ): Promise<void>;
  onError(error: unknown): void;
}

export interface RunningServer {
  port: number;
  /** Ends every connection at once. */
  close(): Promise<void>;
}

/** @throws the listen error, for instance EADDRINUSE */
export async function startServer(
  ctx: ServerContext,
  listen: { host: string; port: number },
): Promise<RunningServer> {
  const server = createServer((request, response) => {
    void serve(ctx, request, response).catch((error: unknown) => {
      ctx.onError(error);
      if (!response.headersSent && !response.destroyed)
        sendReply(response, "req_error", null, serverErrorReply());
    });
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.headersTimeout = KEEP_ALIVE_MS + 1_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(listen.port, listen.host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  return { port: portOf(server), close: () => closeServer(server) };
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the payments sandbox has no port");
  return address.port;
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

async function serve(ctx: ServerContext, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", "http://sandbox.local");
  const body = await readBody(request);
  if (url.pathname.startsWith("/_control/")) {
    const refused = refuseCrossSite(request);
    const reply =
      refused ??
      (await ctx.control(
        request.method ?? "GET",
        url.pathname.slice("/_control".length),
        url.searchParams,
        body ?? "",
      ));
    sendReply(response, "control", null, reply);
    return;
  }
  const identity = ctx.nextRequestId();
  const key = headerOf(request, "idempotency-key");
  const delivery = await answer(ctx, request, url, body, identity, key);
  transmit(response, identity.id, key, delivery, request.socket);
}

async function answer(
  ctx: ServerContext,
  request: IncomingMessage,
  url: URL,
  body: string | null,
  identity: { ordinal: number; id: string },
  key: string | null,
): Promise<Delivery> {
  try {
    const method = request.method ?? "GET";
    checkKey(ctx.secretKey, headerOf(request, "authorization"));
    if (method !== "GET" && method !== "POST" && method !== "DELETE") {
      throw wireErrors.unknownUrl(method, url.pathname);
    }
    const form = decode(request, method, url, body);
    const incoming = {
      method,
      path: url.pathname.length > 1 ? url.pathname.replace(/\/$/, "") : url.pathname,
      form,
      idempotencyKey: key,
      paymentIntent: typeof form["payment_intent"] === "string" ? form["payment_intent"] : null,
    } as const;
    await ctx.note(incoming, identity);
    return await ctx.pipeline.handle({
      ...incoming,
      requestId: identity.id,
      operationId: operationIdOf(form),
    });
  } catch (error) {
    if (error instanceof WireError) return replyWith(errorReply(error));
    throw error;
  }
}

function checkKey(secretKey: string, authorization: string | null): void {
  if (authorization === null) throw wireErrors.noKey();
  const [scheme = "", credentials = ""] = authorization.split(" ");
  const given =
    scheme.toLowerCase() === "basic"
      ? (Buffer.from(credentials, "base64").toString("utf8").split(":")[0] ?? "")
      : credentials;
  if (given !== secretKey) throw wireErrors.badKey(given.slice(-4));
}

function decode(request: IncomingMessage, method: string, url: URL, body: string | null): FormObject {
  try {
    if (method === "GET") return parseForm(url.search.slice(1));
    if (body === null) throw wireErrors.bodyTooLarge();
    const type = headerOf(request, "content-type") ?? "";
    if (body !== "" && !type.startsWith("application/x-www-form-urlencoded"))
      throw wireErrors.badContentType();
    return parseForm(body === "" ? url.search.slice(1) : body);
  } catch (error) {
    if (error instanceof FormSyntaxError) throw wireErrors.badForm(error.key);
    throw error;
  }
}

function operationIdOf(form: FormObject): string | null {
  const { metadata } = form;
  if (metadata === undefined || typeof metadata === "string" || Array.isArray(metadata)) return null;
  const id = metadata["operation_id"];
  return typeof id === "string" ? id : null;
}

function headerOf(request: IncomingMessage, name: string): string | null {
  const value = request.headers[name];
  const text = Array.isArray(value) ? value[0] : value;
  return text === undefined || text === "" ? null : text;
}

/** The body as text; null when it is too large (the rest is read and dropped). */
async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    const bytes = chunk as Buffer;
    size += bytes.length;
    if (size <= MAX_BODY_BYTES) chunks.push(bytes);
  }
  return size > MAX_BODY_BYTES ? null : Buffer.concat(chunks).toString("utf8");
}

/** A page on another site must not be able to switch faults: it may not set this header without asking. */
function refuseCrossSite(request: IncomingMessage): Reply | null {
  if (request.method === "GET" || request.method === "DELETE") return null;
  if ((headerOf(request, "content-type") ?? "").startsWith("application/json")) return null;
  return {
    status: 415,
    body: JSON.stringify({ error: "control requests are application/json" }),
    headers: {},
  };
}

function transmit(
  response: ServerResponse,
  requestId: string,
  key: string | null,
  delivery: Delivery,
  socket: Socket,
): void {
  switch (delivery.kind) {
    case "reply":
      sendReply(response, requestId, key, delivery.reply);
      return;
    case "drop":
      hangUp(socket, delivery.close);
      return;
    case "silence":
      return;
    case "half": {
      const { reply, ending } = delivery;
      const bytes = Buffer.from(reply.body, "utf8");
      response.writeHead(reply.status, {
        ...headersFor(requestId, key, reply),
        "content-length": bytes.length,
      });
      response.write(bytes.subarray(0, Math.floor(bytes.length / 2)), () => {
        if (ending !== "silence") hangUp(socket, ending);
      });
      return;
    }
    default:
      assertNever(delivery, "delivery");
  }
}

function hangUp(socket: Socket, how: "reset" | "close"): void {
  if (how === "reset") socket.resetAndDestroy();
  else socket.destroy();
}

function sendReply(response: ServerResponse, requestId: string, key: string | null, reply: Reply): void {
  if (response.destroyed) return;
  const bytes = Buffer.from(reply.body, "utf8");
  response.writeHead(reply.status, { ...headersFor(requestId, key, reply), "content-length": bytes.length });
  response.end(bytes);
}

function headersFor(requestId: string, key: string | null, reply: Reply): Record<string, string> {
  return {
    "content-type": "application/json",
    "request-id": requestId,
    "stripe-version": API_VERSION,
    ...(key === null ? {} : { "idempotency-key": key }),
    ...reply.headers,
  };
}
