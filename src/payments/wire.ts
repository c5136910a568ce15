/**
 * What we read from Stripe's objects, and nothing more: Stripe adds fields without a new version, so everything else is
 * passed over. A missing or mistyped field of these makes the answer unreadable.
 */
import { z } from "zod";
import type { ProviderEffect } from "../domain/evidence.js";
import { cutText } from "../domain/text/cut.js";

/** Ids stand in unique indexes and in URLs: what is longer than Stripe's longest, or no plain text, is none. */
const id = z.string().regex(/^[\x21-\x7e]{1,255}$/);

/** A word of the provider's, as far as anybody would read it. */
const MAX_WORD = 500;
const word = z.string().transform((text) => cutText(text, MAX_WORD));

/** Unix seconds up to the year 9999. It decides nothing, so that what is no time is passed over. */
const MAX_SECONDS = 253_402_300_799;
const seconds = z.int().nonnegative().max(MAX_SECONDS).optional().catch(undefined);

const reference = z
  .union([z.string(), z.object({ id: z.string() }).transform(({ id }) => id)])
  .nullish()
  .transform((value) => value ?? null);

const metadata = z
  .record(z.string(), z.string())
  .nullish()
  .transform((value) => value ?? {});

export const refundSchema = z.object({
  id,
  object: z.literal("refund"),
  amount: z.int().nonnegative(),
  currency: word.pipe(z.string().min(1)),
  status: word.nullish(),
  payment_intent: reference,
  metadata,
  pending_reason: word.nullish(),
  failure_reason: word.nullish(),
  created: seconds,
});
export type WireRefund = z.output<typeof refundSchema>;

export const refundListSchema = z.object({
  object: z.literal("list"),
  data: z.array(refundSchema),
  has_more: z.boolean(),
});

export const subscriptionSchema = z.object({
  id,
  object: z.literal("subscription"),
  status: word,
  cancel_at_period_end: z
    .boolean()
    .nullish()
    .transform((value) => value ?? false),
  metadata,
  created: seconds,
  canceled_at: seconds.nullable(),
});
export type WireSubscription = z.output<typeof subscriptionSchema>;

export const errorSchema = z.object({
  error: z.object({
    type: word.nullish(),
    code: word.nullish(),
    message: word.nullish(),
    param: word.nullish(),
    decline_code: word.nullish(),
  }),
});
export type WireError = z.output<typeof errorSchema>["error"];

/** Null where the text is not JSON or does not fit. */
export function readJson<S extends z.ZodType>(schema: S, text: string): z.output<S> | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const parsed = schema.safeParse(value);
  return parsed.success ? parsed.data : null;
}

/** @param target the payment intent that was asked for, where the object names none */
export function refundEffect(refund: WireRefund, target: string): ProviderEffect {
  return {
    ref: refund.id,
    kind: "refund",
    target: refund.payment_intent ?? target,
    amountMinor: BigInt(refund.amount),
    currency: refund.currency.toUpperCase(),
    status: refund.status ?? "unknown",
    pendingReason: refund.pending_reason ?? null,
    failureReason: refund.failure_reason ?? null,
    operationId: refund.metadata["operation_id"] ?? null,
    createdAt: fromSeconds(refund.created),
  };
}

/**
 * The word for a subscription that ends with its period: Stripe keeps such a one `active` and sets a flag, which is the
 * effect that was asked for.
 */
export const CANCELS_AT_PERIOD_END = "cancel_at_period_end";

/** Null where nothing is or will be cancelled. A cancellation has no id of its own, so the subscription's stands for it. */
export function cancellationEffect(subscription: WireSubscription): ProviderEffect | null {
  const canceled = subscription.status === "canceled";
  if (!canceled && !subscription.cancel_at_period_end) return null;
  return {
    ref: subscription.id,
    kind: "subscription_cancellation",
    target: subscription.id,
    amountMinor: 0n,
    currency: "",
    status: canceled ? "canceled" : CANCELS_AT_PERIOD_END,
    pendingReason: null,
    failureReason: null,
    operationId: subscription.metadata["operation_id"] ?? null,
    createdAt: fromSeconds(subscription.canceled_at ?? subscription.created),
  };
}

const fromSeconds = (since: number | null | undefined): Date => new Date((since ?? 0) * 1000);
