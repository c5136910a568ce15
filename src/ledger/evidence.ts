/** What the provider said, kept once for each distinct fact, whoever saw it. Never a state by itself. */
import type { SqlRunner, Tx } from "../db/connect.js";
import { backoffMs } from "../domain/backoff.js";
import type { OperationId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import type { LedgerCtx } from "./context.js";
import { endedBefore } from "./ended-before.js";
import type { EvidenceRow, EvidenceSource, NewEvidence } from "./types.js";

/** $1 id, $2 dedupe key, $3 operation, $4 source, $5 reference, $6 payload. No row: the fact was known. */
const RECORD = `
INSERT INTO provider_evidence (id, dedupe_key, operation_id, source, provider_ref, payload)
VALUES ($1, $2, $3, $4, $5, $6::jsonb)
ON CONFLICT (dedupe_key) DO NOTHING RETURNING id`;

/**
 * $1 operation. Its row before the fact: who is about to write what was read before has written it, or sees this fact; and the time of
 * the fact is after the time of what was written.
 */
const BEFORE_THE_FACT = "SELECT 1 FROM operations WHERE id = $1 FOR NO KEY UPDATE";

/** $1 operation, $2 milliseconds. An open outcome is looked at again by then; nothing else changes. */
const LOOK_BY = `
UPDATE operations SET due_at = LEAST(due_at, countersign_now() + $2::bigint * interval '1 millisecond')
WHERE id = $1 AND status IN ('OUTCOME_UNKNOWN', 'QUARANTINED')`;

/** SQL: what is recorded came after `since`. What lies ahead is no news: the clock stepped back, and it would be new for as long. */
export const cameAfter = (since: string): string => `e.at > ${since} AND e.at <= countersign_now()`;

/** $1 operation, held by a reconciler. One row when something was recorded about it since it was taken. */
const SINCE_TAKEN = `
SELECT 1 FROM provider_evidence e WHERE e.operation_id = $1 AND ${cameAfter(`(
  SELECT max(v.at) FROM operation_events v WHERE v.operation_id = $1 AND v.type IN ('reconcile', 'lease_taken_over'))`)}
LIMIT 1`;

/** So many facts about one operation are each a reason to look at once; a provider that has more to tell has a new one at each reading. */
const FACTS_AT_ONCE = 8;

/**
 * Milliseconds until what has just been recorded about an operation is looked at: none at first, then longer with each further fact, so
 * that a list which is another one whenever it is read has nobody read it without an end.
 */
export async function newsPauseMs(
  tx: Tx,
  ctx: Pick<LedgerCtx, "ids" | "timing">,
  id: OperationId,
): Promise<number> {
  const [row] = await tx.sql<{ facts: number }>(
    "ledger.facts_about",
    "SELECT count(*)::int AS facts FROM provider_evidence WHERE operation_id = $1",
    [id],
  );
  const more = (row?.facts ?? 0) - FACTS_AT_ONCE;
  if (more <= 0) return 0;
  const { reconcileBaseMs: baseMs, reconcileMaxMs: maxMs } = ctx.timing;
  return backoffMs({ baseMs, maxMs, tries: more - 1, random: ctx.ids.random() });
}

/** Whether something was recorded about an operation since its reconciler took it. Read under the row's lock. */
export const newsSinceTaken = async (tx: Tx, id: OperationId): Promise<boolean> =>
  (await tx.sql("ledger.news_since_taken", SINCE_TAKEN, [id])).length > 0;

/**
 * Stores a fact once; `first` is false when it was known. A new one makes an open operation due (`newsPauseMs`); one that a reconciler holds is
 * judged once more instead of by what was read before (`settleReconcile`).
 */
export async function recordEvidence(
  tx: Tx,
  ctx: Pick<LedgerCtx, "ids" | "timing">,
  evidence: NewEvidence,
): Promise<{ id: string; first: boolean }> {
  if (evidence.operationId !== null)
    await tx.sql("ledger.before_the_fact", BEFORE_THE_FACT, [evidence.operationId]);
  const rows = await tx.sql<{ id: string }>("ledger.record_evidence", RECORD, [
    ctx.ids.next("evd_"),
    evidence.dedupeKey,
    evidence.operationId,
    evidence.source,
    evidence.providerRef,
    JSON.stringify(evidence.payload),
  ]);
  const [made] = rows;
  if (made !== undefined) {
    const { operationId: id } = evidence;
    if (id !== null) await tx.sql("ledger.look_by", LOOK_BY, [id, await newsPauseMs(tx, ctx, id)]);
    return { id: made.id, first: true };
  }
  const [known] = await tx.sql<{ id: string }>(
    "ledger.known_evidence",
    "SELECT id FROM provider_evidence WHERE dedupe_key = $1",
    [evidence.dedupeKey],
  );
  return { id: known?.id ?? "", first: false };
}

/** $1 operations. Those whose outcome a reading may settle and that nobody holds. */
const OPEN_AMONG = `
SELECT id FROM operations
WHERE id = ANY($1::text[]) AND status IN ('OUTCOME_UNKNOWN', 'QUARANTINED') ORDER BY id`;

/** Which of these operations have an open outcome or are with a person. */
export async function openAmong(on: SqlRunner, ids: readonly string[]): Promise<OperationId[]> {
  const rows = await on.sql<{ id: OperationId }>("ledger.open_among", OPEN_AMONG, [ids]);
  return rows.map(({ id }) => id);
}

/**
 * $1 operation, $2 milliseconds. One name for each such time of its being open; no row: it is with nobody, was looked at in this one, or had
 * ended before and was opened again: then a person decides who has been told what.
 */
const LOOK_KEY = `
SELECT k.key FROM operations o CROSS JOIN LATERAL (
  SELECT 'looked:' || o.id || ':' || extract(epoch FROM s.since)::text || ':'
    || floor(extract(epoch FROM countersign_now() - s.since) * 1000 / $2::bigint)::bigint AS key
  FROM (SELECT COALESCE(o.unknown_since, o.updated_at) AS since) s) k
WHERE o.id = $1 AND o.status = 'QUARANTINED' AND NOT ${endedBefore("o.id")}
  AND NOT EXISTS (SELECT 1 FROM provider_evidence e WHERE e.dedupe_key = k.key)`;

/**
 * The name under which a fact that was known already makes an operation with a person be looked at once more: once within the time after
 * which its card comes again. null: not now.
 */
export async function lookAgainKey(
  { db, timing }: Pick<LedgerCtx, "db" | "timing">,
  id: OperationId,
): Promise<string | null> {
  const [row] = await db.sql<{ key: string }>("ledger.look_again_key", LOOK_KEY, [
    id,
    timing.quarantineRepostMs,
  ]);
  return row?.key ?? null;
}

/** $1 operation, $2 references that are listed now, $3 rows. What was shown of it before, newest first. */
const SHOWN_AND_NOT_LISTED = `
SELECT provider_ref AS ref, max(at) AS at FROM provider_evidence
WHERE operation_id = $1 AND source <> 'person' AND provider_ref IS NOT NULL AND provider_ref <> ALL($2::text[])
GROUP BY provider_ref ORDER BY max(at) DESC, ref LIMIT $3::int`;

/** More than this many effects of one operation are not asked for one by one. */
const SHOWN_AT_MOST = 5;

/** References of effects that the provider has shown or named of an operation, and that a list does not hold. */
export async function shownAndNotListed(
  on: SqlRunner,
  id: OperationId,
  listed: readonly string[],
): Promise<string[]> {
  const rows = await on.sql<{ ref: string }>("ledger.shown_and_not_listed", SHOWN_AND_NOT_LISTED, [
    id,
    listed,
    SHOWN_AT_MOST,
  ]);
  return rows.map(({ ref }) => ref);
}

interface Row {
  id: string;
  operation_id: OperationId | null;
  source: EvidenceSource;
  provider_ref: string | null;
  payload: JsonObject;
  at: Date;
}

/** Everything that was seen about an operation, oldest first. */
export async function evidenceOf(on: SqlRunner, id: OperationId): Promise<EvidenceRow[]> {
  const rows = await on.sql<Row>(
    "ledger.evidence",
    "SELECT id, operation_id, source, provider_ref, payload, at FROM provider_evidence WHERE operation_id = $1 ORDER BY at, id",
    [id],
  );
  return rows.map((row) => ({
    id: row.id,
    operationId: row.operation_id,
    source: row.source,
    providerRef: row.provider_ref,
    payload: row.payload,
    at: row.at,
  }));
}
