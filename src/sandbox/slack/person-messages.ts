/** What people write: posts, replies, edits, deletions, reactions, read marks. */
import { actor, messageFor, Refusal, writableChannel } from "./acting.js";
import type { SandboxContext } from "./context.js";
import type { EditRequest, MarkReadRequest, MessageRef, PostRequest, ReactRequest } from "./control-types.js";
import { changeMessage, deleteMessage, postMessage, threadParent } from "./messages.js";
import { react } from "./reactions.js";
import { richText, typedToWire } from "./text.js";

export function personPosts(ctx: SandboxContext, request: PostRequest): { channel: string; ts: string } {
  const person = actor(ctx, request.as);
  const channel = writableChannel(ctx, person, request.channel);
  let threadTs: string | null = null;
  if (request.threadTs !== undefined) {
    const parent = threadParent(ctx, channel.id, request.threadTs);
    if (!parent) throw new Refusal("unknown_message", "That thread is not there (any more).");
    threadTs = parent.ts;
  }
  const files = (request.files ?? []).map((f) => ({ id: ctx.ids.id("F"), ...f }));
  if (request.text.trim() === "" && files.length === 0) {
    throw new Refusal("invalid_request", "There is nothing to send.");
  }
  const text = request.rawText === true ? request.text : typedToWire(ctx, request.text);
  const message = postMessage(ctx, {
    channel: channel.id,
    user: person.id,
    clientMsgId: ctx.ids.uuid(),
    text,
    blocks: text === "" ? [] : [richText(ctx, text)],
    files,
    subtype: files.length > 0 ? "file_share" : null,
    threadTs,
    broadcast: threadTs !== null && request.broadcast === true,
  });
  markRead(ctx, person.id, channel.id, message.ts);
  return { channel: channel.id, ts: message.ts };
}

export function personEdits(ctx: SandboxContext, request: EditRequest): void {
  const person = actor(ctx, request.as);
  const message = messageFor(ctx, person, request.channel, request.ts);
  if (message.user !== person.id) throw new Refusal("not_author", "Only its author can edit a message.");
  const text = typedToWire(ctx, request.text);
  changeMessage(ctx, message, { text, blocks: [richText(ctx, text)] }, person.id);
}

export function personDeletes(ctx: SandboxContext, request: MessageRef): void {
  const person = actor(ctx, request.as);
  const message = messageFor(ctx, person, request.channel, request.ts);
  const own = message.user === person.id || message.ephemeralFor === person.id;
  if (!own && !person.isAdmin) throw new Refusal("not_author", "Only its author can delete a message.");
  deleteMessage(ctx, message);
}

export function personReacts(ctx: SandboxContext, request: ReactRequest): void {
  const person = actor(ctx, request.as);
  writableChannel(ctx, person, request.channel);
  const message = messageFor(ctx, person, request.channel, request.ts);
  const has = message.reactions.some(
    (r) => r.name === request.name.replace(/^:|:$/gu, "") && r.users.includes(person.id),
  );
  const problem = react(ctx, message, person.id, request.name, !has);
  if (problem) throw new Refusal("invalid_request", `The sandbox knows no emoji "${request.name}".`);
}

export function markRead(ctx: SandboxContext, user: string, channel: string, ts: string): void {
  const reads = ctx.data.reads[user] ?? {};
  if ((reads[channel] ?? "") >= ts) return;
  reads[channel] = ts;
  ctx.data.reads[user] = reads;
  ctx.dirty();
  ctx.hub.emit({ type: "read", user, channel });
}

export function personReads(ctx: SandboxContext, request: MarkReadRequest): void {
  const person = actor(ctx, request.as);
  markRead(ctx, person.id, request.channel, request.ts);
}
