/** Whether an effect is the one that was intended. Pure. */
import type { ProviderEffect } from "../domain/evidence.js";
import type { Operation } from "../domain/operation.js";
import { CANCELS_AT_PERIOD_END } from "./wire.js";

/**
 * Names of the material fields in which the effect differs from the operation; empty when it holds. The state is judged
 * apart from this. An effect that carries no operation id does not differ by that: whose it is, others decide.
 */
export function differences(operation: Operation, effect: ProviderEffect): string[] {
  const differs: string[] = [];
  if (effect.operationId !== null && effect.operationId !== operation.id) differs.push("operation_id");
  if (effect.kind === "subscription_cancellation") {
    if (effect.target !== operation.providerSubscription) differs.push("subscription");
    const wanted = operation.atPeriodEnd === true ? CANCELS_AT_PERIOD_END : "canceled";
    // One that was to end with its period and has ended since is what was asked for.
    if (effect.status !== wanted && effect.status !== "canceled") differs.push("status");
    return differs;
  }
  if (effect.amountMinor !== operation.amountMinor) differs.push("amount");
  if (effect.currency !== operation.currency) differs.push("currency");
  if (effect.target !== operation.paymentIntent) differs.push("payment_intent");
  return differs;
}
