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
 * What stands for a person who is mentioned. People choose their own names: one that reads like a request would become one in the text,
 * and an id says nothing to whoever reads it.
 */
const MENTIONED = "@colleague";

/** The text as its author saw it, but for names of people. A named link keeps its address: "refund policy (https://pay.example)". */
export function plainSlackText(raw: string): string {
  let out = "";
  let last = 0;
  for (const match of raw.matchAll(TOKEN)) {
    out += decodeEntities(raw.slice(last, match.index)) + decodeEntities(tokenText(match[1] ?? ""));
    last = match.index + match[0].length;
  }
  return out + decodeEntities(raw.slice(last));
}

function decodeEntities(text: string): string {
  return text.replace(/&(?:amp|lt|gt);/g, (entity) => ENTITIES[entity] ?? entity);
}

function tokenText(token: string): string {
  const bar = token.indexOf("|");
  const target = bar < 0 ? token : token.slice(0, bar);
  const label = bar < 0 ? "" : token.slice(bar + 1);
  if (target.startsWith("@")) return MENTIONED;
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
