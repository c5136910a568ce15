/** Facts that the provider reported, each once; incidents, each once; refunds made elsewhere. */
import type { Db, Tx } from "../db/connect.js";
import type { LedgerCtx } from "./context.js";
import { decodeCursor, encodeCursor } from "./cursor.js";
import { toJsonObject } from "./json.js";
import type { Incident, NewEvidence, NewIncident, Page } from "./types.js";

/** Stores a fact once, and makes an open operation due. `first` is false when it was known. */
export async function recordEvidence(
  tx: Tx,
  ctx: LedgerCtx,
  evidence: NewEvidence,
): Promise<{ id: string; first: boolean }> {
  const id = ctx.ids.next("evd_");
  const rows = await tx.sql<{ id: string }>(
    "ledger.evidence_add",
    `INSERT INTO provider_evidence (id, dedupe_key, operation_id, source, provider_ref, payload)
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (dedupe_key) DO NOTHING RETURNING id`,
    [
      id,
      evidence.dedupeKey,
      evidence.operationId,
      evidence.source,
      evidence.providerRef,
      JSON.stringify(evidence.payload),
    ],
  );
  if (rows.length === 0) {
    const [known] = await tx.sql<{ id: string }>(
      "ledger.evidence_known",
      "SELECT id FROM provider_evidence WHERE dedupe_key = $1",
      [evidence.dedupeKey],
    );
    return { id: known?.id ?? id, first: false };
  }
  if (evidence.source === "webhook" || evidence.source === "sweep" || evidence.source === "late_response") {
    await tx.sql(
      "ledger.evidence_due",
      `UPDATE operations SET due_at = countersign_now()
        WHERE id = $1 AND status IN ('OUTCOME_UNKNOWN', 'QUARANTINED')`,
      [evidence.operationId],
    );
  }
  return { id, first: true };
}

/** Opens an incident with its card, once for each `dedupeKey`. */
export async function openIncident(
  tx: Tx,
  ctx: Pick<LedgerCtx, "ids" | "notices">,
  incident: NewIncident,
): Promise<{ id: string; first: boolean }> {
  const id = ctx.ids.next("inc_");
  const rows = await tx.sql<{ id: string }>(
    "ledger.incident_open",
    `INSERT INTO incidents (id, kind, dedupe_key, operation_id, payment_id, detail) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (dedupe_key) DO NOTHING RETURNING id`,
    [
      id,
      incident.kind,
      incident.dedupeKey,
      incident.operationId,
      incident.paymentId,
      JSON.stringify(toJsonObject(incident.detail)),
    ],
  );
  if (rows.length > 0) {
    await ctx.notices.touch(tx, { kind: "incident", id });
    return { id, first: true };
  }
  const [known] = await tx.sql<{ id: string }>(
    "ledger.incident_known",
    "SELECT id FROM incidents WHERE dedupe_key = $1",
    [incident.dedupeKey],
  );
  return { id: known?.id ?? id, first: false };
}

export async function closeIncident(
  tx: Tx,
  ctx: LedgerCtx,
  request: { id: string; by: string },
): Promise<boolean> {
  const rows = await tx.sql(
    "ledger.incident_close",
    `UPDATE incidents SET status = 'closed', closed_by = $2, closed_at = countersign_now()
      WHERE id = $1 AND status = 'open' RETURNING id`,
    [request.id, request.by],
  );
  if (rows.length > 0) await ctx.notices.touch(tx, { kind: "incident", id: request.id });
  return rows.length > 0;
}

/** What the provider lists on a payment that is not ours. Recorded even where it breaks the plan; then an incident. */
export async function recordElsewhere(
  ctx: LedgerCtx,
  request: { paymentIntent: string; elsewhereMinor: bigint; effects: readonly string[] },
): Promise<{ changed: boolean; overdrawn: boolean }> {
  return ctx.db.tx(async (tx) => {
    const rows = await tx.sql<{ id: string; currency: string; before: bigint; overdrawn: boolean }>(
      "ledger.elsewhere",
      `WITH old AS (SELECT id, refunded_elsewhere FROM payments WHERE payment_intent = $1 FOR NO KEY UPDATE)
       UPDATE payments p SET refunded_elsewhere = $2, version = p.version + 1, updated_at = countersign_now()
         FROM old WHERE p.id = old.id AND old.refunded_elsewhere <> $2
       RETURNING p.id, p.currency, old.refunded_elsewhere AS before,
                 p.reserved + p.refunded + p.refunded_elsewhere > p.captured AS overdrawn`,
      [request.paymentIntent, request.elsewhereMinor],
    );
    const [row] = rows;
    if (row === undefined) return { changed: false, overdrawn: false };
    for (const ref of request.effects) {
      await recordEvidence(tx, ctx, {
        operationId: null,
        source: "sweep",
        providerRef: ref,
        dedupeKey: `elsewhere:${ref}`,
        payload: { paymentIntent: request.paymentIntent, ref },
      });
    }
    await openIncident(tx, ctx, {
      kind: row.overdrawn ? "overdrawn" : "refunded_elsewhere",
      dedupeKey: `elsewhere:${row.id}:${request.elsewhereMinor}`,
      operationId: null,
      paymentId: row.id,
      detail: {
        paymentIntent: request.paymentIntent,
        currency: row.currency,
        before: Number(row.before),
        elsewhere: Number(request.elsewhereMinor),
        effects: [...request.effects],
      },
    });
    return { changed: true, overdrawn: row.overdrawn };
  });
}

const INCIDENT_COLUMNS = `id, kind, dedupe_key AS "dedupeKey", operation_id AS "operationId", payment_id AS "paymentId", detail,
  status, closed_by AS "closedBy", closed_at AS "closedAt", created_at AS "createdAt"`;
const INCIDENT_PAGE = 50;

export async function getIncident(db: Db | Tx, id: string): Promise<Incident | null> {
  const [row] = await db.sql<Incident>(
    "ledger.incident",
    `SELECT ${INCIDENT_COLUMNS} FROM incidents WHERE id = $1`,
    [id],
  );
  return row ?? null;
}

/** Open incidents, oldest first. */
export async function listIncidents(
  db: Db,
  options: { cursor?: string | null; limit?: number },
): Promise<Page<Incident>> {
  const limit = options.limit ?? INCIDENT_PAGE;
  const after = decodeCursor(options.cursor ?? null);
  const rows = await db.sql<Incident & { cursor_at: string }>(
    "ledger.incidents",
    `SELECT ${INCIDENT_COLUMNS}, created_at::text AS cursor_at FROM incidents
      WHERE status = 'open' AND ($1::timestamptz IS NULL OR (created_at, id) > ($1::timestamptz, $2))
      ORDER BY created_at, id LIMIT $3`,
    [after?.at ?? null, after?.id ?? "", limit + 1],
  );
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    rows: shown,
    next: rows.length > limit && last !== undefined ? encodeCursor(last.cursor_at, last.id) : null,
  };
}
