/**
 * The one statement that makes an operation DISPATCHED: lease, token, attempt row, stored request, event, with the freeze
 * switches locked in share mode. Used by the first claim, by a reconciler's resend and by an authorised retry.
 */
import type { SqlRunner } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { OperationId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import { next, type Operation, type OperationKind, type OperationStatus } from "../domain/operation.js";
import type { StoredRequest } from "../domain/ports/payment-provider.js";
import { eventBody, eventHash, INSERT_EVENT } from "./event-sql.js";
import { switchesOf } from "./freeze.js";
import { canonicalData } from "./json.js";
import { type OperationRow, operationColumns, toOperation, toRequest } from "./rows.js";
import { runOne, statement } from "./statement.js";
import type { Claim } from "./types.js";

export interface Dispatch {
  readonly id: OperationId;
  readonly kind: OperationKind;
  readonly from: OperationStatus;
  readonly version: bigint;
  /** A reconciler's token; null for who holds no lease. */
  readonly token: bigint | null;
  readonly event: "claim" | "resend";
  readonly actor: string;
  readonly data: object;
  readonly worker: string;
  readonly leaseMs: number;
  readonly timeoutMs: number;
  readonly marginMs: number;
  /** null: the key lives for ever. */
  readonly keyTtlMs: number | null;
  readonly attemptId: string;
  /** Stored if nothing was stored before; null where an attempt must exist already, or where nothing is sent (local effects). */
  readonly request: StoredRequest | null;
  /** False for local effects. */
  readonly sends: boolean;
}

interface DispatchParameters {
  id: string;
  kind: string;
  from: string;
  to: string;
  version: bigint;
  token: bigint | null;
  event: string;
  actor: string;
  data: string;
  worker: string;
  lease_ms: number;
  timeout_ms: number;
  margin_ms: number;
  key_ttl_ms: number | null;
  attempt_id: string;
  request: StoredRequest | null;
  sends: boolean;
}

/**
 * Durations in milliseconds. No row: moved, not yet due to be sent, frozen, past its key's life, or (a resend) never sent before.
 */
const DISPATCH = statement<DispatchParameters>(
  "ledger.dispatch",
  `
WITH f AS MATERIALIZED (
  SELECT bool_or(s.frozen) AS frozen FROM (${switchesOf(":kind", "FOR SHARE")}) s
), g AS (
  SELECT o.id, o.event_count, o.head_hash, o.attempts + 1 AS number, o.lease_token + 1 AS new_token, o.not_before,
         o.first_claimed_at, o.request
  FROM operations o
  WHERE o.id = :id AND o.status = :from AND o.version = :version::bigint
    AND (:token::bigint IS NULL OR o.lease_token = :token::bigint)
  FOR NO KEY UPDATE
), m AS MATERIALIZED (
  SELECT g.*, countersign_now() AS at_now FROM g
), e AS MATERIALIZED (
  SELECT m.*, m.number AS event_attempt, b.body, ${eventHash("m.head_hash", "b.body")} AS hash
  FROM m CROSS JOIN f
    CROSS JOIN LATERAL (SELECT ${eventBody({ attempt: "m.number", token: "m.new_token" })} AS body) b
  WHERE NOT f.frozen
    AND (m.not_before IS NULL OR m.not_before <= m.at_now)
    AND (NOT :sends::boolean OR m.request IS NOT NULL OR :request::jsonb IS NOT NULL)
    AND (:key_ttl_ms::bigint IS NULL OR m.first_claimed_at IS NULL OR m.first_claimed_at
         + (:key_ttl_ms::bigint - :timeout_ms::int - :margin_ms::int) * interval '1 millisecond' > m.at_now)
), wrote AS (
  UPDATE operations o
  SET status = :to, version = o.version + 1, event_count = e.event_count + 1, head_hash = e.hash, updated_at = e.at_now,
      attempts = e.number, lease_token = e.new_token, lease_holder = :worker,
      lease_until = e.at_now + :lease_ms::int * interval '1 millisecond',
      due_at = e.at_now + :lease_ms::int * interval '1 millisecond',
      not_before = NULL, quarantine_reason = NULL, last_send_ended_at = NULL,
      first_claimed_at = COALESCE(o.first_claimed_at, e.at_now),
      request = COALESCE(o.request, :request::jsonb)
  FROM e
  WHERE o.id = :id AND o.id = e.id
  RETURNING ${operationColumns("o")}, o.request, o.lease_until
), tried AS (
  INSERT INTO attempts (id, operation_id, number, lease_token, worker, started_at, timeout_ms)
  SELECT :attempt_id, e.id, e.number, e.new_token, :worker, e.at_now, :timeout_ms::int FROM e
), event AS (${INSERT_EVENT}
)
SELECT * FROM wrote`,
);

/** A claim whose request is null where nothing is sent. */
export type Dispatched = Omit<Claim, "request"> & { readonly request: StoredRequest | null };

/** null: the race is lost or it may not be sent; nothing was changed. */
export async function dispatchOnce(on: SqlRunner, what: Dispatch): Promise<Dispatched | null> {
  const step = next(what.from, what.event);
  if (!step.legal) {
    throw new CountersignError("illegal_transition", `${what.event} is not possible from ${what.from}`, {
      ids: { operationId: what.id },
    });
  }
  const row = await runOne<
    OperationRow & { request: JsonObject | null; lease_until: Date },
    DispatchParameters
  >(on, DISPATCH, {
    id: what.id,
    kind: what.kind,
    from: what.from,
    to: step.to,
    version: what.version,
    token: what.token,
    event: what.event,
    actor: what.actor,
    data: canonicalData(what.data),
    worker: what.worker,
    lease_ms: what.leaseMs,
    timeout_ms: what.timeoutMs,
    margin_ms: what.marginMs,
    key_ttl_ms: what.keyTtlMs,
    attempt_id: what.attemptId,
    request: what.request,
    sends: what.sends,
  });
  if (row === null) return null;
  const operation: Operation = toOperation(row);
  return {
    operation,
    attempt: operation.attempts,
    leaseToken: operation.leaseToken,
    request: row.request === null ? null : toRequest(row.request),
    leaseUntil: row.lease_until,
  };
}
