/**
 * The adapter against raw sockets: whatever the other side does with the connection, each execute is at most one request, and
 * the verdict says what is known. Cites the invariants of src/payments/transport.ts.
 */
import { createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AttemptOutcome } from "../../src/domain/evidence.js";
import { type SendOptions, SendRefused } from "../../src/domain/ports/payment-provider.js";
import { createPayments, type Payments } from "../../src/payments/index.js";
import { deferred, waitFor } from "../support/wait.js";
import { anOperation } from "./operation.js";

const LONG_MS = 30_000;

interface Stub {
  /** Requests whose head arrived in full, as text. */
  requests: string[];
  connections: number;
  server: Server;
  sockets: Set<Socket>;
}

let stub: Stub;
let payments: Payments;
/** What the stub does with a request; replaced by each test. */
let onRequest: (socket: Socket, head: string, nth: number) => void;

beforeEach(async () => {
  stub = { requests: [], connections: 0, sockets: new Set(), server: createServer() };
  stub.server.on("connection", (socket) => {
    stub.connections += 1;
    stub.sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => stub.sockets.delete(socket));
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("utf8");
      const end = text.indexOf("\r\n\r\n");
      if (end === -1) return;
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? "0");
      if (text.length < end + 4 + length) return;
      stub.requests.push(text);
      text = "";
      onRequest(socket, stub.requests.at(-1) ?? "", stub.requests.length);
    });
  });
  await new Promise<void>((done) => stub.server.listen(0, "127.0.0.1", done));
  payments = createPayments({
    secretKey: "sk_test_stub",
    apiUrl: `http://127.0.0.1:${port()}`,
    clock: { now: () => new Date("2026-11-29T12:00:00Z") },
  });
});

afterEach(async () => {
  for (const socket of stub.sockets) socket.destroy();
  await payments.close();
  await new Promise<void>((done) => stub.server.close(() => done()));
});

function port(): number {
  const address = stub.server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

const operation = anOperation();

function execute(options: Partial<SendOptions> = {}): Promise<AttemptOutcome> {
  return payments.execute(operation, payments.buildRequest(operation), {
    idempotencyKey: operation.idempotencyKey,
    timeoutMs: LONG_MS,
    beforeSend: async () => {},
    ...options,
  });
}

const succeeded = JSON.stringify({
  id: "re_1",
  object: "refund",
  amount: 2000,
  currency: "gbp",
  status: "succeeded",
  payment_intent: "pi_1",
  created: 1_796_000_000,
  metadata: { operation_id: operation.id },
});

const answer = (body: string, status = "200 OK", headers = ""): string =>
  `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`;

describe("one execute is one request (invariant 1)", () => {
  test("a good answer: one POST with our key, no telemetry, body in one order", async () => {
    onRequest = (socket) => socket.write(answer(succeeded, "200 OK", "request-id: req_1\r\n"));
    const outcome = await execute();
    expect(outcome).toMatchObject({ verdict: "committed", requestId: "req_1", replayed: false });
    await new Promise((done) => setImmediate(done));
    await execute();
    const [first, second] = stub.requests;
    expect(stub.requests).toHaveLength(2);
    expect(first).toMatch(/^POST \/v1\/refunds HTTP\/1.1/);
    expect(first).toMatch(new RegExp(`\\r\\nIdempotency-Key: ${operation.idempotencyKey}\\r\\n`, "i"));
    expect(first?.split("\r\n\r\n")[1]).toBe(
      `payment_intent=pi_1&amount=2000&metadata[operation_id]=${operation.id}&metadata[operation_key]=${encodeURIComponent(operation.key)}`,
    );
    expect(second).not.toMatch(/telemetry/i);
    expect(stub.connections, "the connection is kept").toBe(1);
  });

  test.each(["reset", "close"] as const)(
    "%s instead of an answer: exactly one POST, outcome unknown",
    async (how) => {
      onRequest = (socket) => (how === "reset" ? socket.resetAndDestroy() : socket.destroy());
      expect(await execute()).toMatchObject({
        verdict: "unknown",
        code: "connection_lost",
        httpStatus: null,
      });
      expect(stub.requests).toHaveLength(1);
    },
  );

  test("a reset on a connection that was kept from an earlier call: still exactly one POST", async () => {
    onRequest = (socket, _head, nth) =>
      nth === 1 ? socket.write(answer(succeeded)) : socket.resetAndDestroy();
    expect(await execute()).toMatchObject({ verdict: "committed" });
    expect(await execute()).toMatchObject({ verdict: "unknown", code: "connection_lost" });
    expect(stub.requests).toHaveLength(2);
  });

  test.each([500, 502, 503, 409])("status %i is not tried again", async (status) => {
    const body = JSON.stringify({ error: { type: "api_error", message: "no" } });
    onRequest = (socket) => socket.write(answer(body, `${status} X`, "stripe-should-retry: true\r\n"));
    expect(await execute()).toMatchObject({ verdict: "unknown", httpStatus: status });
    expect(stub.requests).toHaveLength(1);
  });

  test("a redirect is not followed", async () => {
    onRequest = (socket) =>
      socket.write(answer("{}", "307 X", `location: http://127.0.0.1:${port()}/elsewhere\r\n`));
    expect(await execute()).toMatchObject({ verdict: "unknown", httpStatus: 307 });
    expect(stub.requests).toHaveLength(1);
  });
});

describe("the deadline covers headers and body (invariant 2)", () => {
  test("no answer at all: unknown after the deadline, one POST", async () => {
    onRequest = () => {};
    expect(await execute({ timeoutMs: 200 })).toMatchObject({ verdict: "unknown", code: "timeout" });
    expect(stub.requests).toHaveLength(1);
  });

  test("headers and half a body, then silence: unknown after the deadline", async () => {
    onRequest = (socket) => socket.write(answer(succeeded).slice(0, -40));
    expect(await execute({ timeoutMs: 200 })).toMatchObject({
      verdict: "unknown",
      code: "body_stalled",
      httpStatus: 200,
    });
    expect(stub.requests).toHaveLength(1);
  });

  test("a body that trickles for ever does not move the deadline", async () => {
    let timer: NodeJS.Timeout | undefined;
    onRequest = (socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n{");
      timer = setInterval(() => socket.write(" "), 20);
      socket.on("close", () => clearInterval(timer));
    };
    expect(await execute({ timeoutMs: 300 })).toMatchObject({ verdict: "unknown", code: "body_stalled" });
    clearInterval(timer);
  });

  test("headers and half a body, then the end: unknown", async () => {
    onRequest = (socket) => socket.end(answer(succeeded).slice(0, -40));
    expect(await execute()).toMatchObject({ verdict: "unknown", code: "body_cut", httpStatus: 200 });
    expect(stub.requests).toHaveLength(1);
  });

  test.each([
    ["no JSON", "<html>"],
    ["a JSON string", '"ok"'],
    ["a JSON number", "5"],
    ["null", "null"],
    ["a JSON array", "[]"],
    ["an object of another kind", '{"id":"re_1","object":"charge"}'],
    ["a refund with a decimal amount", succeeded.replace("2000", "20.5")],
    ["an empty body", ""],
  ])("200 with %s: unknown, and the process lives", async (_what, body) => {
    onRequest = (socket) => socket.write(answer(body));
    expect(await execute()).toMatchObject({ verdict: "unknown", code: "unreadable_answer", httpStatus: 200 });
    expect(stub.requests).toHaveLength(1);
  });

  test("an answer that is no HTTP: unknown", async () => {
    onRequest = (socket) => socket.end("hello\r\n\r\n");
    expect(await execute()).toMatchObject({ verdict: "unknown" });
    expect(stub.requests).toHaveLength(1);
  });
});

describe("the gate is the last step before the socket (invariants 3 and 4)", () => {
  test("it runs with the connection open and not a byte written; refusing sends nothing", async () => {
    onRequest = (socket) => socket.write(answer(succeeded));
    let bytesAtGate: number | undefined;
    const outcome = await execute({
      beforeSend: async () => {
        await waitFor(() => stub.connections === 1, { what: "the connection to be open" });
        bytesAtGate = [...stub.sockets][0]?.bytesRead;
        throw new SendRefused("lease_lost", "the lease is lost");
      },
    });
    expect(outcome).toMatchObject({
      verdict: "not_executed",
      code: "send_refused",
      detail: "Not sent: another worker has it by now (lease_lost).",
    });
    expect(bytesAtGate).toBe(0);
    expect(stub.requests).toHaveLength(0);
    // Had anything been left over, it would reach the stub before the next call's request.
    expect(await execute()).toMatchObject({ verdict: "committed" });
    expect(stub.requests).toHaveLength(1);
  });

  test("any other error in the gate sends nothing either", async () => {
    const outcome = await execute({
      beforeSend: async () => {
        throw new Error("the database is away");
      },
    });
    expect(outcome).toMatchObject({ verdict: "not_executed", code: "send_refused" });
    expect(stub.requests).toHaveLength(0);
  });

  test("a sender that pauses in the gate beyond its deadline sends nothing when it wakes", async () => {
    onRequest = (socket) => socket.write(answer(succeeded));
    const pause = deferred<void>();
    const outcome = await execute({ timeoutMs: 150, beforeSend: () => pause.promise });
    expect(outcome).toMatchObject({ verdict: "not_executed", code: "timeout_before_send" });
    pause.resolve();
    await new Promise((done) => setImmediate(done));
    expect(stub.requests).toHaveLength(0);
    // The next call is not disturbed by it.
    expect(await execute()).toMatchObject({ verdict: "committed" });
    expect(stub.requests).toHaveLength(1);
  });

  test("a connection that the other side closes while the gate waits: nothing was sent, and it says so", async () => {
    const pause = deferred<void>();
    onRequest = (socket) => socket.write(answer(succeeded));
    const call = execute({ beforeSend: () => pause.promise });
    await waitFor(() => stub.sockets.size === 1, { what: "the connection" });
    for (const socket of stub.sockets) socket.destroy();
    const outcome = await call;
    pause.resolve();
    expect(outcome).toMatchObject({ verdict: "not_executed", code: "connection_failed" });
    await new Promise((done) => setImmediate(done));
    expect(stub.requests).toHaveLength(0);
  });

  test("aborted in the gate: not executed; aborted while waiting for the answer: unknown", async () => {
    const early = new AbortController();
    const pause = deferred<void>();
    const before = execute({
      signal: early.signal,
      beforeSend: async () => {
        early.abort();
        await pause.promise;
      },
    });
    expect(await before).toMatchObject({ verdict: "not_executed", code: "aborted_before_send" });
    pause.resolve();
    expect(stub.requests).toHaveLength(0);

    const late = new AbortController();
    onRequest = () => late.abort();
    expect(await execute({ signal: late.signal })).toMatchObject({ verdict: "unknown", code: "aborted" });
    expect(stub.requests).toHaveLength(1);
  });

  test("a signal that is aborted already sends nothing", async () => {
    expect(await execute({ signal: AbortSignal.abort() })).toMatchObject({
      verdict: "not_executed",
      code: "aborted_before_send",
    });
    expect(stub.requests).toHaveLength(0);
  });

  test("nobody listens: not executed, and it may be tried again", async () => {
    await new Promise<void>((done) => stub.server.close(() => done()));
    const outcome = await execute();
    expect(outcome).toMatchObject({ verdict: "not_executed", code: "connection_failed" });
    await new Promise<void>((done) => stub.server.listen(0, "127.0.0.1", done));
  });

  test("twenty calls that hang do not keep a read from being answered", async () => {
    onRequest = (socket, head) => {
      if (head.startsWith("GET"))
        socket.write(answer('{"object":"list","data":[],"has_more":false,"url":"/v1/refunds"}'));
    };
    const stop = new AbortController();
    const hanging = Array.from({ length: 20 }, () => execute({ signal: stop.signal }));
    await waitFor(() => stub.requests.length === 20, { what: "twenty requests" });
    expect(await payments.ping({ timeoutMs: LONG_MS })).toEqual({ ok: true });
    stop.abort();
    expect((await Promise.all(hanging)).map(({ verdict }) => verdict)).toEqual(Array(20).fill("unknown"));
  });
});

test("a path in the API's URL is kept", async () => {
  onRequest = (socket) => socket.write(answer(succeeded));
  const under = createPayments({
    secretKey: "sk_test_stub",
    apiUrl: `http://127.0.0.1:${port()}/stripe/`,
    clock: { now: () => new Date() },
  });
  await under.execute(operation, under.buildRequest(operation), {
    idempotencyKey: "k",
    timeoutMs: LONG_MS,
    beforeSend: async () => {},
  });
  await under.close();
  expect(stub.requests[0]).toMatch(/^POST \/stripe\/v1\/refunds HTTP/);
});
