/**
 * The control API: what tests and the page do to the sandbox that no Stripe client could. In process as functions
 * (`PaymentsControl`), over HTTP under `/_control/…` with the same names.
 */
import { z } from "zod";
import type { SandboxClock } from "./clock.js";
import * as engine from "./engine.js";
import type { FaultRegistry, FaultSpec, FaultStatus } from "./faults.js";
import { deterministicId } from "./ids.js";
import type { WireObject } from "./objects.js";
import { type ProviderPromises, promisesSchema } from "./promises.js";
import {
  type ChargeRecord,
  FAILURE_REASONS,
  type FailureReason,
  PENDING_REASONS,
  type PendingReason,
  REFUND_STATUSES,
  type RefundRecord,
  type RefundStatus,
  type RequestRecord,
  type SubscriptionRecord,
} from "./records.js";
import * as store from "./store.js";
import type { DeliveryRecord, Forgery, WebhookMode, Webhooks, WebhookTarget } from "./webhooks.js";

export const seedPaymentSchema = z.strictObject({
  paymentIntent: z.string().min(1),
  /** Captured, minor units. */
  amount: z.int().positive(),
  currency: z.string().regex(/^[A-Za-z]{3}$/),
  charge: z.string().optional(),
  customer: z.string().nullable().default(null),
  status: z.enum(["succeeded", "requires_payment_method", "processing", "canceled"]).default("succeeded"),
});
export type SeedPayment = z.input<typeof seedPaymentSchema>;

export const seedSubscriptionSchema = z.strictObject({
  id: z.string().min(1),
  customer: z.string().default("cus_sandbox"),
  status: z.enum(["active", "trialing", "past_due", "canceled"]).default("active"),
  currency: z
    .string()
    .regex(/^[A-Za-z]{3}$/)
    .default("usd"),
  unitAmount: z.int().min(0).default(1000),
  /** ISO time; 30 days from now when left out. */
  currentPeriodEnd: z.iso.datetime({ offset: true }).optional(),
});
export type SeedSubscription = z.input<typeof seedSubscriptionSchema>;

export const dashboardRefundSchema = z.strictObject({
  paymentIntent: z.string().min(1),
  amount: z.int().positive().optional(),
});

export const advanceSchema = z.strictObject({
  status: z.enum(REFUND_STATUSES),
  pendingReason: z.enum(PENDING_REASONS).optional(),
  failureReason: z.enum(FAILURE_REASONS).optional(),
});

/** A refund that the provider really made. Amount in minor units, currency in lower case, `created` in ISO form. */
export interface CommittedEffect {
  id: string;
  paymentIntent: string;
  charge: string;
  amount: number;
  currency: string;
  status: RefundStatus;
  operationId: string | null;
  operationKey: string | null;
  idempotencyKey: string | null;
  origin: "api" | "dashboard";
  created: string;
}

export interface Counts {
  /** Refunds that were made and neither failed nor were canceled. */
  committed: number;
  /** All refunds ever made. */
  refunds: number;
  /** Sum of `committed` by currency, minor units. */
  amounts: Record<string, number>;
  /** Refunds beyond the first that carry one operation's id: money moved twice. */
  duplicates: number;
  /** Cancellations of subscriptions that took effect. */
  cancellations: number;
  requests: number;
  /** Requests `POST /v1/refunds`. */
  posts: number;
}

export interface RequestFilter {
  method?: string;
  path?: string;
  paymentIntent?: string;
  /** Only requests after this ordinal. */
  afterOrdinal?: number;
}

export interface PaymentsControl {
  /** Arms a fault and returns its id. @throws ZodError */
  arm(spec: FaultSpec): string;
  disarm(id: string): boolean;
  disarmAll(): void;
  fault(id: string): FaultStatus | null;
  faults(): FaultStatus[];
  /** How often this fault really took effect. */
  fired(id: string): number;

  /** Creates or changes a payment intent with its charge. Returns the charge's id. */
  seedPayment(payment: SeedPayment): Promise<string>;
  seedSubscription(subscription: SeedSubscription): Promise<void>;
  payments(): Promise<ChargeRecord[]>;
  subscriptions(): Promise<SubscriptionRecord[]>;

  /** Refunds that were committed, oldest first; by operation id or payment intent, if given. */
  effects(filter?: { operationId?: string; paymentIntent?: string }): Promise<CommittedEffect[]>;
  counts(): Promise<Counts>;
  /** Every request that came with the right key, oldest first. */
  requests(filter?: RequestFilter): Promise<RequestRecord[]>;

  /** A person refunds in the provider's dashboard: no metadata, no key. @throws WireError */
  dashboardRefund(refund: z.input<typeof dashboardRefundSchema>): Promise<CommittedEffect>;
  /** @throws Error when there is no such payment intent */
  dispute(paymentIntent: string, disputed?: boolean): Promise<void>;
  /** Moves a refund on: pending → succeeded, succeeded → failed … @throws WireError */
  advanceRefund(
    id: string,
    to: { status: RefundStatus; pendingReason?: PendingReason; failureReason?: FailureReason },
  ): Promise<CommittedEffect>;

  /** What the provider keeps to from now on; see `ProviderPromises`. */
  setPromises(promises: Partial<ProviderPromises>): void;
  promises(): ProviderPromises;

  /** Moves the provider's clock. `signatures: false` leaves the time in webhook signatures right. */
  setClockOffsetMs(offsetMs: number, options?: { signatures?: boolean }): void;
  clockOffsetMs(): number;
  /** Forgets one key, or all. Returns how many. */
  expireKeys(key?: string): Promise<number>;

  setWebhook(target: WebhookTarget | null): void;
  webhookMode(mode?: Partial<WebhookMode>): WebhookMode;
  flushWebhooks(options?: { order?: WebhookMode["order"]; copies?: number }): Promise<DeliveryRecord[]>;
  /** Events made so far are never delivered by themselves, as if nobody had wanted them when they were made. */
  forgetWebhooks(): Promise<void>;
  /** Sends a stored event again, untouched or forged. Returns the answer's status. */
  resendWebhook(eventId: string, forgery?: Forgery): Promise<number | null>;
  /** Sends an event of this type about this object, stored nowhere. Returns the answer's status. */
  forgeWebhook(
    event: { type: string; object: WireObject; id?: string },
    forgery?: Forgery,
  ): Promise<number | null>;
  /** Events in the order in which they were made; `body` is what is sent. */
  events(): Promise<
    { id: string; type: string; objectId: string; body: string; attempts: number; delivered: boolean }[]
  >;
  deliveries(): DeliveryRecord[];

  /** Waits until nothing that was accepted is still to be committed. */
  settle(): Promise<void>;
  /** Ends every wait of a fault now: what was to commit or answer later does so at once. */
  hurry(): Promise<void>;
  /** Empties the database, disarms every fault, and begins the ids anew. */
  reset(): Promise<void>;
}

export interface ControlContext {
  engine: engine.EngineContext;
  faults: FaultRegistry;
  webhooks: Webhooks;
  clock: SandboxClock;
  seed: string;
  promises(): ProviderPromises;
  setPromises(promises: ProviderPromises): void;
  setSignWithOffset(value: boolean): void;
  settle(): Promise<void>;
  hurry(): Promise<void>;
  resetCounters(): void;
}

const PERIOD_MS = 30 * 24 * 3600 * 1000;

export function createControl(ctx: ControlContext): PaymentsControl {
  const { db } = ctx.engine;
  return {
    arm: (spec) => ctx.faults.arm(spec),
    disarm: (id) => ctx.faults.disarm(id),
    disarmAll: () => ctx.faults.disarmAll(),
    fault: (id) => ctx.faults.status(id),
    faults: () => ctx.faults.list(),
    fired: (id) => ctx.faults.status(id)?.fired ?? 0,

    async seedPayment(input) {
      const payment = seedPaymentSchema.parse(input);
      const charge = payment.charge ?? deterministicId(ctx.seed, "ch", payment.paymentIntent);
      await store.upsertCharge(db, {
        id: charge,
        paymentIntent: payment.paymentIntent,
        customer: payment.customer,
        amount: payment.amount,
        currency: payment.currency.toLowerCase(),
        paymentIntentStatus: payment.status,
        createdAtMs: ctx.clock.nowMs(),
      });
      return charge;
    },
    async seedSubscription(input) {
      const subscription = seedSubscriptionSchema.parse(input);
      const now = ctx.clock.nowMs();
      await store.upsertSubscription(db, {
        id: subscription.id,
        customer: subscription.customer,
        status: subscription.status,
        currency: subscription.currency.toLowerCase(),
        unitAmount: subscription.unitAmount,
        cancelAtPeriodEnd: false,
        currentPeriodStartMs: now,
        currentPeriodEndMs:
          subscription.currentPeriodEnd === undefined
            ? now + PERIOD_MS
            : Date.parse(subscription.currentPeriodEnd),
        canceledAtMs: subscription.status === "canceled" ? now : null,
        endedAtMs: subscription.status === "canceled" ? now : null,
        metadata: {},
        createdAtMs: now,
      });
    },
    payments: () => store.listCharges(db),
    subscriptions: () => store.listSubscriptions(db),

    async effects(filter = {}) {
      const found = await store.findRefunds(db, {
        operationId: filter.operationId ?? null,
        paymentIntent: filter.paymentIntent ?? null,
      });
      return found.map(toEffect);
    },
    counts: () => store.countEffects(db),
    requests: (filter = {}) =>
      store.listRequests(db, {
        method: filter.method ?? null,
        path: filter.path ?? null,
        paymentIntent: filter.paymentIntent ?? null,
        afterOrdinal: filter.afterOrdinal ?? 0,
      }),

    async dashboardRefund(input) {
      const wanted = dashboardRefundSchema.parse(input);
      const { refund } = await engine.createRefund(
        ctx.engine,
        {
          paymentIntent: wanted.paymentIntent,
          charge: null,
          amount: wanted.amount ?? null,
          reason: null,
          metadata: {},
          expand: [],
        },
        { idempotencyKey: null, requestId: null, origin: "dashboard" },
      );
      return toEffect(refund);
    },
    async dispute(paymentIntent, disputed = true) {
      if (!(await store.setDisputed(db, paymentIntent, disputed))) {
        throw new Error(`there is no payment intent ${paymentIntent}`);
      }
    },
    async advanceRefund(id, to) {
      return toEffect(await engine.advanceRefund(ctx.engine, id, to));
    },

    setPromises(changes) {
      ctx.setPromises(promisesSchema.parse({ ...ctx.promises(), ...changes }));
    },
    promises: () => ctx.promises(),

    setClockOffsetMs(offsetMs, options = {}) {
      ctx.setSignWithOffset(options.signatures ?? true);
      ctx.clock.setOffsetMs(offsetMs);
    },
    clockOffsetMs: () => ctx.clock.offsetMs(),
    expireKeys: (key) => store.forgetKeys(db, key ?? null),

    setWebhook: (target) => ctx.webhooks.setTarget(target),
    webhookMode(mode) {
      if (mode !== undefined) ctx.webhooks.setMode(mode);
      return ctx.webhooks.mode();
    },
    flushWebhooks: (options) => ctx.webhooks.flush(options),
    forgetWebhooks: () => store.forgetUndelivered(db),
    resendWebhook: (eventId, forgery) => ctx.webhooks.resend(eventId, forgery),
    forgeWebhook(event, forgery) {
      const createdAtMs = ctx.clock.nowMs();
      const { body } = engine.eventBody({
        id: event.id ?? deterministicId(ctx.seed, "evt", `forged|${createdAtMs}`),
        type: event.type,
        createdAtMs,
        object: event.object,
        cause: { idempotencyKey: null, requestId: null },
      });
      return ctx.webhooks.send(body, forgery);
    },
    async events() {
      const events = await store.listEvents(db);
      return events.map(({ id, type, objectId, body, attempts, delivered }) => ({
        id,
        type,
        objectId,
        body,
        attempts,
        delivered,
      }));
    },
    deliveries: () => ctx.webhooks.deliveries(),

    settle: () => ctx.settle(),
    hurry: () => ctx.hurry(),
    async reset() {
      ctx.faults.disarmAll();
      await ctx.hurry();
      await store.truncateAll(db);
      ctx.resetCounters();
    },
  };
}

function toEffect(refund: RefundRecord): CommittedEffect {
  return {
    id: refund.id,
    paymentIntent: refund.paymentIntent,
    charge: refund.charge,
    amount: refund.amount,
    currency: refund.currency,
    status: refund.status,
    operationId: refund.metadata["operation_id"] ?? null,
    operationKey: refund.metadata["operation_key"] ?? null,
    idempotencyKey: refund.idempotencyKey,
    origin: refund.origin,
    created: new Date(refund.createdAtMs).toISOString(),
  };
}
