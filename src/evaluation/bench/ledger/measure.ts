/** Lanes that work side by side for a while, and what that cost. */
import { type ServerCost, withServerCost } from "./server-cost.js";

export interface Measured {
  readonly operations: number;
  readonly seconds: number;
  /** This process's processor time; null where another program did the work. */
  readonly cpuMs: number | null;
}

/** What an arm did, and what the database's server spent on it. */
export interface MeasuredArm extends Measured {
  readonly server: ServerCost;
}

/** Runs an arm on the server of `url`. */
export async function atCost(url: string, arm: () => Promise<Measured>): Promise<MeasuredArm> {
  const { value, cost } = await withServerCost(url, arm);
  return { ...value, server: cost };
}

/** Runs `operation` in `lanes` lanes until the time is over or the numbers up to `most` are used up. Every number is used once. */
export async function inLanes(
  options: { lanes: number; seconds: number; most: number },
  operation: (n: number, lane: number) => Promise<unknown>,
): Promise<Measured> {
  let next = 0;
  const cpu = process.cpuUsage();
  const began = process.hrtime.bigint();
  const until = began + BigInt(Math.round(options.seconds * 1e9));
  await Promise.all(
    Array.from({ length: options.lanes }, async (_, lane) => {
      while (process.hrtime.bigint() < until && next < options.most) {
        const n = next;
        next += 1;
        await operation(n, lane);
      }
    }),
  );
  const used = process.cpuUsage(cpu);
  return {
    operations: next,
    seconds: Number(process.hrtime.bigint() - began) / 1e9,
    cpuMs: (used.user + used.system) / 1_000,
  };
}

export const rate = (measured: Measured): number => measured.operations / measured.seconds;

/** The middle one; of an even number the lower of the two. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
}
