/** Records rendered as Stripe's objects. Pure; the shapes are held to the handed schema by a test. */
import { toSeconds } from "./clock.js";
import { deterministicId } from "./ids.js";
import type { ChargeRecord, RefundRecord, SubscriptionRecord } from "./records.js";

export type WireObject = { [key: string]: unknown };

/** Which references of a refund are sent as whole objects instead of ids. */
export interface RefundExpansion {
  charge?: ChargeRecord;
  paymentIntent?: ChargeRecord;
}

export function renderRefund(seed: string, refund: RefundRecord, expand: RefundExpansion = {}): WireObject {
  const failed = refund.status === "failed" || refund.status === "canceled";
  return {
    id: refund.id,
    object: "refund",
    amount: refund.amount,
    balance_transaction:
      refund.status === "succeeded" || refund.status === "failed"
        ? deterministicId(seed, "txn", refund.id)
        : null,
    charge: expand.charge === undefined ? refund.charge : renderCharge(expand.charge),
    created: toSeconds(refund.createdAtMs),
    currency: refund.currency,
    customer: null,
    customer_account: null,
    destination_details: {
      card: { type: refund.status === "succeeded" ? "refund" : "pending" },
      type: "card",
    },
    ...(failed && refund.failureReason !== null
      ? {
          failure_reason: refund.failureReason,
          failure_balance_transaction: deterministicId(seed, "txn", `${refund.id}|failure`),
        }
      : {}),
    metadata: refund.metadata,
    ...(refund.status === "requires_action"
      ? {
          next_action: {
            type: "display_details",
            display_details: {
              email_sent: {
                email_sent_at: toSeconds(refund.createdAtMs),
                email_sent_to: "customer@shop.example",
              },
              expires_at: toSeconds(refund.createdAtMs) + 30 * 24 * 3600,
            },
          },
        }
      : {}),
    payment_intent:
      expand.paymentIntent === undefined ? refund.paymentIntent : renderPaymentIntent(expand.paymentIntent),
    payment_method: null,
    ...(refund.status === "pending" ? { pending_reason: refund.pendingReason ?? "processing" } : {}),
    reason: refund.reason,
    receipt_number: null,
    source_transfer_reversal: null,
    status: refund.status,
    transfer_reversal: null,
  };
}

export function renderCharge(charge: ChargeRecord): WireObject {
  return {
    id: charge.id,
    object: "charge",
    amount: charge.amount,
    amount_captured: charge.paymentIntentStatus === "succeeded" ? charge.amount : 0,
    amount_refunded: charge.refunded,
    captured: charge.paymentIntentStatus === "succeeded",
    created: toSeconds(charge.createdAtMs),
    currency: charge.currency,
    customer: charge.customer,
    disputed: charge.disputed,
    livemode: false,
    metadata: {},
    paid: charge.paymentIntentStatus === "succeeded",
    payment_intent: charge.paymentIntent,
    refunded: charge.refunded >= charge.amount,
    status: charge.paymentIntentStatus === "succeeded" ? "succeeded" : "pending",
  };
}

export function renderPaymentIntent(charge: ChargeRecord, latestCharge?: WireObject): WireObject {
  const captured = charge.paymentIntentStatus === "succeeded";
  return {
    id: charge.paymentIntent,
    object: "payment_intent",
    amount: charge.amount,
    amount_capturable: 0,
    amount_received: captured ? charge.amount : 0,
    capture_method: "automatic",
    confirmation_method: "automatic",
    created: toSeconds(charge.createdAtMs),
    currency: charge.currency,
    customer: charge.customer,
    latest_charge: latestCharge ?? (captured ? charge.id : null),
    livemode: false,
    metadata: {},
    next_action: null,
    payment_method: null,
    payment_method_types: ["card"],
    status: charge.paymentIntentStatus,
  };
}

export function renderSubscription(seed: string, subscription: SubscriptionRecord): WireObject {
  const seconds = (ms: number | null): number | null => (ms === null ? null : toSeconds(ms));
  return {
    id: subscription.id,
    object: "subscription",
    billing_cycle_anchor: toSeconds(subscription.createdAtMs),
    cancel_at: subscription.cancelAtPeriodEnd ? toSeconds(subscription.currentPeriodEndMs) : null,
    cancel_at_period_end: subscription.cancelAtPeriodEnd,
    canceled_at: seconds(subscription.canceledAtMs),
    cancellation_details: {
      comment: null,
      feedback: null,
      reason: subscription.canceledAtMs === null ? null : "cancellation_requested",
    },
    collection_method: "charge_automatically",
    created: toSeconds(subscription.createdAtMs),
    currency: subscription.currency,
    customer: subscription.customer,
    ended_at: seconds(subscription.endedAtMs),
    items: {
      object: "list",
      data: [
        {
          id: deterministicId(seed, "si", subscription.id),
          object: "subscription_item",
          created: toSeconds(subscription.createdAtMs),
          current_period_end: toSeconds(subscription.currentPeriodEndMs),
          current_period_start: toSeconds(subscription.currentPeriodStartMs),
          metadata: {},
          quantity: 1,
          subscription: subscription.id,
        },
      ],
      has_more: false,
      url: `/v1/subscription_items?subscription=${subscription.id}`,
    },
    livemode: false,
    metadata: subscription.metadata,
    start_date: toSeconds(subscription.createdAtMs),
    status: subscription.status,
  };
}
