/**
 * The contents that an app may post: text, blocks, attachments, markdown, metadata, checked as Slack checks them. Used by
 * chat.* , response urls and acknowledgements that carry a message.
 */
import { checkBlocks } from "./blocks/blocks.js";
import { isObject, type Problem, sentence } from "./blocks/check.js";
import { normaliseBlocks } from "./blocks/elements-of.js";
import type { SandboxContext } from "./context.js";
import type { Block, JsonObject, Metadata } from "./model.js";

/** A Web API error: `{ ok: false, error, … }` with HTTP 200 unless a status is given. */
export class ApiError extends Error {
  readonly code: string;
  readonly extra: JsonObject;

  constructor(code: string, extra: JsonObject = {}) {
    super(code);
    this.name = "ApiError";
    this.code = code;
    this.extra = extra;
  }
}

/** `invalid_blocks` for chat.*: plain sentences in `errors`, the marked ones in `response_metadata.messages`. */
export function blocksError(problems: Problem[]): ApiError {
  const errors = problems.map(sentence);
  return new ApiError("invalid_blocks", {
    errors,
    response_metadata: { messages: errors.map((line) => `[ERROR] ${line}`) },
  });
}

/** `invalid_arguments` for views.* and other methods that explain themselves only in the metadata. */
export function argumentsError(...lines: string[]): ApiError {
  return new ApiError("invalid_arguments", {
    response_metadata: { messages: lines.map((line) => `[ERROR] ${line}`) },
  });
}

export interface Contents {
  text: string | undefined;
  blocks: Block[] | undefined;
  attachments: JsonObject[] | undefined;
  metadata: Metadata | null | undefined;
}

const MAX_ATTACHMENTS = 100;
const MAX_MARKDOWN = 12_000;
/** Text above this is cut on post. */
export const MAX_POST_TEXT = 40_000;

/** What the caller gave of text, markdown_text, blocks, attachments and metadata, checked and in stored form. */
export function readContents(ctx: SandboxContext, args: JsonObject): Contents {
  const markdown = args["markdown_text"];
  if (markdown !== undefined && (args["text"] !== undefined || args["blocks"] !== undefined)) {
    throw new ApiError("markdown_text_conflict");
  }
  if (typeof markdown === "string" && markdown.length > MAX_MARKDOWN) throw new ApiError("msg_too_long");
  const text = typeof markdown === "string" ? markdown : stringArg(args["text"]);
  const blocks =
    typeof markdown === "string"
      ? normaliseBlocks(ctx, [{ type: "markdown", text: markdown }])
      : readBlocks(ctx, args["blocks"]);
  return {
    text,
    blocks,
    attachments: readAttachments(args["attachments"]),
    metadata: readMetadata(ctx, args["metadata"]),
  };
}

function stringArg(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function readBlocks(ctx: SandboxContext, value: unknown): Block[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) throw new ApiError("invalid_blocks_format");
  if (!value.every(isObject)) throw new ApiError("invalid_blocks_format");
  const problems = checkBlocks(value, "message", "/blocks");
  if (problems.length > 0) throw blocksError(problems);
  return normaliseBlocks(ctx, value);
}

function readAttachments(value: unknown): JsonObject[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value) || !value.every(isObject)) throw new ApiError("invalid_attachments");
  if (value.length > MAX_ATTACHMENTS) throw new ApiError("too_many_attachments");
  const problems = value.flatMap((attachment, index) =>
    attachment["blocks"] === undefined
      ? []
      : checkBlocks(attachment["blocks"], "message", `/attachments/${index}/blocks`),
  );
  if (problems.length > 0) throw blocksError(problems);
  return value as JsonObject[];
}

function readMetadata(ctx: SandboxContext, value: unknown): Metadata | null | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw new ApiError("invalid_metadata_format");
  if (Object.keys(value).length === 0) return null;
  const type = value["event_type"];
  const payload = value["event_payload"];
  if (typeof type !== "string" || type === "" || !isObject(payload)) {
    throw new ApiError("invalid_metadata_format");
  }
  const flat = Object.values(payload).every((v) => !isObject(v) && !(Array.isArray(v) && v.some(isObject)));
  if (!flat) throw new ApiError("invalid_metadata_schema");
  const metadata = { event_type: type, event_payload: payload as JsonObject };
  if (Buffer.byteLength(JSON.stringify(metadata)) > ctx.settings.metadataMaxBytes) {
    throw new ApiError("metadata_too_large");
  }
  return metadata;
}

/** True when nothing would be shown. */
export function isEmpty(contents: Contents): boolean {
  const noText = contents.text === undefined || contents.text.trim() === "";
  return noText && !contents.blocks?.length && !contents.attachments?.length;
}
