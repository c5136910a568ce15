/** The finding that the provider made something else than an operation asked for. */
import type { Tx } from "../db/connect.js";
import { isOnAnother } from "../domain/as-asked.js";
import { effectWords } from "../domain/effect-words.js";
import type { ProviderEffect } from "../domain/evidence.js";
import type { Operation } from "../domain/operation.js";
import type { LedgerCtx } from "./context.js";
import { openIncident } from "./incidents.js";

/** Once for each effect, whoever finds it. One on another payment names both; whose the other is, the shop knows when it is read. */
export async function reportDifference(
  tx: Tx,
  ctx: LedgerCtx,
  operation: Operation,
  effect: ProviderEffect,
): Promise<void> {
  await openIncident(tx, ctx, {
    kind: "made_differently",
    dedupeKey: `made_differently:${operation.id}:${effect.ref}`,
    operationId: operation.id,
    paymentId: null,
    detail: {
      asked: effectWords({ ...operation, kind: effect.kind, ref: operation.id }),
      made: effectWords(effect),
      ...(isOnAnother(operation, effect)
        ? { payment: effect.target, askedOn: operation.paymentIntent }
        : { target: effect.target }),
    },
  });
}
