/**
 * The HTTP client under the official package: it sends each request once.
 *
 * The package repeats a request after a reset even with its own retries off (stripe-node issue 1040); repeating is the
 * ledger's business, because only the ledger knows whether the lease and the key still hold.
 *
 * 1. One call, one request: a second one in the same call is refused.
 * 2. The deadline covers connecting, the gate, the headers and the body together.
 * 3. The gate runs when the socket is ready, as the last step before its first byte. If it throws, or if the call has
 *    ended meanwhile, nothing is written. A process that was stopped in the gate does not believe an old answer: time is
 *    looked at again when it wakes, before any timer has had its turn.
 * 4. `sent` becomes true before the first byte can leave, and never goes back: false proves that the provider has nothing.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { setMaxListeners } from "node:events";
import type { Readable } from "node:stream";
import Stripe from "stripe";
import { type Dispatcher, Pool } from "undici";

export type TransportFailure =
  /** The gate refused, so nothing was sent. */
  | { kind: "gate"; error: unknown }
  | { kind: "timeout" }
  | { kind: "aborted" }
  /** Refused, reset, closed, cut: with the code of the network layer. */
  | { kind: "connection"; code: string };

/** What is known of one request once it is over. */
export interface Exchange {
  /** From here on the provider may have the request. */
  sent: boolean;
  /** Null until the headers have come. */
  status: number | null;
  headers: Readonly<Record<string, string>>;
  /** The whole body; null when it did not come to its end. */
  body: string | null;
  failure: TransportFailure | null;
}

export interface CallOptions {
  /** Milliseconds for everything. */
  timeoutMs: number;
  signal?: AbortSignal;
  /** Only for requests that have an effect. */
  beforeSend?: () => Promise<void>;
}

interface Call {
  options: CallOptions;
  exchange: Exchange;
  used: boolean;
}

/** A gate that took longer to answer was asked too long ago; it is asked again. Well below any lease. */
const GATE_FRESH_MS = 2_000;
/** Connections kept to the provider; more calls than this at once wait for one. */
const CONNECTIONS = 64;
/** Shorter than servers keep idle connections (Node's own default is 5 s), so that we are the one to close them. */
const IDLE_MS = 4_000;
/** A page of a hundred refunds is a few hundred kilobytes; more than this is not an answer. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

export interface Transport {
  /** Hand it to `new Stripe(…, { httpClient })`. It works only inside `call`. */
  httpClient: Stripe.HttpClient;
  /** Runs one method of the official package and reports what happened on the wire, whatever the package made of it. */
  call(options: CallOptions, invoke: () => Promise<unknown>): Promise<Exchange>;
  close(): Promise<void>;
}

/** @param apiUrl base of the API; a path in it is put before every path of the package */
export function createTransport(apiUrl: URL): Transport {
  const pool = new Pool(apiUrl.origin, {
    connections: CONNECTIONS,
    pipelining: 1,
    keepAliveTimeout: IDLE_MS,
    // Our own deadline replaces these.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: 0 },
    maxResponseSize: MAX_ANSWER_BYTES,
  });
  const prefix = apiUrl.pathname.replace(/\/$/, "");
  const calls = new AsyncLocalStorage<Call>();

  const httpClient: Stripe.HttpClient = {
    getClientName: () => "undici",
    async makeRequest(_host, _port, path, method, headers, requestData) {
      const call = calls.getStore();
      if (call === undefined) throw new Error("the Stripe client was used outside of Transport.call");
      if (call.used) throw new Error("a call sends one request");
      call.used = true;
      await exchangeOnce(pool, { path: `${prefix}${path}`, method, headers, body: requestData }, call);
      return new ReceivedAnswer(call.exchange);
    },
  };

  return {
    httpClient,
    async call(options, invoke) {
      const exchange: Exchange = { sent: false, status: null, headers: {}, body: null, failure: null };
      // What the package throws is its reading of `exchange`, which is judged itself, in one place.
      await calls.run({ options, exchange, used: false }, invoke).catch(() => {});
      return exchange;
    },
    close: () => pool.close(),
  };
}

interface OneRequest {
  path: string;
  method: string;
  headers: Record<string, unknown>;
  body: string;
}

/** @throws Error without a `code`, so that the package does not take it for a reason to repeat */
async function exchangeOnce(pool: Pool, request: OneRequest, call: Call): Promise<void> {
  const { signal, timeoutMs } = call.options;
  const running = new Running(call.exchange, performance.now() + timeoutMs);
  const timer = setTimeout(() => running.end({ kind: "timeout" }), timeoutMs);
  const onAbort = (): void => running.end({ kind: "aborted" });
  if (signal !== undefined) {
    // One signal stops all calls of a worker; Node would take ten of them for a leak.
    setMaxListeners(0, signal);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
  }
  try {
    if (!running.ended) {
      const { path, method, headers } = request;
      const body = bodyOf(request, call, running);
      pool.dispatch({ path, method: method as "GET", headers: textHeaders(headers), body }, running);
    }
    await running.done;
  } catch (error) {
    running.end({ kind: "connection", code: networkCode(error) });
    throw new Error("the request did not come to its end", { cause: error });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
    // A gate that is still waiting must not send afterwards.
    running.ended = true;
  }
}

const ENDED = new Error("the call has ended");

/** One request on its way, as the HTTP client calls it back. */
class Running implements Dispatcher.DispatchHandler {
  readonly done: Promise<void>;
  readonly deadline: number;
  ended = false;
  readonly #exchange: Exchange;
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #resolve: () => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor(exchange: Exchange, deadline: number) {
    this.#exchange = exchange;
    this.deadline = deadline;
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Ends the call from our side; where it waits for a connection, it is stopped when it gets one. */
  end(failure: TransportFailure): void {
    this.#exchange.failure ??= failure;
    this.ended = true;
    this.#controller?.abort(ENDED);
    this.#reject(ENDED);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.ended) controller.abort(ENDED);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, unknown>,
  ): void {
    // Interim answers (1xx) are no answer.
    if (this.ended || status < 200) return;
    this.#exchange.status = status;
    this.#exchange.headers = textHeaders(headers);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    if (this.ended) return;
    const [first] = this.#chunks;
    const whole = this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks);
    const text = whole.toString("utf8");
    this.#exchange.body = text.startsWith("\ufeff") ? text.slice(1) : text;
    this.#resolve();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#reject(error);
  }
}

/**
 * Without a gate, the text. With one, an iterable that undici asks for its first part when the socket is ready, with not
 * even the request line written; undici takes any async iterable, its types name only streams.
 */
function bodyOf(request: OneRequest, call: Call, until: Running): string | Readable | null {
  const { beforeSend } = call.options;
  if (beforeSend === undefined) {
    call.exchange.sent = true;
    return request.body === "" ? null : request.body;
  }
  async function* gated(gate: () => Promise<void>): AsyncGenerator<Buffer> {
    await passGate(gate, until);
    call.exchange.sent = true;
    if (request.body !== "") yield Buffer.from(request.body, "utf8");
  }
  return gated(beforeSend) as unknown as Readable;
}

/** Returns only when the gate has said yes just now and the call still goes on. */
async function passGate(gate: () => Promise<void>, until: Running): Promise<void> {
  let askedAt: number;
  do {
    askedAt = performance.now();
    try {
      await gate();
    } catch (error) {
      until.end({ kind: "gate", error });
      throw error;
    }
    if (performance.now() >= until.deadline) until.end({ kind: "timeout" });
    if (until.ended) throw ENDED;
  } while (performance.now() - askedAt > GATE_FRESH_MS);
}

function networkCode(error: unknown): string {
  if (typeof error === "object" && error !== null && "code" in error && typeof error.code === "string") {
    return error.code;
  }
  return error instanceof Error ? error.name : "unknown";
}

function textHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const text: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || value === null) continue;
    text[name] = Array.isArray(value) ? value.join(", ") : String(value);
  }
  return text;
}

/** The answer as the package reads it. It must be a JSON object: anything else breaks the package outside of its promise. */
class ReceivedAnswer extends Stripe.HttpClientResponse {
  readonly #body: string;
  constructor(exchange: Exchange) {
    const { "stripe-notice": _toStderr, ...headers } = exchange.headers;
    super(exchange.status ?? 0, headers);
    this.#body = exchange.body ?? "";
  }
  override getRawResponse(): unknown {
    return { headers: this.getHeaders() };
  }
  override async toJSON(): Promise<unknown> {
    const value: unknown = JSON.parse(this.#body);
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new SyntaxError("the answer is not a JSON object");
    }
    return value;
  }
}
