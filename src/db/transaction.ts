/**
 * One transaction on one connection. BEGIN travels with its first statement, COMMIT with what nobody waits for, so that a change of
 * two statements takes two round trips and not four.
 *
 * 1. Nothing is ever run outside of the transaction that it was meant for: BEGIN and the first statement are one batch, which ends
 *    with its first error; a transaction that did not begin refuses what comes next.
 * 2. A connection that is lost while COMMIT is on its way leaves it unknown whether the transaction happened: `CommitUnknownError`,
 *    and it is the caller's business to look.
 * 3. A transaction without a statement never reaches the database.
 * 4. Statements that are asked for at once go one after another: a connection runs one at a time, and what has not gone when the
 *    transaction ends never goes.
 */
import type pg from "pg";
import type { Isolation, Tx } from "../domain/ports/database.js";
import { type BatchAnswer, type BatchStatement, runBatch } from "./batch.js";
import { dbFailure } from "./sqlstate.js";

/** The connection was lost while COMMIT was on its way: the transaction may have happened or not. */
export class CommitUnknownError extends Error {
  readonly code = "commit_unknown";
  readonly retry = "after-probe";
  constructor(cause: unknown) {
    super("the connection was lost during COMMIT; whether the transaction happened is unknown", { cause });
    this.name = "CommitUnknownError";
  }
}

const BEGIN: Readonly<Record<Isolation, BatchStatement>> = {
  "read committed": begin("read committed"),
  "repeatable read": begin("repeatable read"),
  serializable: begin("serializable"),
};
const COMMIT: BatchStatement = { name: "db.commit", text: "COMMIT", values: [] };

function begin(isolation: Isolation): BatchStatement {
  const text = `BEGIN ISOLATION LEVEL ${isolation}`;
  return { name: `db.begin_${isolation.replace(" ", "_")}`, text, values: [] };
}

/** As `SqlRunner.sql` has it, ready for the wire; `alone`: may be several statements in one text, so it travels by itself. */
export interface Asked extends BatchStatement {
  readonly alone: boolean;
}

export interface TransactionParts {
  readonly client: pg.PoolClient;
  readonly types: pg.CustomTypesConfig;
  readonly isolation: Isolation;
  readonly asked: (name: string | undefined, text: string, params: readonly unknown[] | undefined) => Asked;
}

export class Transaction {
  readonly #parts: TransactionParts;
  readonly #committed: (() => void)[] = [];
  /** undefined: nothing was sent yet. */
  #begun: Promise<unknown> | undefined;
  #beginning = false;
  /** The first batch has failed, and whether BEGIN was part of that is not known yet. */
  #inDoubt = false;
  /** Settles, never rejects, with the statement that is under way. */
  #underWay: Promise<void> | undefined;
  #open = true;
  #later: BatchStatement[] = [];

  constructor(parts: TransactionParts) {
    this.#parts = parts;
  }

  readonly tx: Tx = {
    kind: "tx",
    afterCommit: (callback) => {
      this.#committed.push(callback);
    },
    later: (name, text, params) => {
      if (!this.#open) throw ended();
      this.#later.push(this.#parts.asked(name, text, params));
    },
    sql: async <R>(name: string | undefined, text: string, params?: readonly unknown[]): Promise<R[]> => {
      if (!this.#open) throw ended();
      const asked = this.#parts.asked(name, text, params);
      return this.#inTurn(async () => {
        if (asked.alone) {
          await this.#flush();
          return (await this.#parts.client.query(asked.text)).rows as R[];
        }
        const answers = await this.#send([asked]);
        return (answers.at(-1)?.rows ?? []) as R[];
      });
    },
  };

  /** Waits for the statement that is under way. Who waits for the same one goes in the order of asking. */
  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    while (this.#underWay !== undefined) await this.#underWay;
    if (!this.#open) throw ended();
    const mine = work();
    const over = (): void => {
      this.#underWay = undefined;
    };
    this.#underWay = mine.then(over, over);
    return mine;
  }

  /** Sends what is left and COMMIT; then calls back. Nothing is sent where nothing was before. */
  async commit(): Promise<void> {
    this.#open = false;
    if (this.#begun !== undefined || this.#later.length > 0) {
      let answers: BatchAnswer[];
      try {
        answers = await this.#send([COMMIT]);
      } catch (error) {
        const failure = dbFailure(error);
        if (failure?.kind === "connection" || failure?.kind === "shutdown")
          throw new CommitUnknownError(error);
        throw error;
      }
      // A transaction in which a statement failed and whose error was swallowed answers COMMIT with ROLLBACK.
      const tag = answers.at(-1)?.tag;
      if (tag !== "COMMIT") throw new Error(`the transaction was rolled back by the database (${tag})`);
    }
    for (const callback of this.#committed) callback();
  }

  /** Returns an error when the connection can no longer be trusted and must leave the pool. */
  async rollback(because: unknown): Promise<Error | undefined> {
    this.#open = false;
    const failure = dbFailure(because);
    if (
      because instanceof CommitUnknownError ||
      failure?.kind === "connection" ||
      failure?.kind === "shutdown"
    ) {
      return new Error("connection lost");
    }
    if (this.#begun === undefined) return undefined;
    await this.#underWay;
    try {
      await this.#parts.client.query("ROLLBACK");
      return undefined;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  /** What waits to be sent, BEGIN if need be, and these. */
  async #send(statements: readonly BatchStatement[]): Promise<BatchAnswer[]> {
    if (this.#begun === undefined) {
      const batch = [BEGIN[this.#parts.isolation], ...this.#takeLater(), ...statements];
      const begun = runBatch(this.#parts.client, this.#parts.types, batch);
      this.#beginning = true;
      this.#begun = begun.then(
        () => {
          this.#beginning = false;
        },
        () => {
          this.#beginning = false;
          this.#inDoubt = true;
        },
      );
      return begun;
    }
    if (this.#beginning) await this.#begun;
    // An error comes before the server's word on what it leaves the connection in; an empty batch waits for that.
    if (this.#inDoubt) await runBatch(this.#parts.client, this.#parts.types, []);
    this.#inDoubt = false;
    if (this.#parts.client.getTransactionStatus() === "I") {
      throw new Error("the transaction did not begin");
    }
    return runBatch(this.#parts.client, this.#parts.types, [...this.#takeLater(), ...statements]);
  }

  async #flush(): Promise<void> {
    if (this.#begun === undefined || this.#beginning || this.#later.length > 0) await this.#send([]);
  }

  #takeLater(): BatchStatement[] {
    const later = this.#later;
    this.#later = [];
    return later;
  }
}

const ended = (): Error => new Error("this transaction has ended; its tx object must not be kept");
