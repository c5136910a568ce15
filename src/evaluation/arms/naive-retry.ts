/** Sends again after every answer that is not a yes. No key, no look. */
import { baseline } from "./baseline.js";

export const naiveRetry = baseline({
  name: "naive-retry",
  key: () => undefined,
  before: async () => "send",
});
