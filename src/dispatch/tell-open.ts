/**
 * What a list shows of operations whose outcome is open, or that are with a person: evidence and a reason to look, as a webhook about it
 * would be. Whoever read the list, and for whatever reason.
 */
import type { ProviderEffect } from "../domain/evidence.js";
import { isOperationId } from "../domain/ids.js";
import { openAmong, recordEvidence } from "../ledger/index.js";
import type { DispatchCtx } from "./context.js";
import { effectEvidence } from "./effect-evidence.js";

/**
 * Once for each state of an effect that carries the operation's id, dead or alive; what was known moves nothing. Only on the operation's own
 * payment: what carries its id elsewhere does not show in the list by which it is judged.
 */
export async function tellOpen(ctx: DispatchCtx, listed: readonly ProviderEffect[]): Promise<void> {
  const named = listed.flatMap(({ operationId: id }) => (id !== null && isOperationId(id) ? [id] : []));
  if (named.length === 0) return;
  const open = await openAmong(ctx.db, [...new Set(named)]);
  for (const effect of listed) {
    const operation = open.find(
      ({ id, payment_intent: on }) => id === effect.operationId && on === effect.target,
    );
    if (operation === undefined) continue;
    const { id } = operation;
    const { first } = await ctx.db.tx((tx) => recordEvidence(tx, ctx, effectEvidence(id, effect, "sweep")));
    if (first) await ctx.wake("operation", id);
  }
}
