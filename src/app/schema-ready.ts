/** Waits for the database and its schema, so that the order in which things start does not matter. */
import { setTimeout as pause } from "node:timers/promises";
import type { Db } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { Logger } from "../domain/ports/logger.js";

const LOOK_EVERY_MS = 1_000;
const WAIT_MS = 120_000;

/** @throws CountersignError `schema_missing` when it is not there in two minutes, with what to do */
export async function schemaReady(db: Db, log: Logger, stopping: AbortSignal): Promise<void> {
  let told = "";
  for (let waited = 0; waited <= WAIT_MS && !stopping.aborted; waited += LOOK_EVERY_MS) {
    const problem = await look(db);
    if (problem === null) return;
    if (problem !== told) log.warn({}, problem);
    told = problem;
    await pause(LOOK_EVERY_MS, undefined, { signal: stopping }).catch(() => undefined);
  }
  throw new CountersignError("schema_missing", told === "" ? "stopped before the database was ready" : told);
}

async function look(db: Db): Promise<string | null> {
  try {
    const [row] = await db.sql<{ offset_ms: bigint }>("app.schema", "SELECT offset_ms FROM clock_offset");
    return row === undefined ? "The schema is incomplete: run `countersign migrate`." : null;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    return code === "42P01"
      ? "The schema is not there yet: run `countersign migrate`."
      : "The database does not answer yet; waiting for it.";
  }
}
