/**
 * Keeps an arrival's lease while it is worked on: the lease is short, so that what a process that died leaves behind is found soon,
 * and work that takes long is not taken over from a process that lives.
 *
 * A lease that is lost all the same (the process stood still, the database was away) fences only the end: two may then have done the
 * same work, which every use case answers as a repetition.
 */
import type { SlackContext } from "../types.js";
import { INBOX_LEASE_MS, type InboxRow, renewArrival } from "./store.js";

/** Renewals in one lease: two may fail before it runs out. */
const BEATS_PER_LEASE = 3;

/** Does the work, renewing the lease of its row until it is done. Null: there is no row of ours. */
export async function keepingArrival<T>(
  ctx: Pick<SlackContext, "db" | "log">,
  row: InboxRow | null,
  work: () => Promise<T>,
): Promise<T> {
  if (row === null) return work();
  let beating = false;
  const beat = async (): Promise<void> => {
    if (beating) return;
    beating = true;
    try {
      if (!(await renewArrival(ctx, row))) clearInterval(timer);
    } catch (error) {
      ctx.log.warn({ inbox: row.id, error: String(error) }, "the lease of an arrival was not renewed");
    } finally {
      beating = false;
    }
  };
  const timer = setInterval(() => void beat(), INBOX_LEASE_MS / BEATS_PER_LEASE);
  timer.unref();
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
