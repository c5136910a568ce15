/**
 * The listeners on Bolt's app. Thin: acknowledge, hand on, answer. One catch-all a kind, so that every arrival is acknowledged, also
 * from cards and forms that are no longer made.
 */
import type { AckFn, App, Context } from "@slack/bolt";
import { failpoint } from "../../domain/failpoints.js";
import type { JsonObject } from "../../domain/json.js";
import { withinMs } from "../../ops/index.js";
import { ours } from "../blocks/build.js";
import { closed, workingView } from "../cards/forms.js";
import type { Received } from "../inbox/gate.js";
import { keepingArrival } from "../inbox/keep.js";
import type { SlackContext } from "../types.js";
import { type Handled, handleAction, handleCommand, handleShortcut, handleView } from "./dispatch.js";
import { conclude, tryReply } from "./finish.js";
import type { Reply } from "./reply.js";

const ANYTHING = /[\s\S]*/;
/** Slack waits three seconds for a form's answer; what takes longer is answered by a message. */
const FORM_DEADLINE_MS = 2_200;

export function registerListeners(app: App, ctx: SlackContext, monotonicMs: () => number): void {
  // Events have been acknowledged and stored; whoever is woken works them off.
  app.event(ANYTHING, async ({ context }) => {
    const { row } = receivedOf(context);
    await failpoint("slack.after_ack");
    if (row !== null) await ctx.wake("inbox", row.id);
  });

  app.action(ANYTHING, async ({ ack, body, context }) => {
    await ack();
    await answered(ctx, context, handleAction(ctx, body as unknown as JsonObject, receivedOf(context)));
  });

  app.shortcut(ANYTHING, async ({ ack, body, context }) => {
    await ack();
    await answered(ctx, context, handleShortcut(ctx, body as unknown as JsonObject));
  });

  app.command(ANYTHING, async ({ ack, body, context }) => {
    await ack();
    const { receivedAt } = receivedOf(context);
    await answered(
      ctx,
      context,
      handleCommand(ctx, body as unknown as JsonObject, { live: true, receivedAt }),
    );
  });

  app.view({ callback_id: ANYTHING, type: "view_submission" }, async ({ ack, body, context }) => {
    const received = receivedOf(context);
    const handled = handleView(ctx, body as unknown as JsonObject, received.receivedAt);
    if (handled === null) return ack();
    const key = keyOf(ctx, received);
    const spentMs = monotonicMs() - received.arrivedAtMs;
    await keepingArrival(ctx, received.row, () =>
      submitted(ctx, handled, {
        received,
        key,
        deadlineMs: Math.max(200, FORM_DEADLINE_MS - spentMs),
        ack: ack as AckFn<ViewAnswer>,
      }),
    );
  });

  app.view({ callback_id: ANYTHING, type: "view_closed" }, async ({ ack }) => ack());
  app.options(ANYTHING, async ({ ack }) => ack({ options: [] }));

  app.error(async (error) => {
    ctx.log.error({ error: error.message }, "a Slack listener failed");
  });
}

function receivedOf(context: Context): Received {
  return context["countersign"] as Received;
}

/** A second delivery of the same click is answered again: what it is told is how things stand by then. */
const keyOf = (ctx: SlackContext, received: Received): string => received.row?.id ?? ctx.ids.next("inb_");

async function answered(ctx: SlackContext, context: Context, handled: Handled | null): Promise<void> {
  await failpoint("slack.after_ack");
  if (handled === null) return;
  const received = receivedOf(context);
  await keepingArrival(ctx, received.row, async () => {
    const reply = await tryReply(ctx, handled, received.row);
    await conclude(ctx, handled, { row: received.row, key: keyOf(ctx, received) }, reply);
  });
}

type ViewAnswer =
  | { response_action: "errors"; errors: Record<string, string> }
  | { response_action: "update"; view: ReturnType<typeof workingView> };

interface Submission {
  readonly received: Received;
  readonly key: string;
  readonly deadlineMs: number;
  readonly ack: AckFn<ViewAnswer>;
}

async function submitted(
  ctx: SlackContext,
  handled: Handled,
  { received, key, deadlineMs, ack }: Submission,
): Promise<void> {
  const { row } = received;
  const work = tryReply(ctx, handled, row);
  const first = await withinMs(deadlineMs, work);
  if (first === "late") {
    await ack({ response_action: "update", view: workingView() });
    return conclude(ctx, handled, { row, key }, await work);
  }
  if (first?.kind === "errors") {
    await ack({ response_action: "errors", errors: { ...first.errors } });
    return conclude(ctx, handled, { row, key }, { kind: "nothing" });
  }
  await ackClosing(ack, handled, first);
  await conclude(ctx, handled, { row, key }, first);
}

/** The form closes. Where there is no place for a message beside it, the answer stands in the form's window. */
async function ackClosing(ack: AckFn<ViewAnswer>, handled: Handled, reply: Reply | null): Promise<void> {
  const { channelId, home } = handled.to.place;
  if (reply?.kind === "say" && channelId === null && !home) {
    return ack({ response_action: "update", view: closed("Countersign", [ours(reply.text)]) });
  }
  await ack();
}
