/** Asks the provider's list before each try, and sends when it shows nothing. No key. */
import { baseline } from "./baseline.js";
import { findRefund } from "./wire.js";

export const verifyThenRetry = baseline({
  name: "verify-then-retry",
  key: () => undefined,
  before: async (stage) => {
    const found = await findRefund(stage);
    if (found === null) return "unsure";
    return found ? "done" : "send";
  },
});
