/** Waits for the database and its schema, so that the order in which things start does not matter. */
import { setTimeout as pause } from "node:timers/promises";
import { migrationsPending } from "../db/migrate.js";
import { isUnavailable } from "../db/sqlstate.js";
import { CountersignError } from "../domain/errors.js";
import type { Logger } from "../domain/ports/logger.js";
import { waitingRoutes } from "./compose/routes.js";
import { type HealthServer, startHealthServer } from "./health-server.js";

const LOOK_EVERY_MS = 1_000;
/** A schema that nobody brings up to date is somebody's mistake; a database that is away comes back. */
const SCHEMA_WITHIN_MS = 120_000;
const TELL_AGAIN_MS = 60_000;

/** What to wait for, and where to say meanwhile that the process is alive and not ready. */
export interface SchemaWait {
  readonly databaseUrl: string;
  readonly port: number;
  readonly log: Logger;
  readonly stopping: AbortSignal;
}

/**
 * @throws CountersignError `schema_missing` when the database answers and its schema is not there in two minutes, with what to do
 * @throws EADDRINUSE when it has to wait and the port is taken
 */
export async function schemaReady({ databaseUrl, port, log, stopping }: SchemaWait): Promise<void> {
  let problem: Problem | null = await look(databaseUrl);
  if (problem === null) return;
  let server: HealthServer | null = null;
  try {
    server = await startHealthServer(
      port,
      waitingRoutes(() => problem?.detail ?? "The database answers."),
      log,
    );
    let told = "";
    let schemaMs = 0;
    for (let waited = 0; problem !== null && !stopping.aborted; waited += LOOK_EVERY_MS) {
      if (problem.detail !== told || waited % TELL_AGAIN_MS === 0) log.warn({}, problem.detail);
      told = problem.detail;
      schemaMs = problem.away ? 0 : schemaMs + LOOK_EVERY_MS;
      if (schemaMs > SCHEMA_WITHIN_MS) throw new CountersignError("schema_missing", told);
      await pause(LOOK_EVERY_MS, undefined, { signal: stopping }).catch(() => undefined);
      problem = await look(databaseUrl);
    }
    if (problem !== null)
      throw new CountersignError("schema_missing", "stopped before the database was ready");
  } finally {
    await server?.close();
  }
}

interface Problem {
  /** The database itself does not answer. */
  readonly away: boolean;
  readonly detail: string;
}

async function look(databaseUrl: string): Promise<Problem | null> {
  try {
    const pending = await migrationsPending(databaseUrl);
    if (pending.length === 0) return null;
    const detail = `The schema is not up to date (${pending.join(", ")} is missing): run \`countersign migrate\`.`;
    return { away: false, detail };
  } catch (error) {
    if (isUnavailable(error))
      return { away: true, detail: "The database does not answer yet; waiting for it." };
    throw error;
  }
}
