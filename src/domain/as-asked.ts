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

/** Whether both are money of one currency, however it is written. */
export const sameCurrency = (
  one: { readonly currency: string },
  other: { readonly currency: string },
): boolean => one.currency.toUpperCase() === other.currency.toUpperCase();
