/**
 * Rows of arrivals whose person was told that nothing was recorded. Whether such a row is there is not known: the answer of the
 * database is late or lost. So it is deleted again and again, until the database has answered after the last moment at which it could
 * still come into being. Its lease keeps everybody else from it meanwhile; where that has run out and another process has worked on it, the
 * person is told so.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Db } from "../../db/connect.js";
import type { Ids } from "../../domain/ports/clock.js";
import type { Logger } from "../../domain/ports/logger.js";
import { withinMs } from "../../ops/index.js";
import { storeAnswer } from "../outbox/answer.js";
import { STORE_WITHIN, withdraw } from "./store.js";

export interface TakeBack {
  /** The row of this id is taken back, if `storing` has brought or will bring it into being. `person`: who was told that it is not there. */
  add(id: string, storing: Promise<unknown>, person: string | null): void;
  /** One more try, then none. */
  stop(): Promise<void>;
}

interface Parts {
  readonly db: Db;
  readonly ids: Ids;
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

export const RECORDED_AFTER_ALL =
  "Countersign told you that nothing was recorded. That was wrong: what you did then was recorded, and is carried out. Look at what came of it before you do it again.";

/** Takes rows back in the background. */
export function createTakeBack(parts: Parts): TakeBack {
  const { db, ids, log, monotonicMs } = parts;
  /** By id: when its row can no longer come into being, on the monotonic clock. */
  const over = new Map<string, number>();
  const persons = new Map<string, string>();
  const stopping = new AbortController();
  let running: Promise<void> | null = null;
  let asked = 0;

  async function once(): Promise<void> {
    if (asked >= MAX_ASKED) return;
    const begun = monotonicMs();
    const kept = [...over.keys()];
    asked += 1;
    const found = await withinMs(
      TRY_MS,
      withdraw({ db }, kept).finally(() => {
        asked -= 1;
      }),
    );
    if (found === "late") return;
    for (const id of found.elsewhere) await correct(id);
    for (const id of kept) {
      const done = found.gone.includes(id) || found.elsewhere.includes(id);
      if (done || (over.get(id) ?? 0) < begun) forget(id);
    }
  }

  const forget = (id: string): void => {
    over.delete(id);
    persons.delete(id);
  };

  async function correct(id: string): Promise<void> {
    log.error({ inbox: id }, "what was answered with 'not recorded' is worked on all the same");
    const userId = persons.get(id);
    if (userId === undefined) return;
    const nowhere = { channelId: null, threadTs: null, responseUrl: null };
    await storeAnswer({ db, ids }, `recorded:${id}`, { userId, ...nowhere, text: RECORDED_AFTER_ALL });
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
    add: (id, storing, person) => {
      if (over.size >= MAX_KEPT) {
        log.error({ inbox: id }, "too many arrivals wait to be taken back");
        return;
      }
      over.set(id, monotonicMs() + SURELY_OVER_MS);
      if (person !== null) persons.set(id, person);
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
