/** Orders as the shop and the policy gate name them (CONTRACT §7). */
export const ORDER_STATUSES = [
  "placed",
  "packed",
  "dispatched",
  "delivered",
  "cancelled",
  "returned",
] as const;
export type OrderStatus = (typeof ORDER_STATUSES)[number];

/** Narrows text to an order status. */
export const isOrderStatus = (text: string): text is OrderStatus =>
  (ORDER_STATUSES as readonly string[]).includes(text);
