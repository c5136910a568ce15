/** Sending again under the same key: by a reconciler, because the contract makes it safe, or once by a person's authorisation. */
import type { Evidence } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import { announce } from "./announce.js";
import { explainLoss, sendTerms, sent } from "./claim.js";
import { dispatchOnce } from "./claim-sql.js";
import type { LedgerCtx } from "./context.js";
import { lockOperation } from "./endings.js";
import { newsSinceTaken } from "./evidence.js";
import { toJsonObject } from "./json.js";
import { appliedRetry } from "./resolution-rows.js";
import type { ClaimResult, LeaseRef } from "./types.js";

/**
 * RECONCILING → DISPATCHED: attempt n + 1 under the same key, with the stored request, because of what was just read (`evidence`).
 * Refused when frozen, past the key's life, or where something was recorded about it since it was taken.
 */
export async function resend(
  ctx: LedgerCtx,
  request: LeaseRef & { worker: string; evidence: Evidence },
): Promise<ClaimResult> {
  return ctx.db.tx(async (tx) => {
    const operation = await lockOperation(tx, request.operationId);
    if (operation === null) return { claimed: false, why: "not_found" };
    if (operation.status !== "RECONCILING" || operation.leaseToken !== request.leaseToken) {
      return { claimed: false, why: "moved", operation };
    }
    if (await newsSinceTaken(tx, operation.id)) return { claimed: false, why: "news", operation };
    const claimed = await dispatchOnce(tx, {
      id: operation.id,
      kind: operation.kind,
      from: "RECONCILING",
      version: operation.version,
      token: request.leaseToken,
      event: "resend",
      actor: "system:reconcile",
      data: { worker: request.worker, evidence: toJsonObject(request.evidence) },
      worker: request.worker,
      leaseMs: ctx.timing.leaseMs,
      ...sendTerms(ctx, operation),
      attemptId: ctx.ids.next("att_"),
      request: null,
      sends: true,
    });
    if (claimed !== null) return { claimed: true, ...sent(claimed) };
    return explainLoss(tx, ctx, operation.id, operation.version);
  });
}

/** QUARANTINED → DISPATCHED under an applied "retry" of a person, once: the resolution names the version that it authorises. */
export async function sendAuthorised(
  ctx: LedgerCtx,
  request: { operationId: OperationId; worker: string },
): Promise<ClaimResult> {
  return ctx.db.tx(async (tx) => {
    const operation = await lockOperation(tx, request.operationId);
    if (operation === null) return { claimed: false, why: "not_found" };
    const authority = await appliedRetry(tx, operation.id);
    if (operation.status !== "QUARANTINED" || authority === null) {
      return { claimed: false, why: "moved", operation };
    }
    const claimed = await dispatchOnce(tx, {
      id: operation.id,
      kind: operation.kind,
      from: "QUARANTINED",
      version: operation.version,
      token: null,
      event: "resend",
      actor: "system:dispatch",
      data: { worker: request.worker, resolution: authority },
      worker: request.worker,
      leaseMs: ctx.timing.leaseMs,
      ...sendTerms(ctx, operation),
      attemptId: ctx.ids.next("att_"),
      request: null,
      sends: true,
    });
    if (claimed === null) return explainLoss(tx, ctx, operation.id, operation.version);
    await announce(tx, ctx, { operation: claimed.operation, from: "QUARANTINED" });
    return { claimed: true, ...sent(claimed) };
  });
}
