/** What the provider shows, in words. */
import type { ProviderEffect } from "./evidence.js";
import { formatMoney, isCurrency } from "./money.js";
import { asSentence } from "./text/sentence.js";

type Shown = Pick<ProviderEffect, "ref" | "kind" | "amountMinor" | "currency">;
type Placed = Pick<ProviderEffect, "target">;

/** Reference and, of a refund, its amount: `re_1 of £27.99 GBP`. A currency that we do not know is told as it came. */
export function effectWords(effect: Shown): string {
  if (effect.kind !== "refund") return effect.ref;
  const { amountMinor, currency } = effect;
  return isCurrency(currency)
    ? `${effect.ref} of ${formatMoney({ amountMinor, currency })}`
    : `${effect.ref} of ${amountMinor} minor units of ${currency}`;
}

/** An effect that is not what was asked for. */
export const differsWords = (effect: Shown & Placed, differs: readonly string[]): string =>
  `${effectWords(effect)}${elsewhereWords(effect, differs)} differs in ${fieldsWords(differs)} from what was asked for.`;

/** " on pi_other" of what is on another payment than was asked for: which one it is says more than that it is another. */
export const elsewhereWords = ({ target }: Placed, differs: readonly string[]): string =>
  target !== "" && differs.some((field) => fieldsWords([field]) === FIELDS["payment_intent"])
    ? ` on ${target}`
    : "";

/** Fields in which an effect is not what was asked for, as people call them. */
export const fieldsWords = (differs: readonly string[]): string =>
  differs.map((field) => FIELDS[field] ?? field.replaceAll("_", " ")).join(", ");

/** Fields of the wire by what they mean. */
const FIELDS: Readonly<Record<string, string>> = { payment_intent: "payment", operation_id: "operation" };

/** Names of ours for why the provider could not be asked, which words for the same follow. */
const OWN_CAUSE =
  /^(?:http_\d{3}|timeout|aborted|unreachable|client_error|unreadable_answer|pagination|no_target|bad_reference): (?=\S)/u;

/** Why the provider could not be asked, told once: `http_500: The provider answered with HTTP 500.` has it twice. */
export const unaskedSentence = (reason: string): string =>
  asSentence(
    `The provider could not be asked: ${bareCode(reason.replace(OWN_CAUSE, "")).replace(/^The provider (?=\S)/u, "it ")}`,
  );

/** A name of ours that no words follow, as words. */
const bareCode = (reason: string): string =>
  /^[a-z]+(?:_[a-z0-9]+)+$/u.test(reason)
    ? reason.replace(/^http_(\d{3})$/u, "it answered with HTTP $1").replaceAll("_", " ")
    : reason;
