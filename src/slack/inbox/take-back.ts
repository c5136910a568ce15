/**
 * Rows of arrivals whose person was told that nothing was recorded. Whether such a row is there is not known: the answer of the
 * database is late or lost. So it is deleted again and again, until the database has answered after the last moment at which it could
 * still come into being. Its lease keeps everybody else from it meanwhile.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Db } from "../../db/connect.js";
import type { Logger } from "../../domain/ports/logger.js";
import { withinMs } from "../../ops/index.js";
import { STORE_WITHIN, withdraw } from "./store.js";

export interface TakeBack {
  /** The row of this id is taken back, if `storing` has brought or will bring it into being. */
  add(id: string, storing: Promise<unknown>): void;
  /** One more try, then none. */
  stop(): Promise<void>;
}

interface Parts {
  readonly db: Db;
  readonly log: Logger;
  readonly monotonicMs: () => number;
}

const EVERY_MS = 250;
/** An answer that takes longer is asked for on another connection. */
const TRY_MS = 1_500;
/** Tries whose answers are waited for at once: each keeps a connection that new arrivals need. */
const MAX_ASKED = 2;
/** After a connection was lost the database may still be at its statement for so long. */
const AFTER_LOSS_MS = 2 * STORE_WITHIN.statementTimeoutMs;
/** A statement whose end nobody ever hears of is over by then. */
const SURELY_OVER_MS = 60_000;
/** So many are kept in mind while the database is away. */
const MAX_KEPT = 10_000;

/** Takes rows back in the background. */
export function createTakeBack(parts: Parts): TakeBack {
  const { db, log, monotonicMs } = parts;
  /** By id: when its row can no longer come into being, on the monotonic clock. */
  const over = new Map<string, number>();
  const stopping = new AbortController();
  let running: Promise<void> | null = null;
  let asked = 0;

  async function once(): Promise<void> {
    if (asked >= MAX_ASKED) return;
    const begun = monotonicMs();
    const ids = [...over.keys()];
    asked += 1;
    const found = await withinMs(
      TRY_MS,
      withdraw({ db }, ids).finally(() => {
        asked -= 1;
      }),
    );
    if (found === "late") return;
    for (const id of found.elsewhere)
      log.error({ inbox: id }, "what was answered with 'not recorded' is worked on all the same");
    for (const id of ids) {
      const done = found.gone.includes(id) || found.elsewhere.includes(id);
      if (done || (over.get(id) ?? 0) < begun) over.delete(id);
    }
  }

  async function run(): Promise<void> {
    while (over.size > 0 && !stopping.signal.aborted) {
      // The database is away: the next try may find it.
      await once().catch(() => undefined);
      if (over.size > 0)
        await delay(EVERY_MS, undefined, { ref: false, signal: stopping.signal }).catch(() => {});
    }
    running = null;
  }

  return {
    add: (id, storing) => {
      if (over.size >= MAX_KEPT) {
        log.error({ inbox: id }, "too many arrivals wait to be taken back");
        return;
      }
      over.set(id, monotonicMs() + SURELY_OVER_MS);
      const ends = (inMs: number): void => {
        if (over.has(id)) over.set(id, monotonicMs() + inMs);
      };
      storing.then(
        () => ends(0),
        () => ends(AFTER_LOSS_MS),
      );
      running ??= run();
    },
    stop: async () => {
      stopping.abort();
      await running;
      if (over.size > 0) await once().catch(() => undefined);
      if (over.size > 0) log.error({ rows: over.size }, "stopped before every late row was taken back");
    },
  };
}
