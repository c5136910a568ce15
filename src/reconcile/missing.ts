/** Confirmed operations that the provider does not show, shows as failed, or shows as less than what was asked for. */
import { effectEvidence, takeBack } from "../dispatch/index.js";
import { fallsShort } from "../domain/as-asked.js";
import { effectWords } from "../domain/effect-words.js";
import { isDead, type Listing, type ProviderEffect } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import { confirmedOnWord, getOperation, openIncident } from "../ledger/index.js";
import { alone } from "./alone.js";
import type { MissingScope, ReconcileCtx } from "./context.js";
import { missingWords } from "./missing-words.js";
import { NOT_SHOWN_SINCE, noteShownAgain } from "./shown-again.js";

/** Asked for one by one in a pass. */
const MISSED_LIMIT = 1_000;

/**
 * SQL: operation `o` was told of as missing, and has not been shown since. What was closed, shown again and goes missing once more is
 * a finding of its own.
 */
const TOLD = `EXISTS (
  SELECT 1 FROM incidents i WHERE i.operation_id = o.id AND i.kind = 'missing_effect' AND ${NOT_SHOWN_SINCE})`;

/** SQL: what is listed as `l` is what confirmed operation `o` (`fallsShort`). */
const NOT_SHORT = `l.ref = o.provider_ref AND l.amount >= o.amount_minor AND upper(l.currency) = upper(o.currency)
    AND l.target IN ('', o.payment_intent)
    AND (l.status = 'succeeded' OR o.resolved_by_person AND l.status IN ('pending', 'requires_action'))`;

/**
 * $1 scope, $2 lag in milliseconds, $3 rows, $4 references that are listed, $5 minor units, $6 currencies, $7 payments, $8 states. What rests
 * on a word alone is asked for otherwise.
 */
const confirmedAndNotListed = (scope: string): string => `
SELECT o.id, o.provider_ref, (
    SELECT count(*) FROM incidents i WHERE i.operation_id = o.id AND i.kind = 'missing_effect')::int AS told
FROM operations o
WHERE ${scope} AND o.status = 'CONFIRMED' AND o.kind = 'refund' AND o.provider_ref IS NOT NULL
  AND o.updated_at < countersign_now() - $2::bigint * interval '1 millisecond'
  AND NOT EXISTS (
    SELECT 1 FROM unnest($4::text[], $5::bigint[], $6::text[], $7::text[], $8::text[]) AS l (ref, amount, currency, target, status)
    WHERE ${NOT_SHORT})
  AND NOT ${TOLD} AND NOT ${confirmedOnWord("o")}
ORDER BY o.created_at DESC, o.id DESC LIMIT $3`;

const SINCE = confirmedAndNotListed("o.created_at >= $1");
const ON_PAYMENT = confirmedAndNotListed(
  "o.order_id = (SELECT order_id FROM payments WHERE payment_intent = $1)",
);

/** The last operation of a scope that was asked for when the time was over, by the process's database. A new process begins anew. */
const STOPPED = new WeakMap<object, Map<string, OperationId>>();

function stoppedIn(db: object): Map<string, OperationId> {
  const known = STOPPED.get(db) ?? new Map<string, OperationId>();
  STOPPED.set(db, known);
  return known;
}

/** `rows`, the newest first, beginning with those that are older than the one at which the pass before stopped. */
function fromWhereItStopped<R extends { readonly id: OperationId }>(
  rows: readonly R[],
  at: OperationId | undefined,
): readonly R[] {
  const start = at === undefined ? 0 : rows.findIndex(({ id }) => id < at);
  return start <= 0 ? rows : [...rows.slice(start), ...rows.slice(0, start)];
}

/**
 * Confirmed, older than the list's lag, not listed as that and not told of before: asked for by its reference before it is missed. However many
 * they are, they have one call's time; the next pass goes on where this one stopped. Returns how many were missing.
 */
export async function missingEffects(
  ctx: ReconcileCtx,
  scope: MissingScope,
  effects: readonly ProviderEffect[],
): Promise<number> {
  // One that failed is listed, and is no effect.
  const listed = effects.filter((effect) => !isDead(effect));
  await noteShownAgain(ctx, listed);
  const rows = await ctx.db.sql<{ id: OperationId; provider_ref: string; told: number }>(
    "since" in scope ? "reconcile.confirmed_since" : "reconcile.confirmed_on_payment",
    "since" in scope ? SINCE : ON_PAYMENT,
    [
      "since" in scope ? scope.since : scope.paymentIntent,
      ctx.reconcile.orphanLagMs,
      MISSED_LIMIT,
      listed.map(({ ref }) => ref),
      listed.map(({ amountMinor }) => amountMinor),
      listed.map(({ currency }) => currency),
      listed.map(({ target }) => target),
      listed.map(({ status }) => status),
    ],
  );
  const signal = AbortSignal.timeout(ctx.timing.providerTimeoutMs);
  const stopped = stoppedIn(ctx.db);
  const place = "since" in scope ? "since" : scope.paymentIntent;
  const onList = new Map(effects.map((effect) => [effect.ref, effect]));
  let missing = await missingWords(ctx, scope);
  const order = fromWhereItStopped(rows, stopped.get(place));
  stopped.delete(place);
  for (const row of order) {
    if (signal.aborted) break;
    const reading = await ctx.provider.read(row.provider_ref, {
      timeoutMs: ctx.timing.providerTimeoutMs,
      signal,
    });
    if (signal.aborted) stopped.set(place, row.id);
    const found = await alone(ctx, { operation: row.id }, () => isMissed(ctx, row, { reading, onList }));
    if (found.done && found.value) missing += 1;
  }
  return missing;
}

/** Whether the provider does not show it as it was asked for; then it is told. */
async function isMissed(
  ctx: ReconcileCtx,
  row: { id: OperationId; provider_ref: string; told: number },
  { reading, onList }: { reading: Listing; onList: ReadonlyMap<string, ProviderEffect> },
): Promise<boolean> {
  // Where it cannot be asked for by its reference, the list that shows it otherwise is the provider's word.
  const shown = reading.read === "failed" ? onList.get(row.provider_ref) : reading.effects[0];
  if (reading.read === "failed" && shown === undefined) return false;
  const operation = await getOperation(ctx.db, row.id);
  if (operation?.status !== "CONFIRMED") return false;
  if (shown !== undefined && !isDead(shown) && !fallsShort(operation, shown)) return false;
  if (shown !== undefined && (await tookBack(ctx, operation, shown))) return true;
  await ctx.db.tx((tx) =>
    openIncident(tx, ctx, {
      kind: "missing_effect",
      dedupeKey: row.told === 0 ? `missing:${row.id}` : `missing:${row.id}:${row.told + 1}`,
      operationId: row.id,
      paymentId: null,
      detail: { providerRef: row.provider_ref, says: saidOf(operation, shown) },
    }),
  );
  return true;
}

/** What the provider says instead of showing it as it was asked for. */
function saidOf(operation: Operation, shown: ProviderEffect | undefined): string {
  if (shown === undefined) return "no such effect";
  if (isDead(shown)) return shown.status;
  const on = shown.target === "" || shown.target === operation.paymentIntent ? "" : ` on ${shown.target}`;
  return `${effectWords(shown)}${on}, ${shown.status}`;
}

/** It failed there after it was confirmed, and no webhook said so. */
const tookBack = (ctx: ReconcileCtx, operation: Operation, effect: ProviderEffect): Promise<boolean> =>
  takeBack(ctx, operation, effect, {
    actor: "system:reconcile",
    evidence: effectEvidence(operation.id, effect, "sweep"),
  });
