/**
 * Exponential backoff with jitter and a cap, in whole milliseconds: between half and all of `base · 2^tries`, at most `maxMs`.
 * `random` is uniform in [0, 1); jitter keeps rows that failed together from coming back together.
 */
export function backoffMs(step: { baseMs: number; maxMs: number; tries: number; random: number }): number {
  const full = Math.min(step.maxMs, step.baseMs * 2 ** Math.min(step.tries, 30));
  return Math.max(1, Math.round(full * (0.5 + step.random / 2)));
}
