/** Waiting without sleeping for time's sake: on conditions, on each other, on a signal. */
import { setTimeout as delay } from "node:timers/promises";

export interface WaitOptions {
  /** Generous: it only ends what would hang. Default 30 s. */
  readonly timeoutMs?: number;
  readonly everyMs?: number;
  /** What is waited for, for the message. */
  readonly what?: string;
}

/** Resolves when `condition` first holds (or returns a value other than false, null, undefined), with that value. */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  options: WaitOptions = {},
): Promise<Exclude<T, false | null | undefined>> {
  const until = performance.now() + (options.timeoutMs ?? 30_000);
  for (;;) {
    const value = await condition();
    if (value !== false && value !== null && value !== undefined) {
      return value as Exclude<T, false | null | undefined>;
    }
    if (performance.now() > until) {
      throw new Error(`waited in vain for ${options.what ?? condition.toString()}`);
    }
    await delay(options.everyMs ?? 15);
  }
}

/** `n` callers of the returned function all wait until the last of them has come. */
export function barrier(n: number): () => Promise<void> {
  const gate = deferred<void>();
  let missing = n;
  return () => {
    missing -= 1;
    if (missing === 0) gate.resolve();
    return gate.promise;
  };
}

/** Works on all items, `lanes` at a time; results in the items' order. */
export async function inLanes<T, R>(
  lanes: number,
  items: readonly T[],
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) {
      const item = items[index] as T;
      results[index] = await work(item, index);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return results;
}

export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(reason: unknown): void;
}

export function deferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = () => {};
  let reject: (reason: unknown) => void = () => {};
  const promise = new Promise<T>((done, fail) => {
    resolve = done;
    reject = fail;
  });
  return { promise, resolve, reject };
}
