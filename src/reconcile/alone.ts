/** A pass over many rows: one that somebody changed so that nothing can be written about it stops itself alone. */
import { cannotBeRecorded } from "../dispatch/index.js";
import type { ReconcileCtx } from "./context.js";

export type Alone<T> = { readonly done: true; readonly value: T } | { readonly done: false };

/** Does it, or says what broke. @throws when the database is away or busy, which breaks everything alike */
export async function alone<T>(
  ctx: Pick<ReconcileCtx, "db" | "log">,
  about: Readonly<Record<string, string>>,
  work: () => Promise<T>,
): Promise<Alone<T>> {
  try {
    return { done: true, value: await work() };
  } catch (error) {
    if (!cannotBeRecorded(ctx.db, error)) throw error;
    ctx.log.error({ err: error, ...about }, "this could not be compared with the provider; the others are");
    return { done: false };
  }
}
