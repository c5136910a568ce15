/**
 * Taking the right to send: attempt row, lease, event and the freeze switch in one statement, before a byte leaves.
 *
 * 1. PREPARED, not before its time, its kind not frozen, its key's life long enough; all judged by the database's clock after
 *    the row's lock was held.
 * 2. The switch is locked FOR SHARE: a freeze that was acknowledged waits for claims that began before it.
 * 3. Every lease has a new token; the attempt records it.
 */
import type { Db, SqlRunner, Tx } from "../db/connect.js";
import type { OperationId } from "../domain/ids.js";
import type { Json } from "../domain/json.js";
import type { Operation } from "../domain/operation.js";
import type { StoredRequest } from "../domain/ports/payment-provider.js";
import { keyIsSafe } from "../domain/recovery.js";
import type { LedgerCtx } from "./context.js";
import { eventBody, eventHash, INSERT_EVENT } from "./event-sql.js";
import { canonicalData } from "./json.js";
import { getOperation } from "./reads.js";
import { type OperationRow, operationColumns, toOperation, toRequest } from "./rows.js";
import { runOne, statement } from "./statement.js";
import type { ClaimLost, ClaimRequest, ClaimResult, LeaseRef, SendCheck } from "./types.js";

interface ClaimParameters {
  id: string;
  version: bigint;
  from: string;
  to: string;
  token: bigint | null;
  event: string;
  actor: string;
  data: string;
  kind: string;
  attempt_id: string;
  worker: string;
  request: string | null;
  lease_ms: number;
  timeout_ms: number;
  key_room_ms: number | null;
  waits: boolean;
}

type ClaimedRow = OperationRow & {
  attempt_number: number;
  stored_request: Parameters<typeof toRequest>[0];
  lease_until: Date;
};

/**
 * :id :version :from :token are what was read. :key_room_ms is how much of the key's life may be used up at this moment, null:
 * its life does not end. :waits whether `not_before` counts. One row, or none when something stands against it.
 */
const CLAIM = statement<ClaimParameters>(
  "ledger.claim",
  `
WITH f AS MATERIALIZED (
  SELECT s.frozen FROM freeze_switches s WHERE s.kind IN ('all', :kind::text) ORDER BY s.kind FOR SHARE
), g AS (
  SELECT o.id, o.event_count, o.head_hash, o.attempts, o.lease_token + 1 AS new_token, o.first_claimed_at, o.not_before
  FROM operations o
  WHERE o.id = :id AND o.status = :from AND o.version = :version::bigint
    AND (:token::bigint IS NULL OR o.lease_token = :token::bigint)
    AND NOT EXISTS (SELECT 1 FROM f WHERE f.frozen)
  FOR NO KEY UPDATE
), m AS MATERIALIZED (
  SELECT g.*, countersign_now() AS at_now FROM g
), e AS MATERIALIZED (
  SELECT m.*, m.attempts + 1 AS event_attempt, b.body, ${eventHash("m.head_hash", "b.body")} AS hash
  FROM m CROSS JOIN LATERAL (SELECT ${eventBody({ attempt: "m.attempts + 1", token: "m.new_token" })} AS body) b
  WHERE (NOT :waits::boolean OR m.not_before IS NULL OR m.not_before <= m.at_now)
    AND (:key_room_ms::bigint IS NULL OR m.first_claimed_at IS NULL
         OR m.at_now - m.first_claimed_at < :key_room_ms::bigint * interval '1 millisecond')
), wrote AS (
  UPDATE operations o
  SET status = :to, version = o.version + 1, event_count = e.event_count + 1, head_hash = e.hash, updated_at = e.at_now,
      attempts = e.event_attempt, lease_token = e.new_token, lease_holder = :worker,
      lease_until = e.at_now + :lease_ms::int * interval '1 millisecond',
      due_at = e.at_now + :lease_ms::int * interval '1 millisecond',
      not_before = NULL, first_claimed_at = COALESCE(o.first_claimed_at, e.at_now), last_send_ended_at = NULL,
      request = COALESCE(o.request, :request::jsonb)
  FROM e
  WHERE o.id = :id AND o.id = e.id
  RETURNING ${operationColumns("o")}, o.request AS stored_request, o.lease_until
), event AS (${INSERT_EVENT}
), tried AS (
  INSERT INTO attempts (id, operation_id, number, lease_token, worker, started_at, timeout_ms)
  SELECT :attempt_id, e.id, e.event_attempt, e.new_token, :worker, e.at_now, :timeout_ms::int FROM e
)
SELECT w.*, w.attempts AS attempt_number FROM wrote w`,
);

interface Taking {
  readonly operation: Operation;
  readonly worker: string;
  readonly request: StoredRequest | null;
  readonly leaseMs?: number;
  readonly from: "PREPARED" | "RECONCILING" | "QUARANTINED";
  readonly token: bigint | null;
  readonly data: object;
}

/** The statement, once. null: something stands against it. */
export async function takeClaim(on: SqlRunner, ctx: LedgerCtx, taking: Taking): Promise<ClaimResult | null> {
  const { operation } = taking;
  const contract = ctx.contracts[operation.kind];
  const row = await runOne<ClaimedRow, ClaimParameters>(on, CLAIM, {
    id: operation.id,
    version: operation.version,
    from: taking.from,
    to: "DISPATCHED",
    token: taking.token,
    event: taking.from === "PREPARED" ? "claim" : "resend",
    actor: `system:${taking.worker}`,
    data: canonicalData({ worker: taking.worker, ...taking.data }),
    kind: operation.kind,
    attempt_id: ctx.ids.next("att_"),
    worker: taking.worker,
    request: taking.request === null ? null : JSON.stringify(taking.request),
    lease_ms: taking.leaseMs ?? ctx.timing.leaseMs,
    timeout_ms: ctx.timing.providerTimeoutMs,
    key_room_ms:
      contract.keyed && contract.keyTtlMs !== null
        ? Math.max(0, contract.keyTtlMs - ctx.timing.providerTimeoutMs - ctx.timing.sendMarginMs)
        : null,
    waits: taking.from === "PREPARED",
  });
  if (row === null) return null;
  return {
    claimed: true,
    operation: toOperation(row),
    attempt: row.attempt_number,
    leaseToken: row.lease_token,
    request: toRequest(row.stored_request),
    leaseUntil: row.lease_until,
  };
}

/** Takes the lease of a PREPARED operation; see `index.ts`. */
export async function claim(ctx: LedgerCtx, request: ClaimRequest): Promise<ClaimResult> {
  const { guard } = request;
  if (guard === undefined) return claimOn(ctx.db, ctx, request);
  return ctx.db.tx(async (tx) => {
    const look = await guard(tx, request.operation);
    if (!look.ok) return lostTo(tx, request, look.detail);
    return claimOn(tx, ctx, request);
  });
}

async function lostTo(tx: Tx, request: ClaimRequest, detail: Json): Promise<ClaimLost> {
  const now = await getOperation(tx, request.operation.id);
  return { claimed: false, why: "guard", operation: now ?? request.operation, detail };
}

/** As `claim`, without a guard, on the caller's transaction or none. */
export async function claimOn(
  on: Db | Tx,
  ctx: LedgerCtx,
  request: Omit<ClaimRequest, "guard">,
): Promise<ClaimResult> {
  const taken = await takeClaim(on, ctx, {
    operation: request.operation,
    worker: request.worker,
    request: request.request,
    from: "PREPARED",
    token: null,
    data: {},
    ...(request.leaseMs === undefined ? {} : { leaseMs: request.leaseMs }),
  });
  return taken ?? whyLost(on, ctx, request.operation.id, "PREPARED", request.operation.version);
}

/** Why a claim got no row. Reads only; the answer may be out of date as soon as it is given. */
export async function whyLost(
  on: Db | Tx,
  ctx: LedgerCtx,
  id: OperationId,
  from: "PREPARED" | "RECONCILING" | "QUARANTINED",
  version: bigint,
): Promise<ClaimLost> {
  const operation = await getOperation(on, id);
  if (operation === null) return { claimed: false, why: "not_found" };
  if (operation.status !== from || operation.version !== version) {
    return { claimed: false, why: "moved", operation };
  }
  const [look] = await on.sql<{ frozen: boolean; now: Date }>(
    "ledger.why_lost",
    `SELECT EXISTS (SELECT 1 FROM freeze_switches WHERE kind IN ('all', $1) AND frozen) AS frozen, countersign_now() AS now`,
    [operation.kind],
  );
  if (look?.frozen === true) return { claimed: false, why: "frozen", operation };
  if (
    look !== undefined &&
    ctx.contracts[operation.kind].keyed &&
    !keyIsSafe(ctx.contracts[operation.kind], {
      now: look.now,
      firstClaimedAt: operation.firstClaimedAt,
      timeoutMs: ctx.timing.providerTimeoutMs,
      marginMs: ctx.timing.sendMarginMs,
    })
  ) {
    return { claimed: false, why: "key_expired", operation };
  }
  if (operation.notBefore !== null) {
    return { claimed: false, why: "not_yet", operation, until: operation.notBefore };
  }
  return { claimed: false, why: "moved", operation };
}

/** Prolongs a lease while a call runs; false: it is lost. */
export async function renewLease(ctx: LedgerCtx, lease: LeaseRef & { leaseMs?: number }): Promise<boolean> {
  const rows = await ctx.db.sql(
    "ledger.renew",
    `UPDATE operations SET lease_until = countersign_now() + $3::int * interval '1 millisecond',
            due_at = countersign_now() + $3::int * interval '1 millisecond'
      WHERE id = $1 AND lease_token = $2 AND status IN ('DISPATCHED', 'RECONCILING') AND lease_until > countersign_now()
      RETURNING id`,
    [lease.operationId, lease.leaseToken, lease.leaseMs ?? ctx.timing.leaseMs],
  );
  return rows.length > 0;
}

/** The last question before the socket. */
export async function checkSend(ctx: LedgerCtx, lease: LeaseRef): Promise<SendCheck> {
  const [row] = await ctx.db.sql<{
    held: boolean;
    frozen: boolean;
    kind: Operation["kind"];
    first_claimed_at: Date | null;
    now: Date;
  }>(
    "ledger.check_send",
    `SELECT o.lease_token = $2 AND o.status = 'DISPATCHED' AND o.lease_until > countersign_now() AS held,
            EXISTS (SELECT 1 FROM freeze_switches s WHERE s.kind IN ('all', o.kind) AND s.frozen) AS frozen,
            o.kind, o.first_claimed_at, countersign_now() AS now
       FROM operations o WHERE o.id = $1`,
    [lease.operationId, lease.leaseToken],
  );
  if (row === undefined || !row.held) return { ok: false, code: "lease_lost" };
  if (row.frozen) return { ok: false, code: "frozen" };
  const safe =
    !ctx.contracts[row.kind].keyed ||
    keyIsSafe(ctx.contracts[row.kind], {
      now: row.now,
      firstClaimedAt: row.first_claimed_at,
      timeoutMs: ctx.timing.providerTimeoutMs,
      marginMs: ctx.timing.sendMarginMs,
    });
  return safe ? { ok: true } : { ok: false, code: "key_expiring" };
}
