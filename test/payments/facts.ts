/** The handed facts of Stripe's wire, which lie beside some checkouts and not beside others. */
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The directory of the handed wire facts, or null where this checkout has none beside it. */
export function stripeFactsDir(): string | null {
  const fromEnv = process.env["COUNTERSIGN_DATA"];
  if (fromEnv !== undefined && fromEnv !== "") {
    const dir = join(resolve(fromEnv), "stripe");
    return existsSync(join(dir, "refund.schema.json")) ? dir : null;
  }
  let at = dirname(fileURLToPath(import.meta.url));
  for (;;) {
    const dir = join(at, "shared", "data", "stripe");
    if (existsSync(join(dir, "refund.schema.json"))) return dir;
    const parent = dirname(at);
    if (parent === at) return null;
    at = parent;
  }
}

export const NO_FACTS = "left out: the wire facts of ../shared/data/stripe are not beside this checkout";
