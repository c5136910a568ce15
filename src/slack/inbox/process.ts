/** Working off a stored arrival that is not being worked on: by wake-up, or by the sweeper when the first try did not finish. */

import { failpoint } from "../../domain/failpoints.js";
import { cutText } from "../../domain/text/cut.js";
import {
  type Handled,
  handleAction,
  handleCommand,
  handleShortcut,
  handleView,
} from "../listeners/dispatch.js";
import { eventArrived } from "../listeners/events.js";
import { conclude, retryDelayMs, TRIES_MAX, tryReply } from "../listeners/finish.js";
import { messageOf } from "../listeners/payload.js";
import { deliver } from "../listeners/reply.js";
import { messageArrived } from "../listeners/tickets.js";
import { storeAnswer } from "../outbox/answer.js";
import { publishHome } from "../outbox/home.js";
import type { SlackContext } from "../types.js";
import { personOf } from "./arrival.js";
import { keepingArrival } from "./keep.js";
import { claimArrival, finishArrival, type InboxRow, postponeArrival } from "./store.js";

/** Does what a stored arrival asks for, if nobody else does or did. Throws only for the database. */
export async function processInbox(ctx: SlackContext, id: string): Promise<void> {
  const claimed = await claimArrival(ctx, id);
  if (claimed === null) return;
  const { row, asItCame } = claimed;
  if (!asItCame) return refuse(ctx, row);
  await keepingArrival(ctx, row, () => processClaimed(ctx, row));
}

/** Written by hand, or stored before the bot's token became another one: nobody's click. Whoever it names hears of it. */
async function refuse(ctx: SlackContext, row: InboxRow): Promise<void> {
  ctx.metrics.refused("not_as_it_came");
  ctx.log.error({ inbox: row.id, kind: row.kind }, "refused a stored arrival that did not come from Slack");
  const userId = personOf(row.body);
  if (userId !== null) {
    const nowhere = { channelId: null, threadTs: null, responseUrl: null };
    await storeAnswer(ctx, `refused:${row.id}`, { userId, ...nowhere, text: NOT_AS_IT_CAME });
  }
  await finishArrival(ctx, row, "refused: it is not what came from Slack");
}

const NOT_AS_IT_CAME =
  "Something in your name was stored here that cannot be shown to have come from Slack, so it was not carried out. If you have just clicked, sent or typed something that nothing came of, please do it again. If not, tell whoever is on call: somebody may have written to the database.";

async function processClaimed(ctx: SlackContext, row: InboxRow): Promise<void> {
  switch (row.kind) {
    case "message":
      return work(ctx, row, () => message(ctx, row));
    case "event":
      return work(ctx, row, () => eventArrived(ctx, row.body));
    case "action":
      return interaction(ctx, row, handleAction(ctx, row.body, null));
    case "view":
      return interaction(ctx, row, handleView(ctx, row.body, row.receivedAt));
    case "command":
      return interaction(ctx, row, handleCommand(ctx, row.body, { live: false, receivedAt: row.receivedAt }));
    case "shortcut":
      return interaction(ctx, row, handleShortcut(ctx, row.body));
  }
}

async function work(ctx: SlackContext, row: InboxRow, run: () => Promise<void>): Promise<void> {
  try {
    await run();
    await failpoint("slack.after_handled");
    await finishArrival(ctx, row, null);
  } catch (error) {
    const last = row.failures + 1 >= TRIES_MAX;
    ctx.log.error({ inbox: row.id, kind: row.kind, error: String(error), last }, "an arrival failed");
    if (last) await finishArrival(ctx, row, `given up: ${cutText(String(error), 300)}`);
    else await postponeArrival(ctx, row, retryDelayMs(row.failures), String(error));
  }
}

async function message(ctx: SlackContext, row: InboxRow): Promise<void> {
  const arrived = messageOf(row.body);
  if (arrived === null) return;
  const reply = await messageArrived(ctx, arrived, row.failures + 1 >= TRIES_MAX);
  const { channelId, ts, userId } = arrived;
  const place = { channelId, messageTs: ts, threadTs: arrived.threadTs, home: false };
  await deliver(ctx, { userId, place, responseUrl: null, key: row.id }, reply, publishHome);
}

async function interaction(ctx: SlackContext, row: InboxRow, handled: Handled | null): Promise<void> {
  if (handled === null) {
    await finishArrival(ctx, row, "unreadable");
    return;
  }
  await conclude(ctx, handled, { row, key: row.id }, await tryReply(ctx, handled, row));
}
