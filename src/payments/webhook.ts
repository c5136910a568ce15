/**
 * Webhooks: whether they come from the provider, and what they are about.
 *
 * A webhook is evidence and a wake-up, never a state: whoever gets one reads the object before judging.
 */
import Stripe from "stripe";
import { z } from "zod";

/** What an event is about, as far as it says so. */
export type WebhookSubject =
  | {
      kind: "refund";
      ref: string;
      /** The state when the event was made; older than what a read would say. */
      status: string | null;
      paymentIntent: string | null;
      operationId: string | null;
    }
  /** A charge: something about its payment changed. */
  | { kind: "payment"; paymentIntent: string | null; charge: string }
  | { kind: "subscription"; ref: string }
  | { kind: "other" };

export interface ProviderEvent {
  id: string;
  type: string;
  createdAt: Date;
  subject: WebhookSubject;
}

export type WebhookVerdict =
  | { verified: true; event: ProviderEvent }
  | { verified: false; reason: "no_signature" | "bad_signature" | "too_old" | "too_new" | "unreadable" };

/** How far the time in a signature may be from ours, either way, seconds. Stripe's own default for the past. */
export const WEBHOOK_TOLERANCE_S = 300;

const eventSchema = z.object({
  id: z.string().min(1),
  type: z.string().min(1),
  created: z.int().nonnegative().default(0),
  data: z.object({ object: z.record(z.string(), z.unknown()) }),
});

const reference = z.union([z.string(), z.object({ id: z.string() }).transform(({ id }) => id)]).nullish();
const aboutRefund = z.object({
  object: z.literal("refund"),
  id: z.string().min(1),
  status: z.string().nullish(),
  payment_intent: reference,
  metadata: z.record(z.string(), z.string()).nullish(),
});
const aboutCharge = z.object({
  object: z.literal("charge"),
  id: z.string().min(1),
  payment_intent: reference,
});
const aboutSubscription = z.object({ object: z.literal("subscription"), id: z.string().min(1) });

const webhooks = Stripe.webhooks;

/**
 * @param rawBody the bytes as they came, before any parsing
 * @param header `Stripe-Signature`, undefined where there was none
 * @param now our time
 */
export function verifyWebhook(
  rawBody: Buffer | string,
  header: string | undefined,
  secret: string,
  now: Date,
): WebhookVerdict {
  if (header === undefined || header === "") return { verified: false, reason: "no_signature" };
  try {
    // Tolerance 0 leaves the time to us: the package looks only into the past, and we tell the two apart.
    webhooks.signature?.verifyHeader(rawBody, header, secret, 0, Stripe.createNodeCryptoProvider());
  } catch {
    return { verified: false, reason: "bad_signature" };
  }
  const signedAt = Number(/(?:^|,)t=(\d{1,12})(?:,|$)/.exec(header)?.[1] ?? Number.NaN);
  if (Number.isNaN(signedAt)) return { verified: false, reason: "bad_signature" };
  const ageS = Math.floor(now.getTime() / 1000) - signedAt;
  if (ageS > WEBHOOK_TOLERANCE_S) return { verified: false, reason: "too_old" };
  if (ageS < -WEBHOOK_TOLERANCE_S) return { verified: false, reason: "too_new" };
  const event = readEvent(rawBody);
  return event === null ? { verified: false, reason: "unreadable" } : { verified: true, event };
}

/** Reads an event without asking where it comes from: for bodies that were verified when they were stored. */
export function readEvent(rawBody: Buffer | string): ProviderEvent | null {
  let value: unknown;
  try {
    value = JSON.parse(typeof rawBody === "string" ? rawBody : rawBody.toString("utf8"));
  } catch {
    return null;
  }
  const parsed = eventSchema.safeParse(value);
  if (!parsed.success) return null;
  const { id, type, created, data } = parsed.data;
  return { id, type, createdAt: new Date(created * 1000), subject: subjectOf(data.object) };
}

function subjectOf(object: Record<string, unknown>): WebhookSubject {
  const refund = aboutRefund.safeParse(object);
  if (refund.success) {
    return {
      kind: "refund",
      ref: refund.data.id,
      status: refund.data.status ?? null,
      paymentIntent: refund.data.payment_intent ?? null,
      operationId: refund.data.metadata?.["operation_id"] ?? null,
    };
  }
  const charge = aboutCharge.safeParse(object);
  if (charge.success) {
    return { kind: "payment", charge: charge.data.id, paymentIntent: charge.data.payment_intent ?? null };
  }
  const subscription = aboutSubscription.safeParse(object);
  if (subscription.success) return { kind: "subscription", ref: subscription.data.id };
  return { kind: "other" };
}
