/** The sandbox's SQL: one function per statement, each inside a transaction that the caller opened or on its own. */
import pg from "pg";
import { z } from "zod";
import type { FormObject } from "./form.js";
import type { ListRefundParams } from "./params.js";
import {
  type ChargeRecord,
  type EventRecord,
  type RefundRecord,
  type RequestRecord,
  type StoredKey,
  type SubscriptionRecord,
  toCharge,
  toEvent,
  toRefund,
  toRequest,
  toStoredKey,
  toSubscription,
} from "./records.js";
import { DDL, SCHEMA } from "./schema.js";

/** Anything that runs a query: the pool, or the client of one transaction. */
export type Queryable = Pick<pg.ClientBase, "query">;

export type Database = pg.Pool;

/** Connects and creates the tables that are missing. */
export async function openDatabase(databaseUrl: string): Promise<Database> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 8, application_name: "payments-sandbox" });
  // An idle connection that the server ends must not end the process.
  pool.on("error", () => {});
  try {
    await pool.query(DDL);
  } catch (error) {
    await pool.end();
    throw error;
  }
  return pool;
}

/**
 * Connections for writing requests down. They do not wait for the disk: a request that is lost with the database server was
 * only looked at, while effects, which wait, were money.
 */
export function openRequestLog(databaseUrl: string): Database {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: 4,
    application_name: "payments-sandbox-log",
    options: "-c synchronous_commit=off",
  });
  pool.on("error", () => {});
  return pool;
}

/** Runs `work` in one transaction; rolls back and rethrows on any error. */
export async function inTransaction<T>(pool: Database, work: (tx: Queryable) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const result = await work(client);
    await client.query("COMMIT");
    client.release();
    return result;
  } catch (error) {
    await client.query("ROLLBACK").then(
      () => client.release(),
      (rollbackError: unknown) => client.release(rollbackError instanceof Error ? rollbackError : true),
    );
    throw error;
  }
}

/** Highest ordinals in use, where the counters go on after a restart. */
export async function lastOrdinals(
  db: Queryable,
): Promise<{ refunds: number; requests: number; events: number }> {
  const { rows } = await db.query(`
    SELECT (SELECT coalesce(max(ordinal), 0) FROM ${SCHEMA}.refunds)  AS refunds,
           (SELECT coalesce(max(ordinal), 0) FROM ${SCHEMA}.requests) AS requests,
           (SELECT coalesce(max(ordinal), 0) FROM ${SCHEMA}.events)   AS events`);
  const row = rows[0] as { refunds: string; requests: string; events: string };
  return { refunds: Number(row.refunds), requests: Number(row.requests), events: Number(row.events) };
}

const CHARGE_SELECT = `
  SELECT c.*, coalesce((
    SELECT sum(r.amount) FROM ${SCHEMA}.refunds r
     WHERE r.charge = c.id AND r.status NOT IN ('failed', 'canceled')), 0) AS refunded
    FROM ${SCHEMA}.charges c`;

export async function upsertCharge(
  db: Queryable,
  charge: Omit<ChargeRecord, "refunded" | "disputed">,
): Promise<void> {
  await db.query(
    `INSERT INTO ${SCHEMA}.charges (id, payment_intent, customer, amount, currency, pi_status, created_at_ms)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (payment_intent) DO UPDATE
       SET amount = EXCLUDED.amount, currency = EXCLUDED.currency, customer = EXCLUDED.customer,
           pi_status = EXCLUDED.pi_status`,
    [
      charge.id,
      charge.paymentIntent,
      charge.customer,
      charge.amount,
      charge.currency,
      charge.paymentIntentStatus,
      charge.createdAtMs,
    ],
  );
}

export async function findCharge(
  db: Queryable,
  by: { paymentIntent: string } | { charge: string },
  options: { lock: boolean } = { lock: false },
): Promise<ChargeRecord | null> {
  const [column, value] =
    "paymentIntent" in by ? (["payment_intent", by.paymentIntent] as const) : (["id", by.charge] as const);
  if (options.lock) {
    // Locked first, summed afterwards: the sum must see what the previous holder committed.
    await db.query(`SELECT 1 FROM ${SCHEMA}.charges WHERE ${column} = $1 FOR UPDATE`, [value]);
  }
  const { rows } = await db.query(`${CHARGE_SELECT} WHERE c.${column} = $1`, [value]);
  return rows[0] === undefined ? null : toCharge(rows[0]);
}

export async function listCharges(db: Queryable): Promise<ChargeRecord[]> {
  const { rows } = await db.query(`${CHARGE_SELECT} ORDER BY c.payment_intent`);
  return rows.map(toCharge);
}

/** True when there is such a charge. */
export async function setDisputed(db: Queryable, paymentIntent: string, disputed: boolean): Promise<boolean> {
  const { rowCount } = await db.query(
    `UPDATE ${SCHEMA}.charges SET disputed = $2 WHERE payment_intent = $1`,
    [paymentIntent, disputed],
  );
  return rowCount === 1;
}

export async function insertRefund(db: Queryable, refund: RefundRecord): Promise<void> {
  await db.query(
    `INSERT INTO ${SCHEMA}.refunds
       (ordinal, id, charge, payment_intent, amount, currency, status, pending_reason, failure_reason,
        reason, metadata, origin, idempotency_key, created_at_ms)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
    [
      refund.ordinal,
      refund.id,
      refund.charge,
      refund.paymentIntent,
      refund.amount,
      refund.currency,
      refund.status,
      refund.pendingReason,
      refund.failureReason,
      refund.reason,
      JSON.stringify(refund.metadata),
      refund.origin,
      refund.idempotencyKey,
      refund.createdAtMs,
    ],
  );
}

export async function findRefund(
  db: Queryable,
  id: string,
  options: { lock: boolean } = { lock: false },
): Promise<RefundRecord | null> {
  const { rows } = await db.query(
    `SELECT * FROM ${SCHEMA}.refunds WHERE id = $1${options.lock ? " FOR UPDATE" : ""}`,
    [id],
  );
  return rows[0] === undefined ? null : toRefund(rows[0]);
}

export async function updateRefundStatus(
  db: Queryable,
  refund: Pick<RefundRecord, "id" | "status" | "pendingReason" | "failureReason">,
): Promise<void> {
  await db.query(
    `UPDATE ${SCHEMA}.refunds SET status = $2, pending_reason = $3, failure_reason = $4 WHERE id = $1`,
    [refund.id, refund.status, refund.pendingReason, refund.failureReason],
  );
}

/** Oldest first. Null leaves a condition out. */
export async function findRefunds(
  db: Queryable,
  filter: { operationId: string | null; paymentIntent: string | null },
): Promise<RefundRecord[]> {
  const { rows } = await db.query(
    `SELECT * FROM ${SCHEMA}.refunds
      WHERE ($1::text IS NULL OR metadata ->> 'operation_id' = $1)
        AND ($2::text IS NULL OR payment_intent = $2)
      ORDER BY ordinal`,
    [filter.operationId, filter.paymentIntent],
  );
  return rows.map(toRefund);
}

const countRow = z.object({
  committed: z.coerce.number(),
  refunds: z.coerce.number(),
  amounts: z.record(z.string(), z.number()),
  duplicates: z.coerce.number(),
  cancellations: z.coerce.number(),
  requests: z.coerce.number(),
  posts: z.coerce.number(),
});

/** What was really committed, and how often it was asked for. One statement, so that the numbers belong together. */
export async function countEffects(db: Queryable): Promise<z.output<typeof countRow>> {
  const { rows } = await db.query(`
    WITH standing AS (
      SELECT amount, currency, metadata ->> 'operation_id' AS operation
        FROM ${SCHEMA}.refunds WHERE status NOT IN ('failed', 'canceled')),
    by_currency AS (SELECT currency, sum(amount) AS amount FROM standing GROUP BY currency),
    by_operation AS (SELECT count(*) AS times FROM standing WHERE operation IS NOT NULL GROUP BY operation)
    SELECT (SELECT count(*) FROM standing) AS committed,
           (SELECT count(*) FROM ${SCHEMA}.refunds) AS refunds,
           (SELECT coalesce(jsonb_object_agg(currency, amount), '{}') FROM by_currency) AS amounts,
           (SELECT coalesce(sum(times - 1), 0) FROM by_operation) AS duplicates,
           (SELECT coalesce(sum(cancellations), 0) FROM ${SCHEMA}.subscriptions) AS cancellations,
           (SELECT count(*) FROM ${SCHEMA}.requests) AS requests,
           (SELECT count(*) FROM ${SCHEMA}.requests WHERE method = 'POST' AND path = '/v1/refunds') AS posts`);
  return countRow.parse(rows[0]);
}

/**
 * One page, newest first, and whether there is more in the direction of paging.
 *
 * @param visibleUntilMs refunds created later are not known to this read yet; null: all are
 */
export async function pageRefunds(
  db: Queryable,
  params: ListRefundParams,
  cursor: number | null,
  visibleUntilMs: number | null,
): Promise<{ refunds: RefundRecord[]; hasMore: boolean }> {
  const values: unknown[] = [];
  const conditions: string[] = [];
  const where = (sql: (placeholder: string) => string, value: unknown): void => {
    values.push(value);
    conditions.push(sql(`$${values.length}`));
  };
  const second = "(created_at_ms / 1000)";
  if (params.paymentIntent !== null) where((p) => `payment_intent = ${p}`, params.paymentIntent);
  if (params.charge !== null) where((p) => `charge = ${p}`, params.charge);
  if (params.created.gt !== undefined) where((p) => `${second} > ${p}`, params.created.gt);
  if (params.created.gte !== undefined) where((p) => `${second} >= ${p}`, params.created.gte);
  if (params.created.lt !== undefined) where((p) => `${second} < ${p}`, params.created.lt);
  if (params.created.lte !== undefined) where((p) => `${second} <= ${p}`, params.created.lte);
  if (visibleUntilMs !== null) where((p) => `created_at_ms <= ${p}`, visibleUntilMs);
  const backwards = params.endingBefore !== null;
  if (cursor !== null) where((p) => (backwards ? `ordinal > ${p}` : `ordinal < ${p}`), cursor);
  values.push(params.limit + 1);
  const { rows } = await db.query(
    `SELECT * FROM ${SCHEMA}.refunds
     ${conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`}
     ORDER BY ordinal ${backwards ? "ASC" : "DESC"} LIMIT $${values.length}`,
    values,
  );
  const page = rows.slice(0, params.limit).map(toRefund);
  return { refunds: backwards ? page.reverse() : page, hasMore: rows.length > params.limit };
}

export async function upsertSubscription(
  db: Queryable,
  subscription: Omit<SubscriptionRecord, "cancellations">,
): Promise<void> {
  await db.query(
    `INSERT INTO ${SCHEMA}.subscriptions
       (id, customer, status, currency, unit_amount, cancel_at_period_end, current_period_start_ms,
        current_period_end_ms, canceled_at_ms, ended_at_ms, metadata, created_at_ms)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     ON CONFLICT (id) DO UPDATE
       SET customer = EXCLUDED.customer, currency = EXCLUDED.currency, unit_amount = EXCLUDED.unit_amount,
           current_period_end_ms = EXCLUDED.current_period_end_ms`,
    [
      subscription.id,
      subscription.customer,
      subscription.status,
      subscription.currency,
      subscription.unitAmount,
      subscription.cancelAtPeriodEnd,
      subscription.currentPeriodStartMs,
      subscription.currentPeriodEndMs,
      subscription.canceledAtMs,
      subscription.endedAtMs,
      JSON.stringify(subscription.metadata),
      subscription.createdAtMs,
    ],
  );
}

/** Ends what was to be canceled at the end of a period that is over, then reads. */
export async function findSubscription(
  db: Queryable,
  id: string,
  nowMs: number,
  options: { lock: boolean } = { lock: false },
): Promise<SubscriptionRecord | null> {
  await db.query(
    `UPDATE ${SCHEMA}.subscriptions SET status = 'canceled', ended_at_ms = current_period_end_ms
      WHERE id = $1 AND cancel_at_period_end AND status <> 'canceled' AND current_period_end_ms <= $2`,
    [id, nowMs],
  );
  const { rows } = await db.query(
    `SELECT * FROM ${SCHEMA}.subscriptions WHERE id = $1${options.lock ? " FOR UPDATE" : ""}`,
    [id],
  );
  return rows[0] === undefined ? null : toSubscription(rows[0]);
}

export async function updateSubscription(db: Queryable, subscription: SubscriptionRecord): Promise<void> {
  await db.query(
    `UPDATE ${SCHEMA}.subscriptions
        SET status = $2, cancel_at_period_end = $3, canceled_at_ms = $4, ended_at_ms = $5, metadata = $6,
            cancellations = $7
      WHERE id = $1`,
    [
      subscription.id,
      subscription.status,
      subscription.cancelAtPeriodEnd,
      subscription.canceledAtMs,
      subscription.endedAtMs,
      JSON.stringify(subscription.metadata),
      subscription.cancellations,
    ],
  );
}

export async function listSubscriptions(db: Queryable): Promise<SubscriptionRecord[]> {
  const { rows } = await db.query(`SELECT * FROM ${SCHEMA}.subscriptions ORDER BY id`);
  return rows.map(toSubscription);
}

export async function findKey(db: Queryable, key: string): Promise<StoredKey | null> {
  const { rows } = await db.query(`SELECT * FROM ${SCHEMA}.idempotency_keys WHERE key = $1`, [key]);
  return rows[0] === undefined ? null : toStoredKey(rows[0]);
}

export async function insertKey(db: Queryable, stored: StoredKey): Promise<void> {
  await db.query(
    `INSERT INTO ${SCHEMA}.idempotency_keys
       (key, method, path, params, params_canonical, status, body, request_id, created_at_ms)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      stored.key,
      stored.method,
      stored.path,
      JSON.stringify(stored.params),
      stored.paramsCanonical,
      stored.status,
      stored.body,
      stored.requestId,
      stored.createdAtMs,
    ],
  );
}

/** Forgets one key, or all of them. Returns how many there were. */
export async function forgetKeys(db: Queryable, key: string | null): Promise<number> {
  const { rowCount } = await db.query(
    `DELETE FROM ${SCHEMA}.idempotency_keys WHERE $1::text IS NULL OR key = $1`,
    [key],
  );
  return rowCount ?? 0;
}

export async function insertRequest(
  db: Queryable,
  request: {
    ordinal: number;
    id: string;
    method: string;
    path: string;
    params: FormObject;
    idempotencyKey: string | null;
    paymentIntent: string | null;
    atMs: number;
  },
): Promise<void> {
  await db.query(
    `INSERT INTO ${SCHEMA}.requests
       (ordinal, id, method, path, params, idempotency_key, payment_intent, at_ms)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      request.ordinal,
      request.id,
      request.method,
      request.path,
      JSON.stringify(request.params),
      request.idempotencyKey,
      request.paymentIntent,
      request.atMs,
    ],
  );
}

/** Oldest first. Null leaves a condition out. */
export async function listRequests(
  db: Queryable,
  filter: { method: string | null; path: string | null; paymentIntent: string | null; afterOrdinal: number },
): Promise<RequestRecord[]> {
  const { rows } = await db.query(
    `SELECT * FROM ${SCHEMA}.requests
      WHERE ordinal > $1 AND ($2::text IS NULL OR method = $2) AND ($3::text IS NULL OR path = $3)
        AND ($4::text IS NULL OR payment_intent = $4)
      ORDER BY ordinal`,
    [filter.afterOrdinal, filter.method, filter.path, filter.paymentIntent],
  );
  return rows.map(toRequest);
}

export async function insertEvent(
  db: Queryable,
  event: Omit<EventRecord, "attempts" | "delivered">,
): Promise<void> {
  await db.query(
    `INSERT INTO ${SCHEMA}.events (ordinal, id, type, object_id, body, created_at_ms)
     VALUES ($1, $2, $3, $4, $5, $6)`,
    [event.ordinal, event.id, event.type, event.objectId, event.body, event.createdAtMs],
  );
}

export async function undeliveredEvents(db: Queryable): Promise<EventRecord[]> {
  const { rows } = await db.query(`SELECT * FROM ${SCHEMA}.events WHERE NOT delivered ORDER BY ordinal`);
  return rows.map(toEvent);
}

export async function forgetUndelivered(db: Queryable): Promise<void> {
  await db.query(`UPDATE ${SCHEMA}.events SET delivered = true WHERE NOT delivered`);
}

export async function listEvents(db: Queryable): Promise<EventRecord[]> {
  const { rows } = await db.query(`SELECT * FROM ${SCHEMA}.events ORDER BY ordinal`);
  return rows.map(toEvent);
}

export async function findEvent(db: Queryable, id: string): Promise<EventRecord | null> {
  const { rows } = await db.query(`SELECT * FROM ${SCHEMA}.events WHERE id = $1`, [id]);
  return rows[0] === undefined ? null : toEvent(rows[0]);
}

export async function noteDelivery(db: Queryable, id: string, delivered: boolean): Promise<void> {
  await db.query(
    `UPDATE ${SCHEMA}.events SET attempts = attempts + 1, delivered = delivered OR $2 WHERE id = $1`,
    [id, delivered],
  );
}

/** Empties every table. */
export async function truncateAll(db: Queryable): Promise<void> {
  await db.query(
    `TRUNCATE ${["charges", "refunds", "subscriptions", "idempotency_keys", "requests", "events"]
      .map((table) => `${SCHEMA}.${table}`)
      .join(", ")}`,
  );
}
