/**
 * Claims, their leases, and the last question before the socket.
 *
 * A lost claim is explained by reading again, after the fact and only then: the winning path is one statement.
 */
import type { SqlRunner } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { OperationId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import { keyIsSafe } from "../domain/recovery.js";
import { type Dispatched, dispatchOnce } from "./claim-sql.js";
import type { LedgerCtx } from "./context.js";
import { switchesOf } from "./freeze.js";
import { type OperationRow, operationColumns, toOperation } from "./rows.js";
import type { Claim, ClaimLost, ClaimRequest, ClaimResult, LeaseRef, SendCheck } from "./types.js";

/** How long a row that may not be sent now (frozen) rests before it is looked at again, in milliseconds. */
const FROZEN_REST_MS = 5_000;

/** Takes the lease of a PREPARED operation and writes the attempt. With a guard, both happen in one transaction. */
export async function claim(ctx: LedgerCtx, request: ClaimRequest): Promise<ClaimResult> {
  const { guard, ...rest } = request;
  if (guard === undefined) return claimIn(ctx.db, ctx, rest);
  return ctx.db.tx(async (tx) => {
    const looked = await guard(tx, request.operation);
    if (!looked.ok) {
      return { claimed: false, why: "guard", operation: request.operation, detail: looked.detail };
    }
    return claimIn(tx, ctx, rest);
  });
}

/** As `claim` without a guard, on the caller's connection: PREPARE and claim in one commit. */
export async function claimIn(
  on: SqlRunner,
  ctx: LedgerCtx,
  request: Omit<ClaimRequest, "guard">,
): Promise<ClaimResult> {
  const { operation, worker } = request;
  if (operation.status !== "PREPARED") return explainLoss(on, ctx, operation.id, operation.version);
  const claimed = await dispatchOnce(on, {
    id: operation.id,
    kind: operation.kind,
    from: "PREPARED",
    version: operation.version,
    token: null,
    event: "claim",
    actor: "system:dispatch",
    data: { worker },
    worker,
    leaseMs: request.leaseMs ?? ctx.timing.leaseMs,
    ...sendTerms(ctx, operation),
    attemptId: ctx.ids.next("att_"),
    request: request.request,
    sends: true,
  });
  if (claimed !== null) return { claimed: true, ...sent(claimed) };
  return explainLoss(on, ctx, operation.id, operation.version);
}

/** What was claimed to be sent has its request. */
export function sent(dispatched: Dispatched): Claim {
  const { request } = dispatched;
  if (request === null) throw new CountersignError("no_request", `${dispatched.operation.id} has no request`);
  return { ...dispatched, request };
}

/** What bounds a request of this kind in time. */
export const sendTerms = (
  ctx: LedgerCtx,
  operation: Operation,
): { timeoutMs: number; marginMs: number; keyTtlMs: number | null } => {
  const { keyed, keyTtlMs } = ctx.contracts[operation.kind];
  return {
    timeoutMs: ctx.timing.providerTimeoutMs,
    marginMs: ctx.timing.sendMarginMs,
    keyTtlMs: keyed ? keyTtlMs : null,
  };
};

interface LossRow extends OperationRow {
  now: Date;
  frozen: boolean;
  resting: boolean;
}

/** $1 operation. */
const LOSS = `
SELECT ${operationColumns("o")}, n.now, COALESCE(o.not_before > n.now, false) AS resting,
       (SELECT bool_or(s.frozen) FROM (${switchesOf("o.kind")}) s) AS frozen
FROM operations o, (SELECT countersign_now() AS now) n
WHERE o.id = $1`;

/** Why a row that was PREPARED (or held by a reconciler) at `version` was not dispatched. A frozen row rests for a while. */
export async function explainLoss(
  on: SqlRunner,
  ctx: LedgerCtx,
  id: OperationId,
  version: bigint,
): Promise<ClaimLost> {
  const [row] = await on.sql<LossRow>("ledger.why_lost", LOSS, [id]);
  if (row === undefined) return { claimed: false, why: "not_found" };
  const operation = toOperation(row);
  if (operation.version !== version) return { claimed: false, why: "moved", operation };
  const contract = ctx.contracts[operation.kind];
  const { timeoutMs, marginMs } = sendTerms(ctx, operation);
  const { firstClaimedAt } = operation;
  if (contract.keyed && !keyIsSafe(contract, { now: row.now, firstClaimedAt, timeoutMs, marginMs })) {
    return { claimed: false, why: "key_expired", operation };
  }
  if (row.frozen) {
    await rest(on, operation, FROZEN_REST_MS);
    return { claimed: false, why: "frozen", operation };
  }
  if (row.resting && operation.notBefore !== null) {
    return { claimed: false, why: "not_yet", operation, until: operation.notBefore };
  }
  // Nothing stands in its way any more, or its state does not allow it: whoever cares looks again.
  return { claimed: false, why: "moved", operation };
}

/** $1 operation, $2 version, $3 milliseconds. Only rows that wait to be sent; no event, the row's course does not change. */
const REST = `
UPDATE operations SET due_at = countersign_now() + $3::bigint * interval '1 millisecond'
WHERE id = $1 AND version = $2::bigint AND status = 'PREPARED'`;

/** What may not be sent as its row stands: looked at again after this long, in milliseconds, until somebody mends it. */
const UNTOLD_REST_MS = 60_000;

/** Lets one rest that waits to be sent and may not be. */
export const restUnsent = (on: SqlRunner, operation: Operation): Promise<unknown> =>
  rest(on, operation, UNTOLD_REST_MS);

const rest = (on: SqlRunner, operation: Operation, ms: number): Promise<unknown> =>
  on.sql("ledger.rest", REST, [operation.id, operation.version, ms]);

/** $1 operation, $2 token, $3 lease in milliseconds. One row while the lease is unexpired and held under this token. */
const RENEW = `
UPDATE operations o
SET lease_until = n.at_now + $3::int * interval '1 millisecond', due_at = n.at_now + $3::int * interval '1 millisecond'
FROM (SELECT countersign_now() AS at_now) n
WHERE o.id = $1 AND o.lease_token = $2::bigint AND o.status IN ('DISPATCHED', 'RECONCILING') AND o.lease_until > n.at_now
RETURNING o.id`;

/** Prolongs a lease while a call runs; false: it is lost, or its time was over. */
export async function renewLease(ctx: LedgerCtx, lease: LeaseRef & { leaseMs?: number }): Promise<boolean> {
  const rows = await ctx.db.sql("ledger.renew", RENEW, [
    lease.operationId,
    lease.leaseToken,
    lease.leaseMs ?? ctx.timing.leaseMs,
  ]);
  return rows.length > 0;
}

/** $1 operation, $2 token, $3 timeout plus margin. One row while the lease is held under this token. */
const CHECK = `
SELECT o.kind, o.lease_until > n.at_now AS leased, o.first_claimed_at, n.at_now + $3::bigint * interval '1 millisecond' AS ends_at,
       (SELECT bool_or(s.frozen) FROM (${switchesOf("o.kind")}) s) AS frozen
FROM operations o, (SELECT countersign_now() AS at_now) n
WHERE o.id = $1 AND o.lease_token = $2::bigint AND o.status = 'DISPATCHED'`;

/** Whether a byte may leave now: lease unexpired, the key's life longer than the request can take, not frozen. */
export async function checkSend(ctx: LedgerCtx, lease: LeaseRef): Promise<SendCheck> {
  const { providerTimeoutMs, sendMarginMs } = ctx.timing;
  const [row] = await ctx.db.sql<{
    kind: Operation["kind"];
    leased: boolean;
    first_claimed_at: Date;
    ends_at: Date;
    frozen: boolean;
  }>("ledger.check_send", CHECK, [lease.operationId, lease.leaseToken, providerTimeoutMs + sendMarginMs]);
  if (row === undefined || !row.leased) return { ok: false, code: "lease_lost" };
  const { keyed, keyTtlMs } = ctx.contracts[row.kind];
  if (keyed && keyTtlMs !== null && row.ends_at.getTime() >= row.first_claimed_at.getTime() + keyTtlMs) {
    return { ok: false, code: "key_expiring" };
  }
  if (row.frozen) return { ok: false, code: "frozen" };
  return { ok: true };
}
