/** Resolutions as rows: proposed, applied, disagreed, overtaken. */
import type { SqlRunner, Tx } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { OperationId } from "../domain/ids.js";
import type { Json, JsonObject } from "../domain/json.js";
import type { Seals } from "../domain/seals.js";
import { sealResolution } from "./decision-seals.js";
import {
  AGREED_ON,
  REFUSED_BY,
  type Resolution,
  type ResolutionState,
  type ResolutionVerb,
  SHOWN_SINCE,
} from "./types.js";

/** A row of `resolutions`. */
export interface ResolutionRow {
  id: string;
  operation_id: OperationId;
  verb: ResolutionVerb;
  state: ResolutionState;
  operation_version: bigint;
  by: string;
  reason: string;
  evidence_ref: string;
  probe: JsonObject;
  second_by: string | null;
  second_verdict: "agree" | "disagree" | null;
  second_note: string | null;
  seal: string | null;
  expires_at: Date | null;
  created_at: Date;
  updated_at: Date;
}

const COLUMNS = `id, operation_id, verb, state, operation_version, by, reason, evidence_ref, probe, second_by, second_verdict,
  second_note, seal, expires_at, created_at, updated_at`;

export interface NewResolution {
  readonly id: string;
  readonly operationId: OperationId;
  readonly verb: ResolutionVerb;
  readonly state: "proposed" | "applied";
  readonly operationVersion: bigint;
  readonly by: string;
  readonly reason: string;
  readonly evidenceRef: string;
  readonly probe: JsonObject;
  /** A proposal runs out after this long. Milliseconds; null: it waits for nobody. */
  readonly expiresInMs: number | null;
}

/** $1 … $10 as in `NewResolution`, $11 its seal. */
const INSERT = `
INSERT INTO resolutions (id, operation_id, verb, state, operation_version, by, reason, evidence_ref, probe, expires_at, seal)
VALUES ($1, $2, $3, $4, $5::bigint, $6, $7, $8, $9::jsonb, countersign_now() + $10::float8 * interval '1 millisecond', $11)
RETURNING ${COLUMNS}`;

/** The operation's row is locked and no other proposal is open. */
export async function insertResolution(tx: Tx, seals: Seals, made: NewResolution): Promise<Resolution> {
  const [row] = await tx.sql<ResolutionRow>("ledger.insert_resolution", INSERT, [
    made.id,
    made.operationId,
    made.verb,
    made.state,
    made.operationVersion,
    made.by,
    made.reason,
    made.evidenceRef,
    JSON.stringify(made.probe),
    made.expiresInMs,
    sealResolution(seals, { ...made, secondBy: null }),
  ]);
  if (row === undefined) throw new CountersignError("not_stored", `resolution ${made.id} was not stored`);
  return toResolution(row);
}

/** $1 resolution, $2 state, $3 second person, $4 their verdict, $5 their note, $6 version, $7 what is added to what was shown, $8 seal. Only a proposal that is still open. */
const CLOSE = `
UPDATE resolutions
SET state = $2, second_by = COALESCE($3, second_by), second_verdict = COALESCE($4, second_verdict),
    second_note = COALESCE($5, second_note), operation_version = COALESCE($6::bigint, operation_version),
    probe = probe || $7::jsonb, seal = $8, updated_at = countersign_now()
WHERE id = $1 AND state = 'proposed'
RETURNING ${COLUMNS}`;

/** Ends a proposal. null: it had ended. */
export async function closeResolution(
  tx: Tx,
  id: string,
  end: {
    state: Exclude<ResolutionState, "proposed">;
    second: { by: string; verdict: "agree" | "disagree"; note: string | null } | null;
    operationVersion?: bigint;
    /** Of an agreement that is carried out; what ended otherwise has none. */
    seal: string | null;
    /** Of a refusal at the agreement. */
    refusal?: { code: string; shown: JsonObject; other?: string };
    /** Of an agreement that is carried out: what the provider answered then. */
    agreedOn?: JsonObject;
  },
): Promise<Resolution | null> {
  const [row] = await tx.sql<ResolutionRow>("ledger.close_resolution", CLOSE, [
    id,
    end.state,
    end.second?.by ?? null,
    end.second?.verdict ?? null,
    end.second?.note ?? null,
    end.operationVersion ?? null,
    JSON.stringify({
      ...(end.refusal === undefined ? {} : { [REFUSED_BY]: end.refusal }),
      ...(end.agreedOn === undefined ? {} : { [AGREED_ON]: end.agreedOn }),
    }),
    end.seal,
  ]);
  return row === undefined ? null : toResolution(row);
}

/** $1 resolution, $2 what is added to what was shown. Only a proposal that is still open. */
const SHOW_ANEW = `
UPDATE resolutions SET probe = probe || $2::jsonb, updated_at = countersign_now()
WHERE id = $1 AND state = 'proposed'
RETURNING ${COLUMNS}`;

/** From now on its card shows this answer of the provider. null: it had ended. */
export async function showAnew(
  tx: Tx,
  id: string,
  answer: { shown: JsonObject; times: number },
): Promise<Resolution | null> {
  const [row] = await tx.sql<ResolutionRow>("ledger.show_resolution_anew", SHOW_ANEW, [
    id,
    JSON.stringify({ [SHOWN_SINCE]: answer }),
  ]);
  return row === undefined ? null : toResolution(row);
}

/** What its card shows as the provider's answer, and how often that has changed. */
export function answerShown({ probe }: Pick<Resolution, "probe">): { shown: Json; times: number } {
  const since = probe[SHOWN_SINCE];
  if (typeof since !== "object" || since === null || Array.isArray(since)) return { shown: probe, times: 0 };
  const { shown, times } = since;
  return { shown: shown ?? null, times: typeof times === "number" ? times : 0 };
}

export async function getResolution(on: SqlRunner, id: string): Promise<Resolution | null> {
  const [row] = await on.sql<ResolutionRow>(
    "ledger.resolution",
    `SELECT ${COLUMNS} FROM resolutions WHERE id = $1`,
    [id],
  );
  return row === undefined ? null : toResolution(row);
}

/** $1 … $5 what was decided and by whom, $6 when it was sent in. */
const MADE_SINCE = `
SELECT ${COLUMNS} FROM resolutions
WHERE operation_id = $1 AND verb = $2 AND by = $3 AND reason = $4 AND evidence_ref = $5 AND created_at >= $6::timestamptz
ORDER BY id DESC LIMIT 1`;

/**
 * What the decision that a person sent in has come to already: one that is carried out when its process dies is taken again by another,
 * and then somebody else may have decided otherwise. null: nothing yet. The operation's row is locked.
 */
export async function madeOf(
  on: SqlRunner,
  sent: {
    readonly operationId: OperationId;
    readonly verb: ResolutionVerb;
    readonly by: string;
    readonly reason: string;
    readonly evidenceRef: string;
    readonly typedAt?: Date;
  },
): Promise<Resolution | null> {
  if (sent.typedAt === undefined) return null;
  const [row] = await on.sql<ResolutionRow>("ledger.resolution_made", MADE_SINCE, [
    sent.operationId,
    sent.verb,
    sent.by,
    sent.reason,
    sent.evidenceRef,
    sent.typedAt,
  ]);
  return row === undefined ? null : toResolution(row);
}

/** The proposal that waits for a second person. */
export async function openResolutionOf(on: SqlRunner, operationId: OperationId): Promise<Resolution | null> {
  const [row] = await on.sql<ResolutionRow>(
    "ledger.open_resolution",
    `SELECT ${COLUMNS} FROM resolutions WHERE operation_id = $1 AND state = 'proposed'`,
    [operationId],
  );
  return row === undefined ? null : toResolution(row);
}

/** SQL: the status of operation `id` changed after the event number `version`; joining and the like do not count. */
const movedAfter = (id: string, version: string): string => `EXISTS (
  SELECT 1 FROM operation_events e
  WHERE e.operation_id = ${id} AND e.seq > ${version} AND e.from_status IS DISTINCT FROM e.to_status)`;

/** SQL: an applied "retry" authorises sending operation `id` again, and was not used yet. */
export const retryIsAuthorised = (id: string): string => `EXISTS (
  SELECT 1 FROM resolutions r
  WHERE r.operation_id = ${id} AND r.verb = 'retry' AND r.state = 'applied'
    AND NOT ${movedAfter("r.operation_id", "r.operation_version")})`;

/** Whether the operation's status changed since its row had this version. */
export async function movedSince(on: SqlRunner, id: OperationId, version: bigint): Promise<boolean> {
  const [row] = await on.sql<{ moved: boolean }>(
    "ledger.moved_since",
    `SELECT ${movedAfter("$1", "$2::bigint")} AS moved`,
    [id, version],
  );
  return row?.moved ?? true;
}

/** SQL: why the proposal `r` no longer stands; null: it does. */
const staleness = `CASE WHEN ${movedAfter("r.operation_id", "r.operation_version")} THEN 'superseded'
  WHEN COALESCE(r.expires_at, r.created_at + interval '1 day') <= countersign_now() THEN 'expired' END`;

/** Why an open proposal no longer stands: its operation moved, or nobody answered in time. null: it stands. */
export async function staleProposal(on: SqlRunner, id: string): Promise<"superseded" | "expired" | null> {
  const [row] = await on.sql<{ stale: "superseded" | "expired" | null }>(
    "ledger.stale_proposal",
    `SELECT ${staleness} AS stale FROM resolutions r WHERE r.id = $1`,
    [id],
  );
  return row?.stale ?? null;
}

/** $1 rows. Open proposals that no longer stand. */
const STALE = `
SELECT r.id, r.operation_id FROM resolutions r
WHERE r.state = 'proposed' AND ${staleness} IS NOT NULL
ORDER BY r.expires_at LIMIT $1::int`;

export async function staleProposals(
  on: SqlRunner,
  limit: number,
): Promise<{ id: string; operation_id: OperationId }[]> {
  return on.sql<{ id: string; operation_id: OperationId }>("ledger.stale_proposals", STALE, [limit]);
}

/** $1 operation. */
const APPLIED_RETRY = `
SELECT r.id FROM resolutions r
WHERE r.operation_id = $1 AND r.verb = 'retry' AND r.state = 'applied'
  AND NOT ${movedAfter("r.operation_id", "r.operation_version")}
ORDER BY r.id DESC LIMIT 1`;

/** The resolution that authorises sending the operation again as it stands; null: none does. */
export async function appliedRetry(on: SqlRunner, id: OperationId): Promise<string | null> {
  const [row] = await on.sql<{ id: string }>("ledger.applied_retry", APPLIED_RETRY, [id]);
  return row?.id ?? null;
}

const toResolution = (row: ResolutionRow): Resolution => ({
  id: row.id,
  operationId: row.operation_id,
  verb: row.verb,
  state: row.state,
  operationVersion: row.operation_version,
  by: row.by,
  reason: row.reason,
  evidenceRef: row.evidence_ref,
  probe: row.probe,
  secondBy: row.second_by,
  secondVerdict: row.second_verdict,
  secondNote: row.second_note,
  seal: row.seal,
  expiresAt: row.expires_at,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});
