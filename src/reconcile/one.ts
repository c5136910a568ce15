/**
 * One open outcome: take it, read the provider, decide by contract, carry the move out.
 *
 * 1. The decision is `recover`, pure; nothing here judges.
 * 2. Sending again happens under a new lease and attempt with the same key and the stored request, or not at all.
 * 3. Whoever loses the lease changes nothing.
 * 4. What was read and cannot be written down counts as unknown: it is looked at again, and ends with a person.
 */
import { z } from "zod";
import { cannotBeRecorded, probe, reportChanged, sendClaimed, tellUnrecordable } from "../dispatch/index.js";
import { effectWords, fieldsWords } from "../domain/effect-words.js";
import { isDead } from "../domain/evidence.js";
import { failpoint } from "../domain/failpoints.js";
import type { OperationId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import { KEY_CONFLICT, type Move, ROW_CHANGED, recover } from "../domain/recovery.js";
import { evidenceOf, resend, settleReconcile, type Taken, takeForReconcile } from "../ledger/index.js";
import { addCorrelation } from "../telemetry/index.js";
import type { ReconcileCtx } from "./context.js";

/** Looks at one operation now. null: there was nothing to take, or somebody else has it. */
export async function reconcileOne(
  ctx: ReconcileCtx,
  operationId: OperationId,
  because: "due" | "evidence",
): Promise<Operation | null> {
  const taken = await takeForReconcile(ctx, { operationId, worker: ctx.worker, because });
  return taken === null ? null : reconcileTaken(ctx, taken);
}

/** Decides and settles what was taken. */
export async function reconcileTaken(ctx: ReconcileCtx, taken: Taken): Promise<Operation | null> {
  await failpoint("reconcile.after_take");
  if (taken.operation.ticketId !== null) addCorrelation({ ticketId: taken.operation.ticketId });
  const { attempts, operation } = taken;
  if (attempts.length !== operation.attempts || attempts.some(({ code }) => code === ROW_CHANGED))
    await reportChanged(ctx, taken.operation, ["an attempt of it is not what the log tells"]);
  const { evidence } = await probe(ctx, taken.operation);
  await failpoint("reconcile.after_probe");
  const move = recover({
    contract: ctx.contracts[taken.operation.kind],
    evidence,
    attempts: taken.attempts,
    now: taken.now,
    firstClaimedAt: taken.operation.firstClaimedAt,
    lastSendEndedAt: taken.lastSendEndedAt,
    unknownSince: taken.operation.unknownSince ?? taken.now,
    quarantineAfterMs: ctx.timing.quarantineAfterMs,
    timeoutMs: ctx.timing.providerTimeoutMs,
    marginMs: ctx.timing.sendMarginMs,
    maxAttempts: ctx.reconcile.maxAttempts,
    endedBefore: taken.endedBefore,
  });
  ctx.log.info(
    { operation: taken.operation.id, evidence: evidence.says, move: move.do },
    "an open outcome was looked at",
  );
  if (move.do === "send_again") return sendAgain(ctx, taken, evidence);
  return settleMove(ctx, taken, evidence, await withWhatWasShown(ctx, taken, move));
}

/** A person who must decide reads what was seen of it before, whoever read it, where nobody could read it now. */
async function withWhatWasShown<M extends Move>(ctx: ReconcileCtx, taken: Taken, move: M): Promise<M> {
  const worded = withProvidersWords(move, taken.attempts);
  if (worded.do !== "quarantine" || worded.reason !== "unknown_too_long") return worded;
  const shown = await shownAlive(ctx.db, taken.operation.id);
  return shown === null ? worded : { ...worded, detail: `${worded.detail}; the provider has shown ${shown}` };
}

/** A person who must decide reads what an answer said: of a key conflict what differs, and the effect that no list shows. */
function withProvidersWords<M extends Move>(move: M, attempts: Taken["attempts"]): M {
  if (move.do !== "quarantine") return move;
  if (move.reason === "unknown_too_long") {
    const named = attempts.map(({ evidence }) => AnsweredOtherwise.safeParse(evidence)).findLast(isRead);
    return named === undefined
      ? move
      : { ...move, detail: `${move.detail}; an answer named ${otherwiseWords(named.data)}` };
  }
  if (move.reason !== "key_conflict") return move;
  const evidence = attempts.findLast((attempt) => attempt.code === KEY_CONFLICT)?.evidence;
  const said =
    typeof evidence === "object" && evidence !== null && !Array.isArray(evidence) ? evidence["detail"] : null;
  return typeof said === "string" ? { ...move, detail: `${move.detail}. ${said}` } : move;
}

/** As evidence keeps an effect. */
const Shown = z.object({
  ref: z.string(),
  status: z.string(),
  amount: z.number().int(),
  currency: z.string(),
});

/** The newest effect that was seen of it and had not come to nothing, in words. */
async function shownAlive(on: ReconcileCtx["db"], id: OperationId): Promise<string | null> {
  const seen = (await evidenceOf(on, id)).map(({ payload }) => Shown.safeParse(payload)).findLast(isRead);
  if (seen === undefined || isDead(seen.data)) return null;
  const { ref, status, amount, currency } = seen.data;
  return `${effectWords({ ref, kind: "refund", amountMinor: BigInt(amount), currency })} (${status})`;
}

/** As the attempt's row keeps it. */
const AnsweredOtherwise = z.object({
  verdict: z.literal("postcondition_failed"),
  effect: z.object({
    ref: z.string(),
    kind: z.enum(["refund", "subscription_cancellation"]),
    target: z.string(),
    amountMinor: z.coerce.bigint(),
    currency: z.string(),
  }),
  differs: z.array(z.string()),
});

const isRead = <T>(parsed: { success: boolean; data?: T }): parsed is { success: true; data: T } =>
  parsed.success;

const otherwiseWords = ({ effect, differs }: z.output<typeof AnsweredOtherwise>): string =>
  `${effectWords(effect)} on ${effect.target}, which differs in ${fieldsWords(differs)}`;

async function sendAgain(
  ctx: ReconcileCtx,
  taken: Taken,
  evidence: Parameters<typeof settleReconcile>[1]["evidence"],
): Promise<Operation | null> {
  const claimed = await resend(ctx, {
    operationId: taken.operation.id,
    leaseToken: taken.leaseToken,
    worker: ctx.worker,
    evidence,
  });
  if (claimed.claimed) {
    await failpoint("reconcile.after_resend_claimed");
    return sendClaimed(ctx, claimed);
  }
  switch (claimed.why) {
    case "frozen":
    case "key_expired":
    case "not_yet":
    case "news":
    case "guard":
      return settleMove(ctx, taken, evidence, { do: "later", why: claimed.why });
    case "moved":
      return claimed.operation;
    case "not_found":
      return null;
  }
}

async function settleMove(
  ctx: ReconcileCtx,
  taken: Taken,
  evidence: Parameters<typeof settleReconcile>[1]["evidence"],
  move: Exclude<Move, { do: "send_again" }>,
): Promise<Operation | null> {
  const settleAs = (said: typeof evidence, decided: typeof move): ReturnType<typeof settleReconcile> =>
    settleReconcile(ctx, {
      operationId: taken.operation.id,
      leaseToken: taken.leaseToken,
      evidence: said,
      move: decided,
    });
  const result = await settleAs(evidence, move).catch(async (error: unknown) => {
    if (!cannotBeRecorded(ctx.db, error)) throw error;
    ctx.log.error(
      { err: error, operation: taken.operation.id },
      "what was read could not be recorded; it counts as unknown",
    );
    await tellUnrecordable(ctx, taken.operation);
    return settleAs({ says: "unknown", reason: UNRECORDABLE }, unrecordedMove(ctx, taken));
  });
  await failpoint("reconcile.after_settle");
  return result.operation;
}

const UNRECORDABLE = "the provider's answer could not be recorded";

function unrecordedMove(ctx: ReconcileCtx, { operation, now }: Taken): Exclude<Move, { do: "send_again" }> {
  const openMs = now.getTime() - (operation.unknownSince ?? now).getTime();
  return openMs >= ctx.timing.quarantineAfterMs
    ? { do: "quarantine", reason: "unknown_too_long", detail: UNRECORDABLE }
    : { do: "later", why: UNRECORDABLE };
}
