/**
 * Import of a shop file: all or nothing, in one transaction.
 *
 * 1. What the file names is inserted or brought up to date; what it does not name stays.
 * 2. An import never un-cancels an order or a subscription: what we cancelled stays cancelled, whatever an older file says.
 * 3. An import that lowers `captured` below what is reserved or refunded is applied and reported to `onBelowReserved` in
 *    the same transaction: what the shop says to have happened is never lost to a failed write.
 * 4. Money set aside or given back pins the payment: its provider reference and currency can then no longer change.
 * 5. Locks: imports one after another; then orders by reference, then their payments (DESIGN §4).
 */
import type { Db, Tx } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import { ID_PREFIXES } from "../domain/ids.js";
import type { Ids } from "../domain/ports/clock.js";
import type { OrderBefore, PaymentBefore } from "./import-before.js";
import { writeHelpArticles, writeItems, writeOrders, writePayments, writeShipments } from "./import-write.js";
import { emailKey, parseShopFile, pathText, type ShopFile, type ShopProblem } from "./shop-file.js";

/** An import set `captured` below what is reserved, refunded or refunded elsewhere. Minor units. */
export interface BelowReserved {
  readonly paymentId: string;
  readonly orderRef: string;
  readonly currency: string;
  readonly capturedBefore: bigint;
  readonly captured: bigint;
  readonly reserved: bigint;
  readonly refunded: bigint;
  readonly refundedElsewhere: bigint;
}

export interface ImportContext {
  readonly db: Db;
  readonly ids: Ids;
  /** Records the incident, inside the import's transaction. */
  readonly onBelowReserved: (tx: Tx, finding: BelowReserved) => Promise<void>;
}

export interface ImportResult {
  readonly customers: number;
  readonly orders: number;
  readonly subscriptions: number;
  readonly helpArticles: number;
  /** Orders and subscriptions that the file says are not cancelled, and that stay cancelled. */
  readonly keptCancelled: readonly string[];
  readonly belowReserved: readonly BelowReserved[];
  /** Keys of the file that the format does not know (the first 20). */
  readonly ignoredKeys: readonly string[];
}

/** The file cannot be imported; nothing was changed. Each problem has its path in the file. */
export class ShopFileError extends CountersignError {
  readonly problems: readonly ShopProblem[];
  constructor(problems: readonly ShopProblem[]) {
    super("bad_shop_file", problems.map(({ path, message }) => `${path}: ${message}`).join("\n"));
    this.name = "ShopFileError";
    this.problems = problems;
  }
}

/** Imports the content of a shop file (parsed JSON). Throws `ShopFileError` and changes nothing when it is not valid. */
export async function importShop(
  ctx: ImportContext,
  params: { readonly content: unknown },
): Promise<ImportResult> {
  const parsed = parseShopFile(params.content);
  if (!parsed.ok) throw new ShopFileError(parsed.problems);
  const { file, ignoredKeys } = parsed;
  return ctx.db.tx(async (tx) => {
    await tx.sql("shop.import-lock", "SELECT pg_advisory_xact_lock(hashtext('countersign shop import'))");
    const now = await importTime(tx);
    await writeCustomers(tx, ctx.ids, file);
    await checkCustomers(tx, file);
    const before = await lockOrders(tx, file);
    checkPayments(file, before);
    const keptCancelled = file.orders
      .filter((order) => order.status !== "cancelled" && before.get(order.ref)?.status === "cancelled")
      .map((order) => order.ref);
    await writeOrders(tx, ctx.ids, file, before, now);
    await writePayments(tx, ctx.ids, file);
    await writeItems(tx, ctx.ids, file);
    await writeShipments(tx, ctx.ids, file, now);
    const keptSubscriptions = await writeSubscriptions(tx, ctx.ids, file);
    await writeHelpArticles(tx, ctx.ids, file);
    const belowReserved = findBelowReserved(file, before);
    for (const finding of belowReserved) await ctx.onBelowReserved(tx, finding);
    return {
      customers: file.customers.length,
      orders: file.orders.length,
      subscriptions: file.subscriptions.length,
      helpArticles: file.helpArticles.length,
      keptCancelled: [...keptCancelled, ...keptSubscriptions],
      belowReserved,
      ignoredKeys,
    };
  });
}

async function importTime(tx: Tx): Promise<Date> {
  const [row] = await tx.sql<{ now: Date }>("shop.import-now", "SELECT countersign_now() AS now");
  if (row === undefined) throw new Error("the database did not tell the time");
  return row.now;
}

async function writeCustomers(tx: Tx, ids: Ids, file: ShopFile): Promise<void> {
  const rows = file.customers.map(({ ref, name, email }) => ({
    id: ids.next(ID_PREFIXES.customer),
    ref,
    name,
    email,
    email_normal: emailKey(email),
  }));
  await tx.sql(
    "shop.import-customers",
    `INSERT INTO customers (id, ref, name, email, email_normal)
     SELECT id, ref, name, email, email_normal
     FROM jsonb_to_recordset($1::jsonb) AS r(id text, ref text, name text, email text, email_normal text) ORDER BY ref
     ON CONFLICT (ref) DO UPDATE SET name = excluded.name, email = excluded.email,
       email_normal = excluded.email_normal, updated_at = countersign_now()
     WHERE (customers.name, customers.email) IS DISTINCT FROM (excluded.name, excluded.email)`,
    [JSON.stringify(rows)],
  );
}

async function checkCustomers(tx: Tx, file: ShopFile): Promise<void> {
  const uses = [
    ...file.orders.map(({ customer }, i) => ({ customer, path: pathText(["orders", i, "customer"]) })),
    ...file.subscriptions.map(({ customer }, i) => ({
      customer,
      path: pathText(["subscriptions", i, "customer"]),
    })),
  ];
  const rows = await tx.sql<{ ref: string }>(
    "shop.import-known",
    "SELECT ref FROM customers WHERE ref = ANY($1)",
    [[...new Set(uses.map(({ customer }) => customer))]],
  );
  const known = new Set(rows.map(({ ref }) => ref));
  const missing = uses.filter(({ customer }) => !known.has(customer));
  if (missing.length === 0) return;
  throw new ShopFileError(
    missing.map(({ customer, path }) => ({
      path,
      message: `there is no customer "${customer}", here or in the shop`,
    })),
  );
}

async function lockOrders(tx: Tx, file: ShopFile): Promise<Map<string, OrderBefore>> {
  const refs = file.orders.map(({ ref }) => ref);
  const orders = await tx.sql<{
    id: string;
    ref: string;
    status: string;
    placed_at: Date;
    delivered_at: Date | null;
    cancelled_at: Date | null;
  }>(
    "shop.import-lock-orders",
    `SELECT id, ref, status, placed_at, delivered_at, cancelled_at FROM orders WHERE ref = ANY($1)
     ORDER BY ref FOR UPDATE`,
    [refs],
  );
  const payments = await tx.sql<PaymentBefore & { orderId: string }>(
    "shop.import-lock-payments",
    `SELECT p.id, p.order_id AS "orderId", p.payment_intent AS "paymentIntent", p.currency, p.captured, p.reserved,
            p.refunded, p.refunded_elsewhere AS "refundedElsewhere"
     FROM payments p JOIN orders o ON o.id = p.order_id WHERE o.ref = ANY($1) ORDER BY o.ref FOR UPDATE OF p`,
    [refs],
  );
  const byOrder = new Map(payments.map((payment) => [payment.orderId, payment]));
  return new Map(
    orders.map((row) => [
      row.ref,
      {
        status: row.status,
        placedAt: row.placed_at,
        deliveredAt: row.delivered_at,
        cancelledAt: row.cancelled_at,
        payment: byOrder.get(row.id) ?? null,
      },
    ]),
  );
}

function checkPayments(file: ShopFile, before: ReadonlyMap<string, OrderBefore>): void {
  const problems = file.orders.flatMap((order, i): ShopProblem[] => {
    const payment = before.get(order.ref)?.payment;
    if (!payment || payment.reserved + payment.refunded + payment.refundedElsewhere === 0n) return [];
    const found: ShopProblem[] = [];
    if (order.payment && order.payment.paymentIntent !== payment.paymentIntent) {
      const path = pathText(["orders", i, "payment", "paymentIntent"]);
      found.push({ path, message: "cannot change: money of this payment is refunded or reserved" });
    }
    if (order.currency !== payment.currency) {
      const path = pathText(["orders", i, "currency"]);
      found.push({ path, message: "cannot change: money of this order is refunded or reserved" });
    }
    return found;
  });
  if (problems.length > 0) throw new ShopFileError(problems);
}

function findBelowReserved(file: ShopFile, before: ReadonlyMap<string, OrderBefore>): BelowReserved[] {
  return file.orders.flatMap((order) => {
    const payment = before.get(order.ref)?.payment;
    if (!payment || !order.payment) return [];
    const captured = BigInt(order.payment.captured);
    const { reserved, refunded, refundedElsewhere } = payment;
    if (captured >= payment.captured || captured >= reserved + refunded + refundedElsewhere) return [];
    const { id: paymentId, captured: capturedBefore } = payment;
    const { ref: orderRef, currency } = order;
    return [
      { paymentId, orderRef, currency, capturedBefore, captured, reserved, refunded, refundedElsewhere },
    ];
  });
}

/** Returns the references of those that stay cancelled although the file says otherwise. */
async function writeSubscriptions(tx: Tx, ids: Ids, file: ShopFile): Promise<string[]> {
  const rows = file.subscriptions.map((subscription) => ({
    id: ids.next(ID_PREFIXES.subscription),
    ref: subscription.ref,
    customer: subscription.customer,
    plan: subscription.plan,
    status: subscription.status,
    provider_ref: subscription.providerRef,
    current_period_end: subscription.currentPeriodEnd ?? null,
  }));
  const written = await tx.sql<{ ref: string; status: string }>(
    "shop.import-subscriptions",
    `INSERT INTO subscriptions (id, ref, customer_id, plan, status, provider_ref, current_period_end)
     SELECT r.id, r.ref, c.id, r.plan, r.status, r.provider_ref, r.current_period_end
     FROM jsonb_to_recordset($1::jsonb) AS r(id text, ref text, customer text, plan text, status text,
       provider_ref text, current_period_end timestamptz) JOIN customers c ON c.ref = r.customer ORDER BY r.ref
     ON CONFLICT (ref) DO UPDATE SET customer_id = excluded.customer_id, plan = excluded.plan,
       status = CASE WHEN subscriptions.status IN ('canceled', 'cancelled') THEN subscriptions.status
                     ELSE excluded.status END,
       provider_ref = excluded.provider_ref,
       current_period_end = COALESCE(excluded.current_period_end, subscriptions.current_period_end),
       version = subscriptions.version + 1, updated_at = countersign_now()
     RETURNING ref, status`,
    [JSON.stringify(rows)],
  );
  const asked = new Map(rows.map(({ ref, status }) => [ref, status]));
  return written.filter(({ ref, status }) => asked.get(ref) !== status).map(({ ref }) => ref);
}
