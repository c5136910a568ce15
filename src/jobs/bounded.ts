/** Waiting with an end. */

/** The time that something was given has passed; it may still happen. */
export class TooSlow extends Error {
  readonly code = "too_slow";
  constructor(ms: number) {
    super(`no answer within ${ms} ms`);
    this.name = "TooSlow";
  }
}

/** The result of `work`, or `TooSlow` after `ms`. Work that lost the race may go on; its failure is nobody's any more. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TooSlow(ms)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined);
  }
}
