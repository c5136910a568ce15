/** A refund at the provider beside the one that was asked for. Pure. */
import type { ProviderEffect } from "./evidence.js";
import type { Operation } from "./operation.js";

type Asked = Pick<Operation, "paymentIntent" | "amountMinor" | "currency">;

/** Material fields in which the effect is not what was asked for; empty: it is that. */
export const differsFromAsked = (asked: Asked, effect: ProviderEffect): string[] => [
  ...(effect.kind === "refund" ? [] : ["kind"]),
  ...(effect.target === asked.paymentIntent ? [] : ["payment"]),
  ...(effect.amountMinor === asked.amountMinor ? [] : ["amount"]),
  ...(sameCurrency(effect, asked) ? [] : ["currency"]),
];

/** A refund that was read by itself need not name its payment: what carries the operation's id is then on its own. */
export const placed = (asked: Pick<Operation, "paymentIntent">, effect: ProviderEffect): ProviderEffect =>
  effect.target === "" ? { ...effect, target: asked.paymentIntent ?? "" } : effect;

/** A refund on another payment than was asked for. What was read by itself need not name its payment, and says nothing then. */
export const isOnAnother = (asked: Pick<Operation, "paymentIntent">, effect: ProviderEffect): boolean =>
  effect.kind === "refund" && effect.target !== "" && effect.target !== asked.paymentIntent;

/** Where the provider has what a person named still under way, its end is awaited. */
const UNDER_WAY: ReadonlySet<string> = new Set(["pending", "requires_action"]);

/**
 * Whether the effect by which an operation is confirmed is less than that: of another state, payment or currency, or of a smaller amount.
 * What is more is counted where it is more. One that was read by itself need not name its payment.
 */
export function fallsShort(
  confirmed: Asked & Pick<Operation, "resolvedByPerson">,
  effect: ProviderEffect,
): boolean {
  const made = effect.status === "succeeded" || (confirmed.resolvedByPerson && UNDER_WAY.has(effect.status));
  const enough = effect.amountMinor >= confirmed.amountMinor;
  const amountMinor = enough ? confirmed.amountMinor : effect.amountMinor;
  const target = effect.target === "" ? (confirmed.paymentIntent ?? "") : effect.target;
  return !made || differsFromAsked(confirmed, { ...effect, target, amountMinor }).length > 0;
}

/** Whether both are money of one currency, however it is written. */
export const sameCurrency = (
  one: { readonly currency: string },
  other: { readonly currency: string },
): boolean => one.currency.toUpperCase() === other.currency.toUpperCase();
