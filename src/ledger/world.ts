/**
 * The rows that a turn's writes touch, found and locked in the order operation, order, payment, totals' scopes.
 *
 * Rows of one kind are locked in the order of their ids (scopes: names), so that two turns never wait for each other.
 */
import type { Tx } from "../db/connect.js";
import type { OperationId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import { type OperationRow, operationColumns, toOperation } from "./rows.js";

/** An order with its payment, locked. Amounts in minor units. */
export interface OrderLock {
  id: string;
  ref: string;
  customerId: string;
  customerRef: string;
  payment: {
    id: string;
    paymentIntent: string;
    currency: string;
    captured: bigint;
    /** The provider shows money in it, which cannot be counted: nothing is left until a person has looked. */
    otherCurrency: string | null;
    /** What is left; falls while the turn reserves. */
    left: bigint;
  } | null;
}

export interface SubscriptionLock {
  id: string;
  ref: string;
  customerId: string;
  customerRef: string;
  providerRef: string;
}

export interface World {
  orders: Map<string, OrderLock>;
  subscriptions: Map<string, SubscriptionLock>;
}

interface OrderLockRow {
  id: string;
  ref: string;
  customer_id: string;
  customer_ref: string;
  payment_id: string;
  payment_intent: string;
  currency: string;
  captured: bigint;
  other_currency: string | null;
  left_minor: bigint;
}

/** Looked up one by one: a join would be planned for many orders and could read all customers. */
const CUSTOMER_REF = "(SELECT c.ref FROM customers c WHERE c.id = o.customer_id) AS customer_ref";
const ORDER_COLUMNS = `o.id, o.ref, o.customer_id, ${CUSTOMER_REF}, p.id AS payment_id, p.payment_intent, p.currency, p.captured,
       p.other_currency, payment_left(p) AS left_minor`;
const PAID_ORDERS = "FROM orders o JOIN payments p ON p.order_id = o.id";

/**
 * Operations that may answer for one of the keys (live ones, and ended ones that a ticket is told again), and those of the ids;
 * locked until the transaction ends.
 */
export async function lockOperations(
  tx: Tx,
  wanted: { keys: readonly string[]; ids: readonly OperationId[] },
): Promise<Operation[]> {
  const rows =
    wanted.ids.length === 0
      ? await tx.sql<OperationRow>("ledger.lock_keys", LOCK_KEYS, [wanted.keys])
      : await tx.sql<OperationRow>("ledger.lock_keys_and_ids", LOCK_KEYS_AND_IDS, [wanted.keys, wanted.ids]);
  return rows.map(toOperation);
}

/** $1 keys. One row an operation, in the order of ids. */
const LOCK_KEYS = `
SELECT ${operationColumns("o")} FROM operations o
WHERE o.key = ANY($1::text[]) AND (o.key_live OR o.status IN ('DENIED', 'REJECTED'))
ORDER BY o.id
FOR NO KEY UPDATE`;

/** $1 keys, $2 ids. */
const LOCK_KEYS_AND_IDS = `
SELECT ${operationColumns("o")} FROM operations o
WHERE (o.key = ANY($1::text[]) AND (o.key_live OR o.status IN ('DENIED', 'REJECTED'))) OR o.id = ANY($2::text[])
ORDER BY o.id
FOR NO KEY UPDATE`;

/** $1 keys, $2 order references. As LOCK_KEYS and then LOCK_ORDERS: no order is read before every operation is locked. */
const LOCK_KEYS_AND_ORDERS = `
WITH known AS MATERIALIZED (
  SELECT o.id FROM operations o
  WHERE o.key = ANY($1::text[]) AND (o.key_live OR o.status IN ('DENIED', 'REJECTED'))
  ORDER BY o.id
  FOR NO KEY UPDATE
)
SELECT ${ORDER_COLUMNS}, (SELECT count(*) FROM known)::int AS known
${PAID_ORDERS}
WHERE (SELECT count(*) FROM known) >= 0 AND o.ref = ANY($2::text[])
ORDER BY o.id
FOR NO KEY UPDATE OF o, p`;

/**
 * `lockOperations` of the keys and the paid ones of the orders, in one statement: most turns ask for something new, and then there
 * is nothing else to read.
 */
export async function lockOperationsAndOrders(
  tx: Tx,
  wanted: { keys: readonly string[]; orders: readonly string[] },
): Promise<{ operations: Operation[]; orders: Map<string, OrderLock> }> {
  const rows = await tx.sql<OrderLockRow & { known: number }>(
    "ledger.lock_keys_and_orders",
    LOCK_KEYS_AND_ORDERS,
    [wanted.keys, wanted.orders],
  );
  const nothingKnown = rows[0]?.known === 0;
  return {
    operations: nothingKnown ? [] : await lockOperations(tx, { keys: wanted.keys, ids: [] }),
    orders: new Map(rows.map((row) => [row.ref, toOrderLock(row)])),
  };
}

/** True when a live operation has one of these keys by now: it was committed while this transaction waited for a lock. */
export async function keyIsHeld(tx: Tx, keys: readonly string[]): Promise<boolean> {
  const rows = await tx.sql(
    "ledger.key_is_held",
    "SELECT 1 FROM operations WHERE key = ANY($1::text[]) AND key_live LIMIT 1",
    [keys],
  );
  return rows.length > 0;
}

/** $1 order references. Orders and their payments are locked row by row, order first. */
const LOCK_ORDERS = `
SELECT ${ORDER_COLUMNS}
${PAID_ORDERS}
WHERE o.ref = ANY($1::text[])
ORDER BY o.id
FOR NO KEY UPDATE OF o, p`;

/** $1 operation ids. As LOCK_ORDERS, for the orders that they are about: what an operation is about never changes. */
const LOCK_ORDERS_OF_OPERATIONS = `
SELECT ${ORDER_COLUMNS}
${PAID_ORDERS}
WHERE o.ref = ANY(ARRAY(SELECT m.order_ref FROM operations m WHERE m.id = ANY($1::text[]) AND m.subscription_ref IS NULL))
ORDER BY o.id
FOR NO KEY UPDATE OF o, p`;

/** Locks the paid orders that these operations are about, with their payments. */
export async function lockOrdersOfOperations(
  tx: Tx,
  ids: readonly OperationId[],
): Promise<Map<string, OrderLock>> {
  const rows = await tx.sql<OrderLockRow>("ledger.lock_orders_of_operations", LOCK_ORDERS_OF_OPERATIONS, [
    ids,
  ]);
  return new Map(rows.map((row) => [row.ref, toOrderLock(row)]));
}

/** $1 order references. For orders without a payment. */
const LOCK_UNPAID_ORDERS = `
SELECT o.id, o.ref, o.customer_id, ${CUSTOMER_REF}
FROM orders o
WHERE o.ref = ANY($1::text[])
ORDER BY o.id
FOR NO KEY UPDATE OF o`;

/** $1 subscription references. */
const LOCK_SUBSCRIPTIONS = `
SELECT s.id, s.ref, s.customer_id AS "customerId", c.ref AS "customerRef", s.provider_ref AS "providerRef"
FROM subscriptions s JOIN customers c ON c.id = s.customer_id
WHERE s.ref = ANY($1::text[])
ORDER BY s.id
FOR NO KEY UPDATE OF s`;

/**
 * Locks orders with their payments, and subscriptions. What does not exist is missing from the maps. `paid`: the paid ones, where
 * the caller has locked them already.
 */
export async function lockWorld(
  tx: Tx,
  refs: { orders: readonly string[]; subscriptions: readonly string[] },
  paid: ReadonlyMap<string, OrderLock> | null,
): Promise<World> {
  const world: World = { orders: new Map(paid ?? []), subscriptions: new Map() };
  if (refs.orders.length > 0) {
    if (paid === null) {
      const rows = await tx.sql<OrderLockRow>("ledger.lock_orders", LOCK_ORDERS, [refs.orders]);
      for (const row of rows) world.orders.set(row.ref, toOrderLock(row));
    }
    const unpaid = refs.orders.filter((ref) => !world.orders.has(ref));
    if (unpaid.length > 0) {
      const others = await tx.sql<Omit<OrderLockRow, "payment_id">>(
        "ledger.lock_unpaid_orders",
        LOCK_UNPAID_ORDERS,
        [unpaid],
      );
      for (const row of others) {
        world.orders.set(row.ref, {
          id: row.id,
          ref: row.ref,
          customerId: row.customer_id,
          customerRef: row.customer_ref,
          payment: null,
        });
      }
    }
  }
  if (refs.subscriptions.length > 0) {
    const rows = await tx.sql<SubscriptionLock>("ledger.lock_subscriptions", LOCK_SUBSCRIPTIONS, [
      refs.subscriptions,
    ]);
    for (const row of rows) world.subscriptions.set(row.ref, row);
  }
  return world;
}

const toOrderLock = (row: OrderLockRow): OrderLock => ({
  id: row.id,
  ref: row.ref,
  customerId: row.customer_id,
  customerRef: row.customer_ref,
  payment: {
    id: row.payment_id,
    paymentIntent: row.payment_intent,
    currency: row.currency,
    captured: row.captured,
    otherCurrency: row.other_currency,
    left: row.left_minor,
  },
});

/**
 * $1 names. In their order; what is there already is locked and not written, also where another transaction made it while this
 * statement waited.
 */
const LOCK_SCOPES = `
INSERT INTO total_scopes (name) SELECT n.name FROM unnest($1::text[]) AS n(name) ORDER BY n.name
ON CONFLICT (name) DO UPDATE SET name = excluded.name WHERE false`;

/** Locks the totals' scopes, by name, before the next statement of the transaction; makes those that are new. */
export function lockScopes(tx: Tx, names: Iterable<string>): void {
  const sorted = [...new Set(names)].sort();
  if (sorted.length > 0) tx.later("ledger.lock_scopes", LOCK_SCOPES, [sorted]);
}
