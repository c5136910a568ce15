/**
 * Ids, hashes and timestamps from a seed: the same calls in the same order give the same values, so that a test or a
 * screenshot can be repeated. The state is one number and two counters, and is stored with the workspace so that a
 * restarted sandbox never gives an id twice.
 */
export interface IdState {
  /** Generator state, unsigned 32 bit. */
  random: number;
  /** Last Slack timestamp given: whole seconds and microseconds. */
  tsSeconds: number;
  tsMicros: number;
}

const UPPER = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const HEX = "0123456789abcdef";

/** FNV-1a over the seed's UTF-16 units: any text is a seed. */
function hashSeed(seed: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < seed.length; i += 1) {
    hash ^= seed.charCodeAt(i);
    hash = Math.imul(hash, 0x01000193);
  }
  return hash >>> 0;
}

export class SeededIds {
  #state: IdState;

  constructor(seed: string, state?: IdState) {
    this.#state = state ?? { random: hashSeed(seed), tsSeconds: 0, tsMicros: 0 };
  }

  /** For storing. */
  get state(): IdState {
    return { ...this.#state };
  }

  /** mulberry32: small, good enough for ids, and its whole state is one number. */
  #next(): number {
    this.#state.random = (this.#state.random + 0x6d2b79f5) >>> 0;
    let t = this.#state.random;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  /** An integer in [0, below). */
  pick(below: number): number {
    return Math.floor(this.#next() * below);
  }

  #letters(alphabet: string, length: number): string {
    let out = "";
    for (let i = 0; i < length; i += 1) out += alphabet.charAt(this.pick(alphabet.length));
    return out;
  }

  /** `prefix` and ten capitals or digits, as Slack's ids look. */
  id(prefix: string): string {
    return prefix + this.#letters(UPPER, 10);
  }

  hex(length: number): string {
    return this.#letters(HEX, length);
  }

  /** Letters as in generated block ids. */
  short(): string {
    return this.#letters(UPPER.slice(10) + UPPER.slice(10).toLowerCase() + UPPER.slice(0, 10), 5);
  }

  uuid(): string {
    const h = this.hex(31);
    return `${h.slice(0, 8)}-${h.slice(8, 12)}-4${h.slice(12, 15)}-a${h.slice(15, 18)}-${h.slice(18, 30)}`;
  }

  /** Hash of a view: `seconds.letters`. */
  viewHash(nowMs: number): string {
    return `${Math.floor(nowMs / 1000)}.${this.hex(8)}`;
  }

  /** The next Slack timestamp: strictly increasing over the whole workspace, in the second of `nowMs` where possible. */
  ts(nowMs: number): string {
    const seconds = Math.floor(nowMs / 1000);
    if (seconds > this.#state.tsSeconds) {
      this.#state.tsSeconds = seconds;
      this.#state.tsMicros = 0;
    }
    this.#state.tsMicros += 100;
    if (this.#state.tsMicros > 999_999) {
      this.#state.tsSeconds += 1;
      this.#state.tsMicros = 100;
    }
    return `${this.#state.tsSeconds}.${String(this.#state.tsMicros).padStart(6, "0")}`;
  }
}
