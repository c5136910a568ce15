/** Reading the ledger. Lists go by key, never by offset, and cost what they show. */
import type { Db, Tx } from "../db/connect.js";
import type { OperationId } from "../domain/ids.js";
import type { Json } from "../domain/json.js";
import {
  OPERATION_STATUSES,
  type Operation,
  type OperationKind,
  type OperationStatus,
} from "../domain/operation.js";
import type { StoredRequest } from "../domain/ports/payment-provider.js";
import { decodeCursor, encodeCursor } from "./cursor.js";
import { type OperationRow, operationColumns, toOperation, toRequest } from "./rows.js";
import type { AttemptRow, DueOperation, EvidenceRow, Page, Waiter } from "./types.js";

const PAGE = 50;
const MAX_PAGE = 200;
/** Rows looked at for one page of a rare status. */
const SCAN = 2_000;

export async function getOperation(on: Db | Tx, id: OperationId): Promise<Operation | null> {
  const [row] = await on.sql<OperationRow>(
    "ledger.get",
    `SELECT ${operationColumns("o")} FROM operations o WHERE o.id = $1`,
    [id],
  );
  return row === undefined ? null : toOperation(row);
}

/** Newest first. With a status a page may be short although `next` is not null. */
export async function listOperations(
  db: Db,
  options: { status?: OperationStatus; cursor?: string | null; limit?: number },
): Promise<Page<Operation>> {
  const limit = Math.min(options.limit ?? PAGE, MAX_PAGE);
  const after = decodeCursor(options.cursor ?? null);
  if (options.status !== undefined) return listByStatus(db, options.status, after, limit);
  const rows = await db.sql<OperationRow & { cursor_at: string }>(
    "ledger.list",
    `SELECT ${operationColumns("o")}, o.created_at::text AS cursor_at FROM operations o
      WHERE $1::timestamptz IS NULL OR (o.created_at, o.id) < ($1::timestamptz, $2)
      ORDER BY o.created_at DESC, o.id DESC LIMIT $3`,
    [after?.at ?? null, after?.id ?? "", limit + 1],
  );
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    rows: shown.map(toOperation),
    next: rows.length > limit && last !== undefined ? encodeCursor(last.cursor_at, last.id) : null,
  };
}

async function listByStatus(
  db: Db,
  status: OperationStatus,
  after: { at: string; id: string } | null,
  limit: number,
): Promise<Page<Operation>> {
  const rows = await db.sql<
    OperationRow & { cursor_at: string; scanned: bigint; end_at: string; end_id: string }
  >(
    "ledger.list_status",
    `WITH page AS (
       SELECT ${operationColumns("o")}, o.created_at::text AS cursor_at, row_number() OVER (ORDER BY o.created_at DESC, o.id DESC) AS n
       FROM (SELECT * FROM operations
              WHERE $1::timestamptz IS NULL OR (created_at, id) < ($1::timestamptz, $2)
              ORDER BY created_at DESC, id DESC LIMIT $4) o
     ), edge AS (SELECT max(n) AS scanned FROM page)
     SELECT p.*, e.scanned, l.cursor_at AS end_at, l.id AS end_id
       FROM edge e JOIN page l ON l.n = e.scanned LEFT JOIN page p ON p.status = $3
      ORDER BY p.n LIMIT $5`,
    [after?.at ?? null, after?.id ?? "", status, SCAN, limit + 1],
  );
  const found = rows.filter((row) => row.id !== null);
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  if (found.length > limit && last !== undefined) {
    return { rows: shown.map(toOperation), next: encodeCursor(last.cursor_at, last.id) };
  }
  const edge = rows.at(0);
  const more = edge !== undefined && Number(edge.scanned) >= SCAN;
  return { rows: shown.map(toOperation), next: more ? encodeCursor(edge.end_at, edge.end_id) : null };
}

/** Full ids that begin with the text, newest first, at most `limit`. */
export async function findByPrefix(
  db: Db,
  prefix: string,
  options: { limit: number },
): Promise<OperationId[]> {
  if (!/^op_[0-9a-f]{1,32}$/.test(prefix)) return [];
  const rows = await db.sql<{ id: OperationId }>(
    "ledger.find",
    "SELECT id FROM operations WHERE id >= $1 AND id < $2 ORDER BY id DESC LIMIT $3",
    [prefix, `${prefix}g`, options.limit],
  );
  return rows.map((row) => row.id);
}

/** Operations that may have, or had, an effect on this target, oldest first. */
export async function liveOn(
  db: Db | Tx,
  target: { kind: OperationKind; orderRef: string },
): Promise<Operation[]> {
  const rows = await db.sql<OperationRow>(
    "ledger.live_on",
    `SELECT ${operationColumns("o")} FROM operations o JOIN orders r ON r.id = o.order_id
      WHERE r.ref = $1 AND o.kind = $2 AND o.key_live ORDER BY o.created_at, o.id`,
    [target.orderRef, target.kind],
  );
  return rows.map(toOperation);
}

/** The operation that this provider reference belongs to. */
export async function operationByProviderRef(db: Db | Tx, ref: string): Promise<Operation | null> {
  const [row] = await db.sql<OperationRow>(
    "ledger.by_provider_ref",
    `SELECT ${operationColumns("o")} FROM operations o WHERE o.provider_ref = $1 ORDER BY o.created_at LIMIT 1`,
    [ref],
  );
  return row === undefined ? null : toOperation(row);
}

/** Provider references of one payment or subscription that operations explain: reference → operation. */
export async function knownReferences(
  db: Db | Tx,
  target: { paymentIntent: string } | { providerSubscription: string },
): Promise<Map<string, OperationId>> {
  const rows =
    "paymentIntent" in target
      ? await db.sql<{ ref: string; id: OperationId }>(
          "ledger.known_of_payment",
          `SELECT o.provider_ref AS ref, o.id FROM payments p JOIN operations o ON o.order_id = p.order_id
            WHERE p.payment_intent = $1 AND o.provider_ref IS NOT NULL`,
          [target.paymentIntent],
        )
      : await db.sql<{ ref: string; id: OperationId }>(
          "ledger.known_of_subscription",
          `SELECT o.provider_ref AS ref, o.id FROM subscriptions s JOIN operations o ON o.subscription_id = s.id
            WHERE s.provider_ref = $1 AND o.provider_ref IS NOT NULL`,
          [target.providerSubscription],
        );
  return new Map(rows.map((row) => [row.ref, row.id]));
}

/** Rows that are due now, oldest first; reads only. */
export function dueOperations(db: Db, options: { limit: number }): Promise<DueOperation[]> {
  return db.sql<DueOperation>(
    "ledger.due",
    `SELECT id, status, due_at AS "dueAt" FROM operations
      WHERE due_at IS NOT NULL AND due_at <= countersign_now() ORDER BY due_at, id LIMIT $1`,
    [options.limit],
  );
}

export async function attemptsOf(db: Db | Tx, id: OperationId): Promise<AttemptRow[]> {
  return db.sql<AttemptRow>(
    "ledger.attempts",
    `SELECT number, lease_token AS "leaseToken", worker, started_at AS "startedAt", timeout_ms AS "timeoutMs",
            finished_at AS "finishedAt", verdict, code, http_status AS "httpStatus", provider_ref AS "providerRef",
            request_id AS "requestId", evidence
       FROM attempts WHERE operation_id = $1 ORDER BY number`,
    [id],
  );
}

export async function waitersOf(db: Db | Tx, id: OperationId): Promise<Waiter[]> {
  return db.sql<Waiter>(
    "ledger.waiters",
    `SELECT run_id AS "runId", ticket_id AS "ticketId", filer, joined_at AS "joinedAt"
       FROM operation_waiters WHERE operation_id = $1 ORDER BY joined_at, run_id`,
    [id],
  );
}

export async function evidenceOf(db: Db | Tx, id: OperationId): Promise<EvidenceRow[]> {
  return db.sql<EvidenceRow>(
    "ledger.evidence",
    `SELECT id, operation_id AS "operationId", source, provider_ref AS "providerRef", payload, at
       FROM provider_evidence WHERE operation_id = $1 ORDER BY at, id`,
    [id],
  );
}

/** The request as stored with the first attempt; null: nothing was sent. */
export async function requestOf(db: Db | Tx, id: OperationId): Promise<StoredRequest | null> {
  const [row] = await db.sql<{ request: Json }>(
    "ledger.request",
    "SELECT request FROM operations WHERE id = $1",
    [id],
  );
  const request = row?.request;
  return request === null || typeof request !== "object" || Array.isArray(request)
    ? null
    : toRequest(request);
}

/** Operations that are not at an end, by status. Costs what is open: only what is due, reserved or held is looked at. */
export async function openCounts(db: Db): Promise<Partial<Record<OperationStatus, number>>> {
  const rows = await db.sql<{ status: OperationStatus; n: bigint }>(
    "ledger.open_counts",
    `SELECT status, count(*) AS n FROM operations
      WHERE status IN ('AWAITING_APPROVAL','PREPARED','DISPATCHED','OUTCOME_UNKNOWN','RECONCILING','QUARANTINED')
      GROUP BY status`,
    [],
  );
  return Object.fromEntries(
    rows.filter((row) => OPERATION_STATUSES.includes(row.status)).map((row) => [row.status, Number(row.n)]),
  );
}
