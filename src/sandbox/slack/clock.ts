/**
 * The sandbox's own clock: the only place of this room that reads real time or starts timers.
 *
 * 1. `now` is what people and messages see; it may be frozen at a start time and moved by `advance`.
 * 2. `elapsed` always runs (frozen or not) and jumps with `advance`: lifetimes of triggers and response urls, rate limits.
 * 3. `wallSeconds` is real time: signatures of deliveries must be acceptable to an app that reads its own clock.
 * 4. `after` waits in sandbox time: it fires early when the clock is advanced past its due time, and `scale` makes it
 *    pass faster. `timeout` waits in real time: how long the app may take is the app's affair.
 */
export interface ClockOptions {
  /** Sandbox time at the start, milliseconds since 1970. Default: real time. */
  startMs?: number;
  /** `now` moves only by `advance`. */
  frozen?: boolean;
  /** How many times faster `after` passes. Default 1. */
  scale?: number;
}

interface Waiting {
  dueMs: number;
  fire: () => void;
  handle: NodeJS.Timeout;
}

export class SandboxClock {
  readonly #startReal = Date.now();
  readonly #options: ClockOptions;
  readonly #waiting = new Set<Waiting>();
  readonly #timeouts = new Set<NodeJS.Timeout>();
  readonly #waits = new Set<() => void>();
  #advancedMs = 0;
  #scale: number;
  /** Added to the timestamp of signatures, milliseconds. */
  signatureSkewMs = 0;

  constructor(options: ClockOptions = {}) {
    this.#options = options;
    this.#scale = options.scale ?? 1;
  }

  /** Milliseconds since 1970, sandbox time. */
  now(): number {
    const base = this.#options.startMs ?? this.#startReal;
    const passed = this.#options.frozen ? 0 : Date.now() - this.#startReal;
    return base + passed + this.#advancedMs;
  }

  /** Milliseconds that lifetimes are measured in. */
  elapsed(): number {
    return Date.now() - this.#startReal + this.#advancedMs;
  }

  /** Real milliseconds, for durations in the journal. */
  real(): number {
    return Date.now();
  }

  /** Seconds since 1970 for the signature of a delivery. */
  wallSeconds(): number {
    return Math.floor((Date.now() + this.signatureSkewMs) / 1000);
  }

  get scale(): number {
    return this.#scale;
  }

  get offsetMs(): number {
    return this.#advancedMs;
  }

  /** Changes how fast `after` passes, for what waits already too. `scale` must be positive. */
  setScale(scale: number): void {
    this.#scale = scale;
    for (const entry of this.#waiting) {
      clearTimeout(entry.handle);
      entry.handle = this.#arm(entry, Math.max(0, entry.dueMs - this.elapsed()));
    }
  }

  /** Jumps forward; fires what has come due, in order of due time. */
  advance(ms: number): void {
    this.#advancedMs += ms;
    const due = [...this.#waiting].filter((w) => w.dueMs <= this.elapsed()).sort((a, b) => a.dueMs - b.dueMs);
    for (const entry of due) entry.fire();
  }

  /** Runs `fn` after `ms` of sandbox time; returns the function that calls it off. */
  after(ms: number, fn: () => void): () => void {
    const entry: Waiting = {
      dueMs: this.elapsed() + ms,
      fire: () => {
        clearTimeout(entry.handle);
        if (this.#waiting.delete(entry)) fn();
      },
      handle: setTimeout(() => undefined, 0),
    };
    clearTimeout(entry.handle);
    entry.handle = this.#arm(entry, ms);
    this.#waiting.add(entry);
    return () => {
      clearTimeout(entry.handle);
      this.#waiting.delete(entry);
    };
  }

  #arm(entry: Waiting, ms: number): NodeJS.Timeout {
    return setTimeout(entry.fire, ms / this.#scale);
  }

  /** Resolves after `ms` of sandbox time, or when the clock is reset: whoever waits is let go, not forgotten. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        cancel();
        this.#waits.delete(done);
        resolve();
      };
      const cancel = this.after(ms, done);
      this.#waits.add(done);
    });
  }

  /** Runs `fn` after `ms` of real time; returns the function that calls it off. */
  timeout(ms: number, fn: () => void): () => void {
    const handle = setTimeout(() => {
      this.#timeouts.delete(handle);
      fn();
    }, ms);
    this.#timeouts.add(handle);
    return () => {
      clearTimeout(handle);
      this.#timeouts.delete(handle);
    };
  }

  /** Runs `fn` every `ms` of real time; returns the function that ends it. */
  every(ms: number, fn: () => void): () => void {
    const handle = setInterval(fn, ms);
    this.#timeouts.add(handle);
    return () => {
      clearInterval(handle);
      this.#timeouts.delete(handle);
    };
  }

  /** Lets everybody go who waits, and calls off what was to run later in sandbox time. Real timeouts go on. */
  release(): void {
    for (const done of [...this.#waits]) done();
    for (const entry of this.#waiting) clearTimeout(entry.handle);
    this.#waiting.clear();
  }

  /** Back to the start. */
  reset(): void {
    this.release();
    this.#advancedMs = 0;
    this.#scale = this.#options.scale ?? 1;
    this.signatureSkewMs = 0;
  }

  /** Calls off everything, for good. */
  stop(): void {
    this.release();
    for (const handle of this.#timeouts) clearTimeout(handle);
    this.#timeouts.clear();
  }
}
