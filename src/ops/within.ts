/** Waiting with an end, while a person waits for a form. */

/** The answer, or `late` when it is not there after `ms`; work that is late goes on, and a failure of it is still the caller's until then. */
export async function withinMs<T>(ms: number, work: Promise<T>): Promise<T | "late"> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    // Lost the race: nobody waits for it any more.
    work.catch(() => undefined);
  }
}
