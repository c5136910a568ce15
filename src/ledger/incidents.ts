/** Incidents: findings that a person must see, each with a card, once for each finding. */
import type { Db, SqlRunner, Tx } from "../db/connect.js";
import { utcMicros } from "../db/connect.js";
import { decodeCursor, encodeCursor, NEWEST } from "../domain/cursor.js";
import type { ApprovalId, OperationId, TicketId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import type { LedgerCtx } from "./context.js";
import { actorOf, recordSubjectEvent } from "./subject-events.js";
import { textName } from "./subjects.js";
import type { Incident, IncidentKind, NewIncident, Page } from "./types.js";

/** $1 id, $2 kind, $3 dedupe key, $4 operation, $5 payment, $6 detail. No row: found before. */
const OPEN = `
INSERT INTO incidents (id, kind, dedupe_key, operation_id, payment_id, detail) VALUES ($1, $2, $3, $4, $5, $6::jsonb)
ON CONFLICT (dedupe_key) DO NOTHING RETURNING id`;

/** Opens an incident with its card, once for each `dedupeKey`. */
export async function openIncident(
  tx: Tx,
  ctx: Pick<LedgerCtx, "ids" | "notices"> & Partial<Pick<LedgerCtx, "hooks">>,
  incident: NewIncident,
): Promise<{ id: string; first: boolean }> {
  const [made] = await tx.sql<{ id: string }>("ledger.open_incident", OPEN, [
    ctx.ids.next("inc_"),
    incident.kind,
    incident.dedupeKey,
    incident.operationId,
    incident.paymentId,
    JSON.stringify(incident.detail),
  ]);
  if (made !== undefined) {
    await recordSubjectEvent(tx, {
      subject: `incident:${made.id}`,
      type: "incident_opened",
      actor: "system:ledger",
      data: {
        kind: incident.kind,
        dedupeKey: incident.dedupeKey,
        operation: incident.operationId,
        payment: incident.paymentId,
        detail: incident.detail,
      },
    });
    await ctx.notices.touch(tx, { kind: "incident", id: made.id });
    if (incident.kind === "duplicate_effect" && incident.operationId !== null)
      await tellDuplicate(tx, ctx, incident.operationId, made.id);
    tx.afterCommit(() => ctx.hooks?.onIncident?.(incident.kind));
    return { id: made.id, first: true };
  }
  const [known] = await tx.sql<{ id: string }>(
    "ledger.known_incident",
    "SELECT id FROM incidents WHERE dedupe_key = $1",
    [incident.dedupeKey],
  );
  return { id: known?.id ?? "", first: false };
}

/** $1 operation, as far as it was told as done: then that is not all that was done. The tickets of everybody who waited for it. */
const TOLD_AS_DONE = `
SELECT o.approval_id AS "approvalId", o.ticket_id AS "ticketId" FROM operations o WHERE o.id = $1 AND o.status = 'CONFIRMED'
UNION SELECT o.approval_id, w.ticket_id FROM operations o JOIN operation_waiters w ON w.operation_id = o.id
WHERE o.id = $1 AND o.status = 'CONFIRMED'`;

/** Its card and its threads say one amount, and the customer has more: both hear of it. */
async function tellDuplicate(
  tx: Tx,
  ctx: Pick<LedgerCtx, "notices">,
  operationId: OperationId,
  incidentId: string,
): Promise<void> {
  const told = await tx.sql<{ approvalId: ApprovalId | null; ticketId: TicketId | null }>(
    "ledger.told_as_done",
    TOLD_AS_DONE,
    [operationId],
  );
  const [first] = told;
  if (first !== undefined && first.approvalId !== null)
    await ctx.notices.follow(tx, { kind: "approval", id: first.approvalId });
  for (const { ticketId } of told) {
    if (ticketId === null) continue;
    await ctx.notices.thread(tx, {
      ticketId,
      key: `operation:${operationId}:duplicate:${incidentId}`,
      message: { type: "operation_outcome", operationId },
    });
  }
}

/** Closes it, with the reason that whoever looks later needs; false: it was closed, or there is none. */
export async function closeIncident(
  tx: Tx,
  ctx: Pick<LedgerCtx, "notices">,
  request: { id: string; by: string; reason: string },
): Promise<boolean> {
  const rows = await tx.sql<{ kind: IncidentKind }>(
    "ledger.close_incident",
    `UPDATE incidents SET status = 'closed', closed_by = $2, close_reason = $3, closed_at = countersign_now()
     WHERE id = $1 AND status = 'open' RETURNING kind`,
    [request.id, request.by, request.reason],
  );
  const [closed] = rows;
  if (closed === undefined) return false;
  await recordSubjectEvent(tx, {
    subject: `incident:${request.id}`,
    type: "incident_closed",
    actor: actorOf(request.by),
    data: { reason: await textName(tx, request.reason) },
  });
  await ctx.notices.touch(tx, { kind: "incident", id: request.id });
  await ctx.notices.ops(tx, {
    key: `incident:${request.id}:closed`,
    message: {
      type: "incident_closed",
      incidentId: request.id,
      kind: closed.kind,
      by: request.by,
      reason: request.reason,
    },
  });
  return true;
}

interface Row {
  id: string;
  kind: IncidentKind;
  dedupe_key: string;
  operation_id: OperationId | null;
  payment_id: string | null;
  detail: JsonObject;
  status: "open" | "closed";
  closed_by: string | null;
  close_reason: string | null;
  closed_at: Date | null;
  created_at: Date;
  created_text: string;
}

const COLUMNS = `id, kind, dedupe_key, operation_id, payment_id, detail, status, closed_by, close_reason, closed_at,
  created_at,
  ${utcMicros("created_at")} AS created_text`;

export async function getIncident(on: SqlRunner, id: string): Promise<Incident | null> {
  const [row] = await on.sql<Row>("ledger.incident", `SELECT ${COLUMNS} FROM incidents WHERE id = $1`, [id]);
  return row === undefined ? null : toIncident(row);
}

/** `inc_` and 32 hexadecimal digits. */
const ID_LENGTH = 36;

/** Open incidents and closed ones whose id begins with `prefix` (`inc_` and hexadecimal digits), newest first. */
export async function findIncidents(
  on: SqlRunner,
  prefix: string,
  options: { limit: number },
): Promise<Incident[]> {
  // Padded to the length of an id, the two ends compare alike under every collation.
  const rows = await on.sql<Row>(
    "ledger.find_incidents",
    `SELECT ${COLUMNS} FROM incidents WHERE id >= $1 AND id <= $2 ORDER BY id DESC LIMIT $3::int`,
    [prefix.padEnd(ID_LENGTH, "0"), prefix.padEnd(ID_LENGTH, "f"), options.limit],
  );
  return rows.map(toIncident);
}

/** $1 operation. Of its payment are those that name it, by its id or as the provider does, and those of its other operations. */
const OPEN_OF = `
SELECT ${COLUMNS} FROM incidents
WHERE status = 'open' AND (operation_id = $1
  OR operation_id IN (SELECT s.id FROM operations o JOIN operations s ON s.order_id = o.order_id AND s.payment_id = o.payment_id WHERE o.id = $1)
  OR payment_id = (SELECT payment_id FROM operations WHERE id = $1)
  OR detail ->> 'payment' = (SELECT p.payment_intent FROM operations o JOIN payments p ON p.id = o.payment_id WHERE o.id = $1))
ORDER BY created_at DESC, id DESC`;

/** Open incidents about one operation or its payment, newest first. */
export async function openIncidentsOf(on: SqlRunner, operationId: OperationId): Promise<Incident[]> {
  const rows = await on.sql<Row>("ledger.open_incidents_of", OPEN_OF, [operationId]);
  return rows.map(toIncident);
}

const MAX_PAGE = 200;

/** Open incidents, newest first. */
export async function listIncidents(
  db: Db,
  options: { cursor?: string | null; limit?: number },
): Promise<Page<Incident>> {
  const limit = Math.min(MAX_PAGE, Math.max(1, options.limit ?? 50));
  const after = decodeCursor(options.cursor ?? null) ?? NEWEST;
  const rows = await db.sql<Row>(
    "ledger.incidents",
    `SELECT ${COLUMNS} FROM incidents WHERE status = 'open' AND (created_at, id) < ($1::timestamptz, $2)
     ORDER BY created_at DESC, id DESC LIMIT $3::int`,
    [after.at, after.id, limit + 1],
  );
  const page = rows.slice(0, limit);
  const last = rows.length > limit ? page.at(-1) : undefined;
  return {
    rows: page.map(toIncident),
    next: last === undefined ? null : encodeCursor({ at: last.created_text, id: last.id }),
  };
}

/** Incidents of a kind opened in the last `windowMs`, open or closed: what a freeze may trip on. */
export async function countIncidents(
  on: SqlRunner,
  request: { kind: IncidentKind; windowMs: number },
): Promise<number> {
  const [row] = await on.sql<{ n: bigint }>(
    "ledger.count_incidents",
    `SELECT count(*) AS n FROM incidents
     WHERE kind = $1 AND created_at > countersign_now() - $2::bigint * interval '1 millisecond'`,
    [request.kind, request.windowMs],
  );
  return Number(row?.n ?? 0n);
}

const toIncident = (row: Row): Incident => ({
  id: row.id,
  kind: row.kind,
  dedupeKey: row.dedupe_key,
  operationId: row.operation_id,
  paymentId: row.payment_id,
  detail: row.detail,
  status: row.status,
  closedBy: row.closed_by,
  closeReason: row.close_reason,
  closedAt: row.closed_at,
  createdAt: row.created_at,
});
