/**
 * What Slack does to text on its way in, undone. Slack wraps links, addresses, numbers and mentions in `<…>` and writes
 * `&`, `<` and `>` as entities; everything else arrives as typed.
 *
 * 1. Entities are decoded exactly once: `&amp;lt;` is the text `&lt;`.
 * 2. The result is plain text for people and for the planner. It is data: whoever posts it again must escape it.
 */

/** A `<` that begins none of these was never written by Slack and stays as it is. */
const TOKEN = /<([@#!][^<>]*|[a-z][a-z0-9+.-]*:[^<>]*)>/gi;
const ENTITIES: Readonly<Record<string, string>> = { "&amp;": "&", "&lt;": "<", "&gt;": ">" };

/**
 * The text as its author saw it. A named link keeps its address: "refund policy (https://pay.example)". `names`: of users whom Slack
 * mentions by id alone.
 */
export function plainSlackText(raw: string, names: ReadonlyMap<string, string> = new Map()): string {
  let out = "";
  let last = 0;
  for (const match of raw.matchAll(TOKEN)) {
    out += decodeEntities(raw.slice(last, match.index)) + decodeEntities(tokenText(match[1] ?? "", names));
    last = match.index + match[0].length;
  }
  return out + decodeEntities(raw.slice(last));
}

/** Users whom the text mentions by their id alone, each once, in the order of the text. */
export function mentionedUsers(raw: string): string[] {
  return [...new Set([...raw.matchAll(/<@([UW][A-Z0-9_]{1,40})>/g)].map((match) => match[1] ?? ""))];
}

function decodeEntities(text: string): string {
  return text.replace(/&(?:amp|lt|gt);/g, (entity) => ENTITIES[entity] ?? entity);
}

function tokenText(token: string, names: ReadonlyMap<string, string>): string {
  const bar = token.indexOf("|");
  const target = bar < 0 ? token : token.slice(0, bar);
  const label = bar < 0 ? "" : token.slice(bar + 1);
  if (target.startsWith("@")) {
    const name = label === "" ? names.get(target.slice(1)) : label;
    return name === undefined ? target : withSign("@", name);
  }
  if (target.startsWith("#")) return label === "" ? target : withSign("#", label);
  if (target.startsWith("!")) return label === "" ? `@${target.slice(1)}` : label;
  const address = /^(?:mailto|tel):(.*)$/s.exec(target)?.[1];
  if (address !== undefined) return label === "" ? address : label;
  if (label === "" || sameLink(target, label)) return label === "" ? target : label;
  return `${label} (${target})`;
}

const withSign = (sign: string, label: string): string =>
  label.startsWith(sign) ? label : `${sign}${label}`;

/** Slack names an address that was typed without its scheme by what was typed. */
function sameLink(target: string, label: string): boolean {
  const bare = target.replace(/^https?:\/\//, "").replace(/\/$/, "");
  return bare === label.replace(/^https?:\/\//, "").replace(/\/$/, "");
}
