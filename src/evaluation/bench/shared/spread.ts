/** What many measurements of one thing come to. Milliseconds. */
export interface Spread {
  readonly count: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** Nearest-rank percentiles. @throws when nothing was measured */
export function spreadOf(measured: readonly number[]): Spread {
  const sorted = [...measured].sort((a, b) => a - b);
  const at = (share: number): number => {
    const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
    if (value === undefined) throw new Error("nothing was measured");
    return value;
  };
  return { count: sorted.length, p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) };
}
