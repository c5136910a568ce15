/** The writes of an import, one statement each over all rows of the file. Called inside the import's transaction only. */
import type { Tx } from "../db/connect.js";
import { ID_PREFIXES } from "../domain/ids.js";
import type { Ids } from "../domain/ports/clock.js";
import type { OrderBefore } from "./import-before.js";
import type { ShopFile } from "./shop-file.js";

type FileOrder = ShopFile["orders"][number];

/** A version grows only when something changed, so that a file imported twice makes no card stale. */
export async function writeOrders(
  tx: Tx,
  ids: Ids,
  file: ShopFile,
  before: ReadonlyMap<string, OrderBefore>,
  now: Date,
): Promise<void> {
  const rows = file.orders.map((order) => {
    const old = before.get(order.ref);
    const status = old?.status === "cancelled" ? "cancelled" : order.status;
    const deliveredAt = order.deliveredAt ?? lastDelivery(order) ?? old?.deliveredAt ?? null;
    const cancelledAt = order.cancelledAt ?? old?.cancelledAt ?? (status === "cancelled" ? now : null);
    return {
      id: ids.next(ID_PREFIXES.order),
      ref: order.ref,
      customer: order.customer,
      status,
      currency: order.currency,
      placed_at: order.placedAt ?? old?.placedAt ?? deliveredAt ?? cancelledAt ?? now,
      delivered_at: deliveredAt,
      cancelled_at: cancelledAt,
      shipping_minor: order.shippingAmount,
    };
  });
  await tx.sql(
    "shop.import-orders",
    `INSERT INTO orders (id, ref, customer_id, status, currency, placed_at, delivered_at, cancelled_at, shipping_minor)
     SELECT r.id, r.ref, c.id, r.status, r.currency, r.placed_at, r.delivered_at, r.cancelled_at, r.shipping_minor
     FROM jsonb_to_recordset($1::jsonb) AS r(id text, ref text, customer text, status text, currency text,
       placed_at timestamptz, delivered_at timestamptz, cancelled_at timestamptz, shipping_minor bigint)
     JOIN customers c ON c.ref = r.customer ORDER BY r.ref
     ON CONFLICT (ref) DO UPDATE SET customer_id = excluded.customer_id, status = excluded.status,
       currency = excluded.currency, placed_at = excluded.placed_at, delivered_at = excluded.delivered_at,
       cancelled_at = excluded.cancelled_at, shipping_minor = excluded.shipping_minor,
       version = orders.version + 1, updated_at = countersign_now()
     WHERE (orders.customer_id, orders.status, orders.currency, orders.placed_at, orders.delivered_at,
            orders.cancelled_at, orders.shipping_minor)
       IS DISTINCT FROM (excluded.customer_id, excluded.status, excluded.currency, excluded.placed_at,
            excluded.delivered_at, excluded.cancelled_at, excluded.shipping_minor)`,
    [JSON.stringify(rows)],
  );
}

/** When the file gives no delivery date, the newest shipment that it calls delivered does. */
function lastDelivery(order: FileOrder): string | null {
  if (order.status !== "delivered") return null;
  const times = order.shipments
    .filter(({ status }) => status.toLowerCase() === "delivered")
    .flatMap(({ updatedAt }) => (updatedAt === undefined ? [] : [updatedAt]));
  return times.sort().at(-1) ?? null;
}

export async function writePayments(tx: Tx, ids: Ids, file: ShopFile): Promise<void> {
  const rows = file.orders.flatMap(({ ref, currency, payment }) =>
    payment
      ? [
          {
            id: ids.next(ID_PREFIXES.payment),
            order_ref: ref,
            payment_intent: payment.paymentIntent,
            currency,
            captured: payment.captured,
          },
        ]
      : [],
  );
  await tx.sql(
    "shop.import-payments",
    `INSERT INTO payments (id, order_id, payment_intent, currency, captured)
     SELECT r.id, o.id, r.payment_intent, r.currency, r.captured
     FROM jsonb_to_recordset($1::jsonb) AS r(id text, order_ref text, payment_intent text, currency text, captured bigint)
     JOIN orders o ON o.ref = r.order_ref ORDER BY r.order_ref
     ON CONFLICT (order_id) DO UPDATE SET payment_intent = excluded.payment_intent, currency = excluded.currency,
       captured = excluded.captured, version = payments.version + 1, updated_at = countersign_now(),
       compared_at = '-infinity'
     WHERE (payments.payment_intent, payments.currency, payments.captured)
       IS DISTINCT FROM (excluded.payment_intent, excluded.currency, excluded.captured)`,
    [JSON.stringify(rows)],
  );
}

/** The file's items replace the order's. */
export async function writeItems(tx: Tx, ids: Ids, file: ShopFile): Promise<void> {
  const rows = file.orders.flatMap((order) =>
    order.items.map((item, position) => ({
      id: ids.next(ID_PREFIXES.item),
      order_ref: order.ref,
      ref: item.ref,
      sku: item.sku,
      name: item.name,
      quantity: item.quantity,
      unit_minor: item.unitAmount,
      position,
    })),
  );
  const json = JSON.stringify(rows);
  await tx.sql(
    "shop.import-items-gone",
    `DELETE FROM order_items i USING orders o WHERE o.id = i.order_id AND o.ref = ANY($1) AND NOT EXISTS (
       SELECT 1 FROM jsonb_to_recordset($2::jsonb) AS r(order_ref text, ref text)
       WHERE r.order_ref = o.ref AND r.ref = i.ref)`,
    [file.orders.map(({ ref }) => ref), json],
  );
  await tx.sql(
    "shop.import-items",
    `INSERT INTO order_items (id, order_id, ref, sku, name, quantity, unit_minor, position)
     SELECT r.id, o.id, r.ref, r.sku, r.name, r.quantity, r.unit_minor, r.position
     FROM jsonb_to_recordset($1::jsonb) AS r(id text, order_ref text, ref text, sku text, name text, quantity integer,
       unit_minor bigint, position integer) JOIN orders o ON o.ref = r.order_ref
     ON CONFLICT (order_id, ref) DO UPDATE SET sku = excluded.sku, name = excluded.name,
       quantity = excluded.quantity, unit_minor = excluded.unit_minor, position = excluded.position`,
    [json],
  );
}

/** The file's shipments replace the order's. */
export async function writeShipments(tx: Tx, ids: Ids, file: ShopFile, now: Date): Promise<void> {
  const rows = file.orders.flatMap((order) =>
    order.shipments.map((shipment) => ({
      id: ids.next(ID_PREFIXES.shipment),
      order_ref: order.ref,
      carrier: shipment.carrier,
      tracking: shipment.tracking,
      status: shipment.status,
      updated_at: shipment.updatedAt ?? now,
    })),
  );
  const json = JSON.stringify(rows);
  await tx.sql(
    "shop.import-shipments-gone",
    `DELETE FROM shipments s USING orders o WHERE o.id = s.order_id AND o.ref = ANY($1) AND NOT EXISTS (
       SELECT 1 FROM jsonb_to_recordset($2::jsonb) AS r(order_ref text, tracking text)
       WHERE r.order_ref = o.ref AND r.tracking = s.tracking)`,
    [file.orders.map(({ ref }) => ref), json],
  );
  await tx.sql(
    "shop.import-shipments",
    `INSERT INTO shipments (id, order_id, carrier, tracking, status, updated_at)
     SELECT r.id, o.id, r.carrier, r.tracking, r.status, r.updated_at
     FROM jsonb_to_recordset($1::jsonb) AS r(id text, order_ref text, carrier text, tracking text, status text,
       updated_at timestamptz) JOIN orders o ON o.ref = r.order_ref
     ON CONFLICT (order_id, tracking) DO UPDATE SET carrier = excluded.carrier, status = excluded.status,
       updated_at = excluded.updated_at`,
    [json],
  );
}

export async function writeHelpArticles(tx: Tx, ids: Ids, file: ShopFile): Promise<void> {
  const rows = file.helpArticles.map((article) => ({ id: ids.next(ID_PREFIXES.article), ...article }));
  await tx.sql(
    "shop.import-articles",
    `INSERT INTO help_articles (id, slug, title, body)
     SELECT id, slug, title, body FROM jsonb_to_recordset($1::jsonb) AS r(id text, slug text, title text, body text)
     ORDER BY slug
     ON CONFLICT (slug) DO UPDATE SET title = excluded.title, body = excluded.body, updated_at = countersign_now()
     WHERE (help_articles.title, help_articles.body) IS DISTINCT FROM (excluded.title, excluded.body)`,
    [JSON.stringify(rows)],
  );
}
