/** A waiting post becomes a message and a place, from the rows as they are when it leaves. */
import { getApproval } from "../../approvals/index.js";
import { assertNever } from "../../domain/assert-never.js";
import { isApprovalId } from "../../domain/ids.js";
import { getRun, getTicket } from "../../runs/index.js";
import type { Message } from "../blocks/build.js";
import {
  askPost,
  beingCheckedPost,
  escalatedPost,
  modelPost,
  opsPost,
  outcomePost,
  reminderPost,
  replayedPost,
  runEndedPost,
  sentencePost,
  voidedPost,
} from "../cards/posts.js";
import type { StoredPost } from "../notices.js";
import type { SlackSendContext } from "../types.js";
import { readOperation } from "../views/operation.js";
import { workspaceUrl } from "../web.js";
import { mentionsOf } from "./mentions.js";

export type RenderedPost =
  | {
      readonly ready: true;
      readonly channel: string;
      readonly threadTs: string | null;
      readonly message: Message;
    }
  /** The ticket has no thread yet. */
  | { readonly ready: false; readonly why: "no_thread" }
  /** Nothing to say any more. */
  | { readonly ready: false; readonly why: "moot" };

type Ctx = Pick<SlackSendContext, "db" | "policy" | "config" | "web">;

const MOOT: RenderedPost = { ready: false, why: "moot" };

export async function renderPost(ctx: Ctx, post: StoredPost): Promise<RenderedPost> {
  switch (post.place) {
    case "thread":
      return renderThread(ctx, post);
    case "ops":
      return renderOps(ctx, post);
    case "approvers":
      return renderApprovers(ctx, post);
    default:
      return assertNever(post, "post");
  }
}

async function renderThread(ctx: Ctx, post: Extract<StoredPost, { place: "thread" }>): Promise<RenderedPost> {
  const ticket = await getTicket(ctx.db, post.ticketId);
  if (ticket === null) return MOOT;
  if (ticket.channelId === null || ticket.threadTs === null) return { ready: false, why: "no_thread" };
  const message = await threadMessage(ctx, post, ticket.filers);
  return message === null
    ? MOOT
    : { ready: true, channel: ticket.channelId, threadTs: ticket.threadTs, message };
}

async function threadMessage(
  ctx: Ctx,
  { ticketId, message }: Extract<StoredPost, { place: "thread" }>,
  filers: readonly string[],
): Promise<Message | null> {
  switch (message.type) {
    case "operation_outcome":
    case "operation_being_checked":
    case "operation_replayed": {
      const operation = await readOperation(ctx.db, message.operationId);
      if (operation === null) return null;
      if (message.type === "operation_outcome") return outcomePost(operation, message.was);
      return message.type === "operation_replayed"
        ? replayedPost(operation, ticketId, await workspaceUrl(ctx.web))
        : beingCheckedPost(operation);
    }
    case "model_says":
      return modelPost(message.text, message.planner);
    case "ask":
      return askPost(message.question, message.candidates);
    case "escalated":
      return escalatedPost(await getRun(ctx.db, message.runId), message.summary, filers);
    case "run_ended": {
      const run = await getRun(ctx.db, message.runId);
      return run === null ? null : runEndedPost(run, filers);
    }
    case "gate_unsatisfiable":
      return sentencePost(message.sentence);
    case "approval_voided": {
      const approval = await getApproval(ctx.db, message.approvalId);
      const operation = approval === null ? null : await readOperation(ctx.db, approval.operationId);
      return approval === null || operation === null
        ? null
        : voidedPost(approval, operation, message.successorId !== null);
    }
    case "sentence":
      return sentencePost(message.text);
    default:
      return assertNever(message, "thread message");
  }
}

async function renderOps(
  ctx: Ctx,
  { message }: Extract<StoredPost, { place: "ops" }>,
): Promise<RenderedPost> {
  const place = { ready: true as const, channel: ctx.config.channels.ops, threadTs: null };
  if (message.type === "resolved" || message.type === "proposal_ended") {
    return { ...place, message: opsPost(message, await readOperation(ctx.db, message.operationId)) };
  }
  return { ...place, message: opsPost(message, null) };
}

async function renderApprovers(
  ctx: Ctx,
  { approvalId, message }: Extract<StoredPost, { place: "approvers" }>,
): Promise<RenderedPost> {
  if (!isApprovalId(approvalId)) return MOOT;
  const approval = await getApproval(ctx.db, approvalId);
  // Quiet when decided.
  if (approval === null || approval.state !== "PENDING") return MOOT;
  const operation = await readOperation(ctx.db, approval.operationId);
  if (operation === null) return MOOT;
  const [card] = await ctx.db.sql<{ channel_id: string; message_ts: string | null }>(
    "slack.approvers_card",
    "SELECT channel_id, message_ts FROM slack_cards WHERE kind = 'approval' AND subject_id = $1 AND slot = 'approvals'",
    [approvalId],
  );
  const place = {
    channel: card?.channel_id ?? ctx.config.channels.approvals,
    threadTs: card?.message_ts ?? null,
  };
  switch (message.type) {
    case "approval_reminder": {
      const role = message.escalatedTo ?? message.role;
      const mentions = mentionsOf(await ctx.policy(), role);
      return { ready: true, ...place, message: reminderPost(approval, operation, message, mentions) };
    }
    case "gate_unsatisfiable":
      return { ready: true, ...place, message: sentencePost(message.sentence) };
    default:
      return assertNever(message, "approvers message");
  }
}
