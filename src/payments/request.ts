/** The request of an operation, and the same request as arguments of the official package. */
import type Stripe from "stripe";
import { assertNever } from "../domain/assert-never.js";
import { CountersignError } from "../domain/errors.js";
import { amountToJson } from "../domain/money.js";
import {
  REQUEST_MISMATCH,
  type RequestMaterial,
  type StoredRequest,
} from "../domain/ports/payment-provider.js";

/** Stripe cuts no metadata, it refuses: values may have 500 characters. */
const METADATA_VALUE_MAX = 500;

/**
 * Names only what is material, so that nothing that may change between two attempts is in it.
 *
 * @throws CountersignError for an operation that has no request: a local effect, or one without its landing
 */
export function buildRequest(operation: RequestMaterial): StoredRequest {
  switch (operation.kind) {
    case "refund":
      if (operation.paymentIntent === null || operation.amountMinor <= 0n) {
        throw unfit(operation, "a refund needs a payment and an amount");
      }
      return {
        endpoint: "refunds.create",
        target: null,
        params: {
          payment_intent: operation.paymentIntent,
          amount: amountToJson(operation.amountMinor),
          metadata: {
            operation_id: operation.id,
            operation_key: operation.key.slice(0, METADATA_VALUE_MAX),
          },
        },
      };
    case "cancel_subscription":
      if (operation.providerSubscription === null) {
        throw unfit(operation, "a cancellation needs the provider's subscription");
      }
      return operation.atPeriodEnd === true
        ? {
            endpoint: "subscriptions.update",
            target: operation.providerSubscription,
            params: { cancel_at_period_end: true },
          }
        : { endpoint: "subscriptions.cancel", target: operation.providerSubscription, params: {} };
    case "cancel_order":
      throw unfit(operation, "cancelling an order is an effect in our own database");
    default:
      return assertNever(operation.kind, "kind of operation");
  }
}

/**
 * The stored request must still be this operation's: rows are read again after days, and by then someone may have changed
 * one of the two.
 *
 * @throws CountersignError
 */
export function checkRequest(operation: RequestMaterial, request: StoredRequest): void {
  const expected = buildRequest(operation);
  if (JSON.stringify(ordered(expected)) !== JSON.stringify(ordered(request))) {
    throw unfit(operation, "the stored request is not this operation's");
  }
}

const unfit = (operation: RequestMaterial, why: string): CountersignError =>
  new CountersignError(REQUEST_MISMATCH, `${operation.id}: ${why}.`, {
    ids: { operationId: operation.id },
  });

/** Calls the method of the official package. Parameters go out in one order, whatever order storage gave them back in. */
export function invoke(stripe: Stripe, request: StoredRequest, idempotencyKey: string): Promise<unknown> {
  const { endpoint, target, params } = ordered(request);
  const options = { idempotencyKey };
  switch (endpoint) {
    case "refunds.create":
      return stripe.refunds.create(params as Stripe.RefundCreateParams, options);
    case "subscriptions.update":
      return stripe.subscriptions.update(target ?? "", params as Stripe.SubscriptionUpdateParams, options);
    case "subscriptions.cancel":
      return stripe.subscriptions.cancel(target ?? "", params as Stripe.SubscriptionCancelParams, options);
    default:
      return assertNever(endpoint, "endpoint");
  }
}

/** The order in which parameters are sent; `jsonb` keeps none. Names not in it follow by alphabet. */
const ORDER = [
  "payment_intent",
  "amount",
  "cancel_at_period_end",
  "metadata",
  "operation_id",
  "operation_key",
];

function ordered(request: StoredRequest): StoredRequest {
  const rank = (name: string): string => {
    const at = ORDER.indexOf(name);
    return `${at === -1 ? ORDER.length : at}:${name}`;
  };
  const sorted = <T>(value: Record<string, T>): Record<string, T> =>
    Object.fromEntries(Object.entries(value).sort(([a], [b]) => (rank(a) < rank(b) ? -1 : 1)));
  const params = Object.fromEntries(
    Object.entries(sorted(request.params)).map(([name, value]) => [
      name,
      typeof value === "object" ? sorted(value) : value,
    ]),
  );
  return { endpoint: request.endpoint, target: request.target, params };
}
