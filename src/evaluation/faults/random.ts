/** Repeatable randomness: the same seed plays the same scenarios. */

export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** A whole number of `low … high`, both included. */
  between(low: number, high: number): number;
  shuffled<T>(items: readonly T[]): T[];
}

/** A small generator (mulberry32) with 2^32 seeds: enough to choose scenarios, not to keep secrets. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  return {
    next,
    between,
    shuffled(items) {
      const left = [...items];
      const out: (typeof left)[number][] = [];
      while (left.length > 0) out.push(...left.splice(between(0, left.length - 1), 1));
      return out;
    },
  };
}
