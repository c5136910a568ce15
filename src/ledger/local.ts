/** An effect in our own database shares one transaction with its operation: there is no unknown outcome. */
import type { Tx } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { Operation } from "../domain/operation.js";
import { takeClaim, whyLost } from "./claim.js";
import type { LedgerCtx } from "./context.js";
import { getOperation } from "./reads.js";
import { tell } from "./told.js";
import { move } from "./transition.js";
import type { ClaimRequest, LocalOutcome } from "./types.js";

export interface LocalRequest {
  readonly operation: Operation;
  readonly worker: string;
  readonly guard?: ClaimRequest["guard"];
  readonly effect: (
    tx: Tx,
    operation: Operation,
  ) => Promise<{ ok: true; ref: string } | { ok: false; code: string; detail: string }>;
}

/** PREPARED → DISPATCHED → CONFIRMED or REJECTED; see `index.ts`. */
export async function executeLocal(ctx: LedgerCtx, request: LocalRequest): Promise<LocalOutcome> {
  return ctx.db.tx<LocalOutcome>(async (tx) => {
    const { operation, guard } = request;
    if (guard !== undefined) {
      const look = await guard(tx, operation);
      if (!look.ok) {
        const now = (await getOperation(tx, operation.id)) ?? operation;
        return { done: false, lost: { claimed: false, why: "guard", operation: now, detail: look.detail } };
      }
    }
    const claimed = await takeClaim(tx, ctx, {
      operation,
      worker: request.worker,
      request: null,
      from: "PREPARED",
      token: null,
      data: { local: true },
    });
    if (claimed?.claimed !== true) {
      return {
        done: false,
        lost: await whyLost(tx, ctx, operation.id, "PREPARED", operation.version),
      };
    }
    await tx.sql(undefined, "SAVEPOINT effect");
    const effect = await request.effect(tx, claimed.operation);
    if (!effect.ok) await tx.sql(undefined, "ROLLBACK TO SAVEPOINT effect");
    const moved = await move(tx, {
      id: operation.id,
      from: "DISPATCHED",
      version: claimed.operation.version,
      token: claimed.leaseToken,
      event: effect.ok ? "settle_confirmed" : "settle_rejected",
      actor: `system:${request.worker}`,
      data: effect.ok ? { ref: effect.ref } : { code: effect.code, detail: effect.detail },
      attemptNumber: claimed.attempt,
      patch: {
        fence: true,
        sendEnded: "now",
        ...(effect.ok ? { providerRef: effect.ref } : {}),
        result: effect.ok
          ? { code: "confirmed", detail: "done", providerRef: effect.ref }
          : { code: effect.code, detail: effect.detail },
        attempt: {
          number: claimed.attempt,
          verdict: effect.ok ? "committed" : "rejected",
          code: effect.ok ? null : effect.code,
          httpStatus: null,
          providerRef: effect.ok ? effect.ref : null,
          requestId: null,
          evidence: effect.ok ? { ref: effect.ref } : { code: effect.code, detail: effect.detail },
        },
      },
    });
    if (moved === null)
      throw new CountersignError("lost_own_row", "the operation moved inside its own transaction");
    await tell(tx, ctx, claimed.operation, moved);
    return { done: true, operation: moved };
  });
}
