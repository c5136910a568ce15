/**
 * Recording an attempt's outcome.
 *
 * 1. Only the holder of the row's current token settles. A version that moved under the same token (somebody joined) is read again.
 * 2. A first attempt settles in one statement; a later one reads its predecessors under the row's lock first.
 * 3. A success that the provider has already reported as failed (the webhook overtook the answer), or that names an effect known
 *    to be another's, confirms nothing.
 * 4. An answer from a lost lease overwrites nothing: it becomes its own attempt's verdict, evidence, and a reason to look again.
 */
import type { Tx } from "../db/connect.js";
import { backoffMs } from "../domain/backoff.js";
import { CountersignError } from "../domain/errors.js";
import type { ProviderEffect } from "../domain/evidence.js";
import type { RunId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import { type Settlement, settlementOf } from "../domain/settlement.js";
import { announce, askShownBy } from "./announce.js";
import { attemptFacts } from "./attempts.js";
import type { LedgerCtx } from "./context.js";
import { recountElsewhere } from "./elsewhere.js";
import { lockOperation } from "./endings.js";
import { absorbLateAnswer } from "./late-answer.js";
import { attemptPatch, effectOf, outcomeJson, seenEffect } from "./outcome.js";
import { whyNotOwn } from "./own-effect.js";
import { type MovedOperation, type MoveRequest, moveTelling, type Patch } from "./transition.js";
import type { SettleRequest, SettleResult } from "./types.js";

/** `operation` is the claim's: its version makes the usual case one statement. */
export async function settle(ctx: LedgerCtx, request: SettleRequest): Promise<SettleResult> {
  return ctx.db.tx(async (tx) => {
    const quick = await settleFirstAttempt(tx, ctx, request);
    const moved = quick ?? (await settleUnderLock(tx, ctx, request));
    if (moved === null) {
      return { settled: false, why: "fenced", operation: await absorbLateAnswer(tx, ctx, request) };
    }
    const { operation } = moved;
    // What the provider made beyond what was asked for has left as well.
    const { outcome } = request;
    if (outcome.verdict === "postcondition_failed")
      await recountElsewhere(tx, ctx, operation, [outcome.effect]);
    await announce(tx, ctx, { ...moved, from: "DISPATCHED" });
    if (operation.status !== "CONFIRMED") {
      tx.afterCommit(() => void ctx.wake("operation", operation.id));
    }
    return { settled: true, operation };
  });
}

/** Nothing but this attempt can have an effect: no rows need to be read. */
async function settleFirstAttempt(
  tx: Tx,
  ctx: LedgerCtx,
  request: SettleRequest,
): Promise<(MovedOperation & { readonly shownBy: readonly RunId[] }) | null> {
  const { operation } = request;
  if (operation === undefined || request.attempt !== 1 || operation.leaseToken !== request.leaseToken) {
    return null;
  }
  // Asked for together; the second sees what the first has locked.
  const [moved, shownBy] = await Promise.all([
    moveTelling(tx, transitionFor(ctx, operation, request, settlementOf(request.outcome, []))),
    askShownBy(tx, ctx, operation, "DISPATCHED"),
  ]);
  return moved === null ? null : { ...moved, shownBy };
}

async function settleUnderLock(
  tx: Tx,
  ctx: LedgerCtx,
  request: SettleRequest,
): Promise<MovedOperation | null> {
  const operation = await lockOperation(tx, request.operationId);
  if (operation === null) {
    throw new CountersignError("no_operation", `there is no operation ${request.operationId}`);
  }
  const holds =
    operation.status === "DISPATCHED" &&
    operation.leaseToken === request.leaseToken &&
    operation.attempts === request.attempt;
  if (!holds) return null;
  const others = (await attemptFacts(tx, operation.id)).filter(({ number }) => number !== request.attempt);
  const settlement = settlementOf(request.outcome, others);
  const other =
    settlement.event === "settle_confirmed" &&
    (await whyNotOwn(tx, operation.id, settlement.effect.ref)) !== null;
  return moveTelling(tx, transitionFor(ctx, operation, request, other ? NOT_OWN : settlement));
}

/** The reconciler reads what became of it. */
const NOT_OWN: Settlement = {
  event: "settle_unknown",
  code: "not_own_effect",
  detail: "the answer names an effect that came to nothing or is another's",
  look: "now",
};

function transitionFor(
  ctx: LedgerCtx,
  operation: Operation,
  request: SettleRequest,
  settlement: Settlement,
): MoveRequest {
  return {
    id: operation.id,
    from: "DISPATCHED",
    version: operation.version,
    token: request.leaseToken,
    event: settlement.event,
    actor: "system:dispatch",
    data: { evidence: outcomeJson(request.outcome) },
    attemptNumber: request.attempt,
    onlyOwnEffect: settlement.event === "settle_confirmed",
    patch: {
      sendEnded: "now",
      attempt: attemptPatch(request.attempt, request.outcome),
      ...seenEffect(ctx.ids, operation.id, "response", effectOf(request.outcome)),
      ...settlementPatch(ctx, settlement, request.attempt),
    },
  };
}

function settlementPatch(ctx: LedgerCtx, settlement: Settlement, attempt: number): Patch {
  const { timing } = ctx;
  const backoff = (): number =>
    backoffMs({
      baseMs: timing.reconcileBaseMs,
      maxMs: timing.reconcileMaxMs,
      tries: attempt - 1,
      random: ctx.ids.random(),
    });
  // Who asks for longer than that is asked again all the same: the money is set aside, and its key has a life.
  const waitMs = (askedFor: number | null): number =>
    Math.max(Math.min(askedFor ?? 0, timing.reconcileMaxMs), backoff());
  switch (settlement.event) {
    case "settle_confirmed":
      return confirmedPatch(settlement.effect);
    case "settle_rejected":
      return { result: { code: settlement.code, detail: settlement.detail } };
    case "settle_unknown":
      return { dueMs: settlement.look === "now" ? 0 : waitMs(settlement.retryAfterMs ?? null) };
    case "not_executed": {
      const ms = waitMs(settlement.retryAfterMs);
      return { notBeforeMs: ms, dueMs: ms };
    }
    default:
      return settlement satisfies never;
  }
}

/** What CONFIRMED keeps of the effect that confirms it. */
export const confirmedPatch = (effect: ProviderEffect): Patch => ({
  providerRef: effect.ref,
  providerStatus: effect.status,
  result: { code: "confirmed", detail: `Confirmed by ${effect.ref}.`, providerRef: effect.ref },
});
