/**
 * Working an arrival off, once, under its lease. A person's interaction is answered; what fails is tried again by whoever finds the
 * row, and given up with a sentence after some tries.
 */
import { failpoint } from "../../domain/failpoints.js";
import { finishArrival, type InboxRow, postponeArrival } from "../inbox/store.js";
import { publishHome } from "../outbox/home.js";
import type { SlackContext } from "../types.js";
import type { Handled } from "./dispatch.js";
import { deliver, NOTHING, type Reply, say } from "./reply.js";

export const TRIES_MAX = 8;
const BACKOFF_BASE_MS = 2_000;
const BACKOFF_MAX_MS = 60_000;

const LATER = "This is taking longer than it should. It is recorded and tried again; the answer comes here.";
const GIVEN_UP = "This could not be done, in spite of several tries. Please try again, or tell on-call.";
const TRY_AGAIN = "This could not be done just now. Please try again in a minute.";

export function retryDelayMs(failures: number): number {
  return Math.min(BACKOFF_MAX_MS, BACKOFF_BASE_MS * 2 ** failures);
}

/** The handler's reply, or null when it failed and comes again. */
export async function tryReply(
  ctx: SlackContext,
  handled: Handled,
  row: InboxRow | null,
): Promise<Reply | null> {
  try {
    return await handled.reply();
  } catch (error) {
    ctx.log.error({ inbox: row?.id, kind: row?.kind, error: String(error) }, "an interaction failed");
    if (row === null) return say(TRY_AGAIN);
    const last = row.failures + 1 >= TRIES_MAX;
    if (!last) {
      await postponeArrival(ctx, row, retryDelayMs(row.failures), String(error));
      return null;
    }
    return say(GIVEN_UP);
  }
}

/** Delivers the reply and closes the row. `null`: comes again; the person hears so the first time. */
export async function conclude(
  ctx: SlackContext,
  handled: Handled,
  { row, key }: { row: InboxRow | null; key: string },
  reply: Reply | null,
): Promise<void> {
  if (reply === null) {
    if (row?.failures === 0)
      await deliver(ctx, { ...handled.to, key: `${key}:later` }, say(LATER), publishHome);
    return;
  }
  await failpoint("slack.after_handled");
  await deliver(ctx, { ...handled.to, key }, reply, publishHome);
  if (row !== null) await finishArrival(ctx, row, reply === NOTHING ? null : reply.kind);
}
