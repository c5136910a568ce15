/** A second effect that carries the id of an operation which is confirmed by another one: money moved twice. */
import type { ProviderEffect } from "../domain/evidence.js";
import type { Operation } from "../domain/operation.js";
import type { Tx } from "../domain/ports/database.js";
import { openIncident } from "../ledger/index.js";
import type { DispatchCtx } from "./context.js";

/** Opens the incident, once for each second effect, whoever finds it. */
export function reportDuplicate(
  tx: Tx,
  ctx: DispatchCtx,
  operation: Operation,
  effect: ProviderEffect,
): Promise<{ id: string; first: boolean }> {
  return openIncident(tx, ctx, {
    kind: "duplicate_effect",
    dedupeKey: `duplicate:${operation.id}:${effect.ref}`,
    operationId: operation.id,
    paymentId: null,
    detail: {
      known: operation.providerRef ?? "",
      second: effect.ref,
      amount: Number(effect.amountMinor),
      currency: effect.currency,
    },
  });
}
