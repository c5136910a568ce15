/** Waits between tries of a write, milliseconds: doubling, capped, with jitter so that rows do not march together. */
const BASE_MS = 1_000;
const MAX_MS = 300_000;

export function backoffMs(failures: number, random: number): number {
  return Math.round(Math.min(MAX_MS, BASE_MS * 2 ** Math.min(failures, 12)) * (0.5 + random / 2));
}

/** A wait that is shorter than this is waited for in place; a longer one gives the row back until then. */
export const WAIT_IN_PLACE_MS = 1_500;
/** After this many tries without any answer a post is given up. */
export const FAILURES_MAX = 60;
