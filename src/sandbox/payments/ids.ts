/**
 * Deterministic ids: the n-th refund of a seed is always the same id, so that a recorded
 * run can be compared with the next one. Counters go on from what the database holds, so a
 * restart repeats nothing.
 */
import { createHash } from "node:crypto";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const ID_LENGTH = 24;

export type IdKind = "re" | "txn" | "ch" | "pi" | "evt" | "req" | "cus" | "si";

/** @returns `re_…` and so on: prefix, then 24 letters and digits derived from seed, kind and number. */
export function deterministicId(seed: string, kind: IdKind, ordinal: number | string): string {
  const digest = createHash("sha256").update(`${seed}|${kind}|${ordinal}`).digest();
  let text = "";
  for (let i = 0; i < ID_LENGTH; i += 1) {
    text += ALPHABET[(digest[i] ?? 0) % ALPHABET.length];
  }
  return `${kind}_${text}`;
}

export interface Counter {
  next(): number;
  /** Begins anew, when the rows that used the numbers are gone. */
  reset(): void;
}

/** Counts upwards from `last`, which is already in use. */
export function createCounter(last: number): Counter {
  let current = last;
  return {
    next: () => {
      current += 1;
      return current;
    },
    reset: () => {
      current = 0;
    },
  };
}
