/**
 * The writes themselves: each sent once, each with an id by which it is found again when its answer is lost.
 *
 * Message metadata can be read by every member and app of the workspace: it holds an opaque id and nothing else.
 */
import type { WebClient } from "@slack/web-api";
import { failpoint } from "../../domain/failpoints.js";
import type { Message } from "../blocks/build.js";
import { type CallFailure, callFailure } from "../call-failure.js";
import type { SlackSendContext } from "../types.js";

export const METADATA_TYPE = "countersign_post";

export type Written =
  | { readonly kind: "written"; readonly ts: string; readonly channel: string }
  | CallFailure;

type Ctx = Pick<SlackSendContext, "log" | "web">;

export interface Post {
  readonly channel: string;
  readonly threadTs: string | null;
  readonly message: Message;
  /** Row id; comes back with the message. */
  readonly ref: string;
}

export async function postMessage(ctx: Ctx, client: WebClient, post: Post): Promise<Written> {
  return told(ctx, "chat.postMessage", async () => {
    const answer = await client.chat.postMessage({
      channel: post.channel,
      ...(post.threadTs === null ? {} : { thread_ts: post.threadTs }),
      text: post.message.text,
      ...(post.message.blocks.length === 0 ? {} : { blocks: [...post.message.blocks] }),
      metadata: { event_type: METADATA_TYPE, event_payload: { ref: post.ref } },
      unfurl_links: false,
      unfurl_media: false,
      link_names: false,
    });
    if (answer.ts === undefined) throw new Error("chat.postMessage answered without ts");
    return { kind: "written", ts: answer.ts, channel: answer.channel ?? post.channel };
  });
}

export async function updateMessage(
  ctx: Ctx,
  client: WebClient,
  edit: { readonly channel: string; readonly ts: string; readonly message: Message },
): Promise<Written> {
  return told(ctx, "chat.update", async () => {
    await client.chat.update({
      channel: edit.channel,
      ts: edit.ts,
      text: edit.message.text,
      // Without blocks the old ones would stay or go by Slack's choice; an empty list is said.
      blocks: [...edit.message.blocks],
      link_names: false,
    });
    return { kind: "written", ts: edit.ts, channel: edit.channel };
  });
}

/** A call of which the log says when it did not go well; that Slack asks for patience is said by the client. */
async function told(ctx: Ctx, method: string, call: () => Promise<Written>): Promise<Written> {
  let result: Written;
  await failpoint("slack.before_write");
  try {
    result = await call();
  } catch (error) {
    result = callFailure(error);
  }
  await failpoint("slack.after_write");
  if (result.kind === "refused") {
    ctx.log.warn({ method, code: result.code, details: result.details }, "Slack refused a write");
  }
  if (result.kind === "unknown") {
    ctx.log.warn({ method, detail: result.detail }, "a write to Slack has no known outcome");
  }
  return result;
}

/** Slack would not take this form of the message; a plainer one may pass. */
const TOO_RICH: ReadonlySet<string> = new Set([
  "invalid_blocks",
  "invalid_blocks_format",
  "msg_blocks_too_long",
  "msg_too_long",
  "invalid_arguments",
  "block_mismatch",
  "invalid_attachments",
]);
export const isTooRich = (code: string): boolean => TOO_RICH.has(code);

/** The message to be edited is no longer there, or no longer ours. */
const GONE: ReadonlySet<string> = new Set([
  "message_not_found",
  "cant_update_message",
  "edit_window_closed",
  "thread_not_found",
]);
export const isGone = (code: string): boolean => GONE.has(code);

/** Nothing can be posted there by us, now. */
const UNREACHABLE: ReadonlySet<string> = new Set([
  "channel_not_found",
  "not_in_channel",
  "is_archived",
  "is_inactive",
  "restricted_action",
  "restricted_action_read_only_channel",
  "restricted_action_thread_only_channel",
  "restricted_action_non_threadable_channel",
  "restricted_action_thread_locked",
  "cannot_reply_to_message",
  "user_not_found",
  "user_not_in_channel",
  "messages_tab_disabled",
]);
export const isUnreachable = (code: string): boolean => UNREACHABLE.has(code);

const PAGE = 200;
const PAGES_MAX = 10;

export type Lookup =
  | { readonly found: string }
  | { readonly found: null }
  | { readonly found: "unknown"; readonly detail: string };

/** Looks for a post by its metadata, where it would be. `found: null` means that Slack listed everything and it is not there. */
export async function findPosted(
  ctx: Ctx,
  { channel, threadTs, ref }: Pick<Post, "channel" | "threadTs" | "ref">,
): Promise<Lookup> {
  let cursor: string | undefined;
  try {
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const at = {
        channel,
        include_all_metadata: true,
        limit: PAGE,
        ...(cursor === undefined ? {} : { cursor }),
      };
      const answer =
        threadTs === null
          ? await ctx.web.reads.conversations.history(at)
          : await ctx.web.reads.conversations.replies({ ...at, ts: threadTs });
      const hit = (answer.messages ?? []).find((message) => refOf(message) === ref);
      if (hit?.ts !== undefined) return { found: hit.ts };
      cursor = answer.response_metadata?.next_cursor;
      if (cursor === undefined || cursor === "") return { found: null };
    }
    // A post of ours that is this old would have been found long ago.
    return { found: null };
  } catch (error) {
    const failure = callFailure(error);
    const detail = failure.kind === "refused" ? failure.code : failure.kind;
    ctx.log.warn({ detail }, "could not look for a post whose answer was lost");
    return { found: "unknown", detail };
  }
}

function refOf(message: object): string | null {
  const { metadata } = message as { metadata?: { event_type?: string; event_payload?: { ref?: unknown } } };
  const ref = metadata?.event_type === METADATA_TYPE ? metadata.event_payload?.ref : undefined;
  return typeof ref === "string" ? ref : null;
}
