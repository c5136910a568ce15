/**
 * The database as the rooms above it use it: statements and transactions. What opens, pools and closes connections stays in
 * src/db; a room that only hands a transaction on needs no more than this.
 */

export interface SqlRunner {
  /**
   * Runs one statement and returns its rows.
   *
   * @param name Unique for its text across the program: the statement is prepared once a connection under this name (pg refuses
   *   a second text under the same name). `undefined` sends it unnamed, for statements whose text varies.
   * @param params `$1…`; bigint and Date are sent as they are, objects as JSON.
   */
  sql<R>(name: string | undefined, text: string, params?: readonly unknown[]): Promise<R[]>;
}

/**
 * Inside `Db.tx`: the same call, on the transaction's connection. Must not be used after the function has returned. Statements that are
 * asked for at once (`Promise.all`) travel together: one round trip, in the order of asking, each after the one before has run.
 */
export interface Tx extends SqlRunner {
  readonly kind: "tx";
  /**
   * A statement whose rows nobody needs: sent with the next one or with COMMIT, in the order of the calls. Its error is that of the
   * statement, or of the commit, that it travels with.
   */
  later(name: string, text: string, params?: readonly unknown[]): void;
  /** Runs `fn` once this transaction has committed, never otherwise. For wake-ups: it must not throw, and may be lost in a crash. */
  afterCommit(fn: () => void): void;
}

export type Isolation = "read committed" | "repeatable read" | "serializable";

export interface TxOptions {
  /** Further tries after the first; 0 turns retrying off. Default 6. */
  readonly retries?: number;
  /** Default `read committed`. */
  readonly isolation?: Isolation;
}

export interface Db extends SqlRunner {
  readonly kind: "db";
  /** `fn` may run several times and must have no effect outside the transaction. */
  tx<T>(fn: (tx: Tx) => Promise<T>, options?: TxOptions): Promise<T>;
  /** What a thrown value says about the database; undefined when it did not come from there. */
  failureOf(error: unknown): DbFailure | undefined;
}

/** One meaning per class; `other` is every SQLSTATE that no caller treats specially. */
export type DbFailure =
  | { readonly kind: "serialization"; readonly sqlstate: string }
  | { readonly kind: "deadlock"; readonly sqlstate: string }
  | { readonly kind: "lock-timeout"; readonly sqlstate: string }
  | { readonly kind: "statement-timeout"; readonly sqlstate: string }
  | { readonly kind: "unique"; readonly sqlstate: string; readonly constraint: string | undefined }
  | { readonly kind: "check"; readonly sqlstate: string; readonly constraint: string | undefined }
  | { readonly kind: "foreign-key"; readonly sqlstate: string; readonly constraint: string | undefined }
  | { readonly kind: "raised"; readonly sqlstate: string }
  | { readonly kind: "connection"; readonly sqlstate: string | undefined }
  | { readonly kind: "shutdown"; readonly sqlstate: string }
  | { readonly kind: "too-many-connections"; readonly sqlstate: string }
  | { readonly kind: "disk-full"; readonly sqlstate: string }
  | { readonly kind: "other"; readonly sqlstate: string };
