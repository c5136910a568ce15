/** Local effects: what happens in our own database happens in one transaction with its operation. There is no unknown. */
import type { Tx } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { Operation } from "../domain/operation.js";
import { announce } from "./announce.js";
import { explainLoss } from "./claim.js";
import { dispatchOnce } from "./claim-sql.js";
import type { LedgerCtx } from "./context.js";
import { move } from "./transition.js";
import type { ClaimLost, ClaimRequest, LocalOutcome } from "./types.js";

export interface LocalRequest {
  readonly operation: Operation;
  readonly worker: string;
  readonly guard?: ClaimRequest["guard"];
  /** Does it, in the transaction handed in, with the operation's row locked; `ref` names what was changed. */
  readonly effect: (
    tx: Tx,
    operation: Operation,
  ) => Promise<{ ok: true; ref: string } | { ok: false; code: string; detail: string }>;
}

/** PREPARED → DISPATCHED → CONFIRMED, or REJECTED when the effect answers no: what it wrote until then is undone. A throw undoes everything. */
export async function executeLocal(ctx: LedgerCtx, request: LocalRequest): Promise<LocalOutcome> {
  return ctx.db.tx((tx) => inOneTransaction(tx, ctx, request));
}

const lost = (why: ClaimLost): LocalOutcome => ({ done: false, lost: why });

async function inOneTransaction(tx: Tx, ctx: LedgerCtx, request: LocalRequest): Promise<LocalOutcome> {
  const { operation, worker, guard, effect } = request;
  if (!ctx.contracts[operation.kind].local) {
    throw new CountersignError("not_local", `${operation.kind} is no local effect`);
  }
  const looked = await guard?.(tx, operation);
  if (looked?.ok === false) {
    return lost({ claimed: false, why: "guard", operation, detail: looked.detail });
  }
  if (operation.status !== "PREPARED") {
    return lost(await explainLoss(tx, ctx, operation.id, operation.version));
  }
  const claimed = await dispatchOnce(tx, {
    id: operation.id,
    kind: operation.kind,
    from: "PREPARED",
    version: operation.version,
    token: null,
    event: "claim",
    actor: "system:dispatch",
    data: { worker },
    worker,
    leaseMs: ctx.timing.leaseMs,
    timeoutMs: 0,
    marginMs: 0,
    keyTtlMs: null,
    attemptId: ctx.ids.next("att_"),
    request: null,
    sends: false,
  });
  if (claimed === null) return lost(await explainLoss(tx, ctx, operation.id, operation.version));
  await tx.sql(undefined, "SAVEPOINT local_effect");
  const answer = await effect(tx, claimed.operation);
  if (!answer.ok) await tx.sql(undefined, "ROLLBACK TO SAVEPOINT local_effect");
  const settled = await settleLocal(tx, claimed.operation, answer);
  await announce(tx, ctx, { operation: settled, from: "DISPATCHED" });
  return { done: true, operation: settled };
}

async function settleLocal(
  tx: Tx,
  operation: Operation,
  answer: { ok: true; ref: string } | { ok: false; code: string; detail: string },
): Promise<Operation> {
  const settled = await move(tx, {
    id: operation.id,
    from: "DISPATCHED",
    version: operation.version,
    token: operation.leaseToken,
    event: answer.ok ? "settle_confirmed" : "settle_rejected",
    actor: "system:dispatch",
    data: { evidence: answer },
    attemptNumber: operation.attempts,
    patch: {
      sendEnded: "now",
      attempt: {
        number: operation.attempts,
        verdict: answer.ok ? "committed" : "rejected",
        code: answer.ok ? null : answer.code,
        httpStatus: null,
        providerRef: answer.ok ? answer.ref : null,
        requestId: null,
        evidence: { ...answer },
      },
      ...(answer.ok
        ? {
            providerRef: answer.ref,
            result: { code: "confirmed", detail: `Done: ${answer.ref}.`, providerRef: answer.ref },
          }
        : { result: { code: answer.code, detail: answer.detail } }),
    },
  });
  if (settled === null)
    throw new CountersignError("lost_lock", `operation ${operation.id} moved under its lock`);
  return settled;
}
