/**
 * One transaction on one connection. BEGIN travels with its first statement, COMMIT with what nobody waits for, so that a change of
 * two statements takes two round trips and not four.
 *
 * 1. Nothing is ever run outside of the transaction that it was meant for: BEGIN and the first statement are one batch, which ends
 *    with its first error; a transaction that did not begin refuses what comes next.
 * 2. A connection that is lost while COMMIT is on its way leaves it unknown whether the transaction happened: `CommitUnknownError`,
 *    and it is the caller's business to look.
 * 3. A transaction without a statement never reaches the database.
 * 4. Statements that are asked for at once, or while others are under way, travel together in the order of asking and fail together: each
 *    still sees what those before it did. What has not gone when the transaction ends never goes.
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

interface Waiting {
  readonly asked: Asked;
  /** Null: nobody needs its rows. */
  readonly asker: { resolve(rows: readonly unknown[]): void; reject(error: unknown): void } | null;
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
  /** What was asked for and has not gone, in the order of asking. */
  readonly #queue: Waiting[] = [];
  /** Settles, never rejects, when nothing is under way. */
  #underWay: Promise<void> | undefined;
  #open = true;

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
      this.#queue.push({ asked: this.#parts.asked(name, text, params), asker: null });
    },
    sql: <R>(name: string | undefined, text: string, params?: readonly unknown[]): Promise<R[]> => {
      if (!this.#open) return Promise.reject(ended());
      // What throws here rejects, as it does in any executor.
      return new Promise<R[]>((resolve, reject) => {
        const asked = this.#parts.asked(name, text, params);
        this.#queue.push({ asked, asker: { resolve: (rows) => resolve(rows as R[]), reject } });
        this.#underWay ??= this.#drain();
      });
    },
  };

  /** Sends what somebody waits for, until nobody does. Begins when whoever asks has asked for everything that they want at once. */
  async #drain(): Promise<void> {
    await Promise.resolve();
    while (this.#open) {
      const waiting = this.#takeAwaited();
      if (waiting.length === 0) break;
      try {
        const rows = await this.#answers(waiting);
        for (const [at, { asker }] of waiting.entries()) asker?.resolve(rows[at] ?? []);
      } catch (error) {
        for (const { asker } of waiting) asker?.reject(error);
      }
    }
    this.#underWay = undefined;
    if (!this.#open) for (const { asker } of this.#queue) asker?.reject(ended());
  }

  /** Up to the last that somebody waits for; a text of several statements goes by itself. */
  #takeAwaited(): Waiting[] {
    const alone = this.#queue.findIndex(({ asked }) => asked.alone);
    const last = this.#queue.findLastIndex(({ asker }) => asker !== null);
    const count = alone === 0 ? 1 : alone > 0 && alone <= last ? alone : last + 1;
    return this.#queue.splice(0, count);
  }

  async #answers(waiting: readonly Waiting[]): Promise<(readonly unknown[])[]> {
    const [first] = waiting;
    if (first?.asked.alone === true) {
      if (this.#begun === undefined || this.#beginning) await this.#send([]);
      return [(await this.#parts.client.query(first.asked.text)).rows as unknown[]];
    }
    const answers = await this.#send(waiting.map(({ asked }) => asked));
    return answers.slice(-waiting.length).map(({ rows }) => rows);
  }

  /** Sends what is left and COMMIT; then calls back. Nothing is sent where nothing was before. */
  async commit(): Promise<void> {
    this.#open = false;
    const left = this.#queue.filter(({ asker }) => asker === null).map(({ asked }) => asked);
    if (this.#begun !== undefined || left.length > 0) {
      let answers: BatchAnswer[];
      try {
        answers = await this.#send([...left, COMMIT]);
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

  /** These, after BEGIN if need be. */
  async #send(statements: readonly BatchStatement[]): Promise<BatchAnswer[]> {
    const { client, types, isolation } = this.#parts;
    if (this.#begun === undefined) {
      const begun = runBatch(client, types, [BEGIN[isolation], ...statements]);
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
    if (this.#inDoubt) await runBatch(client, types, []);
    this.#inDoubt = false;
    if (client.getTransactionStatus() === "I") {
      throw new Error("the transaction did not begin");
    }
    return runBatch(client, types, statements);
  }
}

const ended = (): Error => new Error("this transaction has ended; its tx object must not be kept");
