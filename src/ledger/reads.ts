/** Reads of operations and what hangs on them. Lists by keyset; nothing here counts history. */
import type { Db, SqlRunner } from "../db/connect.js";
import { utcMicros } from "../db/connect.js";
import { decodeCursor, encodeCursor, NEWEST } from "../domain/cursor.js";
import type { OperationId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import type { Operation, OperationKind, OperationStatus } from "../domain/operation.js";
import type { StoredRequest } from "../domain/ports/payment-provider.js";
import { referenceIsGiven, referenceStands } from "./on-word.js";
import { isStatus, type OperationRow, operationColumns, toOperation, toRequest } from "./rows.js";
import type { Page } from "./types.js";

const COLUMNS = operationColumns("o");
const PAGE = 50;
const MAX_PAGE = 200;
/** How far one page of a status list looks back through history before it hands back a cursor instead. */
const SCAN = 2_000;

/** One operation; null when there is none. */
export async function getOperation(on: SqlRunner, id: OperationId): Promise<Operation | null> {
  const [row] = await on.sql<OperationRow>(
    "ledger.get",
    `SELECT ${COLUMNS} FROM operations o WHERE o.id = $1`,
    [id],
  );
  return row === undefined ? null : toOperation(row);
}

/** $1 time and $2 id of the last row seen (or the greatest), $3 rows. Newest first, by row comparison. */
const LIST = `
SELECT ${COLUMNS}, ${utcMicros("o.created_at")} AS created_text FROM operations o
WHERE (o.created_at, o.id) < ($1::timestamptz, $2)
ORDER BY o.created_at DESC, o.id DESC LIMIT $3::int`;

/** States whose rows are due to somebody: few, found by the index over due rows. $1 status, then as LIST. */
const LIST_OPEN = `
SELECT ${COLUMNS}, ${utcMicros("o.created_at")} AS created_text FROM operations o
WHERE o.due_at IS NOT NULL AND o.status = $1 AND (o.created_at, o.id) < ($2::timestamptz, $3)
ORDER BY o.created_at DESC, o.id DESC LIMIT $4::int`;

const OPEN: ReadonlySet<OperationStatus> = new Set([
  "PREPARED",
  "DISPATCHED",
  "OUTCOME_UNKNOWN",
  "RECONCILING",
  "QUARANTINED",
]);

type ListedRow = OperationRow & { created_text: string };

/** Newest first. With a status that only history has, a page may be short although `next` is not null. */
export async function listOperations(
  db: Db,
  options: { status?: OperationStatus; cursor?: string | null; limit?: number },
): Promise<Page<Operation>> {
  const limit = Math.min(MAX_PAGE, Math.max(1, options.limit ?? PAGE));
  const after = decodeCursor(options.cursor ?? null) ?? NEWEST;
  const { status } = options;
  if (status === undefined) {
    const rows = await db.sql<ListedRow>("ledger.list", LIST, [after.at, after.id, limit + 1]);
    return pageOf(rows, limit);
  }
  if (OPEN.has(status)) {
    const rows = await db.sql<ListedRow>("ledger.list_open", LIST_OPEN, [
      status,
      after.at,
      after.id,
      limit + 1,
    ]);
    return pageOf(rows, limit);
  }
  const scanned = await db.sql<ListedRow>("ledger.list", LIST, [after.at, after.id, SCAN]);
  const matching = scanned.filter((row) => row.status === status);
  if (matching.length > limit) return pageOf(matching, limit);
  const last = scanned.length === SCAN ? scanned.at(-1) : undefined;
  return {
    rows: matching.map(toOperation),
    next: last === undefined ? null : encodeCursor({ at: last.created_text, id: last.id }),
  };
}

function pageOf(rows: readonly ListedRow[], limit: number): Page<Operation> {
  const page = rows.slice(0, limit);
  const last = rows.length > limit ? page.at(-1) : undefined;
  return {
    rows: page.map(toOperation),
    next: last === undefined ? null : encodeCursor({ at: last.created_text, id: last.id }),
  };
}

/** `op_` and 32 hexadecimal digits. */
const ID_LENGTH = 35;

/** Full ids that begin with the text, newest first. The primary key answers; ids are lower-case and of one alphabet. */
export async function findByPrefix(
  db: Db,
  prefix: string,
  options: { limit: number },
): Promise<OperationId[]> {
  const text = prefix.trim().toLowerCase();
  const full = text.startsWith("op_") ? text : `op_${text}`;
  if (!/^op_[0-9a-f]{1,32}$/.test(full)) return [];
  // Padded to the length of an id, the two ends compare alike under every collation.
  const rows = await db.sql<{ id: OperationId }>(
    "ledger.find_by_prefix",
    "SELECT id FROM operations WHERE id >= $1 AND id <= $2 ORDER BY id DESC LIMIT $3::int",
    [full.padEnd(ID_LENGTH, "0"), full.padEnd(ID_LENGTH, "f"), options.limit],
  );
  return rows.map(({ id }) => id);
}

/** Operations that may have, or had, an effect on this order, oldest first. */
export async function liveOn(
  on: SqlRunner,
  target: { kind: OperationKind; orderRef: string },
): Promise<Operation[]> {
  const rows = await on.sql<OperationRow>(
    "ledger.live_on",
    `SELECT ${COLUMNS} FROM operations o JOIN orders s ON s.id = o.order_id
     WHERE s.ref = $1 AND o.kind = $2 AND o.key_live ORDER BY o.id`,
    [target.orderRef, target.kind],
  );
  return rows.map(toOperation);
}

/** The operation that a provider reference belongs to; the oldest, should several name it, and one that only a person named it for last. */
export async function operationByProviderRef(on: SqlRunner, ref: string): Promise<Operation | null> {
  const [row] = await on.sql<OperationRow>(
    "ledger.by_provider_ref",
    `SELECT ${COLUMNS} FROM operations o WHERE o.provider_ref = $1 AND ${referenceStands("o")}
     ORDER BY ${referenceIsGiven("o")}, o.id LIMIT 1`,
    [ref],
  );
  return row === undefined ? null : toOperation(row);
}

/** The request as stored with the first attempt; null: nothing was sent. */
export async function requestOf(on: SqlRunner, id: OperationId): Promise<StoredRequest | null> {
  const [row] = await on.sql<{ request: JsonObject | null }>(
    "ledger.request",
    "SELECT request FROM operations WHERE id = $1",
    [id],
  );
  return row === undefined || row.request === null ? null : toRequest(row.request);
}

/** Operations that are not at an end, by status. Costs what is open: held ones are counted through their approvals. */
export async function openCounts(db: Db): Promise<Partial<Record<OperationStatus, number>>> {
  const rows = await db.sql<{ status: string; n: bigint }>(
    "ledger.open_counts",
    `SELECT status, count(*) AS n FROM operations WHERE due_at IS NOT NULL GROUP BY status
     UNION ALL
     SELECT 'AWAITING_APPROVAL', count(*) FROM approvals WHERE state = 'PENDING' HAVING count(*) > 0`,
  );
  const counts: Partial<Record<OperationStatus, number>> = {};
  for (const { status, n } of rows) if (isStatus(status)) counts[status] = Number(n);
  return counts;
}

/** Of operations that ended without an effect, the next one that asked for the same; the others are left out. */
export async function askedAgain(
  on: SqlRunner,
  operations: readonly Operation[],
): Promise<ReadonlyMap<OperationId, Operation>> {
  const ended = operations.filter(({ status }) => ENDED_WITHOUT.has(status)).map(({ id }) => id);
  if (ended.length === 0) return new Map();
  const rows = await on.sql<{ id: OperationId; next: OperationId }>(
    "ledger.asked_again",
    `SELECT o.id, n.id AS next FROM operations o
     JOIN LATERAL (SELECT id FROM operations WHERE key = o.key AND id > o.id ORDER BY id LIMIT 1) n ON true
     WHERE o.id = ANY ($1::text[])`,
    [ended],
  );
  const again = await Promise.all(
    rows.map(async ({ id, next }) => [id, await getOperation(on, next)] as const),
  );
  return new Map(again.flatMap(([id, next]) => (next === null ? [] : [[id, next] as const])));
}

const ENDED_WITHOUT: ReadonlySet<OperationStatus> = new Set(["DENIED", "EXPIRED", "VOIDED"]);
