/**
 * A worker's life in this process: it can die at any await, as a process under SIGKILL would. What it began in the database and had
 * not committed is undone; nothing of it writes afterwards; its memory is gone.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Db } from "../domain/ports/database.js";

export class Dead extends Error {
  constructor() {
    super("this worker is dead");
    this.name = "Dead";
  }
}

export interface Life {
  /** The worker's own connection to the database: useless once it is dead. */
  readonly db: Db;
  /** Ends this life. The promise never resolves: who awaits it has died there. */
  die(): Promise<never>;
  /** Work that runs under this life's name, whoever waits for it. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Runs work of this life. @throws Dead when it dies meanwhile */
  live<T>(work: () => Promise<T>): Promise<T>;
  readonly dead: boolean;
}

const running = new AsyncLocalStorage<Life>();

/**
 * Whose work this is. What an earlier life had under way may still come back from the network after its death: it must not be
 * taken for the one that lives now.
 */
export const lifeHere = (): Life | undefined => running.getStore();

export function newLife(db: Db): Life {
  let dead = false;
  let announce: (dead: Dead) => void = () => {};
  const death = new Promise<never>((_resolve, reject) => {
    announce = reject;
  });
  // Whoever lives hears of it through `live`; a death that nobody waits for is no error.
  death.catch(() => {});
  const alive = <T>(work: () => Promise<T>): Promise<T> => (dead ? Promise.reject(new Dead()) : work());
  const life: Life = {
    db: {
      kind: "db",
      sql: (name, text, params) => alive(() => db.sql(name, text, params)),
      tx: (fn, options) => alive(() => db.tx(fn, options)),
      failureOf: (error) => db.failureOf(error),
    },
    die: () => {
      dead = true;
      announce(new Dead());
      return new Promise<never>(() => {});
    },
    run: (work) => running.run(life, work),
    live: (work) => Promise.race([life.run(work), death]),
    get dead() {
      return dead;
    },
  };
  return life;
}
