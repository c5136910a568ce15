/** Carries a prepared operation out, as far as it can be carried now. */
import { readVoters, replaceDrifted, stillHolds } from "../approvals/index.js";
import { CountersignError } from "../domain/errors.js";
import { type Evidence, effectsOf, isDead } from "../domain/evidence.js";
import { failpoint } from "../domain/failpoints.js";
import type { OperationId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import {
  type ClaimLost,
  type ClaimRequest,
  claim,
  executeLocal,
  getOperation,
  otherCurrencyOn,
} from "../ledger/index.js";
import { addCorrelation } from "../telemetry/index.js";
import type { DispatchCtx } from "./context.js";
import { probe, refreshBalance } from "./probe.js";
import { sendClaimed } from "./send.js";
import { changedByHand, stopChanged, voidFor } from "./stop.js";

type ClaimGuard = NonNullable<ClaimRequest["guard"]>;

/**
 * Claims, sends and settles a PREPARED operation, or does its local effect; returns the row as it then stands. Does nothing to an
 * operation in another state, and nothing while it is frozen, cooling off or claimed by somebody else.
 *
 * @throws CountersignError `operation_not_found`
 */
export async function drive(ctx: DispatchCtx, operationId: OperationId): Promise<Operation> {
  const operation = await getOperation(ctx.db, operationId);
  if (operation === null) {
    throw new CountersignError("operation_not_found", `there is no operation ${operationId}`, {
      ids: { operationId },
    });
  }
  if (operation.ticketId !== null) addCorrelation({ operationId, ticketId: operation.ticketId });
  if (operation.status !== "PREPARED") return operation;
  const changed = await changedByHand(ctx, operation);
  // Undone, or claimed by somebody else, since it was read: no row is judged by what it was.
  if (changed.operation !== null && changed.operation.status !== "PREPARED") return changed.operation;
  if (changed.problems.length > 0) return stopChanged(ctx, operation, changed);
  const guard = operation.approvalId === null ? undefined : await approvalGuard(ctx, operation);
  if (ctx.contracts[operation.kind].local) return driveLocal(ctx, operation, guard);

  const stopped = (await stopClosed(ctx, operation)) ?? (await lookBeforeFirstSend(ctx, operation));
  if (stopped !== null) return stopped;
  await failpoint("dispatch.before_claim");
  const claimed = await claim(ctx, {
    operation,
    worker: ctx.worker,
    request: ctx.provider.buildRequest(operation),
    ...(guard === undefined ? {} : { guard }),
  });
  return claimed.claimed ? sendClaimed(ctx, claimed) : whenLost(ctx, claimed);
}

/** The last look: binding, policy's answer and voters once more, in the claim's transaction. */
async function approvalGuard(ctx: DispatchCtx, operation: Operation): Promise<ClaimGuard> {
  const voters = await readVoters(ctx.approvals, operation.id);
  return async (tx, locked) => {
    const look = await stillHolds(tx, ctx.approvals, { operation: locked, voters });
    return look.holds ? { ok: true } : { ok: false, detail: look.code };
  };
}

async function driveLocal(
  ctx: DispatchCtx,
  operation: Operation,
  guard: ClaimGuard | undefined,
): Promise<Operation> {
  const done = await executeLocal(ctx, {
    operation,
    worker: ctx.worker,
    ...(guard === undefined ? {} : { guard }),
    effect: ctx.localEffect,
  });
  await failpoint("dispatch.after_local");
  return done.done ? done.operation : whenLost(ctx, done.lost);
}

/**
 * What waited for a person may have been done by a person meanwhile: the provider's list is read once before the first send,
 * and an effect that nobody can attribute stops it, as does a refund under this one's id: nothing of ours made that. A list that cannot
 * be read stops nothing: the binding was compared with our own rows, and the provider bounds the sum.
 */
async function lookBeforeFirstSend(ctx: DispatchCtx, operation: Operation): Promise<Operation | null> {
  if (operation.approvalId === null || operation.attempts > 0) return null;
  const { evidence } = await probe(ctx, operation);
  if (evidence.says !== "unattributed") return stopMade(ctx, operation, evidence);
  const replaced = await replaceDrifted(ctx.approvals, { operationId: operation.id });
  if (replaced.outcome === "replaced") return replaced.operation;
  const refs = evidence.effects.map((effect) => effect.ref).join(", ");
  return voidFor(ctx, operation.id, {
    code: "effect_elsewhere",
    detail: `Not sent: the provider shows ${refs}, which no operation here explains. Check it there before asking again.`,
  });
}

/** Of a refund that was never sent, and that the provider shows as made under its id. */
async function stopMade(
  ctx: DispatchCtx,
  operation: Operation,
  evidence: Evidence,
): Promise<Operation | null> {
  const made = effectsOf(evidence).filter((effect) => !isDead(effect));
  if (operation.kind !== "refund" || made.length === 0) return null;
  const refs = made.map(({ ref }) => ref).join(", ");
  const stopped = await voidFor(ctx, operation.id, {
    code: "effect_elsewhere",
    detail: `Not sent: the provider shows ${refs} under this operation's id, which was never sent. Check it there before asking again.`,
  });
  // It holds nothing any more, so that what has left counts as made elsewhere.
  await refreshBalance(ctx, operation);
  return stopped;
}

/** The provider shows money in another currency on its payment since: nothing is sent there until a person has looked. */
async function stopClosed(ctx: DispatchCtx, operation: Operation): Promise<Operation | null> {
  const { paymentIntent } = operation;
  const other = paymentIntent === null ? null : await otherCurrencyOn(ctx.db, paymentIntent);
  if (other === null) return null;
  return voidFor(ctx, operation.id, {
    code: "other_currency",
    detail: `Not sent: the provider shows a refund in ${other} on this payment, which was paid in ${operation.currency}. On-call looks into it.`,
  });
}

async function whenLost(ctx: DispatchCtx, lost: ClaimLost): Promise<Operation> {
  switch (lost.why) {
    case "not_found":
      throw new CountersignError("operation_not_found", "the operation is gone");
    case "moved":
    case "frozen":
    case "not_yet":
    case "news":
      return lost.operation;
    case "key_expired":
      return voidFor(ctx, lost.operation.id, {
        code: "key_expired",
        detail:
          "Not sent: the time in which a repetition is safe is over. Nothing happened; it may be asked for again.",
      });
    case "guard":
      return whenGuarded(ctx, lost);
  }
}

/** The approval does not hold now. Drift voids and asks again under a new card; anything else is looked at again later. */
async function whenGuarded(ctx: DispatchCtx, lost: Extract<ClaimLost, { why: "guard" }>): Promise<Operation> {
  if (lost.detail !== "drift") {
    ctx.log.warn(
      { operation: lost.operation.id, why: lost.detail },
      "not sent yet: the approval cannot be relied on now",
    );
    return lost.operation;
  }
  const replaced = await replaceDrifted(ctx.approvals, { operationId: lost.operation.id });
  return replaced.operation ?? lost.operation;
}
