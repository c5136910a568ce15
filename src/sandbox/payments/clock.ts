/**
 * The sandbox's own clock: the machine's time plus an offset that tests move.
 *
 * It is deliberately not the product's clock. A provider has its own idea of time, and a
 * test that moves one of the two must see what happens then.
 */

/** Milliseconds since the epoch, as the sandbox sees them. */
export interface SandboxClock {
  /** Now, offset included. */
  nowMs(): number;
  /** Now without the offset: what a second machine with a right clock would say. */
  wallMs(): number;
  /** Replaces the offset; negative values set the clock back. */
  setOffsetMs(offsetMs: number): void;
  offsetMs(): number;
}

/** @param base where time comes from; the machine's clock when left out. Milliseconds. */
export function createSandboxClock(base: () => number = Date.now): SandboxClock {
  let offset = 0;
  return {
    nowMs: () => base() + offset,
    wallMs: () => base(),
    setOffsetMs: (offsetMs) => {
      offset = offsetMs;
    },
    offsetMs: () => offset,
  };
}

/** Unix seconds, the unit of every `created` on the wire. */
export function toSeconds(ms: number): number {
  return Math.floor(ms / 1000);
}
