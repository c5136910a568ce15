/** chat.startStream, appendStream, stopStream: a message that grows by chunks until it is stopped. */

import { ApiError, argumentsError, blocksError, readContents } from "../app-post.js";
import { checkBlocks } from "../blocks/blocks.js";
import { isObject } from "../blocks/check.js";
import { normaliseBlocks } from "../blocks/elements-of.js";
import type { SandboxContext } from "../context.js";
import { changeMessage, postMessage } from "../messages.js";
import type { Block, JsonObject, Message } from "../model.js";
import { wireMessage } from "../wire.js";
import { ownMessage, threadArg } from "./chat.js";
import { type Method, mayPost, stringOf, targetArg } from "./method.js";

const MAX_CHUNK_BLOCKS = 50;

/** Text and blocks of the message after these chunks. */
function apply(ctx: SandboxContext, message: { text: string; blocks: Block[] }, args: JsonObject): void {
  const markdown = stringOf(args, "markdown_text");
  const chunks = args["chunks"];
  if (chunks !== undefined && (!Array.isArray(chunks) || !chunks.every(isObject))) {
    throw argumentsError("must provide an array [json-pointer:/chunks]");
  }
  if (markdown !== undefined) message.text += markdown;
  for (const [index, chunk] of (Array.isArray(chunks) ? chunks : []).entries()) {
    const spot = `/chunks/${index}`;
    const piece = chunk as JsonObject;
    switch (piece["type"]) {
      case "markdown_text":
        message.text += String(piece["text"] ?? "");
        break;
      case "task_update":
        upsertTask(ctx, message.blocks, piece, spot);
        break;
      case "plan_update":
        upsertPlan(ctx, message.blocks, piece);
        break;
      case "blocks": {
        const problems = checkBlocks(piece["blocks"], "message", `${spot}/blocks`);
        if (problems.length > 0) throw blocksError(problems);
        message.blocks.push(...normaliseBlocks(ctx, piece["blocks"] as unknown[]));
        break;
      }
      default:
        throw argumentsError(`unsupported type: ${String(piece["type"])} [json-pointer:${spot}/type]`);
    }
  }
  if (message.blocks.length > MAX_CHUNK_BLOCKS * 2) throw new ApiError("msg_blocks_too_long");
}

function upsertTask(ctx: SandboxContext, blocks: Block[], chunk: JsonObject, spot: string): void {
  const id = chunk["id"];
  const status = chunk["status"];
  if (typeof id !== "string" || typeof chunk["title"] !== "string" || typeof status !== "string") {
    throw argumentsError(`missing required field: id, title or status [json-pointer:${spot}]`);
  }
  const task = { type: "task_card", task_id: id, title: chunk["title"], status };
  const found = blocks.find((b) => b.type === "task_card" && b["task_id"] === id);
  if (found) Object.assign(found, task);
  else blocks.push({ ...task, block_id: ctx.ids.short() });
}

function upsertPlan(ctx: SandboxContext, blocks: Block[], chunk: JsonObject): void {
  const found = blocks.find((b) => b.type === "plan");
  if (found) found["title"] = String(chunk["title"] ?? "");
  else blocks.unshift({ type: "plan", title: String(chunk["title"] ?? ""), block_id: ctx.ids.short() });
}

/** The stream at `ts`, still open. */
function openStream(ctx: SandboxContext, args: JsonObject): Message {
  const message = ownMessage(ctx, args, "message_not_owned_by_app");
  if (message.stream !== "open") throw new ApiError("message_not_in_streaming_state");
  return message;
}

const start: Method = {
  scopes: ["chat:write"],
  token: "bot",
  tier: "tier2",
  args: {
    channel: "string",
    thread_ts: "string",
    markdown_text: "string",
    chunks: "json",
    recipient_user_id: "string",
    recipient_team_id: "string",
    task_display_mode: "string",
  },
  run(ctx, args) {
    const channel = targetArg(ctx, args);
    mayPost(ctx, channel);
    if (channel.kind !== "dm") {
      if (stringOf(args, "recipient_team_id") === undefined) throw new ApiError("missing_recipient_team_id");
      if (stringOf(args, "recipient_user_id") === undefined) throw new ApiError("missing_recipient_user_id");
    }
    const threadTs = threadArg(ctx, args, channel.id);
    if (threadTs === null) throw argumentsError("missing required field: thread_ts");
    const content = { text: "", blocks: [] as Block[] };
    apply(ctx, content, args);
    const message = postMessage(ctx, {
      channel: channel.id,
      user: ctx.app.botUserId,
      botId: ctx.app.botId,
      ...content,
      threadTs,
      stream: "open",
    });
    return { channel: channel.id, ts: message.ts };
  },
};

const append: Method = {
  scopes: ["chat:write"],
  token: "bot",
  tier: "tier4",
  args: { channel: "string", ts: "string", markdown_text: "string", chunks: "json" },
  run(ctx, args) {
    const message = openStream(ctx, args);
    const content = { text: message.text, blocks: structuredClone(message.blocks) };
    apply(ctx, content, args);
    changeMessage(ctx, message, content, null, { event: false });
    return { channel: message.channel, ts: message.ts };
  },
};

const stop: Method = {
  scopes: ["chat:write"],
  token: "bot",
  tier: "tier2",
  args: {
    channel: "string",
    ts: "string",
    markdown_text: "string",
    chunks: "json",
    blocks: "json",
    metadata: "json",
  },
  run(ctx, args) {
    const message = openStream(ctx, args);
    const { markdown_text: _text, ...rest } = args;
    const contents = readContents(ctx, rest);
    const content = { text: message.text, blocks: structuredClone(message.blocks) };
    apply(ctx, content, args);
    content.blocks.push(...(contents.blocks ?? []));
    changeMessage(
      ctx,
      message,
      {
        ...content,
        stream: "closed",
        ...(contents.metadata === undefined ? {} : { metadata: contents.metadata }),
      },
      null,
    );
    return { channel: message.channel, ts: message.ts, message: wireMessage(ctx, message, "full") };
  },
};

export const STREAMS: Record<string, Method> = {
  "chat.startStream": start,
  "chat.appendStream": append,
  "chat.stopStream": stop,
};
