/** Waits for the database and its schema, so that the order in which things start does not matter. */
import { setTimeout as pause } from "node:timers/promises";
import { migrationsPending } from "../db/migrate.js";
import { isUnavailable } from "../db/sqlstate.js";
import { CountersignError } from "../domain/errors.js";
import type { Logger } from "../domain/ports/logger.js";

const LOOK_EVERY_MS = 1_000;
const WAIT_MS = 120_000;

/** @throws CountersignError `schema_missing` when it is not there in two minutes, with what to do */
export async function schemaReady(databaseUrl: string, log: Logger, stopping: AbortSignal): Promise<void> {
  let told = "";
  for (let waited = 0; waited <= WAIT_MS && !stopping.aborted; waited += LOOK_EVERY_MS) {
    const problem = await look(databaseUrl);
    if (problem === null) return;
    if (problem !== told) log.warn({}, problem);
    told = problem;
    await pause(LOOK_EVERY_MS, undefined, { signal: stopping }).catch(() => undefined);
  }
  throw new CountersignError("schema_missing", told === "" ? "stopped before the database was ready" : told);
}

async function look(databaseUrl: string): Promise<string | null> {
  try {
    const pending = await migrationsPending(databaseUrl);
    return pending.length === 0
      ? null
      : `The schema is not up to date (${pending.join(", ")} is missing): run \`countersign migrate\`.`;
  } catch (error) {
    if (isUnavailable(error)) return "The database does not answer yet; waiting for it.";
    throw error;
  }
}
