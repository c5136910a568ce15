/**
 * Things that are done again and again. Timers of the process, not jobs: an emptied queue must not stop the sweeper that
 * exists for emptied queues. Any number of processes may run the same schedule; each pass takes only what nobody else has.
 */
import type { Logger } from "../domain/ports/logger.js";

export interface Schedule {
  readonly name: string;
  readonly everyMs: number;
  /** One pass. A pass never overlaps with itself. */
  readonly pass: () => Promise<void>;
}

export interface Schedules {
  /** Lets passes that run end, starts none. */
  stop(): Promise<void>;
}

/** Failures in a row that are said: the 1st, 2nd, 4th, 8th … and every 100th, so that an outage of an hour is read on one screen. */
export const isWorthALine = (inARow: number): boolean => (inARow & (inARow - 1)) === 0 || inARow % 100 === 0;

/** Starts all. `random` in [0, 1) spreads the passes of several processes. */
export function startSchedules(
  schedules: readonly Schedule[],
  ctx: { readonly log: Logger; readonly random: () => number },
): Schedules {
  let stopping = false;
  const timers = new Set<NodeJS.Timeout>();
  const running = new Set<Promise<void>>();

  const plan = (schedule: Schedule, delayMs: number): void => {
    if (stopping) return;
    const timer = setTimeout(() => {
      timers.delete(timer);
      const pass = runOnce(schedule).finally(() => {
        running.delete(pass);
        plan(schedule, schedule.everyMs * (0.9 + 0.1 * ctx.random()));
      });
      running.add(pass);
    }, delayMs);
    timers.add(timer);
  };
  const failures = new Map<string, number>();
  const runOnce = async (schedule: Schedule): Promise<void> => {
    const { name } = schedule;
    const before = failures.get(name) ?? 0;
    try {
      await schedule.pass();
      if (before > 0) ctx.log.info({ schedule: name, failures: before }, "a scheduled pass works again");
      failures.delete(name);
    } catch (error) {
      failures.set(name, before + 1);
      if (isWorthALine(before + 1)) {
        ctx.log.warn(
          { err: error, schedule: name, failures: before + 1 },
          "a scheduled pass failed; the next one tries again",
        );
      }
    }
  };
  for (const schedule of schedules) plan(schedule, schedule.everyMs * ctx.random());

  return {
    stop: async () => {
      stopping = true;
      for (const timer of timers) clearTimeout(timer);
      timers.clear();
      await Promise.allSettled(running);
    },
  };
}
