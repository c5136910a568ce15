/** What to do when something that was said cannot be written down: it counts as unknown, so that it cannot stay open for ever. */
import type { Db } from "../domain/ports/database.js";

/** Whether a write failed for what was written; otherwise the database was away or busy, and whoever comes next writes it. */
export function cannotBeRecorded(db: Pick<Db, "failureOf">, error: unknown): boolean {
  const failure = db.failureOf(error);
  switch (failure?.kind) {
    case undefined:
    case "check":
    case "raised":
    case "unique":
    case "foreign-key":
    case "other":
      return true;
    case "serialization":
    case "deadlock":
    case "lock-timeout":
    case "statement-timeout":
    case "connection":
    case "shutdown":
    case "too-many-connections":
    case "disk-full":
      return false;
    default:
      return failure satisfies never;
  }
}
