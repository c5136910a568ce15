/** Answers to one person: what only they see, right where they clicked. */
import type { KnownBlock } from "@slack/types";
import { type CallFailure, callFailure, responseFailure } from "../call-failure.js";
import type { SlackContext, SlackSendContext } from "../types.js";

/** As stored with the outbox row. */
export interface StoredAnswer {
  readonly userId: string;
  readonly channelId: string | null;
  /** Root of the thread in which the click was, so that the answer stands beside it. */
  readonly threadTs: string | null;
  /** Five uses, thirty minutes; null from App Home and forms. */
  readonly responseUrl: string | null;
  readonly text: string;
  readonly blocks?: readonly KnownBlock[];
}

export type Answered = { readonly kind: "written" } | CallFailure;

/** By response_url where there is one, which works in places where the bot may not post; else as an ephemeral; else as a direct message. */
export async function answerPerson(
  ctx: Pick<SlackSendContext, "web">,
  answer: StoredAnswer,
): Promise<Answered> {
  const viaUrl = answer.responseUrl === null ? null : await byUrl(ctx, answer, answer.responseUrl);
  if (viaUrl !== null && viaUrl.kind !== "refused") return viaUrl;
  const body = { text: answer.text, ...(answer.blocks === undefined ? {} : { blocks: [...answer.blocks] }) };
  if (answer.channelId !== null) {
    const shown = await said(() =>
      ctx.web.interactive.chat.postEphemeral({
        ...body,
        channel: answer.channelId ?? "",
        user: answer.userId,
        link_names: false,
        ...(answer.threadTs === null ? {} : { thread_ts: answer.threadTs }),
      }),
    );
    if (shown.kind !== "refused") return shown;
  }
  return said(() =>
    ctx.web.interactive.chat.postMessage({
      ...body,
      channel: answer.userId,
      unfurl_links: false,
      unfurl_media: false,
      link_names: false,
    }),
  );
}

async function byUrl(
  ctx: Pick<SlackSendContext, "web">,
  answer: StoredAnswer,
  url: string,
): Promise<Answered> {
  try {
    const status = await ctx.web.respond(url, {
      response_type: "ephemeral",
      replace_original: false,
      text: answer.text,
      ...(answer.blocks === undefined ? {} : { blocks: answer.blocks }),
      ...(answer.threadTs === null ? {} : { thread_ts: answer.threadTs }),
    });
    return status >= 200 && status < 300 ? { kind: "written" } : responseFailure(status);
  } catch (error) {
    return { kind: "unknown", detail: error instanceof Error ? error.message : String(error) };
  }
}

async function said(call: () => Promise<unknown>): Promise<Answered> {
  try {
    await call();
    return { kind: "written" };
  } catch (error) {
    return callFailure(error);
  }
}

/** Writes the answer down; whoever calls sends it at once, and if they cannot, the sweeper does. `key` makes it one. */
export async function storeAnswer(
  ctx: Pick<SlackContext, "db" | "ids">,
  key: string,
  answer: StoredAnswer,
): Promise<string | null> {
  const [row] = await ctx.db.sql<{ id: string }>(
    "slack.outbox.answer",
    `INSERT INTO slack_outbox (id, dedupe_key, method, channel_id, user_id, payload, lane)
     VALUES ($1, $2, 'answer', $3, $4, $5::jsonb, 'urgent') ON CONFLICT (dedupe_key) DO NOTHING RETURNING id`,
    [ctx.ids.next("out_"), `answer:${key}`, answer.channelId, answer.userId, JSON.stringify(answer)],
  );
  return row?.id ?? null;
}
