/** The handed facts of Stripe's wire, which lie beside some checkouts and not beside others. */
import { dirname } from "node:path";
import { handedFile } from "../support/handed.js";

/** The directory of the handed wire facts, or null where this checkout has none beside it. */
export function stripeFactsDir(): string | null {
  const schema = handedFile("stripe", "refund.schema.json");
  return schema === null ? null : dirname(schema);
}

export const NO_FACTS = "left out: the wire facts of ../shared/data/stripe are not beside this checkout";
