/**
 * The one place where an operation's status is written after its creation, beside the claim (`claim-sql.ts`), which leads to
 * DISPATCHED and nowhere else.
 *
 * 1. `move` asks `next` first: an illegal pair is a defect and throws before any SQL.
 * 2. The write is conditional on the status and version that were read and, for lease holders, on their token. Zero rows: the
 *    race is lost, nothing was changed.
 * 3. Payment, totals, attempt verdict, event and hash chain change in the same statement, at the database's time after the lock.
 */
import type { SqlRunner } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { AttemptVerdict } from "../domain/evidence.js";
import { holdingChange, holdingOf, keyIsTaken } from "../domain/holding.js";
import type { ApprovalId, OperationId, RunId, TicketId } from "../domain/ids.js";
import type { Json, JsonObject } from "../domain/json.js";
import {
  ENDED,
  next,
  type Operation,
  type OperationEventType,
  type OperationResult,
  type OperationStatus,
} from "../domain/operation.js";
import { eventBody, eventHash, INSERT_EVENT } from "./event-sql.js";
import { canonicalData } from "./json.js";
import { notOwnEffect } from "./own-effect.js";
import { type OperationRow, operationColumns, toOperation } from "./rows.js";
import { runOne, statement } from "./statement.js";
import type { NewEvidence } from "./types.js";

/** An attempt's verdict, written with the transition that it caused. */
export interface AttemptPatch {
  readonly number: number;
  readonly verdict: AttemptVerdict;
  readonly code: string | null;
  readonly httpStatus: number | null;
  readonly providerRef: string | null;
  readonly requestId: string | null;
  readonly evidence: Json;
}

export interface Patch {
  /** Due again after this many milliseconds; left out: nobody needs to look. */
  readonly dueMs?: number;
  /** Not before this many milliseconds from now; left out: no limit. */
  readonly notBeforeMs?: number;
  /** Takes a new token and a lease of this length. */
  readonly lease?: { readonly ms: number; readonly holder: string };
  /** Takes a new token without a lease: whoever held one is fenced. */
  readonly fence?: boolean;
  readonly providerRef?: string;
  readonly providerStatus?: string;
  readonly result?: OperationResult;
  readonly quarantineReason?: string;
  readonly resolvedByPerson?: boolean;
  readonly approval?: { readonly id: ApprovalId; readonly by: readonly string[] };
  readonly decision?: { readonly policyHash: string; readonly json: JsonObject; readonly seal: string };
  readonly scopes?: readonly string[];
  /** The last sender can no longer send: since now (it answered), or since its lease and its timeout ended. */
  readonly sendEnded?: "now" | "with_lease";
  readonly attempt?: AttemptPatch;
  /** What was read or answered, kept once for each distinct fact. */
  readonly seen?: NewEvidence & { readonly id: string };
  readonly probed?: boolean;
}

export interface MoveRequest {
  readonly id: OperationId;
  readonly from: OperationStatus;
  readonly version: bigint;
  /** The holder's token; null for who holds no lease. */
  readonly token: bigint | null;
  readonly event: OperationEventType;
  readonly actor: string;
  readonly data: object;
  /** The attempt that the event is about. */
  readonly attemptNumber?: number;
  readonly patch?: Patch;
  /** Only a reservation that fits into what is left: the balance was judged under the same lock. */
  readonly checkBalance?: boolean;
  /**
   * Not if this effect (`patch.providerRef`) cannot confirm it: the provider has reported meanwhile that it came to nothing, it is
   * another refund's, or it was seen as made elsewhere.
   */
  readonly onlyOwnEffect?: boolean;
}

interface MoveParameters {
  id: string;
  from: string;
  to: string;
  version: bigint;
  token: bigint | null;
  event: string;
  actor: string;
  data: string;
  attempt: number | null;
  reserved: number;
  refunded: number;
  counted: string;
  checked: boolean;
  own_effect: boolean;
  holds: boolean;
  ended: boolean;
  key_live: boolean;
  lease_ms: number | null;
  holder: string | null;
  fence: boolean;
  due_ms: number | null;
  not_before_ms: number | null;
  provider_ref: string | null;
  provider_status: string | null;
  result: JsonObject | null;
  quarantine_reason: string | null;
  by_person: boolean | null;
  approval_id: string | null;
  approved_by: readonly string[] | null;
  policy_hash: string | null;
  seal: string | null;
  decision: JsonObject | null;
  scopes: readonly string[] | null;
  send_ended: string | null;
  probed: boolean;
  tried: number | null;
  verdict: string | null;
  code: string | null;
  http_status: number | null;
  attempt_ref: string | null;
  request_id: string | null;
  evidence: string | null;
  seen_id: string | null;
  seen_key: string | null;
  seen_source: string | null;
  seen_ref: string | null;
  seen_payload: JsonObject | null;
}

/** What enters the totals or leaves them. Apart: the triggers of `total_entries` run for a statement that names it, rows or not. */
const TOTALS = `, gone AS (
  DELETE FROM total_entries t USING e
  WHERE :counted::text = 'leaves' AND t.scope = ANY(e.scopes) AND t.operation_id = e.id
), come AS (
  INSERT INTO total_entries (scope, operation_id, kind, currency, amount_minor, at)
  SELECT s.name, e.id, e.kind, e.currency, e.amount_minor, e.at_now
  FROM e CROSS JOIN LATERAL unnest(COALESCE(:scopes::text[], e.scopes)) AS s(name)
  WHERE :counted::text = 'enters'
  ON CONFLICT (scope, operation_id) DO NOTHING
)`;

/**
 * :id :from :version :token are what was read; :to :event :actor :data what happened. :reserved and :refunded are −1, 0 or 1
 * times the amount; :counted what the totals do. Durations in milliseconds, null: none. One row, or none when the race is lost.
 */
const moveText = (totals: string): string => `
WITH g AS (
  SELECT o.id, o.event_count, o.head_hash, o.amount_minor, o.payment_id, o.currency, o.kind, o.scopes, o.key, o.attempts,
         o.lease_token, o.lease_until
  FROM operations o
  WHERE o.id = :id AND o.status = :from AND o.version = :version::bigint
    AND (:token::bigint IS NULL OR o.lease_token = :token::bigint)
    AND (NOT :own_effect::boolean OR NOT ${notOwnEffect({ operation: "o", ref: ":provider_ref" })})
  FOR NO KEY UPDATE
), m AS MATERIALIZED (
  SELECT g.*, g.lease_token + (:fence::boolean OR :lease_ms::int IS NOT NULL)::int AS new_token, countersign_now() AS at_now
  FROM g
), money AS (
  UPDATE payments p
  SET reserved = p.reserved + m.amount_minor * :reserved::int,
      refunded = p.refunded + m.amount_minor * :refunded::int,
      version = p.version + 1, updated_at = m.at_now
  FROM m
  WHERE p.id = m.payment_id AND (:reserved::int <> 0 OR :refunded::int <> 0)
    AND (NOT :checked::boolean OR m.amount_minor <= payment_left(p))
  RETURNING p.id
), e AS MATERIALIZED (
  SELECT m.*, :attempt::int AS event_attempt, b.body, ${eventHash("m.head_hash", "b.body")} AS hash
  FROM m CROSS JOIN LATERAL (SELECT ${eventBody({ attempt: ":attempt::int", token: "m.new_token" })} AS body) b
  WHERE m.payment_id IS NULL OR (:reserved::int = 0 AND :refunded::int = 0) OR EXISTS (SELECT 1 FROM money)
), wrote AS (
  UPDATE operations o
  SET status = :to, version = o.version + 1, event_count = e.event_count + 1, head_hash = e.hash, updated_at = e.at_now,
      reserved_minor = CASE WHEN :holds::boolean THEN o.amount_minor ELSE 0 END,
      key_live = :key_live::boolean AND (o.key_live OR NOT EXISTS (
        SELECT 1 FROM operations other WHERE other.key = e.key AND other.key_live AND other.id <> e.id)),
      lease_token = e.new_token,
      lease_until = e.at_now + :lease_ms::int * interval '1 millisecond',
      lease_holder = :holder,
      due_at = e.at_now + :due_ms::bigint * interval '1 millisecond',
      not_before = e.at_now + :not_before_ms::bigint * interval '1 millisecond',
      provider_ref = COALESCE(:provider_ref, o.provider_ref),
      provider_status = COALESCE(:provider_status, o.provider_status),
      result = CASE WHEN :ended::boolean THEN COALESCE(:result::jsonb, o.result) END,
      quarantine_reason = :quarantine_reason,
      resolved_by_person = COALESCE(:by_person::boolean, o.resolved_by_person),
      approval_id = COALESCE(:approval_id, o.approval_id),
      approved_by = COALESCE(:approved_by::text[], o.approved_by),
      policy_hash = COALESCE(:policy_hash, o.policy_hash),
      seal = COALESCE(:seal, o.seal),
      decision = COALESCE(:decision::jsonb, o.decision),
      scopes = COALESCE(:scopes::text[], o.scopes),
      unknown_since = CASE WHEN :to IN ('DISPATCHED', 'OUTCOME_UNKNOWN', 'RECONCILING', 'QUARANTINED')
        THEN COALESCE(o.unknown_since, CASE WHEN :to <> 'DISPATCHED' THEN e.at_now END) END,
      last_send_ended_at = CASE :send_ended::text
        WHEN 'now' THEN e.at_now
        WHEN 'with_lease' THEN e.lease_until + (
          SELECT a.timeout_ms * interval '1 millisecond' FROM attempts a WHERE a.operation_id = e.id AND a.number = e.attempts)
        ELSE o.last_send_ended_at END,
      probes = o.probes + :probed::boolean::int
  FROM e
  WHERE o.id = :id AND o.id = e.id
  RETURNING ${operationColumns("o")}
), event AS (${INSERT_EVENT}
)${totals}, tried AS (
  UPDATE attempts a
  SET verdict = :verdict, finished_at = e.at_now, code = :code, http_status = :http_status::int,
      provider_ref = :attempt_ref, request_id = :request_id, evidence = :evidence::jsonb
  FROM e
  WHERE :verdict::text IS NOT NULL AND a.operation_id = e.id AND a.number = :tried::int
), seen AS (
  INSERT INTO provider_evidence (id, dedupe_key, operation_id, source, provider_ref, payload, at)
  SELECT :seen_id, :seen_key, e.id, :seen_source, :seen_ref, :seen_payload::jsonb, e.at_now
  FROM e WHERE :seen_key::text IS NOT NULL
  ON CONFLICT (dedupe_key) DO NOTHING
)
SELECT w.*, ARRAY(
  SELECT ARRAY[x.run_id, x.ticket_id] FROM operation_waiters x WHERE x.operation_id = w.id ORDER BY x.joined_at, x.run_id) AS waiters
FROM wrote w`;

/** For what changes nothing under the totals. */
const MOVE = statement<MoveParameters>("ledger.move", moveText(""));
/** For what enters the totals or leaves them. */
const MOVE_COUNTED = statement<MoveParameters>("ledger.move_counted", moveText(TOTALS));

/** Runs that wait beside the owner, oldest first. */
export interface Party {
  readonly runId: RunId;
  readonly ticketId: TicketId;
}

/** An operation after its transition, with who waits for it. */
export interface MovedOperation {
  readonly operation: Operation;
  readonly waiters: readonly Party[];
}

/** Applies one transition. null: somebody else was faster, and nothing was changed. */
export async function move(on: SqlRunner, request: MoveRequest): Promise<Operation | null> {
  return (await moveTelling(on, request))?.operation ?? null;
}

/**
 * As `move`, and says who waits. Joining moves the version (`join.ts`), so that nobody can have joined after this statement read
 * the waiters and before it held the row.
 */
export async function moveTelling(on: SqlRunner, request: MoveRequest): Promise<MovedOperation | null> {
  const step = next(request.from, request.event);
  if (!step.legal) {
    throw new CountersignError(
      "illegal_transition",
      `${request.event} is not possible from ${request.from}`,
      {
        ids: { operationId: request.id },
      },
    );
  }
  const to = step.to;
  const patch = request.patch ?? {};
  const change = holdingChange(request.from, to);
  const counts = change.counted === "enters" || change.counted === "leaves";
  const what = counts ? MOVE_COUNTED : MOVE;
  const row = await runOne<OperationRow & { waiters: [RunId, TicketId][] }, MoveParameters>(on, what, {
    id: request.id,
    from: request.from,
    to,
    version: request.version,
    token: request.token,
    event: request.event,
    actor: request.actor,
    data: canonicalData(request.data),
    attempt: request.attemptNumber ?? null,
    reserved: change.reserved,
    refunded: change.refunded,
    counted: change.counted,
    checked: request.checkBalance ?? false,
    own_effect: request.onlyOwnEffect ?? false,
    holds: holdingOf(to) === "reserved",
    ended: ENDED.has(to),
    key_live: keyIsTaken(to, patch.resolvedByPerson ?? false),
    lease_ms: patch.lease?.ms ?? null,
    holder: patch.lease?.holder ?? null,
    fence: patch.fence ?? false,
    due_ms: patch.dueMs ?? null,
    not_before_ms: patch.notBeforeMs ?? null,
    provider_ref: patch.providerRef ?? null,
    provider_status: patch.providerStatus ?? null,
    result: patch.result === undefined ? null : { ...patch.result },
    quarantine_reason: patch.quarantineReason ?? null,
    by_person: patch.resolvedByPerson ?? null,
    approval_id: patch.approval?.id ?? null,
    approved_by: patch.approval?.by ?? null,
    policy_hash: patch.decision?.policyHash ?? null,
    seal: patch.decision?.seal ?? null,
    decision: patch.decision?.json ?? null,
    scopes: patch.scopes ?? null,
    send_ended: patch.sendEnded ?? null,
    probed: patch.probed ?? false,
    tried: patch.attempt?.number ?? null,
    verdict: patch.attempt?.verdict ?? null,
    code: patch.attempt?.code ?? null,
    http_status: patch.attempt?.httpStatus ?? null,
    attempt_ref: patch.attempt?.providerRef ?? null,
    request_id: patch.attempt?.requestId ?? null,
    evidence: patch.attempt === undefined ? null : JSON.stringify(patch.attempt.evidence),
    seen_id: patch.seen?.id ?? null,
    seen_key: patch.seen?.dedupeKey ?? null,
    seen_source: patch.seen?.source ?? null,
    seen_ref: patch.seen?.providerRef ?? null,
    seen_payload: patch.seen?.payload ?? null,
  });
  if (row === null) return null;
  return {
    operation: toOperation(row),
    waiters: row.waiters.map(([runId, ticketId]) => ({ runId, ticketId })),
  };
}
