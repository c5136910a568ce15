/**
 * Signed webhooks, delivered until they are answered with 2xx.
 *
 * Stripe promises neither order nor single delivery; here both are switches. The signature is Stripe's:
 * `t=<unix>,v1=<hex HMAC-SHA256(secret, "<t>.<body>")>` over the exact bytes of the body.
 */
import { createHash, createHmac } from "node:crypto";
import { request } from "undici";
import { type SandboxClock, toSeconds } from "./clock.js";
import type { EventRecord } from "./records.js";
import * as store from "./store.js";

export interface WebhookTarget {
  url: string;
  secret: string;
}

export interface WebhookMode {
  /** Nothing leaves by itself until resumed or flushed. */
  paused: boolean;
  /** Further deliveries of each event, answered or not. */
  extraCopies: number;
  /** Waits this long before the first delivery of an event. Milliseconds. */
  delayMs: number;
  /** Order within one pass over what is due. */
  order: "created" | "reversed" | "shuffled";
}

/** One try to deliver. `status` is null when no answer came. */
export interface DeliveryRecord {
  eventId: string;
  type: string;
  attempt: number;
  status: number | null;
  error: string | null;
  at: string;
}

/** How a webhook is sent that is not what it claims to be. */
export interface Forgery {
  /** Another secret, so that the signature does not match; null: the right one. */
  secret?: string;
  /** Seconds added to the time in the signature. */
  skewSeconds?: number;
  /** No header at all. */
  withoutHeader?: boolean;
  /** The body is changed after it was signed. */
  tamper?: boolean;
}

export interface Webhooks {
  setTarget(target: WebhookTarget | null): void;
  setMode(mode: Partial<WebhookMode>): void;
  mode(): WebhookMode;
  /** Looks for events to deliver soon. Cheap; called after each commit. */
  wake(): void;
  /** Delivers everything undelivered once, paused or not, and waits for the answers. */
  flush(options?: { order?: WebhookMode["order"]; copies?: number }): Promise<DeliveryRecord[]>;
  /** Sends one stored event again. Returns the answer's status, null when there was none. */
  resend(eventId: string, forgery?: Forgery): Promise<number | null>;
  /** Sends a body that is no stored event. */
  send(body: string, forgery?: Forgery): Promise<number | null>;
  deliveries(): DeliveryRecord[];
  stop(): Promise<void>;
}

const RETRY_BASE_MS = 1_000;
const RETRY_CAP_MS = 60_000;
const ANSWER_TIMEOUT_MS = 10_000;
const KEPT_DELIVERIES = 10_000;

export interface WebhooksContext {
  db: store.Database;
  clock: SandboxClock;
  seed: string;
  /** Signatures carry the sandbox's time, offset included; false: the machine's time. */
  signWithOffset(): boolean;
  retryBaseMs?: number;
  onError(error: unknown): void;
}

/** The header that Stripe would send for this body. @param seconds unix seconds */
export function signatureHeader(body: string, secret: string, seconds: number): string {
  const mac = createHmac("sha256", secret).update(`${seconds}.${body}`, "utf8").digest("hex");
  return `t=${seconds},v1=${mac}`;
}

export function createWebhooks(ctx: WebhooksContext, initial: WebhookTarget | null): Webhooks {
  const retryBaseMs = ctx.retryBaseMs ?? RETRY_BASE_MS;
  let target = initial;
  let mode: WebhookMode = { paused: false, extraCopies: 0, delayMs: 0, order: "created" };
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;
  const log: DeliveryRecord[] = [];
  const tries = new Map<string, number>();
  /** Wall time before which an event is not tried. */
  const notBefore = new Map<string, number>();
  /** Events that a batch is sending right now. */
  const sending = new Set<string>();
  const open = new Set<Promise<void>>();
  const abort = new AbortController();

  function schedule(delayMs: number): void {
    if (stopped || mode.paused || target === null) return;
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(() => {
      timer = null;
      track(pass());
    }, delayMs);
    timer.unref();
  }

  function track(work: Promise<void>): void {
    const done: Promise<void> = work
      .catch((error: unknown) => {
        ctx.onError(error);
        schedule(RETRY_BASE_MS);
      })
      .finally(() => open.delete(done));
    open.add(done);
  }

  /** Sends what is due as one batch, in order; batches do not wait for each other. */
  async function pass(): Promise<void> {
    const now = ctx.clock.wallMs();
    const idle = (await store.undeliveredEvents(ctx.db)).filter((event) => !sending.has(event.id));
    if (stopped) return;
    const due = idle.filter((event) => firstTry(event, now) <= now);
    for (const event of due) sending.add(event.id);
    const waiting = idle.filter((event) => !sending.has(event.id)).map((event) => firstTry(event, now));
    if (waiting.length > 0) schedule(Math.max(1, Math.min(...waiting) - now));
    if (due.length === 0) return;
    const copies = 1 + mode.extraCopies;
    try {
      for (const event of arrange(due, mode.order)) await deliver(event, copies);
    } finally {
      for (const event of due) sending.delete(event.id);
    }
    schedule(0);
  }

  function firstTry(event: EventRecord, now: number): number {
    const known = notBefore.get(event.id);
    if (known !== undefined) return known;
    notBefore.set(event.id, now + mode.delayMs);
    return now + mode.delayMs;
  }

  async function deliver(event: EventRecord, copies: number): Promise<DeliveryRecord[]> {
    const records: DeliveryRecord[] = [];
    for (let copy = 0; copy < copies && !stopped; copy += 1) {
      const record = await attempt(event, {});
      records.push(record);
      const delivered = record.status !== null && record.status >= 200 && record.status < 300;
      const wait = Math.min(RETRY_CAP_MS, retryBaseMs * 2 ** Math.min(event.attempts, 16));
      if (delivered) notBefore.delete(event.id);
      else notBefore.set(event.id, ctx.clock.wallMs() + wait);
      if (stopped) break;
      await store.noteDelivery(ctx.db, event.id, delivered);
    }
    return records;
  }

  async function attempt(event: EventRecord, forgery: Forgery): Promise<DeliveryRecord> {
    const { status, error } = await post(event.body, forgery);
    const attempts = (tries.get(event.id) ?? 0) + 1;
    tries.set(event.id, attempts);
    const record: DeliveryRecord = {
      eventId: event.id,
      type: event.type,
      attempt: attempts,
      status,
      error,
      at: new Date(ctx.clock.nowMs()).toISOString(),
    };
    log.push(record);
    if (log.length > KEPT_DELIVERIES) log.shift();
    return record;
  }

  async function post(
    body: string,
    forgery: Forgery,
  ): Promise<{ status: number | null; error: string | null }> {
    if (target === null) return { status: null, error: "no webhook url is set" };
    const nowMs = ctx.signWithOffset() ? ctx.clock.nowMs() : ctx.clock.wallMs();
    const seconds = toSeconds(nowMs) + (forgery.skewSeconds ?? 0);
    const header = signatureHeader(body, forgery.secret ?? target.secret, seconds);
    try {
      const answer = await request(target.url, {
        method: "POST",
        headers: {
          "content-type": "application/json; charset=utf-8",
          "user-agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
          ...(forgery.withoutHeader === true ? {} : { "stripe-signature": header }),
        },
        body: forgery.tamper === true ? body.replace(/"amount": ?(\d+)/, '"amount": 9$1') : body,
        signal: AbortSignal.any([abort.signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]),
      });
      await answer.body.dump();
      return { status: answer.statusCode, error: null };
    } catch (error) {
      return { status: null, error: error instanceof Error ? error.message : String(error) };
    }
  }

  function arrange(events: EventRecord[], order: WebhookMode["order"]): EventRecord[] {
    if (order === "created") return events;
    if (order === "reversed") return [...events].reverse();
    const rank = (event: EventRecord): string =>
      createHash("sha256").update(`${ctx.seed}|${event.id}`).digest("hex");
    return [...events].sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
  }

  return {
    setTarget(next) {
      target = next;
      schedule(0);
    },
    setMode(next) {
      mode = { ...mode, ...next };
      schedule(0);
    },
    mode: () => mode,
    wake: () => schedule(0),
    async flush(options = {}) {
      const events = arrange(await store.undeliveredEvents(ctx.db), options.order ?? mode.order);
      const records: DeliveryRecord[] = [];
      // One after the other: the order asked for is the order of arrival.
      for (const event of events) records.push(...(await deliver(event, options.copies ?? 1)));
      return records;
    },
    async resend(eventId, forgery = {}) {
      const event = await store.findEvent(ctx.db, eventId);
      if (event === null) return null;
      return (await attempt(event, forgery)).status;
    },
    async send(body, forgery = {}) {
      return (await post(body, forgery)).status;
    },
    deliveries: () => [...log],
    async stop() {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
      abort.abort();
      await Promise.all(open);
    },
  };
}
