/**
 * Claim → send → settle.
 *
 * 1. The claim is committed before a byte leaves; whatever happens after it began is unknown until it is proven.
 * 2. The last question before the socket is the database's: lease, key, freeze.
 * 3. The lease is prolonged while the call runs; once lost it is not taken back, and the answer becomes evidence.
 * 4. No transaction is open while the provider is asked.
 * 5. What was changed by hand is not sent, whichever way it was claimed: the first time, again, or by a person's authorisation.
 */

import { CountersignError } from "../domain/errors.js";
import type { AttemptOutcome } from "../domain/evidence.js";
import { failpoint } from "../domain/failpoints.js";
import type { Operation } from "../domain/operation.js";
import { REQUEST_MISMATCH, SendRefused } from "../domain/ports/payment-provider.js";
import { ROW_CHANGED } from "../domain/recovery.js";
import { type Authority, type Claim, checkSend, renewLease, settle } from "../ledger/index.js";
import type { DispatchCtx } from "./context.js";
import { refreshBalance } from "./probe.js";
import { changedByHand, reportChanged, stopChanged, tellUnrecordable } from "./stop.js";
import { cannotBeRecorded } from "./unrecorded.js";

/** A lease is renewed this many times within its life. */
const RENEWALS_PER_LEASE = 3;

/** Sends one claimed attempt and records what came of it. Never throws for what the provider or the network did. */
export async function sendClaimed(ctx: DispatchCtx, claim: Claim): Promise<Operation> {
  await failpoint("dispatch.after_claim");
  const { outcome, changed } = await sendUnchanged(ctx, claim);
  await failpoint("dispatch.after_send");
  const result = await settleOutcome(ctx, claim, outcome);
  await failpoint("dispatch.after_settle");
  if (!result.settled) {
    ctx.log.warn(
      { operation: claim.operation.id, attempt: claim.attempt, verdict: outcome.verdict },
      "the answer came after the lease was lost: kept as evidence",
    );
  }
  if (changed !== null && result.operation.status === "PREPARED") {
    return stopChanged(ctx, result.operation, changed);
  }
  if (outcome.verdict === "rejected") await refreshBalance(ctx, claim.operation);
  return result.operation;
}

/** `changed`: what was changed by hand; then nothing was sent. */
async function sendUnchanged(
  ctx: DispatchCtx,
  claim: Claim,
): Promise<{ outcome: AttemptOutcome; changed: Authority | null }> {
  const changed = await changedByHand(ctx, claim.operation);
  if (changed.problems.length > 0)
    return { outcome: await refuseChanged(ctx, claim, changed.problems), changed };
  try {
    return { outcome: await withHeartbeat(ctx, claim, () => execute(ctx, claim)), changed: null };
  } catch (error) {
    if (!(error instanceof CountersignError) || error.code !== REQUEST_MISMATCH) throw error;
    const problems = ["its stored request is not its own"];
    return { outcome: await refuseChanged(ctx, claim, problems), changed: { ...changed, problems } };
  }
}

async function refuseChanged(
  ctx: DispatchCtx,
  { operation }: Claim,
  problems: readonly string[],
): Promise<AttemptOutcome> {
  await reportChanged(ctx, operation, problems);
  return {
    verdict: "not_executed",
    code: ROW_CHANGED,
    detail: `Not sent: the record of it was changed in the database (${problems.join("; ")}).`,
    retryAfterMs: null,
  };
}

/** An answer that cannot be written down settles as unknown: the effect may have happened. */
async function settleOutcome(
  ctx: DispatchCtx,
  claim: Claim,
  outcome: AttemptOutcome,
): Promise<Awaited<ReturnType<typeof settle>>> {
  const settleAs = (said: AttemptOutcome): ReturnType<typeof settle> =>
    settle(ctx, {
      operationId: claim.operation.id,
      leaseToken: claim.leaseToken,
      attempt: claim.attempt,
      operation: claim.operation,
      outcome: said,
    });
  try {
    return await settleAs(outcome);
  } catch (error) {
    if (!cannotBeRecorded(ctx.db, error)) throw error;
    ctx.log.error(
      { err: error, operation: claim.operation.id, attempt: claim.attempt },
      "an answer could not be recorded; it counts as unknown",
    );
    await tellUnrecordable(ctx, claim.operation);
    return settleAs({
      verdict: "unknown",
      code: "unrecordable_answer",
      detail: "The answer could not be recorded.",
      httpStatus: null,
    });
  }
}

function execute(ctx: DispatchCtx, claim: Claim): Promise<AttemptOutcome> {
  return ctx.provider.execute(claim.operation, claim.request, {
    idempotencyKey: claim.operation.idempotencyKey,
    timeoutMs: ctx.timing.providerTimeoutMs,
    beforeSend: async () => {
      await failpoint("dispatch.before_send");
      const check = await checkSend(ctx, { operationId: claim.operation.id, leaseToken: claim.leaseToken });
      if (!check.ok) throw new SendRefused(check.code, `nothing was sent: ${check.code}`);
    },
  });
}

async function withHeartbeat<T>(ctx: DispatchCtx, claim: Claim, work: () => Promise<T>): Promise<T> {
  const lease = { operationId: claim.operation.id, leaseToken: claim.leaseToken };
  let renewing = false;
  const beat = setInterval(() => {
    if (renewing) return;
    renewing = true;
    renewLease(ctx, lease)
      .then((kept) => {
        if (!kept) clearInterval(beat);
      })
      // The database is away: the lease runs out, and `checkSend` and `settle` see that.
      .catch((error: unknown) => ctx.log.warn({ err: error, ...lease }, "the lease could not be renewed"))
      .finally(() => {
        renewing = false;
      });
  }, ctx.timing.leaseMs / RENEWALS_PER_LEASE);
  try {
    return await work();
  } finally {
    clearInterval(beat);
  }
}
