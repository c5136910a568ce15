/** A database that cannot be had, as one sentence for whoever typed the command. */
import { ConfigError, parseConfig } from "../config/index.js";
import { dbFailure } from "../db/sqlstate.js";

/** No such database; no such user, or a wrong password. */
const WRONG_DATABASE: ReadonlySet<string> = new Set(["3D000", "28000", "28P01"]);
const MAX_DEPTH = 6;

/** The database is named wrongly, does not let us in, or does not answer; null for anything else. */
export function refusedDatabase(error: unknown): string | null {
  const failure = dbFailure(error);
  if (failure === undefined) return null;
  const said = error instanceof Error ? error.message : String(error);
  if (failure.sqlstate !== undefined && WRONG_DATABASE.has(failure.sqlstate)) {
    return `DATABASE_URL does not lead to a database: ${said}.`;
  }
  if (failure.kind === "shutdown" || failure.kind === "too-many-connections") {
    return `The database of DATABASE_URL takes no connection now: ${said}.`;
  }
  if (failure.kind !== "connection") return null;
  const place = databasePlace();
  if (place === null || !isAbout(error, place)) return null;
  return `DATABASE_URL does not answer (${place.host}:${place.port}): is the database, or the demo, running?`;
}

interface Place {
  readonly host: string;
  readonly port: string;
}

function databasePlace(): Place | null {
  try {
    const { hostname, port } = new URL(parseConfig(["database"]).database.url.reveal());
    return { host: hostname, port: port === "" ? "5432" : port };
  } catch (error) {
    // Without the variable the command had a database of its own, and this is about that one.
    if (error instanceof ConfigError) return null;
    throw error;
  }
}

/**
 * Queue, Slack and provider refuse with the same codes of Node: only a socket that was meant for the database's place is the
 * database's. An error that is no socket's is the driver's own.
 */
function isAbout(error: unknown, place: Place, depth = 0): boolean {
  if (typeof error !== "object" || error === null || depth > MAX_DEPTH) return false;
  if ("port" in error) return String(error.port) === place.port;
  if ("hostname" in error) return error.hostname === place.host;
  const inner = [
    ...("cause" in error ? [error.cause] : []),
    ...("errors" in error && Array.isArray(error.errors) ? error.errors : []),
  ];
  return inner.length === 0 ? !("syscall" in error) : inner.some((one) => isAbout(one, place, depth + 1));
}
