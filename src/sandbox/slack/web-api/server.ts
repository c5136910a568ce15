/**
 * Answers one Web API call: fault, method, token, scope, rate, arguments, then the method itself.
 *
 * 1. Business errors are HTTP 200; only rate limits are 429, with an integer Retry-After.
 * 2. In strict mode (the default) an unknown method or argument fails loudly: nothing is accepted and ignored.
 * 3. Every call is in the journal with what it was answered, also when the answer was dropped on purpose.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { ApiError } from "../app-post.js";
import type { SandboxContext } from "../context.js";
import type { ApiFault } from "../control-types.js";
import type { Json, JsonObject } from "../model.js";
import { CHAT } from "./chat.js";
import { CONVERSATIONS } from "./conversations.js";
import type { Method } from "./method.js";
import { parseCall, type RawCall, readBody, typedArgs } from "./parse.js";
import { PEOPLE_METHODS } from "./people.js";
import type { RateLimiter } from "./rate-limit.js";
import { REACTIONS } from "./reactions.js";
import { STREAMS } from "./streams.js";
import { VIEWS } from "./views.js";

export const APP_SCOPES = ["connections:write"];

export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: JsonObject;
}

export interface WebApi {
  handle(req: IncomingMessage, res: ServerResponse, url: URL): Promise<void>;
}

/** `openConnection` gives a new Socket Mode url. */
export function createWebApi(
  ctx: SandboxContext,
  limiter: RateLimiter,
  openConnection: () => string,
): WebApi {
  const methods: Record<string, Method> = {
    ...CHAT,
    ...STREAMS,
    ...CONVERSATIONS,
    ...PEOPLE_METHODS,
    ...REACTIONS,
    ...VIEWS,
    "apps.connections.open": {
      scopes: APP_SCOPES,
      token: "app",
      // Sources disagree (tier 1 or 3): the strict one, unless a test of many restarts asks for the other.
      get tier() {
        return ctx.settings.connectionTier;
      },
      args: {},
      run: () => ({ url: openConnection() }),
    },
  };
  return {
    async handle(req, res, url) {
      const name = url.pathname.slice("/api/".length);
      const call = parseCall(req, url, await readBody(req));
      const channel = call.args["channel"];
      const fault = ctx.faults.takeApi(name, typeof channel === "string" ? channel : undefined);
      const early = fault ? earlyAnswer(fault) : null;
      const answer =
        early === "no_answer" ? null : (early ?? (await perform(ctx, limiter, methods, name, call)));
      ctx.journal.add({
        kind: "api",
        method: name,
        args: readable(call.args),
        status: answer?.status ?? null,
        response: answer?.body ?? null,
        fault: fault?.id ?? null,
      });
      await reply(ctx, req, res, answer, fault);
    },
  };
}

/** JSON arguments of a form are shown as JSON in the journal. */
function readable(args: JsonObject): JsonObject {
  const shown: JsonObject = {};
  for (const [name, value] of Object.entries(args)) {
    shown[name] = value;
    if (typeof value !== "string" || !/^[[{]/u.test(value)) continue;
    try {
      shown[name] = JSON.parse(value) as Json;
    } catch {
      // Shown as it came.
    }
  }
  return shown;
}

/** What a fault answers instead of the method; null when the method runs first. */
function earlyAnswer(fault: ApiFault): Answer | "no_answer" | null {
  switch (fault.kind) {
    case "error":
      return { status: 200, headers: {}, body: { ok: false, error: fault.error ?? "internal_error" } };
    case "ratelimited":
      return rateLimited(fault.retryAfterSeconds ?? 1);
    case "http":
      return { status: fault.status ?? 503, headers: {}, body: { ok: false, error: "service_unavailable" } };
    case "reset":
    case "hang":
      return "no_answer";
    case "accept_then_drop":
    case "delay":
      return null;
  }
}

function rateLimited(seconds: number): Answer {
  return {
    status: 429,
    headers: { "retry-after": String(seconds) },
    body: { ok: false, error: "ratelimited" },
  };
}

async function reply(
  ctx: SandboxContext,
  req: IncomingMessage,
  res: ServerResponse,
  answer: Answer | null,
  fault: ApiFault | null,
): Promise<void> {
  if (fault?.kind === "reset" || fault?.kind === "accept_then_drop") {
    req.socket.resetAndDestroy();
    return;
  }
  if (answer === null) return;
  if (fault?.kind === "delay") {
    await new Promise<void>((resolve) => {
      ctx.clock.timeout(fault.delayMs ?? 5_000, resolve);
    });
  }
  if (res.destroyed) return;
  res.writeHead(answer.status, {
    "content-type": "application/json; charset=utf-8",
    "cache-control": "no-store",
    "x-slack-req-id": ctx.ids.hex(32),
    ...answer.headers,
  });
  res.end(JSON.stringify(answer.body));
}

async function perform(
  ctx: SandboxContext,
  limiter: RateLimiter,
  methods: Record<string, Method>,
  name: string,
  call: RawCall,
): Promise<Answer> {
  const headers: Record<string, string> = {};
  try {
    const method = Object.hasOwn(methods, name) ? methods[name] : undefined;
    if (!method) throw new ApiError("unknown_method", { req_method: name });
    if (call.error) throw new ApiError(call.error);
    const kind = tokenKind(ctx, name, call);
    if (method.token !== "any" && method.token !== kind) throw new ApiError("not_allowed_token_type");
    const { args, unreadable, unknown } = typedArgs(call.args, method.args);
    scopesGranted(ctx, method, kind, args, headers);
    const target = typeof args["channel"] === "string" ? args["channel"] : undefined;
    if (ctx.settings.rateLimits) {
      const wait = limiter.take(name, method.tier, target);
      if (wait !== null) {
        const limited = rateLimited(wait);
        return { ...limited, headers: { ...headers, ...limited.headers } };
      }
    }
    if (unreadable !== null) throw unreadableError(unreadable);
    if (unknown.length > 0 && ctx.settings.strict) throw unknownArguments(unknown);
    return { status: 200, headers, body: withWarning({ ok: true, ...(await method.run(ctx, args)) }, call) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return {
      status: 200,
      headers,
      body: withWarning({ ok: false, error: error.code, ...error.extra }, call),
    };
  }
}

/** Which token this is. Throws `not_authed`, `invalid_auth`, `account_inactive` or `token_revoked`. */
function tokenKind(ctx: SandboxContext, name: string, call: RawCall): "bot" | "app" {
  // The app-level token is taken from the header only.
  const token = name === "apps.connections.open" ? call.headerToken : (call.headerToken ?? call.argToken);
  if (token === undefined || token === "") throw new ApiError("not_authed");
  if (token === ctx.tokens.bot) {
    if (ctx.settings.installation === "uninstalled") throw new ApiError("account_inactive");
    if (ctx.settings.installation === "token_revoked") throw new ApiError("token_revoked");
    return "bot";
  }
  if (token === ctx.tokens.app) return "app";
  throw new ApiError("invalid_auth");
}

function scopesGranted(
  ctx: SandboxContext,
  method: Method,
  kind: "bot" | "app",
  args: JsonObject,
  headers: Record<string, string>,
): void {
  const granted = kind === "app" ? APP_SCOPES : ctx.app.scopes;
  const needed = typeof method.scopes === "function" ? method.scopes(ctx, args) : method.scopes;
  headers["x-oauth-scopes"] = granted.join(",");
  headers["x-accepted-oauth-scopes"] = needed.join(",");
  if (needed.length === 0 || needed.some((scope) => granted.includes(scope))) return;
  throw new ApiError("missing_scope", { needed: needed.join(","), provided: granted.join(",") });
}

function unreadableError(name: string): ApiError {
  if (name === "blocks") return new ApiError("invalid_blocks_format");
  if (name === "metadata") return new ApiError("invalid_metadata_format");
  return new ApiError("invalid_arguments", {
    response_metadata: { messages: [`[ERROR] invalid \`${name}\` [json-pointer:/${name}]`] },
  });
}

/** The sandbox's own code: Slack would ignore most of these, and a mistake would go unseen. */
function unknownArguments(names: string[]): ApiError {
  return new ApiError("sandbox_unknown_argument", {
    response_metadata: {
      messages: names.map(
        (n) => `[ERROR] the sandbox does not know the argument \`${n}\` [json-pointer:/${n}]`,
      ),
    },
  });
}

function withWarning(body: JsonObject, call: RawCall): JsonObject {
  if (call.warning === null) return body;
  const metadata = body["response_metadata"];
  return {
    ...body,
    warning: call.warning,
    response_metadata: {
      ...(typeof metadata === "object" && metadata !== null && !Array.isArray(metadata) ? metadata : {}),
      warnings: [call.warning],
    },
  };
}
