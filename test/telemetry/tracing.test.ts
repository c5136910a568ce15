import { createServer, type IncomingMessage, type Server } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { addCorrelation, createTracer, type Tracer, withCorrelation } from "../../src/telemetry/index.js";

interface WireSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code: number };
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue?: string } }[];
}

let collector: Server;
let endpoint = "";
let answer = 200;
let received: WireSpan[] = [];
let warnings: string[] = [];
const tracers: Tracer[] = [];

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
};

beforeEach(async () => {
  answer = 200;
  received = [];
  warnings = [];
  collector = createServer(async (request, response) => {
    const body = JSON.parse(await bodyOf(request)) as {
      resourceSpans: { scopeSpans: { spans: WireSpan[] }[] }[];
    };
    if (request.url === "/v1/traces" && answer === 200) {
      received.push(...body.resourceSpans.flatMap((one) => one.scopeSpans.flatMap((scope) => scope.spans)));
    }
    response.writeHead(answer, { "content-type": "application/json" }).end("{}");
  });
  await new Promise<void>((done) => collector.listen(0, "127.0.0.1", done));
  const address = collector.address();
  endpoint = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
});

afterEach(async () => {
  await Promise.all(tracers.splice(0).map((tracer) => tracer.stop()));
  collector.closeAllConnections();
  await new Promise((done) => collector.close(done));
});

const start = (to: string | null = endpoint): Tracer => {
  const quiet = () => {};
  const tracer = createTracer({
    endpoint: to,
    serviceName: "countersign",
    instance: "test",
    clock: { now: () => new Date(1_764_400_000_000) },
    log: { debug: quiet, info: quiet, error: quiet, warn: (_fields, message) => void warnings.push(message) },
  });
  tracers.push(tracer);
  return tracer;
};

/** A job as the queue runs it, that learns its ticket while it runs. */
const job = (tracer: Tracer, ticketId: string, name: string): Promise<void> =>
  withCorrelation({ job: name }, () =>
    tracer.span(`job ${name}`, {}, async () => {
      await tracer.span("provider call", { kind: "refund" }, async () => addCorrelation({ ticketId }));
    }),
  );

describe("traces", () => {
  it("two processes that work on one ticket make one trace, another ticket another one", async () => {
    const [a, b] = [start(), start()];
    await job(a, "tkt_1", "run");
    await job(b, "tkt_1", "operation");
    await job(b, "tkt_2", "run");
    await Promise.all([a.stop(), b.stop()]);
    const traces = new Map<string, string[]>();
    for (const span of received) traces.set(span.traceId, [...(traces.get(span.traceId) ?? []), span.name]);
    expect([...traces.values()].map((names) => names.length).sort()).toEqual([2, 4]);
    for (const id of traces.keys()) expect(id).toMatch(/^[0-9a-f]{32}$/);
  });

  it("children name their parent, times are nanoseconds, ids are attributes", async () => {
    const tracer = start();
    await job(tracer, "tkt_1", "run");
    await tracer.stop();
    const root = received.find((span) => span.name === "job run");
    const child = received.find((span) => span.name === "provider call");
    expect(child?.parentSpanId).toBe(root?.spanId);
    expect(root).not.toHaveProperty("parentSpanId");
    expect(root?.startTimeUnixNano).toBe("1764400000000000000");
    expect(BigInt(root?.endTimeUnixNano ?? 0)).toBeGreaterThanOrEqual(BigInt(child?.endTimeUnixNano ?? 0));
    expect(root?.attributes).toContainEqual({ key: "countersign.ticketId", value: { stringValue: "tkt_1" } });
  });

  it("what the work throws goes on unchanged and marks the span", async () => {
    const tracer = start();
    const error = new TypeError("planted");
    await expect(tracer.span("x", {}, () => Promise.reject(error))).rejects.toBe(error);
    await tracer.stop();
    expect(received[0]?.status).toEqual({ code: 2, message: "TypeError" });
  });

  it("a collector that is away or refuses costs the work nothing and is said once", async () => {
    answer = 503;
    const refused = start();
    await job(refused, "tkt_1", "run");
    await refused.stop();
    await job(refused, "tkt_1", "run");
    await refused.stop();
    const nobody = start("http://127.0.0.1:1");
    await job(nobody, "tkt_1", "run");
    await nobody.stop();
    expect(warnings).toHaveLength(2);
  });

  it("off, it is the work alone", async () => {
    const tracer = start(null);
    expect(await tracer.span("x", {}, () => Promise.resolve(7))).toBe(7);
    await tracer.stop();
    expect(received).toEqual([]);
  });
});
