/**
 * OpenTelemetry traces, off unless an endpoint is configured: spans are sent as OTLP over HTTP in its JSON form.
 *
 * 1. Everything about one ticket is one trace, whichever process did it: the trace's id is derived from the ticket's. A root span
 *    learns its ticket while it runs (`addCorrelation`), so it and its children are sent when it ends.
 * 2. Tracing never fails, delays or keeps alive the work: spans are buffered within a bound, sent in the background, and dropped when
 *    the collector is away.
 *
 * Source of the wire form: OpenTelemetry protocol 1.x, "OTLP/HTTP", JSON Protobuf encoding.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { createHash, randomBytes } from "node:crypto";
import type { Clock } from "../domain/ports/clock.js";
import type { Logger } from "../domain/ports/logger.js";
import { correlation } from "./correlation.js";

export type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface Tracer {
  /** Runs `fn` as a span named `name`, a child of the span around it. What `fn` throws marks the span and goes on. */
  span<T>(name: string, attributes: Attributes, fn: () => Promise<T>): Promise<T>;
  /** Sends what is buffered, within a bound. */
  stop(): Promise<void>;
}

export interface TracingOptions {
  /** Base of the collector, e.g. http://127.0.0.1:4318; null: off. */
  readonly endpoint: string | null;
  readonly serviceName: string;
  /** Names this process among several. */
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Logger;
}

const MAX_BUFFERED = 4_096;
const SEND_EVERY_MS = 2_000;
const SEND_WITHIN_MS = 3_000;
const NANOS_PER_MS = 1_000_000n;

interface Finished {
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly startMs: number;
  readonly durationMs: number;
  readonly attributes: Attributes;
  readonly failure: string | undefined;
}

interface Root {
  readonly finished: Finished[];
}

interface Current {
  readonly root: Root;
  readonly spanId: string;
}

/** Does the work and nothing else. */
export const NO_TRACER: Tracer = { span: (_name, _attributes, fn) => fn(), stop: () => Promise.resolve() };

export function createTracer(options: TracingOptions): Tracer {
  const { endpoint, clock, log } = options;
  if (endpoint === null) return NO_TRACER;
  const storage = new AsyncLocalStorage<Current>();
  const buffer: object[] = [];
  let away = false;
  let sending: Promise<void> = Promise.resolve();

  const send = async (): Promise<void> => {
    const spans = buffer.splice(0);
    if (spans.length === 0) return;
    try {
      const answer = await fetch(new URL("v1/traces", endpoint.endsWith("/") ? endpoint : `${endpoint}/`), {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(envelope(options, spans)),
        signal: AbortSignal.timeout(SEND_WITHIN_MS),
      });
      if (!answer.ok) throw new Error(`the collector answered ${answer.status}`);
      if (away) log.info({}, "the trace collector is back");
      away = false;
    } catch (error) {
      if (!away) log.warn({ err: error }, "the trace collector is away; spans are dropped until it is back");
      away = true;
    }
  };
  const timer = setInterval(() => {
    sending = sending.then(send);
  }, SEND_EVERY_MS).unref();

  return {
    span: async (name, attributes, fn) => {
      const around = storage.getStore();
      const current: Current = {
        root: around?.root ?? { finished: [] },
        spanId: randomBytes(8).toString("hex"),
      };
      const startMs = clock.now().getTime();
      const began = performance.now();
      let failure: string | undefined;
      try {
        return await storage.run(current, fn);
      } catch (error) {
        failure = error instanceof Error ? error.name : "error";
        throw error;
      } finally {
        current.root.finished.push({
          spanId: current.spanId,
          parentSpanId: around?.spanId,
          name,
          startMs,
          durationMs: performance.now() - began,
          attributes: { ...attributes, ...idsAsAttributes() },
          failure,
        });
        if (around === undefined && buffer.length < MAX_BUFFERED) buffer.push(...wireSpans(current.root));
      }
    },
    stop: async () => {
      clearInterval(timer);
      await sending;
      await send();
    },
  };
}

/** Ids only: no text of people, no secret can get into a span. */
function idsAsAttributes(): Attributes {
  return Object.fromEntries(
    Object.entries(correlation()).map(([name, value]) => [`countersign.${name}`, value]),
  );
}

function wireSpans(root: Root): object[] {
  const { ticketId } = correlation();
  const traceId =
    ticketId === undefined
      ? randomBytes(16).toString("hex")
      : createHash("sha256").update(ticketId).digest("hex").slice(0, 32);
  return root.finished.map((span) => ({
    traceId,
    spanId: span.spanId,
    ...(span.parentSpanId === undefined ? {} : { parentSpanId: span.parentSpanId }),
    name: span.name,
    kind: 1,
    startTimeUnixNano: String(BigInt(span.startMs) * NANOS_PER_MS),
    endTimeUnixNano: String(
      BigInt(span.startMs) * NANOS_PER_MS + BigInt(Math.round(span.durationMs * 1_000_000)),
    ),
    attributes: wireAttributes(span.attributes),
    status: span.failure === undefined ? { code: 1 } : { code: 2, message: span.failure },
  }));
}

function wireAttributes(attributes: Attributes): object[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value:
      typeof value === "string"
        ? { stringValue: value }
        : typeof value === "boolean"
          ? { boolValue: value }
          : { doubleValue: value },
  }));
}

function envelope(options: TracingOptions, spans: readonly object[]): object {
  return {
    resourceSpans: [
      {
        resource: {
          attributes: wireAttributes({
            "service.name": options.serviceName,
            "service.instance.id": options.instance,
          }),
        },
        scopeSpans: [{ scope: { name: "countersign" }, spans }],
      },
    ],
  };
}
