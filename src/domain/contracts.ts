/**
 * The contracts of the three kinds of effect: what their provider promises, where it says so, and nothing more.
 *
 * A promise that is not published is not assumed: Stripe states no bound after which a request can no longer take effect, so
 * past the life of a key an unknown outcome ends with a person.
 */
import type { EffectContract } from "./contract.js";
import type { OperationKind } from "./operation.js";

export type ContractBook = Readonly<Record<OperationKind, EffectContract>>;

export interface ContractSettings {
  /** Life of an idempotency key in milliseconds, counted from the first claim. Stripe: at least 24 hours. */
  readonly keyTtlMs: number;
}

/** How long a list may lag behind a commit. Stripe promises nothing; used only to choose when to look again. */
const LIST_LAG_MS = 60_000;

export function contractBook(settings: ContractSettings): ContractBook {
  return {
    refund: {
      kind: "refund",
      version: "stripe-refund/1",
      local: false,
      keyed: true,
      keyTtlMs: settings.keyTtlMs,
      readback: { kind: "eventual", lagMs: LIST_LAG_MS },
      inflightBoundMs: null,
      cancellable: false,
      sources: [
        "keyed, keyTtl: docs.stripe.com/api/idempotent_requests: the first result under a key is stored and replayed, errors 500 included; keys may be removed once they are at least 24 hours old, and then the same key is a new request",
        "readback: docs.stripe.com/api/refunds/list: newest first, paged; no promise of when a committed refund is listed",
        "inflightBound: none published",
        "cancellable: docs.stripe.com/api/refunds/cancel: only refunds in requires_action, none that a card refund reaches",
      ],
    },
    cancel_subscription: {
      kind: "cancel_subscription",
      version: "stripe-cancel-subscription/1",
      local: false,
      keyed: true,
      // Cancelling what is cancelled changes nothing, with or without a key: the state is the effect.
      keyTtlMs: null,
      readback: { kind: "eventual", lagMs: LIST_LAG_MS },
      inflightBoundMs: null,
      cancellable: false,
      sources: [
        "keyed: docs.stripe.com/api/idempotent_requests: GET and DELETE are idempotent by definition; setting cancel_at_period_end to true twice leaves it true",
        "keyTtl: unlimited, because repeating does not depend on a stored key",
        "readback: docs.stripe.com/api/subscriptions/retrieve: no promise of when a change is read back",
        "inflightBound: none published",
      ],
    },
    cancel_order: {
      kind: "cancel_order",
      version: "local-cancel-order/1",
      local: true,
      keyed: true,
      keyTtlMs: null,
      readback: { kind: "strong" },
      inflightBoundMs: 0,
      cancellable: false,
      sources: ["our own database: the effect and its operation commit in one transaction"],
    },
  };
}
