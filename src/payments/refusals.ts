/** Refusals of the provider in words that a person can act on. Codes are those of the official package's union. */
import { cutText } from "../domain/text/cut.js";
import type { WireError } from "./wire.js";

const WORDS: Readonly<Record<string, string>> = {
  charge_already_refunded: "The payment has already been refunded in full.",
  charge_disputed: "The customer has disputed this payment with their bank; it cannot be refunded.",
  refund_disputed_payment: "The customer has disputed this payment with their bank; it cannot be refunded.",
  charge_not_refundable: "The provider says that this payment cannot be refunded.",
  balance_insufficient: "The shop's balance at the provider does not cover this refund.",
  insufficient_funds: "The shop's balance at the provider does not cover this refund.",
  amount_too_large: "The amount is more than the provider accepts.",
  amount_too_small: "The amount is less than the provider accepts.",
  resource_missing: "The provider does not know this payment or subscription.",
  payment_intent_unexpected_state: "The payment was never completed, so there is nothing to refund.",
  invalid_canceled_subscription_fields: "The subscription is already cancelled.",
  api_key_expired: "The key for the provider has expired; someone has to replace it.",
  unauthorized: "The provider does not accept the key; someone has to replace it.",
  forbidden: "The key for the provider does not allow this.",
};

/** Long enough for any message of the provider, short enough for a card. */
const MAX_DETAIL = 300;

/** @param code the code under which the refusal is known to us */
export function refusalInWords(code: string, error: WireError): string {
  const known = WORDS[code];
  if (known !== undefined) return known;
  const said = error.message ?? error.code ?? "no reason given";
  return cutText(`The provider refused: ${said}`, MAX_DETAIL);
}
