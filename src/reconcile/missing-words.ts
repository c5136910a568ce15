/** Operations that are confirmed on a person's word alone, and of which the provider shows nothing. */
import { effectEvidence, judgeBesideWord, judgeNamed, probe, seeGiven, takeBack } from "../dispatch/index.js";
import { isDead, type ProviderEffect } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import { isConfirmedOnWord } from "../domain/named-evidence.js";
import type { Operation } from "../domain/operation.js";
import { confirmedOnWord, getOperation, lastWord, openIncident } from "../ledger/index.js";
import type { MissingScope, ReconcileCtx } from "./context.js";

/** Each is a list and perhaps an object to read. */
const WORDS_LIMIT = 200;

/** $1 scope, $2 lag in milliseconds, $3 rows. Each word is told of once, whatever becomes of its incident. */
const onWords = (scope: string): string => `
SELECT o.id, w.word FROM operations o CROSS JOIN LATERAL (SELECT ${lastWord("o.id")} AS word) w
WHERE ${scope} AND ${confirmedOnWord("o")} AND o.kind IN ('refund', 'cancel_subscription')
  AND o.updated_at < countersign_now() - $2::bigint * interval '1 millisecond'
  AND NOT EXISTS (SELECT 1 FROM incidents i WHERE i.dedupe_key = 'missing:' || o.id || ':' || w.word)
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
  const rows = await ctx.db.sql<{ id: OperationId; word: string }>(
    "since" in scope ? "reconcile.words_since" : "reconcile.words_on_payment",
    "since" in scope ? SINCE : ON_PAYMENT,
    ["since" in scope ? scope.since : scope.paymentIntent, ctx.reconcile.orphanLagMs, WORDS_LIMIT],
  );
  let missing = 0;
  for (const { id, word } of rows) {
    const operation = await getOperation(ctx.db, id);
    if (operation === null || !isConfirmedOnWord(operation)) continue;
    const says = await whatIsMissing(ctx, operation);
    if (says === null) continue;
    if (await told(ctx, operation, { word, says })) missing += 1;
  }
  return missing;
}

/** false: it has moved while the provider was read, and what was read says nothing of it any more. */
async function told(
  ctx: ReconcileCtx,
  { id, version }: Operation,
  { word, says }: { word: string; says: string },
): Promise<boolean> {
  return ctx.db.tx(async (tx) => {
    if ((await getOperation(tx, id))?.version !== version) return false;
    await openIncident(tx, ctx, {
      kind: "missing_effect",
      dedupeKey: `missing:${id}:${word}`,
      operationId: id,
      paymentId: null,
      // What a person wrote stays with their decision.
      detail: { resolution: word, says },
    });
    return true;
  });
}

/** What the provider says instead of showing it; null: it shows it, or nobody can say. */
async function whatIsMissing(ctx: ReconcileCtx, operation: Operation): Promise<string | null> {
  if (operation.kind !== "refund") {
    const { evidence } = await probe(ctx, operation);
    return evidence.says === "absent" ? "not cancelled" : null;
  }
  const listing = await ctx.provider.list(operation, { timeoutMs: ctx.timing.providerTimeoutMs });
  if (listing.read === "failed") return null;
  const own = listing.effects.filter(({ operationId }) => operationId === operation.id);
  const alive = own.filter((effect) => !isDead(effect));
  const named = alive.find(({ ref }) => ref === operation.providerRef);
  if (named !== undefined) {
    await judgeNamed(ctx, operation, named, "sweep");
    return null;
  }
  const [shown] = alive;
  if (shown !== undefined) {
    await judgeBesideWord(ctx, operation, shown, "sweep");
    return null;
  }
  const given = await seeGiven(ctx, operation);
  switch (given.is) {
    case "unread":
      return null;
    case "own":
    case "differs":
      if (isDead(given.effect)) return endOf(ctx, operation, given.effect);
      // One without an id stays a stranger, whatever becomes of it: nothing of it is written down as the operation's.
      if (given.effect.operationId === operation.id) await judgeNamed(ctx, operation, given.effect, "sweep");
      return null;
    case "older":
      return "nothing of it on this payment; the refund named was there before this was sent";
    case "anothers":
      return "nothing of it on this payment; the reference given is another one's";
    case "nothing":
      return own[0] === undefined
        ? "nothing of it on this payment"
        : `nothing of it on this payment but ${own[0].ref}, which is ${own[0].status}`;
    default:
      return given satisfies never;
  }
}

/** It failed there after it was confirmed: taken back, as every other. */
async function endOf(
  ctx: ReconcileCtx,
  operation: Operation,
  effect: ProviderEffect,
): Promise<string | null> {
  const back = await takeBack(ctx, operation, effect, {
    actor: "system:reconcile",
    evidence: effectEvidence(operation.id, effect, "sweep"),
  });
  return back ? null : effect.status;
}
