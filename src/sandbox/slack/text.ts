/**
 * Slack's text on its way in: what a person types becomes the wire form (`&amp;`, `<https://…>`, `<@U…>`), and the wire
 * form becomes the rich_text block that Slack adds to messages of people. Also: who is mentioned by a text or by blocks.
 */
import type { SandboxContext } from "./context.js";
import type { Block, Json, JsonObject } from "./model.js";

export function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

export function unescapeText(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

/** Replaces `@name` and `#channel` by ids. `withNames` gives the slash command form `<@U1|name>`. */
function linkNames(ctx: SandboxContext, escaped: string, withNames: boolean): string {
  return escaped
    .replace(/(^|[\s(])@([\p{L}\p{N}_.-]+)/gu, (whole, before: string, name: string) => {
      const clean = name.replace(/[.-]+$/u, "");
      const rest = name.slice(clean.length);
      const person = ctx.data.people.find((p) => p.name === clean || p.id === clean);
      if (person) return `${before}<@${person.id}${withNames ? `|${person.name}` : ""}>${rest}`;
      const group = ctx.data.groups.find((g) => g.handle === clean || g.id === clean);
      if (group) return `${before}<!subteam^${group.id}${withNames ? `|@${group.handle}` : ""}>${rest}`;
      if (["channel", "here", "everyone"].includes(clean)) return `${before}<!${clean}>${rest}`;
      return whole;
    })
    .replace(/(^|[\s(])#([\p{Ll}\p{N}_-]+)/gu, (whole, before: string, name: string) => {
      const channel = ctx.data.channels.find((c) => c.name === name && c.kind === "channel");
      return channel ? `${before}<#${channel.id}${withNames ? `|${channel.name}` : ""}>` : whole;
    });
}

const URL_OR_EMAIL = /\bhttps?:\/\/[^\s<>|]+[^\s<>|.,;:!?)'"]|\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b/gu;

/** Typed text to wire text: entities, links, e-mail addresses, mentions. */
export function typedToWire(ctx: SandboxContext, typed: string): string {
  const linked = linkNames(ctx, escapeText(typed), false);
  return linked.replace(URL_OR_EMAIL, (found) =>
    found.startsWith("http") ? `<${found}>` : `<mailto:${found}|${found}>`,
  );
}

/** Text of a slash command: with `should_escape` mentions become ids, otherwise it is passed as typed. */
export function commandText(ctx: SandboxContext, typed: string, shouldEscape: boolean): string {
  return shouldEscape ? linkNames(ctx, escapeText(typed), true) : typed;
}

/** One `<…>` of the wire form as a rich text element. */
function entity(inner: string): JsonObject {
  const [target = "", label] = inner.split("|", 2);
  if (target.startsWith("@")) return { type: "user", user_id: target.slice(1) };
  if (target.startsWith("#")) return { type: "channel", channel_id: target.slice(1) };
  if (target.startsWith("!subteam^")) return { type: "usergroup", usergroup_id: target.slice(9) };
  if (target === "!channel" || target === "!here" || target === "!everyone") {
    return { type: "broadcast", range: target.slice(1) };
  }
  const url = unescapeText(target);
  return label === undefined ? { type: "link", url } : { type: "link", url, text: unescapeText(label) };
}

/** The rich_text block that Slack makes of what a person wrote. */
export function richText(ctx: SandboxContext, wire: string): Block {
  const elements: JsonObject[] = [];
  for (const part of wire.split(/(<[^<>]+>)/u)) {
    if (part === "") continue;
    if (part.startsWith("<") && part.endsWith(">")) elements.push(entity(part.slice(1, -1)));
    else elements.push({ type: "text", text: unescapeText(part) });
  }
  return {
    type: "rich_text",
    block_id: ctx.ids.short(),
    elements: [{ type: "rich_text_section", elements }],
  };
}

/** Every text of mrkdwn and every mention element in the blocks. */
function* mentionSources(value: Json | undefined): Generator<string> {
  if (Array.isArray(value)) {
    for (const item of value) yield* mentionSources(item);
    return;
  }
  if (value === null || typeof value !== "object" || value === undefined) return;
  const type = value["type"];
  if ((type === "mrkdwn" || type === "markdown") && typeof value["text"] === "string") yield value["text"];
  if (type === "user") yield `<@${String(value["user_id"])}>`;
  if (type === "usergroup") yield `<!subteam^${String(value["usergroup_id"])}>`;
  if (type === "broadcast") yield `<!${String(value["range"])}>`;
  for (const child of Object.values(value)) yield* mentionSources(child);
}

/**
 * Users whom a message pings, the author left out. With blocks only the blocks count: `text` is then the fallback for
 * notifications. `members` are the channel's.
 */
export function pingedUsers(
  ctx: SandboxContext,
  author: string,
  text: string,
  blocks: Block[],
  members: string[],
): string[] {
  const sources = blocks.length > 0 ? [...mentionSources(blocks)] : [text];
  const users = new Set<string>();
  for (const source of sources) {
    for (const [, target = ""] of source.matchAll(/<([@!][^<>|]+)(?:\|[^<>]*)?>/gu)) {
      if (target.startsWith("@")) users.add(target.slice(1));
      else if (target.startsWith("!subteam^")) {
        const group = ctx.data.groups.find((g) => g.id === target.slice(9) && !g.disabled);
        for (const user of group?.users ?? []) users.add(user);
      } else if (["!channel", "!here", "!everyone"].includes(target)) {
        for (const member of members) users.add(member);
      }
    }
  }
  users.delete(author);
  return [...users];
}

/** True when the wire text mentions exactly this user. */
export function mentions(text: string, user: string): boolean {
  return text.includes(`<@${user}>`) || text.includes(`<@${user}|`);
}
