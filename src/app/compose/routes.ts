/** The product's own paths beside Slack's: the provider's webhooks, health, metrics. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type DispatchCtx, storeWebhook } from "../../dispatch/index.js";
import type { HttpRoutes } from "../../slack/index.js";
import type { Metrics } from "../../telemetry/index.js";
import { systemClock } from "../system.js";

/** A webhook is a few kilobytes; more is no webhook. */
const MAX_WEBHOOK_BYTES = 1_048_576;

export interface Readiness {
  /** Each part that the product needs, and a sentence. */
  check(): Promise<readonly { part: string; ok: boolean; detail: string }[]>;
}

export function routes(parts: { dispatch: DispatchCtx; metrics: Metrics; readiness: Readiness }): HttpRoutes {
  return {
    "POST /webhooks/stripe": async (req, res) => {
      const came = await stripeWebhook(parts.dispatch, req, res);
      if (came === "forged") parts.metrics.forbidden("webhook");
      if (came === "unused") parts.metrics.webhookUnused();
    },
    "GET /healthz": (_req, res) => answer(res, 200, { ok: true }),
    "GET /readyz": async (_req, res) => {
      const checks = await parts.readiness.check();
      const ok = checks.every((check) => check.ok);
      answer(res, ok ? 200 : 503, { ok, checks });
    },
    "GET /metrics": async (_req, res) => {
      const { contentType, body } = await parts.metrics.expose();
      res.writeHead(200, { "content-type": contentType }).end(body);
    },
  };
}

/** Of a process that waits for its database: alive, not ready, and whoever delivers something is to come again. */
export function waitingRoutes(detail: () => string): HttpRoutes {
  const later: HttpRoutes[string] = (_req, res) => answer(res, 503, { error: detail() });
  return {
    "GET /healthz": (_req, res) => answer(res, 200, { ok: true }),
    "GET /readyz": (_req, res) =>
      answer(res, 503, { ok: false, checks: [{ part: "database", ok: false, detail: detail() }] }),
    "POST /webhooks/stripe": later,
    "POST /slack/events": later,
  };
}

/**
 * Acknowledged once it is stored; a bad signature stores nothing. What comes from the provider and is of no use is acknowledged, too: it
 * would only come again, and in the end the provider would switch the endpoint off.
 */
async function stripeWebhook(
  dispatch: DispatchCtx,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<"answered" | "unused" | "forged"> {
  const body = await readBody(req);
  if (body === null) {
    answer(res, 413, { error: "the body is larger than 1 MiB" });
    return "answered";
  }
  const signature = req.headers["stripe-signature"];
  const stored = await storeWebhook(
    dispatch,
    body,
    typeof signature === "string" ? signature : undefined,
    systemClock.now(),
  );
  if (stored.stored) {
    answer(res, 200, { received: true });
    return "answered";
  }
  if (stored.why === "unused") answer(res, 200, { received: true });
  else answer(res, 400, { error: stored.reason });
  return stored.why;
}

async function readBody(req: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req) {
    if (!Buffer.isBuffer(chunk)) continue;
    size += chunk.length;
    if (size > MAX_WEBHOOK_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function answer(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { "content-type": "application/json" }).end(`${JSON.stringify(body)}\n`);
}
