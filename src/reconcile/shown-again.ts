/** What was told of as missing, and that the provider shows again: the finding is over, and a later absence is one of its own. */
import { fallsShort } from "../domain/as-asked.js";
import type { ProviderEffect } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import { judgeEffect } from "../domain/judge-listing.js";
import type { Operation } from "../domain/operation.js";
import { closeIncident, confirmedOnWord, getOperation, recordEvidence } from "../ledger/index.js";
import type { ReconcileCtx } from "./context.js";

/** SQL: what incident `i` told of as missing has not been shown since. */
export const NOT_SHOWN_SINCE =
  "NOT EXISTS (SELECT 1 FROM provider_evidence e WHERE e.dedupe_key = 'shown_again:' || i.id)";

/**
 * $1 references that are listed and not ended. Incidents that told of one of them as missing, in no order: none waits behind one for which the
 * provider does not answer.
 */
const MISSED_BEFORE = `
SELECT i.id, i.status, o.id AS operation, o.provider_ref AS ref FROM incidents i JOIN operations o ON o.id = i.operation_id
WHERE i.kind = 'missing_effect' AND o.provider_ref = ANY($1::text[]) AND NOT ${confirmedOnWord("o")} AND ${NOT_SHOWN_SINCE}
ORDER BY random()`;

interface Missed {
  id: string;
  status: "open" | "closed";
  operation: OperationId;
  ref: string;
}

/**
 * Keeps that an effect is there again whose absence a person has dealt with. A finding that is open is closed by the record where the
 * provider, asked for the effect itself, shows it as it was asked for; however many they are, they have one call's time.
 */
export async function noteShownAgain(ctx: ReconcileCtx, listed: readonly ProviderEffect[]): Promise<void> {
  const onList = new Map(listed.map((effect) => [effect.ref, effect]));
  const rows = await ctx.db.sql<Missed>("reconcile.missed_before", MISSED_BEFORE, [[...onList.keys()]]);
  const signal = AbortSignal.timeout(ctx.timing.providerTimeoutMs);
  for (const row of rows) {
    if (row.status === "closed") {
      const operation = await getOperation(ctx.db, row.operation);
      const effect = onList.get(row.ref);
      if (operation === null || effect === undefined || fallsShort(operation, effect)) continue;
      await ctx.db.tx((tx) =>
        recordEvidence(tx, ctx, {
          operationId: row.operation,
          source: "sweep",
          providerRef: row.ref,
          dedupeKey: `shown_again:${row.id}`,
          payload: { ref: row.ref, incident: row.id },
        }),
      );
    } else if (!signal.aborted) await closeWhereShown(ctx, row, signal);
  }
}

/** A list may be older than what it shows. */
async function closeWhereShown(
  ctx: ReconcileCtx,
  { id, operation, ref }: Missed,
  signal: AbortSignal,
): Promise<void> {
  const confirmed = await getOperation(ctx.db, operation);
  if (confirmed === null || confirmed.status !== "CONFIRMED") return;
  const reading = await ctx.provider.read(ref, { timeoutMs: ctx.timing.providerTimeoutMs, signal });
  const effect = reading.read === "failed" ? undefined : reading.effects.find((one) => one.ref === ref);
  if (effect !== undefined && isShownAsAsked(confirmed, effect)) await closeShown(ctx, id, confirmed, ref);
}

/** Made, not pending or failed, and of what was asked for. */
export function isShownAsAsked(operation: Operation, effect: ProviderEffect): boolean {
  // A refund that was read by itself need not name its payment.
  const target = effect.target === "" ? (operation.paymentIntent ?? "") : effect.target;
  const said = judgeEffect(operation, { ...effect, target }, { known: new Map() });
  return said.says === "committed" && said.postcondition === "holds";
}

/** Closes the finding by the record, unless the operation has moved since the provider was asked. */
export async function closeShown(
  ctx: ReconcileCtx,
  incident: string,
  { id, version }: Operation,
  shows: string,
): Promise<void> {
  await ctx.db.tx(async (tx) => {
    if ((await getOperation(tx, id))?.version !== version) return;
    // Of no operation and no reference: what a person named stays their word.
    await recordEvidence(tx, ctx, {
      operationId: null,
      source: "sweep",
      providerRef: null,
      dedupeKey: `shown_again:${incident}`,
      payload: { ref: shows, incident },
    });
    await closeIncident(tx, ctx, {
      id: incident,
      by: "system:reconcile",
      reason: `Settled: the provider shows ${shows}, as it was asked for.`,
    });
  });
}
