/**
 * How much of what the provider shows on a payment no operation's money covers. Pure.
 *
 * 1. What an operation has set aside or given back covers effects up to its amount: the one that confirmed it first, then those that
 *    carry its id, the oldest first. What is more, and what is nobody's, was made elsewhere.
 * 2. Money of another currency covers nothing and is covered by nothing: it is never added, only named. The one exception is the
 *    effect by which an operation is confirmed.
 * 3. What came to nothing is none.
 */
import { isDead, type ProviderEffect } from "./evidence.js";
import { holdingOf } from "./holding.js";
import type { OperationId } from "./ids.js";
import type { Operation } from "./operation.js";

/** An operation on the payment, as far as it can cover an effect. */
export type Holder = Pick<Operation, "id" | "status" | "amountMinor" | "providerRef">;

export interface Uncovered {
  readonly effect: ProviderEffect;
  /** What no operation covers of it, in minor units of its own currency; above 0. */
  readonly minor: bigint;
}

/** `currency`: the payment's; null: it is not known here, and nothing is of another one. */
export function uncovered(
  effects: readonly ProviderEffect[],
  holders: readonly Holder[],
  currency: string | null,
): Uncovered[] {
  const left = new Map<OperationId, bigint>(
    holders.map(({ id, status, amountMinor }) => [id, holdingOf(status) === "none" ? 0n : amountMinor]),
  );
  const byRef = new Map(
    holders.flatMap((holder) => (holder.providerRef === null ? [] : [[holder.providerRef, holder] as const])),
  );
  const rest: Uncovered[] = [];
  const cover = (effect: ProviderEffect, id: OperationId | null): void => {
    const available = (id === null ? undefined : left.get(id)) ?? 0n;
    const covered = isOther(effect, currency) ? 0n : min(available, effect.amountMinor);
    if (id !== null && covered > 0n) left.set(id, available - covered);
    if (effect.amountMinor > covered) rest.push({ effect, minor: effect.amountMinor - covered });
  };
  const alive = effects
    .filter((effect) => effect.kind === "refund" && !isDead(effect))
    .sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime());
  const others: ProviderEffect[] = [];
  for (const effect of alive) {
    const owner = byRef.get(effect.ref);
    if (owner === undefined || (left.get(owner.id) ?? 0n) === 0n) others.push(effect);
    else if (owner.status === "CONFIRMED" && isOther(effect, currency)) left.set(owner.id, 0n);
    else cover(effect, owner.id);
  }
  for (const effect of others) cover(effect, effect.operationId as OperationId | null);
  return rest;
}

/** Money that cannot be counted in the payment's. */
export const isOther = (effect: Pick<ProviderEffect, "currency">, currency: string | null): boolean =>
  currency !== null && effect.currency.toUpperCase() !== currency.toUpperCase();

const min = (a: bigint, b: bigint): bigint => (a < b ? a : b);
