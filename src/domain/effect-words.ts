/** What the provider shows, in words. */
import type { ProviderEffect } from "./evidence.js";
import { formatMoney, isCurrency } from "./money.js";

type Shown = Pick<ProviderEffect, "ref" | "kind" | "amountMinor" | "currency">;

/** Reference and, of a refund, its amount: `re_1 of £27.99 GBP`. A currency that we do not know is told as it came. */
export function effectWords(effect: Shown): string {
  if (effect.kind !== "refund") return effect.ref;
  const { amountMinor, currency } = effect;
  return isCurrency(currency)
    ? `${effect.ref} of ${formatMoney({ amountMinor, currency })}`
    : `${effect.ref} of ${amountMinor} minor units of ${currency}`;
}

/** An effect that is not what was asked for. */
export const differsWords = (effect: Shown, differs: readonly string[]): string =>
  `${effectWords(effect)} differs in ${differs.map((field) => FIELDS[field] ?? field).join(", ")} from what was asked for.`;

/** Fields of the wire by what they mean. */
const FIELDS: Readonly<Record<string, string>> = { payment_intent: "payment", operation_id: "operation" };
