/**
 * One pool of connections and the three ways to use it.
 *
 *  - `sql` for everything hot: one named prepared statement, one round trip.
 *  - `tx` for the few changes that need several statements.
 *  - `prisma` for administrative reads and plain forms, on the same pool.
 *
 * Invariants
 *  1. int8 arrives as `bigint`, timestamptz as `Date` (milliseconds: PostgreSQL's microseconds are cut off; hash or
 *     compare times in their text form, see `utcMicros`). Only on this pool; nothing global is changed.
 *  2. A lost connection never ends the process: every client has an error listener for its whole life.
 *  3. A transaction, or a statement of its own outside one, is run again only when the database said that it did not happen (serialization
 *     failure, deadlock). A connection lost during COMMIT
 *     is `CommitUnknownError`, and it is the caller's business to look.
 *  4. Text that PostgreSQL cannot hold (U+0000, half an emoji) is replaced in every parameter, see `wireValue`.
 *  5. A name stands for one text, on whichever connection and however seldom the other is asked for: a second text is refused.
 *  6. No statement runs longer than `STATEMENT_TIMEOUT_MS`; no transaction idles longer than `IDLE_IN_TX_TIMEOUT_MS`.
 */
import { createHash, randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { PrismaPg } from "@prisma/adapter-pg";
import pg from "pg";
import type { Db, Tx, TxOptions } from "../domain/ports/database.js";
import { runBatch } from "./batch.js";
import { PrismaClient } from "./generated/client.js";
import { dbFailure, isRetryable } from "./sqlstate.js";
import { type Asked, Transaction, type TransactionParts } from "./transaction.js";
import { wireValue } from "./wire-value.js";

/** Safety nets, not tuning: a statement or an open transaction that is this old is a defect, and holds locks. */
export const STATEMENT_TIMEOUT_MS = 30_000;
export const IDLE_IN_TX_TIMEOUT_MS = 30_000;
/** How long to wait for a connection (pool exhausted, server away) before the caller hears of it. */
export const CONNECT_TIMEOUT_MS = 10_000;
/**
 * How long a connection that nobody uses is kept. A new one has to be made, and parse and plan every statement again: the first click
 * after a quiet minute would pay for all of that.
 */
const IDLE_KEPT_MS = 600_000;

/**
 * Statements are planned once a connection and not again for each set of parameters: the large ones of the ledger take longer to
 * plan than to run. What this may cost is measured at a million rows (`countersign bench ledger`, which counts the dearer of both).
 *
 * A plan that is kept must be right for the table as it will be: while a table is small, reading all of it looks cheapest, and such
 * a plan would go on reading all of it as it grows. So an index is taken wherever there is one, and nothing is compiled to
 * machine code for what only looks dear because it has none.
 */
export const PLAN_ONCE = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c jit=off";

const DEFAULT_TX_RETRIES = 6;
const TX_BACKOFF_BASE_MS = 10;
const TX_BACKOFF_MAX_MS = 640;

export type { Db, SqlRunner, Tx } from "../domain/ports/database.js";
export { CommitUnknownError } from "./transaction.js";

/** A `Db` with what only its opener may touch. */
export interface OpenDb extends Db {
  readonly pool: pg.Pool;
  readonly prisma: PrismaClient;
  /** Waits for connections in use, then closes all. Safe to call twice. */
  close(): Promise<void>;
}

export interface OpenDbOptions {
  readonly url: string;
  /** Upper bound of connections, shared by `sql`, `tx` and `prisma`. Default 10. */
  readonly poolSize?: number;
  /** How long one statement may take. Default `STATEMENT_TIMEOUT_MS`. */
  readonly statementTimeoutMs?: number;
  /** How long to wait for a connection. Default `CONNECT_TIMEOUT_MS`. */
  readonly connectTimeoutMs?: number;
  /** Shown in pg_stat_activity. */
  readonly applicationName: string;
  /** Told of connections that break while nobody uses them; they are replaced by themselves. */
  readonly onIdleError?: (error: Error) => void;
}

/** Opens the pool. Connects lazily: a database that is away shows at the first statement. */
export function openDb(options: OpenDbOptions): OpenDb {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.poolSize ?? 10,
    application_name: options.applicationName,
    connectionTimeoutMillis: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_KEPT_MS,
    statement_timeout: options.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TX_TIMEOUT_MS,
    keepAlive: true,
    options: PLAN_ONCE,
    types: TYPES,
  });
  const onIdleError = options.onIdleError ?? (() => {});
  pool.on("error", onIdleError);
  // While a client is checked out the pool does not listen to it: without a listener of its own a connection that breaks
  // between two statements would end the process.
  pool.on("connect", (client) => client.on("error", () => {}));

  const prisma = new PrismaClient({
    adapter: new PrismaPg(pool, { statementNameGenerator: (query) => statementName(query.sql) }),
  });
  let closing: Promise<void> | undefined;
  const asked = statements();
  return {
    kind: "db",
    failureOf: dbFailure,
    pool,
    prisma,
    sql: async (name, text, params) => {
      const statement = asked(name, text, params);
      return retried(DEFAULT_TX_RETRIES, () => runAlone(pool, statement));
    },
    tx: (fn, txOptions) => transact(pool, asked, fn, txOptions ?? {}),
    close: () => {
      closing ??= prisma.$disconnect().then(() => pool.end());
      return closing;
    },
  };
}

/** One statement of its own, on any connection. */
async function runAlone<R>(pool: pg.Pool, statement: Asked): Promise<R[]> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    if (statement.alone) return (await client.query(statement.text)).rows as R[];
    const [answer] = await runBatch(client, TYPES, [statement]);
    return (answer?.rows ?? []) as R[];
  } catch (error) {
    const failure = dbFailure(error);
    if (failure?.kind === "connection" || failure?.kind === "shutdown") broken = new Error("connection lost");
    throw traced(error);
  } finally {
    client.release(broken);
  }
}

type Statements = TransactionParts["asked"];

/** What is asked, ready for the wire. Throws for a name that has stood for another text: a connection would know only one of them. */
function statements(): Statements {
  const known = new Map<string, string>();
  return (name, text, params) => {
    if (name !== undefined) {
      const before = known.get(name);
      if (before === undefined) known.set(name, text);
      else if (before !== text) throw new Error(`"${name}" stands for two statements`);
    }
    return {
      name,
      text,
      values: (params ?? []).map(wireValue),
      alone: name === undefined && params === undefined,
    };
  };
}

/** An error made where the socket was read says nothing of who had asked. */
function traced(error: unknown): unknown {
  if (error instanceof Error) Error.captureStackTrace(error, traced);
  return error;
}

function transact<T>(
  pool: pg.Pool,
  asked: Statements,
  fn: (tx: Tx) => Promise<T>,
  options: TxOptions,
): Promise<T> {
  const isolation = options.isolation ?? "read committed";
  return retried(options.retries ?? DEFAULT_TX_RETRIES, () => attempt(pool, { asked, isolation }, fn));
}

/** Runs again what the database itself undid (serialization failure, deadlock), a bounded number of times, with full jitter. */
async function retried<T>(retries: number, fn: () => Promise<T>): Promise<T> {
  for (let tried = 0; ; tried += 1) {
    try {
      return await fn();
    } catch (error) {
      if (tried >= retries || !isRetryable(error)) throw error;
      const cap = Math.min(TX_BACKOFF_MAX_MS, TX_BACKOFF_BASE_MS * 2 ** tried);
      await delay(randomInt(1, cap + 1));
    }
  }
}

async function attempt<T>(
  pool: pg.Pool,
  parts: Pick<TransactionParts, "asked" | "isolation">,
  fn: (tx: Tx) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  const transaction = new Transaction({ client, types: TYPES, ...parts });
  let broken: Error | undefined;
  try {
    const value = await fn(transaction.tx);
    await transaction.commit();
    return value;
  } catch (error) {
    broken = await transaction.rollback(error);
    throw traced(error);
  } finally {
    client.release(broken);
  }
}

/** PostgreSQL cuts names at 63 bytes: a digest is short and the same text always has the same name. */
function statementName(text: string): string {
  return `p_${createHash("sha256").update(text).digest("base64url").slice(0, 22)}`;
}

const INT8_OID = 20;
const INT8_ARRAY_OID = 1016;

/** pg's own parsers, except that int8 and int8[] become bigint; only for the pools opened here. */
const TYPES: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") => {
    if (format !== "binary" && oid === INT8_OID) return (text: string) => BigInt(text);
    if (format !== "binary" && oid === INT8_ARRAY_OID) return parseInt8Array;
    return pg.types.getTypeParser(oid, format as "text");
  }) as pg.CustomTypesConfig["getTypeParser"],
};

function parseInt8Array(text: string): (bigint | null)[] {
  const body = text.slice(1, -1);
  if (body === "") return [];
  return body.split(",").map((item) => (item === "NULL" ? null : BigInt(item)));
}

/**
 * SQL for a timestamptz as text with microseconds in UTC, `2026-11-02T09:00:00.123456Z`: the form that is hashed and compared,
 * the same under every session time zone.
 */
export function utcMicros(expression: string): string {
  return `to_char((${expression}) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
}
