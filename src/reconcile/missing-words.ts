/** Operations that are confirmed on a person's word alone, and of which the provider shows nothing. */
import { effectEvidence, judgeBesideWord, judgeNamed, probe, seeGiven, takeBack } from "../dispatch/index.js";
import { isDead, type ProviderEffect } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import { isConfirmedOnWord } from "../domain/named-evidence.js";
import type { Operation } from "../domain/operation.js";
import { confirmedOnWord, getOperation, lastWord, openIncident } from "../ledger/index.js";
import { alone } from "./alone.js";
import type { MissingScope, ReconcileCtx } from "./context.js";
import { closeShown, isShownAsAsked, NOT_SHOWN_SINCE } from "./shown-again.js";

/** Each is a list and perhaps an object to read. */
const WORDS_LIMIT = 200;

/** $1 scope, $2 lag in milliseconds, $3 rows. Each word is told of once, until the provider shows what was meant. */
const onWords = (scope: string): string => `
SELECT o.id, w.word, (
    SELECT count(*) FROM incidents i WHERE i.operation_id = o.id AND i.kind = 'missing_effect' AND i.detail ->> 'resolution' = w.word)::int AS told
FROM operations o CROSS JOIN LATERAL (SELECT ${lastWord("o.id")} AS word) w
WHERE ${scope} AND ${confirmedOnWord("o")} AND o.kind IN ('refund', 'cancel_subscription')
  AND o.updated_at < countersign_now() - $2::bigint * interval '1 millisecond'
  AND NOT EXISTS (SELECT 1 FROM incidents i WHERE i.operation_id = o.id AND i.kind = 'missing_effect' AND i.detail ->> 'resolution' = w.word
    AND ${NOT_SHOWN_SINCE})
ORDER BY o.created_at DESC, o.id DESC LIMIT $3`;

/** A word is as young as the decision, however old the operation. */
const SINCE = onWords(
  "o.id IN (SELECT r.operation_id FROM resolutions r WHERE r.verb = 'confirm' AND r.state = 'applied' AND r.updated_at >= $1)",
);
const ON_PAYMENT = onWords("o.order_id = (SELECT order_id FROM payments WHERE payment_intent = $1)");

/**
 * Looks for each refund on its payment's whole list, by its own id, and for what the person named; and at each subscription. Returns how
 * many are missing.
 */
export async function missingWords(ctx: ReconcileCtx, scope: MissingScope): Promise<number> {
  if ("since" in scope) await closeShownWords(ctx);
  const rows = await ctx.db.sql<{ id: OperationId; word: string; told: number }>(
    "since" in scope ? "reconcile.words_since" : "reconcile.words_on_payment",
    "since" in scope ? SINCE : ON_PAYMENT,
    ["since" in scope ? scope.since : scope.paymentIntent, ctx.reconcile.orphanLagMs, WORDS_LIMIT],
  );
  let count = 0;
  for (const { id, word, told: before } of rows) {
    const key = before === 0 ? `missing:${id}:${word}` : `missing:${id}:${word}:${before + 1}`;
    const missed = await alone(ctx, { operation: id }, () => isMissed(ctx, id, { word, key }));
    if (missed.done && missed.value) count += 1;
  }
  return count;
}

async function isMissed(
  ctx: ReconcileCtx,
  id: OperationId,
  { word, key }: { word: string; key: string },
): Promise<boolean> {
  const operation = await getOperation(ctx.db, id);
  if (operation === null || !isConfirmedOnWord(operation)) return false;
  const found = await lookFor(ctx, operation);
  return found.is === "missing" && told(ctx, operation, { word, key, says: found.says });
}

/** $1 rows. Open findings of what still rests on that word, in no order: none waits behind one for which the provider does not answer. */
const TOLD_OPEN = `
SELECT i.id, o.id AS operation FROM incidents i JOIN operations o ON o.id = i.operation_id
WHERE i.status = 'open' AND i.kind = 'missing_effect' AND ${confirmedOnWord("o")} AND i.detail ->> 'resolution' = ${lastWord("o.id")}
ORDER BY random() LIMIT $1`;

/** What was missed and is shown by now is no finding any more. However many they are, they have one call's time. */
async function closeShownWords(ctx: ReconcileCtx): Promise<void> {
  const rows = await ctx.db.sql<{ id: string; operation: OperationId }>("reconcile.words_told", TOLD_OPEN, [
    WORDS_LIMIT,
  ]);
  const signal = AbortSignal.timeout(ctx.timing.providerTimeoutMs);
  for (const row of rows) {
    if (signal.aborted) break;
    const operation = await getOperation(ctx.db, row.operation);
    if (operation === null || !isConfirmedOnWord(operation)) continue;
    const found = await lookFor(ctx, operation);
    if (found.is === "shown") await closeShown(ctx, row.id, operation, found.shows);
  }
}

/** false: it has moved while the provider was read, and what was read says nothing of it any more. */
async function told(
  ctx: ReconcileCtx,
  { id, version }: Operation,
  { word, key, says }: { word: string; key: string; says: string },
): Promise<boolean> {
  return ctx.db.tx(async (tx) => {
    if ((await getOperation(tx, id))?.version !== version) return false;
    await openIncident(tx, ctx, {
      kind: "missing_effect",
      dedupeKey: key,
      operationId: id,
      paymentId: null,
      // What a person wrote stays with their decision.
      detail: { resolution: word, says },
    });
    return true;
  });
}

type Found =
  /** What the provider says instead of showing it. */
  | { readonly is: "missing"; readonly says: string }
  /** What it shows, done as it was asked for. */
  | { readonly is: "shown"; readonly shows: string }
  /** Nobody can say, or it is judged otherwise. */
  | { readonly is: "open" };

const OPEN: Found = { is: "open" };
const missing = (says: string): Found => ({ is: "missing", says });

async function lookFor(ctx: ReconcileCtx, operation: Operation): Promise<Found> {
  if (operation.kind !== "refund") {
    const { evidence } = await probe(ctx, operation);
    if (evidence.says === "absent") return missing("not cancelled");
    return evidence.says === "committed" && evidence.postcondition === "holds"
      ? { is: "shown", shows: evidence.effect.ref }
      : OPEN;
  }
  const listing = await ctx.provider.list(operation, { timeoutMs: ctx.timing.providerTimeoutMs });
  if (listing.read === "failed") return OPEN;
  const own = listing.effects.filter(({ operationId }) => operationId === operation.id);
  const alive = own.filter((effect) => !isDead(effect));
  const named = alive.find(({ ref }) => ref === operation.providerRef);
  if (named !== undefined) {
    await judgeNamed(ctx, operation, named, "sweep");
    return shownBy(operation, named);
  }
  const [shown] = alive;
  if (shown !== undefined) {
    await judgeBesideWord(ctx, operation, shown, "sweep");
    return OPEN;
  }
  const given = await seeGiven(ctx, operation);
  switch (given.is) {
    case "unread":
      return OPEN;
    case "own":
    case "differs":
      if (isDead(given.effect)) return endOf(ctx, operation, given.effect);
      // One without an id stays a stranger, whatever becomes of it: nothing of it is written down as the operation's.
      if (given.effect.operationId === operation.id) await judgeNamed(ctx, operation, given.effect, "sweep");
      return shownBy(operation, given.effect);
    case "older":
      return missing("nothing of it on this payment; the refund named was there before this was sent");
    case "anothers":
      return missing("nothing of it on this payment; the reference given is another one's");
    case "nothing":
      return missing(
        own[0] === undefined
          ? "nothing of it on this payment"
          : `nothing of it on this payment but ${own[0].ref}, which is ${own[0].status}`,
      );
    default:
      return given satisfies never;
  }
}

const shownBy = (operation: Operation, effect: ProviderEffect): Found =>
  isShownAsAsked(operation, effect) ? { is: "shown", shows: effect.ref } : OPEN;

/** It failed there after it was confirmed: taken back, as every other. */
async function endOf(ctx: ReconcileCtx, operation: Operation, effect: ProviderEffect): Promise<Found> {
  const back = await takeBack(ctx, operation, effect, {
    actor: "system:reconcile",
    evidence: effectEvidence(operation.id, effect, "sweep"),
  });
  return back ? OPEN : missing(effect.status);
}
