/**
 * From the workspace to the app: what is sent, when it is sent again, and the faults that were asked for.
 *
 * 1. Events: three retries, at once, after 1 and 5 minutes of the sandbox clock, unless the app answers
 *    `x-slack-no-retry: 1`. Over sockets the first comes after three seconds without acknowledgement; that the rest of the
 *    schedule is the same there is our assumption, Slack does not say. Delayed Events, when on, adds hourly retries for 24 h.
 * 2. Interactions are sent once; the person sees an error when they fail.
 * 3. Only the transport of the current mode is used: Socket Mode switched on means no HTTP, and the other way round.
 */
import type { AckResult, AppDelivery, SandboxContext } from "../context.js";
import type { DeliveryFault, JournalEntry } from "../control-types.js";
import type { JsonObject } from "../model.js";
import { eventBody, isWanted } from "./envelope.js";
import type { HttpTransport } from "./http-transport.js";
import type { SocketTransport } from "./socket-transport.js";
import type { Attempt, AttemptResult } from "./transport.js";

const MINUTE = 60_000;
/** Waits before the retries, milliseconds of sandbox time. Source: Slack's Events API page. */
const RETRY_MS = [0, MINUTE, 5 * MINUTE];
const DELAYED_RETRY_MS = Array.from({ length: 24 }, () => 60 * MINUTE);

type JournalOutcome = Extract<JournalEntry, { kind: "delivery" }>["outcome"];

export class Dispatcher implements AppDelivery {
  readonly #ctx: SandboxContext;
  readonly #http: HttpTransport;
  readonly #socket: SocketTransport;
  /** Deliveries that wait until a later one has left. */
  #held: (() => void)[] = [];

  constructor(ctx: SandboxContext, http: HttpTransport, socket: SocketTransport) {
    this.#ctx = ctx;
    this.#http = http;
    this.#socket = socket;
  }

  async event(inner: JsonObject, options: { channel?: string } = {}): Promise<boolean> {
    if (!isWanted(this.#ctx, inner, options.channel)) return false;
    return this.body(eventBody(this.#ctx, inner, options.channel));
  }

  /** Sends a whole Events API body, subscribed or not. True when the app acknowledged it. */
  async body(body: JsonObject): Promise<boolean> {
    const ctx = this.#ctx;
    const inner = body["event"];
    const type =
      typeof inner === "object" && inner !== null && !Array.isArray(inner) ? inner["type"] : body["type"];
    const socket = ctx.settings.mode === "socket";
    const base: Attempt = {
      kind: "events_api",
      type: String(type),
      deliveryId: socket ? ctx.ids.uuid() : String(body["event_id"] ?? ctx.ids.id("Ev")),
      payload: body,
      retryNum: 0,
      retryReason: null,
      acceptsResponse: false,
    };
    const waits = [...RETRY_MS, ...(ctx.settings.delayedEvents ? DELAYED_RETRY_MS : [])];
    let result = await this.#try(base);
    // Without a socket there is nobody to send it to: such events are lost, as Slack says they may be.
    if (socket && result.outcome === "not_connected") return false;
    for (let retry = 1; retry <= waits.length; retry += 1) {
      if (!mayRetry(result)) break;
      const wait = waits[retry - 1] ?? 0;
      if (wait > 0) {
        // The rest happens in the background: nobody waits minutes for it.
        ctx.clock.after(wait, () => void ctx.work.run(() => this.#later(base, result, retry, waits)));
        return false;
      }
      result = await this.#try({ ...base, retryNum: retry, retryReason: reasonOf(result) });
    }
    return result.outcome === "acked";
  }

  async #later(base: Attempt, before: AttemptResult, retry: number, waits: number[]): Promise<void> {
    const result = await this.#try({ ...base, retryNum: retry, retryReason: reasonOf(before) });
    const next = waits[retry];
    if (next === undefined || !mayRetry(result)) return;
    this.#ctx.clock.after(
      next,
      () => void this.#ctx.work.run(() => this.#later(base, result, retry + 1, waits)),
    );
  }

  async interaction(
    kind: "interactive" | "slash_commands",
    type: string,
    payload: JsonObject,
  ): Promise<AckResult> {
    const base: Attempt = {
      kind,
      type,
      deliveryId:
        this.#ctx.settings.mode === "socket" ? this.#ctx.ids.uuid() : String(payload["trigger_id"] ?? ""),
      payload,
      retryNum: 0,
      retryReason: null,
      acceptsResponse: kind === "slash_commands" || type === "view_submission" || type === "block_suggestion",
    };
    let result = await this.#try(base);
    if (result.outcome === "timeout" && this.#ctx.settings.retryInteractivity) {
      result = await this.#try({ ...base, retryNum: 1, retryReason: "http_timeout" });
    }
    switch (result.outcome) {
      case "acked":
        return { acked: true, body: result.body };
      case "timeout":
        return { acked: false, error: "operation_timeout" };
      case "http_error":
        return { acked: false, error: "dispatch_failed" };
      case "connection_failed":
      case "not_connected":
        return { acked: false, error: "not_connected" };
    }
  }

  /** One attempt with the fault that fits it, written down in the journal. */
  async #try(attempt: Attempt): Promise<AttemptResult> {
    const ctx = this.#ctx;
    const fault = ctx.faults.takeDelivery(attempt.type);
    const dropped = await this.#before(fault);
    const startedMs = ctx.clock.real();
    const sending: Promise<AttemptResult> = dropped
      ? Promise.resolve({ outcome: "timeout" })
      : this.#transport().attempt(attempt);
    if (fault?.kind === "duplicate") this.#repeat(attempt);
    for (const release of this.#held.splice(0)) release();
    const result = await sending;
    const outcome: JournalOutcome = dropped ? "dropped" : result.outcome;
    ctx.journal.add({
      kind: "delivery",
      transport: ctx.settings.mode,
      type: attempt.type,
      id: attempt.deliveryId,
      attempt: attempt.retryNum + 1,
      payload: attempt.payload,
      outcome,
      response: responseOf(result),
      tookMs: ctx.clock.real() - startedMs,
    });
    return result;
  }

  #transport(): HttpTransport | SocketTransport {
    return this.#ctx.settings.mode === "socket" ? this.#socket : this.#http;
  }

  /** Waits as the fault says; true when the delivery must not be sent at all. */
  async #before(fault: DeliveryFault | null): Promise<boolean> {
    switch (fault?.kind) {
      case "drop":
        return true;
      case "delay":
        await this.#ctx.clock.wait(fault.delayMs ?? 2_000);
        return false;
      case "reorder":
        await new Promise<void>((resolve) => {
          this.#held.push(resolve);
        });
        return false;
      case "duplicate":
      case undefined:
        return false;
    }
  }

  #repeat(attempt: Attempt): void {
    if (this.#ctx.settings.mode === "socket") this.#socket.repeat(attempt);
    else void this.#ctx.work.run(() => this.#http.attempt(attempt));
  }

  /** Lets go of what waits for a later delivery. */
  reset(): void {
    for (const release of this.#held.splice(0)) release();
  }
}

function mayRetry(result: AttemptResult): boolean {
  switch (result.outcome) {
    case "acked":
      return false;
    case "http_error":
      return !result.noRetry;
    case "timeout":
    case "connection_failed":
    case "not_connected":
      return true;
  }
}

/** `x-slack-retry-reason` for the attempt after this result. */
function reasonOf(result: AttemptResult): string {
  switch (result.outcome) {
    case "timeout":
      return "http_timeout";
    case "http_error":
      return "http_error";
    case "connection_failed":
    case "not_connected":
      return "connection_failed";
    case "acked":
      return "unknown_error";
  }
}

function responseOf(
  result: AttemptResult,
): JournalEntry extends infer E ? (E extends { kind: "delivery"; response: infer R } ? R : never) : never {
  if (result.outcome === "acked") return (result.body ?? null) as JsonObject;
  if (result.outcome === "http_error") return { status: result.status };
  return null;
}
