/**
 * Signed HTTP deliveries to the request url.
 *
 * 1. The signature covers exactly the bytes that are sent.
 * 2. Events are `application/json`; everything else is `application/x-www-form-urlencoded`, without a charset.
 * 3. No event leaves before the url has echoed a challenge; the check is made before the first event and on demand.
 */
import { createHmac } from "node:crypto";
import { Agent, type IncomingMessage, request } from "node:http";
import { isObject } from "../blocks/check.js";
import type { SandboxContext } from "../context.js";
import type { JsonObject } from "../model.js";
import type { Attempt, AttemptResult, Transport } from "./transport.js";

/** `v0=` and the HMAC of `v0:timestamp:body`. Source: Slack's page on verifying requests. */
export function signature(secret: string, timestamp: string, body: string): string {
  return `v0=${createHmac("sha256", secret).update(`v0:${timestamp}:${body}`).digest("hex")}`;
}

interface HttpAnswer {
  status: number;
  headers: IncomingMessage["headers"];
  body: string;
}

type Sent = HttpAnswer | "timeout" | "connection_failed";

/** A JSON or text body as the app meant it. */
function readAnswer(answer: HttpAnswer): unknown {
  if (answer.body.trim() === "") return {};
  if ((answer.headers["content-type"] ?? "").includes("application/json")) {
    try {
      return JSON.parse(answer.body) as unknown;
    } catch {
      return undefined;
    }
  }
  try {
    const parsed: unknown = JSON.parse(answer.body);
    return isObject(parsed) ? parsed : answer.body;
  } catch {
    return answer.body;
  }
}

export class HttpTransport implements Transport {
  readonly #ctx: SandboxContext;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 50 });
  #verifiedUrl: string | null = null;

  constructor(ctx: SandboxContext) {
    this.#ctx = ctx;
  }

  connected(): number {
    return this.#ctx.requestUrl !== null && this.#verifiedUrl === this.#ctx.requestUrl ? 1 : 0;
  }

  /** Sends `url_verification`; true when the challenge came back. */
  async verify(): Promise<boolean> {
    const challenge = this.#ctx.ids.hex(40);
    const body = JSON.stringify({
      token: this.#ctx.tokens.verification,
      challenge,
      type: "url_verification",
    });
    const sent = await this.#send(body, "application/json", {});
    const echoed = typeof sent === "object" && sent.status === 200 && challengeOf(sent) === challenge;
    this.#verifiedUrl = echoed ? this.#ctx.requestUrl : null;
    this.#ctx.journal.add({
      kind: "delivery",
      transport: "http",
      type: "url_verification",
      id: challenge.slice(0, 8),
      attempt: 1,
      payload: { type: "url_verification", challenge },
      outcome: echoed ? "acked" : typeof sent === "object" ? "http_error" : sent,
      response: typeof sent === "object" ? sent.body : null,
      tookMs: null,
    });
    this.#ctx.hub.emit({ type: "connection" });
    return echoed;
  }

  async attempt(attempt: Attempt): Promise<AttemptResult> {
    if (this.#ctx.requestUrl === null) return { outcome: "not_connected" };
    if (attempt.kind === "events_api" && this.connected() === 0 && !(await this.verify())) {
      return { outcome: "not_connected" };
    }
    const json = attempt.kind === "events_api";
    const body = json ? JSON.stringify(attempt.payload) : formBody(attempt);
    const headers: Record<string, string> = {};
    if (attempt.retryNum > 0) {
      headers["x-slack-retry-num"] = String(attempt.retryNum);
      headers["x-slack-retry-reason"] = attempt.retryReason ?? "unknown_error";
    }
    const sent = await this.#send(
      body,
      json ? "application/json" : "application/x-www-form-urlencoded",
      headers,
    );
    if (sent === "timeout" || sent === "connection_failed") return { outcome: sent };
    const acceptable = json ? sent.status >= 200 && sent.status < 300 : sent.status === 200;
    if (!acceptable) {
      return {
        outcome: "http_error",
        status: sent.status,
        noRetry: sent.headers["x-slack-no-retry"] === "1",
      };
    }
    return { outcome: "acked", body: readAnswer(sent) };
  }

  #send(body: string, contentType: string, headers: Record<string, string>): Promise<Sent> {
    const ctx = this.#ctx;
    const url = ctx.requestUrl;
    if (url === null) return Promise.resolve("connection_failed");
    const timestamp = String(ctx.clock.wallSeconds());
    return new Promise((resolve) => {
      const req = request(url, {
        method: "POST",
        agent: this.#agent,
        headers: {
          "content-type": contentType,
          "content-length": Buffer.byteLength(body),
          accept: "*/*",
          "user-agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
          "x-slack-request-timestamp": timestamp,
          "x-slack-signature": signature(ctx.tokens.signingSecret, timestamp, body),
          ...headers,
        },
      });
      const cancel = ctx.clock.timeout(ctx.settings.ackTimeoutMs, () => {
        resolve("timeout");
        req.destroy();
      });
      req.on("error", () => {
        cancel();
        resolve("connection_failed");
      });
      req.on("response", (res) => {
        const chunks: Buffer[] = [];
        res.on("data", (chunk: Buffer) => chunks.push(chunk));
        res.on("error", () => resolve("connection_failed"));
        res.on("end", () => {
          cancel();
          const text = Buffer.concat(chunks).toString("utf8");
          resolve({ status: res.statusCode ?? 0, headers: res.headers, body: text });
        });
      });
      req.end(body);
    });
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
  }
}

function challengeOf(answer: HttpAnswer): string | null {
  const body = readAnswer(answer);
  if (typeof body === "string") return body.trim();
  return isObject(body) && typeof body["challenge"] === "string" ? body["challenge"] : null;
}

/** Interactive payloads in one `payload` field; slash commands field by field, booleans as strings. */
function formBody(attempt: Attempt): string {
  if (attempt.kind === "interactive") {
    return new URLSearchParams({ payload: JSON.stringify(attempt.payload) }).toString();
  }
  const form: JsonObject = attempt.payload;
  const body = new URLSearchParams();
  for (const [name, value] of Object.entries(form)) body.append(name, String(value));
  return body.toString();
}
