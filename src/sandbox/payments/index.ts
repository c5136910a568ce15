/**
 * The payments sandbox: a stand-in provider on Stripe's wire with a database of its own.
 *
 * The unchanged `stripe` package is its client. It keeps Stripe's rules of idempotency, refunds and
 * webhooks, can be told to fail in every way that DESIGN §10 names, and counts what it really committed.
 */
import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { createSandboxClock } from "./clock.js";
import { createControl, type PaymentsControl } from "./control.js";
import { handleControl } from "./control-http.js";
import type { AutoProvision } from "./engine.js";
import { createFaultRegistry } from "./faults.js";
import { createCounter, deterministicId } from "./ids.js";
import { createPipeline, type PipelineContext } from "./pipeline.js";
import { type ProviderPromises, STRIPE_PROMISES } from "./promises.js";
import { startServer } from "./server.js";
import * as store from "./store.js";
import { createWebhooks, type WebhookTarget } from "./webhooks.js";

export type { PaymentsControl } from "./control.js";
export { FAULT_WORDS } from "./fault-words.js";
export type { FaultSpec } from "./faults.js";
export type { ProviderPromises } from "./promises.js";
export { signatureHeader } from "./webhooks.js";

export interface PaymentsSandboxOptions {
  /** A PostgreSQL database for the sandbox alone; its tables are made in the schema `payments_sandbox`. */
  databaseUrl: string;
  /** 0 takes a free one. */
  port: number;
  host?: string;
  /** The only API key it accepts. */
  secretKey: string;
  webhook?: WebhookTarget;
  /** Life of an idempotency key, milliseconds; a day, as Stripe's. */
  keyTtlMs?: number;
  /** Keeps to less than Stripe does. `keyTtlMs` above is one of them. */
  promises?: Partial<ProviderPromises>;
  /** Milliseconds since the epoch; the machine's clock when left out. */
  clock?: () => number;
  /** Ids follow from it. */
  seed?: string;
  /** Knows payment intents that were not seeded; without it they are `resource_missing`. */
  autoProvision?: AutoProvision;
  /** First wait before an unanswered webhook is sent again, milliseconds; doubles each time. */
  webhookRetryBaseMs?: number;
  /** Told about errors that no request is to blame for. */
  onError?: (error: unknown) => void;
}

export interface PaymentsSandbox {
  url: string;
  port: number;
  /** Base of the control API over HTTP. */
  controlUrl: string;
  control: PaymentsControl;
  /** Commits what was accepted for later, then closes every connection. */
  stop(): Promise<void>;
}

/** @throws when the database cannot be reached or the port is taken (EADDRINUSE) */
export async function startPaymentsSandbox(options: PaymentsSandboxOptions): Promise<PaymentsSandbox> {
  const host = options.host ?? "127.0.0.1";
  const seed = options.seed ?? "countersign";
  const clock = createSandboxClock(options.clock);
  const onError = options.onError ?? (() => {});
  const db = await store.openDatabase(options.databaseUrl);
  const requestLog = store.openRequestLog(options.databaseUrl);
  try {
    const last = await store.lastOrdinals(db);
    const requestCounter = createCounter(last.requests);
    const faults = createFaultRegistry();
    const background = createBackground(onError);
    let signWithOffset = true;
    let promises: ProviderPromises = {
      ...STRIPE_PROMISES,
      ...options.promises,
      ...(options.keyTtlMs === undefined ? {} : { keyTtlMs: options.keyTtlMs }),
    };
    const webhooks = createWebhooks(
      {
        db,
        clock,
        seed,
        signWithOffset: () => signWithOffset,
        onError,
        ...(options.webhookRetryBaseMs === undefined ? {} : { retryBaseMs: options.webhookRetryBaseMs }),
      },
      options.webhook ?? null,
    );
    const engine: PipelineContext = {
      db,
      clock,
      seed,
      faults,
      counters: { refunds: createCounter(last.refunds), events: createCounter(last.events) },
      autoProvision: options.autoProvision ?? null,
      promises: () => promises,
      onEvents: () => webhooks.wake(),
      later: (delayMs, work) => background.later(delayMs, work),
      pause: (delayMs) => background.pause(delayMs),
    };
    const control = createControl({
      engine,
      faults,
      webhooks,
      clock,
      seed,
      promises: () => promises,
      setPromises: (next) => {
        promises = next;
      },
      setSignWithOffset: (value) => {
        signWithOffset = value;
      },
      settle: () => background.settle(),
      hurry: () => background.hurry(),
      resetCounters: () => {
        requestCounter.reset();
        engine.counters.refunds.reset();
        engine.counters.events.reset();
      },
    });
    const pipeline = createPipeline(engine);
    const server = await startServer(
      {
        secretKey: options.secretKey,
        // Tracked, so that a stop lets what has begun commit.
        pipeline: { handle: (incoming) => background.track(pipeline.handle(incoming)) },
        control: (method, path, query, body) => handleControl(control, method, path, query, body),
        nextRequestId: () => {
          const ordinal = requestCounter.next();
          return { ordinal, id: deterministicId(seed, "req", ordinal) };
        },
        note: (request, identity) =>
          store.insertRequest(requestLog, {
            ordinal: identity.ordinal,
            id: identity.id,
            method: request.method,
            path: request.path,
            params: request.form,
            idempotencyKey: request.idempotencyKey,
            paymentIntent: request.paymentIntent,
            atMs: clock.nowMs(),
          }),
        onError,
      },
      { host, port: options.port },
    );
    webhooks.wake();
    return {
      url: `http://${host}:${server.port}`,
      port: server.port,
      controlUrl: `http://${host}:${server.port}/_control/`,
      control,
      stop: async () => {
        await background.stop();
        await server.close();
        await background.settle();
        await webhooks.stop();
        await Promise.all([db.end(), requestLog.end()]);
      },
    };
  } catch (error) {
    await Promise.all([db.end(), requestLog.end()]);
    throw error;
  }
}

/** One signal for every wait; Node would take more than ten of them for a leak. */
function newWaits(): AbortController {
  const waits = new AbortController();
  setMaxListeners(0, waits.signal);
  return waits;
}

/** Work that outlives its request. Nothing accepted is forgotten: a stop runs at once what was to come later. */
function createBackground(onError: (error: unknown) => void): {
  later(delayMs: number, work: () => Promise<void>): void;
  pause(delayMs: number): Promise<void>;
  track<T>(work: Promise<T>): Promise<T>;
  settle(): Promise<void>;
  /** Ends every wait now, and lets what follows from it happen. */
  hurry(): Promise<void>;
  stop(): Promise<void>;
} {
  let waits = newWaits();
  let stopped = false;
  const open = new Set<Promise<void>>();

  async function pause(delayMs: number): Promise<void> {
    if (stopped) return;
    await sleep(delayMs, undefined, { signal: waits.signal }).catch(() => {});
  }

  async function settle(): Promise<void> {
    while (open.size > 0) await Promise.all(open);
  }

  function hold(work: Promise<unknown>): void {
    const done: Promise<void> = work
      .then(() => {})
      .catch(onError)
      .finally(() => open.delete(done));
    open.add(done);
  }

  return {
    pause,
    settle,
    track(work) {
      // The request itself reports its error; here it only counts as over.
      hold(work.catch(() => {}));
      return work;
    },
    later(delayMs, work) {
      hold(pause(delayMs).then(work));
    },
    async hurry() {
      waits.abort();
      waits = newWaits();
      await settle();
    },
    async stop() {
      stopped = true;
      waits.abort();
      await settle();
    },
  };
}
