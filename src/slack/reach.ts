/** Whether Slack can be reached at all: in an outage every call fails alike, and is not a line of the log each time. */
import type { Logger } from "../domain/ports/logger.js";

export interface Reach {
  /** Nothing came back: no connection, or one that was lost. */
  failed(method: string, detail: string): void;
  /** Something came back, if only a refusal. */
  answered(): void;
}

/** Logs the first failure after an answer, the 10th, the 100th and so on, and the answer that ends them. */
export function createReach(log: Logger): Reach {
  let failures = 0;
  let told = 1;
  return {
    failed: (method, detail) => {
      failures += 1;
      if (failures < told) return;
      told *= 10;
      log.warn({ method, detail, failures }, "Slack cannot be reached; what waits for it is tried again");
    },
    answered: () => {
      if (failures > 0) log.info({ failures }, "Slack answers again");
      failures = 0;
      told = 1;
    },
  };
}
