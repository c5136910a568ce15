/** Reads of customers, orders and subscriptions. Who may see what is decided by whoever asks; nothing here is scoped. */
import type { SqlRunner } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import { isOrderStatus, type OrderStatus } from "../domain/order.js";
import { referenceSpellings } from "../domain/text/references.js";
import type { Customer, Order, OrderHead, OrderItem, Payment, Shipment, Subscription } from "./types.js";

/** One order by its reference as somebody typed it (`ord 1001`, `#ORD-1001`), closest spelling first; null: none. */
export async function findOrder(db: SqlRunner, typed: string): Promise<Order | null> {
  const spellings = referenceSpellings(typed);
  const [row] = await db.sql<OrderRow>(
    "shop.find-order",
    `${ORDER_SELECT} WHERE o.ref = ANY($1) ORDER BY array_position($1, o.ref) LIMIT 1`,
    [spellings],
  );
  return row === undefined ? null : withParts(db, row);
}

/** One order by its exact reference. */
export async function getOrder(db: SqlRunner, ref: string): Promise<Order | null> {
  const [row] = await db.sql<OrderRow>("shop.get-order", `${ORDER_SELECT} WHERE o.ref = $1`, [ref]);
  return row === undefined ? null : withParts(db, row);
}

/** A customer's orders, newest first, without their parts. At most `limit`. */
export async function ordersOf(db: SqlRunner, customerId: string, limit = 20): Promise<readonly OrderHead[]> {
  const rows = await db.sql<OrderHeadRow>(
    "shop.orders-of",
    `SELECT id, ref, customer_id, status, currency, placed_at, delivered_at, cancelled_at FROM orders
     WHERE customer_id = $1 ORDER BY placed_at DESC, id DESC LIMIT $2`,
    [customerId, limit],
  );
  return rows.map(headOf);
}

/** One subscription by its reference as somebody typed it; null: none. */
export async function findSubscription(db: SqlRunner, typed: string): Promise<Subscription | null> {
  const [row] = await db.sql<SubscriptionRow>(
    "shop.find-subscription",
    `${SUBSCRIPTION_SELECT} WHERE s.ref = ANY($1) ORDER BY array_position($1, s.ref) LIMIT 1`,
    [referenceSpellings(typed)],
  );
  return row === undefined ? null : subscriptionOf(row);
}

/** A customer's subscriptions, by reference. */
export async function subscriptionsOf(db: SqlRunner, customerId: string): Promise<readonly Subscription[]> {
  const rows = await db.sql<SubscriptionRow>(
    "shop.subscriptions-of",
    `${SUBSCRIPTION_SELECT} WHERE s.customer_id = $1 ORDER BY s.ref LIMIT 50`,
    [customerId],
  );
  return rows.map(subscriptionOf);
}

export async function getCustomer(db: SqlRunner, id: string): Promise<Customer | null> {
  const [row] = await db.sql<Customer>(
    "shop.get-customer",
    "SELECT id, ref, name, email FROM customers WHERE id = $1",
    [id],
  );
  return row ?? null;
}

interface OrderHeadRow {
  id: string;
  ref: string;
  customer_id: string;
  status: string;
  currency: string;
  placed_at: Date;
  delivered_at: Date | null;
  cancelled_at: Date | null;
}
interface OrderRow extends OrderHeadRow {
  shipping_minor: bigint;
  version: bigint;
  customer_ref: string;
  customer_name: string;
  customer_email: string;
  payment_id: string | null;
  payment_intent: string;
  payment_currency: string;
  captured: bigint;
  reserved: bigint;
  refunded: bigint;
  refunded_elsewhere: bigint;
  other_currency: string | null;
  left_minor: bigint;
}
interface ItemRow {
  ref: string;
  sku: string;
  name: string;
  quantity: number;
  unit_minor: bigint;
}
interface ShipmentRow {
  carrier: string;
  tracking: string;
  status: string;
  updated_at: Date;
}
interface SubscriptionRow {
  id: string;
  ref: string;
  customer_id: string;
  customer_ref: string;
  customer_name: string;
  customer_email: string;
  plan: string;
  status: string;
  provider_ref: string;
  current_period_end: Date | null;
  cancel_at_period_end: boolean;
  version: bigint;
}

const ORDER_SELECT = `
  SELECT o.id, o.ref, o.customer_id, o.status, o.currency, o.placed_at, o.delivered_at, o.cancelled_at, o.shipping_minor,
         o.version, c.ref AS customer_ref, c.name AS customer_name, c.email AS customer_email,
         p.id AS payment_id, p.payment_intent, p.currency AS payment_currency, p.captured, p.reserved, p.refunded,
         p.refunded_elsewhere, p.other_currency, payment_left(p) AS left_minor
  FROM orders o JOIN customers c ON c.id = o.customer_id LEFT JOIN payments p ON p.order_id = o.id`;
const SUBSCRIPTION_SELECT = `
  SELECT s.id, s.ref, s.customer_id, s.plan, s.status, s.provider_ref, s.current_period_end, s.cancel_at_period_end,
         s.version, c.ref AS customer_ref, c.name AS customer_name, c.email AS customer_email
  FROM subscriptions s JOIN customers c ON c.id = s.customer_id`;

async function withParts(db: SqlRunner, row: OrderRow): Promise<Order> {
  const items = await db.sql<ItemRow>(
    "shop.items",
    "SELECT ref, sku, name, quantity, unit_minor FROM order_items WHERE order_id = $1 ORDER BY position, ref",
    [row.id],
  );
  const shipments = await db.sql<ShipmentRow>(
    "shop.shipments",
    "SELECT carrier, tracking, status, updated_at FROM shipments WHERE order_id = $1 ORDER BY updated_at DESC, tracking",
    [row.id],
  );
  return {
    ...headOf(row),
    shippingMinor: row.shipping_minor,
    version: row.version,
    customer: customerOf(row),
    items: items.map(itemOf),
    payment: paymentOf(row),
    shipments: shipments.map(shipmentOf),
  };
}

function headOf(row: OrderHeadRow): OrderHead {
  return {
    id: row.id,
    ref: row.ref,
    customerId: row.customer_id,
    status: statusOf(row.status),
    currency: row.currency,
    placedAt: row.placed_at,
    deliveredAt: row.delivered_at,
    cancelledAt: row.cancelled_at,
  };
}

function statusOf(text: string): OrderStatus {
  if (isOrderStatus(text)) return text;
  throw new CountersignError("bad_row", `an order has the unknown status "${text}"`);
}

const customerOf = (row: OrderRow | SubscriptionRow): Customer => ({
  id: row.customer_id,
  ref: row.customer_ref,
  name: row.customer_name,
  email: row.customer_email,
});

const itemOf = (row: ItemRow): OrderItem => ({
  ref: row.ref,
  sku: row.sku,
  name: row.name,
  quantity: row.quantity,
  unitMinor: row.unit_minor,
});

const shipmentOf = (row: ShipmentRow): Shipment => ({
  carrier: row.carrier,
  tracking: row.tracking,
  status: row.status,
  updatedAt: row.updated_at,
});

function paymentOf(row: OrderRow): Payment | null {
  if (row.payment_id === null) return null;
  const { captured, reserved, refunded } = row;
  return {
    id: row.payment_id,
    paymentIntent: row.payment_intent,
    currency: row.payment_currency,
    captured,
    reserved,
    refunded,
    refundedElsewhere: row.refunded_elsewhere,
    otherCurrency: row.other_currency,
    refundable: row.left_minor,
  };
}

const subscriptionOf = (row: SubscriptionRow): Subscription => ({
  id: row.id,
  ref: row.ref,
  customer: customerOf(row),
  plan: row.plan,
  status: row.status,
  providerRef: row.provider_ref,
  currentPeriodEnd: row.current_period_end,
  cancelAtPeriodEnd: row.cancel_at_period_end,
  version: row.version,
});
