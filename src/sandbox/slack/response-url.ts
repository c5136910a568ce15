/**
 * Response urls: five posts in thirty minutes that need no membership and no scope. A slash command's acknowledgement
 * with content goes the same way.
 */
import { ApiError, isEmpty, readContents } from "./app-post.js";
import { isObject } from "./blocks/check.js";
import type { ResponseUrl, SandboxContext } from "./context.js";
import { changeMessage, deleteMessage, postMessage, threadParent } from "./messages.js";
import type { JsonObject, Message } from "./model.js";
import { RESPONSE_URL_LIFE_MS, RESPONSE_URL_USES } from "./triggers.js";
import { findEphemeral, findMessage } from "./workspace.js";

export interface ResponseUrlAnswer {
  status: number;
  body: JsonObject;
}

const KNOWN = new Set([
  "text",
  "blocks",
  "attachments",
  "response_type",
  "replace_original",
  "delete_original",
  "thread_ts",
  "metadata",
  "mrkdwn",
  "unfurl_links",
  "unfurl_media",
]);

/** Takes one post to a response url path. */
export function useResponseUrl(ctx: SandboxContext, path: string, body: string): ResponseUrlAnswer {
  const url = ctx.responseUrls.get(path);
  const answer = url ? respondOnce(ctx, url, body) : gone(ctx, "expired_url");
  ctx.journal.add({
    kind: "response_url",
    url: path,
    args: parse(body) ?? {},
    status: answer.status,
    response: answer.body,
  });
  return answer;
}

function gone(ctx: SandboxContext, error: string): ResponseUrlAnswer {
  return { status: ctx.settings.responseUrlGoneStatus, body: { ok: false, error } };
}

function parse(body: string): JsonObject | null {
  try {
    const parsed: unknown = JSON.parse(body);
    return isObject(parsed) ? (parsed as JsonObject) : null;
  } catch {
    return null;
  }
}

function respondOnce(ctx: SandboxContext, url: ResponseUrl, body: string): ResponseUrlAnswer {
  if (ctx.clock.elapsed() - url.issuedMs > RESPONSE_URL_LIFE_MS) return gone(ctx, "expired_url");
  if (url.uses >= RESPONSE_URL_USES) return gone(ctx, "used_url");
  const args = parse(body);
  if (!args) return { status: 400, body: { ok: false, error: "invalid_payload" } };
  try {
    respond(ctx, url, args);
    url.uses += 1;
    return { status: 200, body: { ok: true } };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { status: 400, body: { ok: false, error: error.code, ...error.extra } };
  }
}

/** What the app said through a response url or an acknowledgement. Throws ApiError. */
export function respond(ctx: SandboxContext, url: ResponseUrl, args: JsonObject): void {
  const unknown = Object.keys(args).filter((name) => !KNOWN.has(name));
  if (unknown.length > 0 && ctx.settings.strict) {
    throw new ApiError("sandbox_unknown_argument", {
      response_metadata: { messages: unknown.map((n) => `[ERROR] the sandbox does not know \`${n}\``) },
    });
  }
  const contents = readContents(ctx, args);
  const original = originalOf(ctx, url);
  if (args["delete_original"] === true && isEmpty(contents)) {
    if (original) deleteMessage(ctx, original);
    return;
  }
  if (isEmpty(contents)) throw new ApiError("no_text");
  if (args["replace_original"] === true && original) {
    // An ephemeral message stays one, whatever response_type says.
    changeMessage(
      ctx,
      original,
      {
        text: contents.text ?? "",
        blocks: contents.blocks ?? [],
        ...(contents.attachments === undefined ? {} : { attachments: contents.attachments }),
        ...(contents.metadata === undefined ? {} : { metadata: contents.metadata }),
      },
      original.ephemeralFor === null && contents.blocks === undefined ? ctx.app.botId : null,
    );
    return;
  }
  if (args["delete_original"] === true && original) deleteMessage(ctx, original);
  const inChannel = args["response_type"] === "in_channel" && original?.ephemeralFor == null;
  const given = typeof args["thread_ts"] === "string" ? args["thread_ts"] : null;
  const parent = given === null ? null : threadParent(ctx, url.channel, given);
  postMessage(ctx, {
    channel: url.channel,
    user: ctx.app.botUserId,
    botId: ctx.app.botId,
    text: contents.text ?? "",
    blocks: contents.blocks ?? [],
    attachments: contents.attachments ?? [],
    metadata: contents.metadata ?? null,
    threadTs: parent?.ts ?? null,
    ephemeralFor: inChannel ? null : url.user,
  });
}

function originalOf(ctx: SandboxContext, url: ResponseUrl): Message | undefined {
  if (url.messageTs === null) return undefined;
  return findMessage(ctx, url.channel, url.messageTs) ?? findEphemeral(ctx, url.channel, url.messageTs);
}
