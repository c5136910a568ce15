/** Attempts: one try each, with its own verdict. */
import type { SqlRunner } from "../db/connect.js";
import type { AttemptVerdict } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import type { Json } from "../domain/json.js";
import { type AttemptFact, ROW_CHANGED } from "../domain/recovery.js";
import { dataIn } from "./audit-check.js";
import { endOfAttempt } from "./audit-records.js";
import type { AttemptRow } from "./types.js";

interface Row {
  number: number;
  lease_token: bigint;
  worker: string;
  started_at: Date;
  timeout_ms: number;
  finished_at: Date | null;
  verdict: AttemptVerdict | "open";
  code: string | null;
  http_status: number | null;
  provider_ref: string | null;
  request_id: string | null;
  evidence: Json;
}

/** $1 operation. */
const ATTEMPTS = `
SELECT number, lease_token, worker, started_at, timeout_ms, finished_at, verdict, code, http_status, provider_ref, request_id,
       evidence
FROM attempts WHERE operation_id = $1 ORDER BY number`;

/** All attempts of an operation as their rows say, first to last. */
export async function attemptsOf(on: SqlRunner, id: OperationId): Promise<AttemptRow[]> {
  return (await on.sql<Row>("ledger.attempts", ATTEMPTS, [id])).map(toAttempt);
}

/**
 * $1 operation. As `ATTEMPTS`, with the event that tells of its end, as text: one that somebody made unreadable is a finding, and must not
 * keep the row from being looked at.
 */
const ATTEMPTS_TOLD = `
SELECT a.number, a.lease_token, a.worker, a.started_at, a.timeout_ms, a.finished_at, a.verdict, a.code, a.http_status, a.provider_ref,
       a.request_id, a.evidence, e.body
FROM attempts a LEFT JOIN LATERAL (${endOfAttempt("e.body")}) e ON true
WHERE a.operation_id = $1 ORDER BY a.number`;

/** Whether the log says the same of what became of it (`VERDICT_TOLD`, of text). */
function isTold({ verdict, code, body }: Row & { body: string | null }): boolean {
  const said = body === null ? undefined : dataIn(body)["evidence"];
  const told = typeof said === "object" && said !== null && !Array.isArray(said) ? said : {};
  const local = told["ok"] === true ? "committed" : told["ok"] === false ? "rejected" : "open";
  return verdict === (told["verdict"] ?? local) && code === (told["code"] ?? null);
}

/**
 * All attempts of an operation, first to last, for deciding about its money: one whose row says what the log was not told counts as
 * unknown, and as changed by hand.
 */
export async function attemptsToldOf(on: SqlRunner, id: OperationId): Promise<AttemptRow[]> {
  const rows = await on.sql<Row & { body: string | null }>("ledger.attempts_told", ATTEMPTS_TOLD, [id]);
  return rows.map((row) =>
    isTold(row) ? toAttempt(row) : { ...toAttempt(row), verdict: "unknown", code: ROW_CHANGED },
  );
}

function toAttempt(row: Row): AttemptRow {
  return {
    number: row.number,
    leaseToken: row.lease_token,
    worker: row.worker,
    startedAt: row.started_at,
    timeoutMs: row.timeout_ms,
    finishedAt: row.finished_at,
    verdict: row.verdict,
    code: row.code,
    httpStatus: row.http_status,
    providerRef: row.provider_ref,
    requestId: row.request_id,
    evidence: row.evidence,
  };
}

/** What settlement and recovery need of them. */
export async function attemptFacts(on: SqlRunner, id: OperationId): Promise<AttemptFact[]> {
  const rows = await attemptsToldOf(on, id);
  return rows.map(({ number, verdict, code }) => ({ number, verdict, code }));
}
