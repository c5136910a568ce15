/**
 * Webhooks: whether they come from the provider, and what they are about.
 *
 * A webhook is evidence and a wake-up, never a state: whoever gets one reads the object before judging.
 */
import Stripe from "stripe";
import { z } from "zod";
import type { JsonObject } from "../domain/json.js";
import { nestsDeeperThan } from "../domain/json-depth.js";
import type { ProviderEvent, VerifyWebhook } from "../domain/ports/payment-provider.js";

/** How far the time in a signature may be from ours, either way, seconds. Stripe's own default for the past. */
const WEBHOOK_TOLERANCE_S = 300;

const eventSchema = z.object({
  id: z.string().min(1),
  type: z.string().min(1),
  data: z.object({ object: z.record(z.string(), z.unknown()) }),
});

/** What an event of ours may be about, as far as it says so; anything else is passed on unread. */
const reference = z
  .union([z.string(), z.object({ id: z.string() }).transform(({ id }) => id)])
  .nullish()
  .catch(null);
const aboutSchema = z.object({
  object: z.string().catch(""),
  id: z.string().nullish().catch(null),
  payment_intent: reference,
  metadata: z.record(z.string(), z.string()).nullish().catch(null),
});

/**
 * @param secret the endpoint's signing secret (`whsec_…`)
 * @returns a function that checks the signature over the bytes as they came, the time in it against `now`, and reads the event
 */
export function createWebhookVerifier(secret: string): VerifyWebhook {
  const cryptoProvider = Stripe.createNodeCryptoProvider();
  return (rawBody, signature, now) => {
    if (signature === undefined || signature === "") return { ok: false, reason: "no_signature" };
    try {
      // Tolerance 0 leaves the time to us: the package looks only into the past.
      Stripe.webhooks.signature?.verifyHeader(rawBody, signature, secret, 0, cryptoProvider);
    } catch {
      return { ok: false, reason: "bad_signature" };
    }
    // One time only: the package signs over the last one, so a second would let an old signature look young.
    const times = signature.split(",").filter((part) => part.trim().startsWith("t="));
    const signedAt = Number(/^t=(\d{1,12})$/.exec(times[0]?.trim() ?? "")?.[1] ?? Number.NaN);
    if (times.length !== 1 || Number.isNaN(signedAt)) return { ok: false, reason: "bad_signature" };
    const ageS = Math.floor(now.getTime() / 1000) - signedAt;
    if (ageS > WEBHOOK_TOLERANCE_S) return { ok: false, reason: "too_old" };
    if (ageS < -WEBHOOK_TOLERANCE_S) return { ok: false, reason: "too_new" };
    const event = readEvent(rawBody.toString("utf8"));
    return event === null ? { ok: false, reason: "unreadable" } : { ok: true, event };
  };
}

/** Reads an event without asking where it comes from: for bodies that were verified when they were stored. */
export function readEvent(body: string): ProviderEvent | null {
  let payload: unknown;
  try {
    payload = JSON.parse(body);
  } catch {
    return null;
  }
  if (nestsDeeperThan(payload)) return null;
  const parsed = eventSchema.safeParse(payload);
  if (!parsed.success) return null;
  const about = aboutSchema.parse(parsed.data.data.object);
  return {
    id: parsed.data.id,
    type: parsed.data.type,
    objectId: about.id ?? null,
    paymentIntent: about.payment_intent ?? null,
    subscription: about.object === "subscription" ? (about.id ?? null) : null,
    operationId: about.metadata?.["operation_id"] ?? null,
    payload: payload as JsonObject,
  };
}
