/** What is logged of jobs that fail: every failure of its own, and of an outage as much as fits on one screen. */
import type { Logger } from "../domain/ports/logger.js";
import type { WakeKind } from "../domain/ports/wake.js";
import type { WakeJob } from "./catalogue.js";
import { isWorthALine } from "./schedules.js";

export interface FailureLog {
  ended(kind: WakeKind): void;
  failed(job: WakeJob, error: unknown): void;
}

/** Says that a job failed; of many of a kind that fail alike in a row (a database that is away), some, and how many they were. */
export function failureLog(log: Logger): FailureLog {
  const rows = new Map<WakeKind, { readonly like: string; failures: number }>();
  return {
    ended: (kind) => {
      const before = rows.get(kind)?.failures ?? 0;
      rows.delete(kind);
      if (before > 1) log.info({ kind, failures: before }, "jobs of this kind work again");
    },
    failed: ({ kind, id }, error) => {
      const like = alike(error);
      const row = rows.get(kind);
      const failures = row?.like === like ? row.failures + 1 : 1;
      rows.set(kind, { like, failures });
      if (isWorthALine(failures))
        log.error({ err: error, id, kind, failures }, "a job failed; its row stays due");
    },
  };
}

/** By code, else by name and words: two rows that fail for reasons of their own are two lines. */
function alike(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error && typeof error.code === "string" ? error.code : null;
  return code ?? `${error.name}: ${error.message}`;
}
