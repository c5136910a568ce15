/**
 * What a failed statement means for the caller, decided by SQLSTATE and never by message text.
 *
 * The code hides in different places: on the error itself (pg), in `cause` (our own wrappers), in
 * `meta.code` or `meta.driverAdapterError.cause.originalCode` (Prisma with a driver adapter). All are looked at, outermost
 * first, to a bounded depth.
 *
 * Source of the codes: PostgreSQL documentation, appendix A "PostgreSQL Error Codes".
 */
import type { DbFailure } from "../domain/ports/database.js";

const MAX_DEPTH = 6;
const SQLSTATE = /^[0-9A-Z]{5}$/;

/** Socket errors of Node that mean "no answer can come on this connection". */
const SOCKET_CODES: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);

/**
 * pg reports a connection that ended under a query, or could not be had in time, as a plain Error without a code; these are
 * its own fixed sentences (pg 8, lib/client.js and pg-pool), the one place where there is nothing else to go by.
 */
const CODELESS_CONNECTION: readonly string[] = [
  "Connection terminated",
  "Connection terminated unexpectedly",
  "Connection terminated due to connection timeout",
  "timeout exceeded when trying to connect",
  "Client has encountered a connection error and is not queryable",
];

/** Classifies a thrown value; undefined when it did not come from the database at all. */
export function dbFailure(error: unknown): DbFailure | undefined {
  const found = findCode(error, 0);
  if (found === undefined) return undefined;
  if (found.sqlstate === undefined) return { kind: "connection", sqlstate: undefined };
  return classify(found.sqlstate, found.constraint);
}

/** A transaction that failed so can simply be run again from its start. */
export function isRetryable(error: unknown): boolean {
  const failure = dbFailure(error);
  return failure?.kind === "serialization" || failure?.kind === "deadlock";
}

/** Whether `constraint` (or, when left out, any unique constraint) was violated. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  const failure = dbFailure(error);
  return failure?.kind === "unique" && (constraint === undefined || failure.constraint === constraint);
}

/** Whether the check `constraint` (or, when left out, any) was violated. */
export function isCheckViolation(error: unknown, constraint?: string): boolean {
  const failure = dbFailure(error);
  return failure?.kind === "check" && (constraint === undefined || failure.constraint === constraint);
}

/** A value that was stored is not of the form that the statement reads (class 22): no JSON, no number, no time. */
export function isUnreadableValue(error: unknown): boolean {
  return dbFailure(error)?.sqlstate?.startsWith("22") === true;
}

/** The database is away, full or going away: trying later may help, trying another statement will not. */
export function isUnavailable(error: unknown): boolean {
  switch (dbFailure(error)?.kind) {
    case "connection":
    case "shutdown":
    case "too-many-connections":
    case "disk-full":
      return true;
    default:
      return false;
  }
}

function classify(sqlstate: string, constraint: string | undefined): DbFailure {
  switch (sqlstate) {
    case "40001":
      return { kind: "serialization", sqlstate };
    case "40P01":
      return { kind: "deadlock", sqlstate };
    case "55P03":
      return { kind: "lock-timeout", sqlstate };
    case "57014":
      return { kind: "statement-timeout", sqlstate };
    case "23505":
      return { kind: "unique", sqlstate, constraint };
    case "23514":
      return { kind: "check", sqlstate, constraint };
    case "23503":
      return { kind: "foreign-key", sqlstate, constraint };
    case "P0001":
      return { kind: "raised", sqlstate };
    case "57P01": // admin shutdown
    case "57P02": // crash shutdown
    case "57P03": // cannot connect now: starting up or shutting down
      return { kind: "shutdown", sqlstate };
    case "57P05": // idle session timeout
    case "25P03": // idle in transaction timeout: the server has closed the connection
      return { kind: "connection", sqlstate };
    case "53300":
      return { kind: "too-many-connections", sqlstate };
    case "53100":
      return { kind: "disk-full", sqlstate };
    default:
      return sqlstate.startsWith("08") ? { kind: "connection", sqlstate } : { kind: "other", sqlstate };
  }
}

interface Found {
  readonly sqlstate: string | undefined;
  readonly constraint: string | undefined;
}

function findCode(error: unknown, depth: number): Found | undefined {
  if (depth > MAX_DEPTH || typeof error !== "object" || error === null) return undefined;
  const code = textOf(error, "code") ?? textOf(error, "originalCode");
  // Node's own codes ("EPIPE") may look like a SQLSTATE: they are asked about first.
  if (code !== undefined && SOCKET_CODES.has(code)) return { sqlstate: undefined, constraint: undefined };
  // Prisma's own codes ("P2010") look like one too; what they wrap is found further in.
  if (code !== undefined && SQLSTATE.test(code) && !/^P[1-6]\d{3}$/.test(code)) {
    return { sqlstate: code, constraint: constraintOf(error) };
  }
  const message = textOf(error, "message");
  if (error instanceof Error && message !== undefined && CODELESS_CONNECTION.includes(message)) {
    return { sqlstate: undefined, constraint: undefined };
  }
  for (const key of ["cause", "meta", "driverAdapterError", "errors"] as const) {
    const inner = fieldOf(error, key);
    const candidates = Array.isArray(inner) ? inner : [inner];
    for (const candidate of candidates) {
      const found = findCode(candidate, depth + 1);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

function constraintOf(error: object): string | undefined {
  const direct = textOf(error, "constraint");
  if (direct !== undefined) return direct;
  // Prisma's adapter: { constraint: { index: 'name' } } or { constraint: { fields: [...] } }
  const wrapped = fieldOf(error, "constraint");
  return typeof wrapped === "object" && wrapped !== null ? textOf(wrapped, "index") : undefined;
}

function fieldOf(source: object, key: string): unknown {
  return (source as Record<string, unknown>)[key];
}

function textOf(source: object, key: string): string | undefined {
  const value = fieldOf(source, key);
  return typeof value === "string" ? value : undefined;
}
