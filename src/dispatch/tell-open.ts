/**
 * What a list shows of operations whose outcome is open, or that are with a person: evidence and a reason to look, as a webhook about it
 * would be. Whoever read the list, and for whatever reason.
 */
import { isDead, type ProviderEffect } from "../domain/evidence.js";
import { isOperationId, type OperationId } from "../domain/ids.js";
import { quarantineCode } from "../domain/quarantine-words.js";
import type { QuarantineReason } from "../domain/recovery.js";
import { getOperation, openAmong, recordEvidence } from "../ledger/index.js";
import type { DispatchCtx } from "./context.js";
import { effectEvidence } from "./effect-evidence.js";
import { lookAtParked } from "./parked.js";

/**
 * Once for each state of an effect that carries the operation's id, dead or alive, on whichever payment (`read` asks for what its own list
 * does not hold); what was known is a reason to look only where nobody could read it when the operation was parked.
 */
export async function tellOpen(ctx: DispatchCtx, listed: readonly ProviderEffect[]): Promise<void> {
  const named = listed.flatMap(({ operationId: id }) => (id !== null && isOperationId(id) ? [id] : []));
  if (named.length === 0) return;
  const open = await openAmong(ctx.db, [...new Set(named)]);
  for (const effect of listed) {
    const id = open.find((one) => one === effect.operationId);
    if (id === undefined) continue;
    const { first } = await ctx.db.tx((tx) => recordEvidence(tx, ctx, effectEvidence(id, effect, "sweep")));
    if (first || (await knownWhenParked(ctx, id, effect))) await ctx.wake("operation", id);
  }
}

/** Reasons for asking a person, because the provider did not show what was known already. */
const NOT_SHOWN: ReadonlySet<string | null> = new Set<QuarantineReason>([
  "unknown_too_long",
  "evidence_contradicts",
  "proof_incomplete",
  "key_conflict",
]);

async function knownWhenParked(ctx: DispatchCtx, id: OperationId, effect: ProviderEffect): Promise<boolean> {
  if (isDead(effect)) return false;
  const operation = await getOperation(ctx.db, id);
  return NOT_SHOWN.has(quarantineCode(operation?.quarantineReason ?? "")) && lookAtParked(ctx, id);
}
