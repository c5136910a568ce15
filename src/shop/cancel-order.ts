/**
 * Cancelling an order in our own database: a local effect, handed to the ledger as a function of its transaction, so that the
 * order and its operation change together or not at all.
 */
import type { Tx } from "../db/connect.js";
import { ORDER_STATUSES, type OrderStatus } from "../domain/order.js";

export type LocalEffectResult =
  | { readonly ok: true; readonly ref: string }
  | { readonly ok: false; readonly code: string; readonly detail: string };

/**
 * The effect for one order. Locks the order's row, looks at its status again and cancels it only from one of `from`; an
 * order that has moved on in the meantime is left alone and said so. `ref` is the effect's reference.
 */
export function cancelOrder(params: {
  readonly orderRef: string;
  /** Statuses that the policy in force allows; dispatched and later ones are never cancelled, whatever it says. */
  readonly from?: readonly OrderStatus[];
}): (tx: Tx) => Promise<LocalEffectResult> {
  const from = (params.from ?? CANCELLABLE).filter((status) => CANCELLABLE.includes(status));
  return async (tx) => {
    const [order] = await tx.sql<{ id: string; status: string }>(
      "shop.cancel-lock",
      "SELECT id, status FROM orders WHERE ref = $1 FOR UPDATE",
      [params.orderRef],
    );
    if (order === undefined) {
      return { ok: false, code: "order_not_found", detail: `There is no order ${params.orderRef}.` };
    }
    if (order.status === "cancelled") {
      return {
        ok: false,
        code: "already_cancelled",
        detail: `Order ${params.orderRef} is cancelled already.`,
      };
    }
    if (!(from as readonly string[]).includes(order.status)) {
      const detail = `Order ${params.orderRef} is ${order.status} and can no longer be cancelled.`;
      return { ok: false, code: "order_status", detail };
    }
    await tx.sql(
      "shop.cancel",
      `UPDATE orders SET status = 'cancelled', cancelled_at = countersign_now(), version = version + 1,
         updated_at = countersign_now() WHERE id = $1 AND status = $2`,
      [order.id, order.status],
    );
    return { ok: true, ref: `order:${params.orderRef}` };
  };
}

/** What has left the house, or is over, cannot be cancelled: it is sent back and refunded. */
const CANCELLABLE: readonly OrderStatus[] = ORDER_STATUSES.filter(
  (status) => status === "placed" || status === "packed",
);

/**
 * Records what the provider confirmed about a subscription: ended now, or at the end of its period. Called in the
 * transaction that settles the operation. An unknown reference changes nothing.
 */
export async function recordSubscriptionCancelled(
  tx: Tx,
  params: { readonly subscriptionRef: string; readonly atPeriodEnd: boolean },
): Promise<void> {
  await tx.sql(
    "shop.subscription-cancelled",
    `UPDATE subscriptions SET status = CASE WHEN $2 THEN status ELSE 'canceled' END, cancel_at_period_end = $2,
       version = version + 1, updated_at = countersign_now() WHERE ref = $1 AND status <> 'canceled'`,
    [params.subscriptionRef, params.atPeriodEnd],
  );
}
