/**
 * Text of people, models and shops on its way into Slack.
 *
 * 1. `& < >` become entities everywhere, plain_text included: they are Slack's only control characters, so that no mention, link or
 *    date of anybody else's making can come into being (docs.slack.dev/messaging/formatting-message-text, "Escaping text").
 * 2. What changes how other text looks is removed: bidirectional controls, zero-width and tag characters, stacked marks.
 * 3. Cutting never splits a character or an entity, and says that it cut.
 */
import { characters } from "../../domain/text/cut.js";

/** Format characters and whatever shows nothing: bidi controls, zero width, fillers, tags. The emoji variation selector stays. */
const INVISIBLE = /(?!\uFE0F)(?:\p{Cf}|\p{Default_Ignorable_Code_Point}|\u2800)/gu;
const LONE_SURROGATES = /\p{Surrogate}/gu;
/** C0 and C1 controls; line feeds are kept, tabs become blanks before. */
const CONTROLS = /(?!\n)\p{Cc}/gu;
/** More combining marks than any orthography needs climb over their neighbours. */
const STACKED_MARKS = /(\p{M}{3})\p{M}+/gu;

/** Harmless but otherwise as written: one line feed kind, no invisible or reordering characters, at most two line feeds in a row. */
export function clean(text: string): string {
  return text
    .replace(/\r\n?|\u2028|\u2029|\u0085/gu, "\n")
    .replace(/\t/gu, " ")
    .replace(LONE_SURROGATES, "\uFFFD")
    .replace(CONTROLS, "")
    .replace(INVISIBLE, "")
    .replace(STACKED_MARKS, "$1")
    .replace(/[^\S\n]{3,}/gu, "  ")
    .replace(/ +\n/gu, "\n")
    .replace(/\n{3,}/gu, "\n\n")
    .trim();
}

/** Cleaned and on one line: names, references, labels. */
export function oneLine(text: string): string {
  return clean(text).replace(/\s+/gu, " ");
}

/** Two values in one place, each cleaned for itself, so that neither reaches into the other: "Tom (CUS-7)". */
export const withRef = (value: string, inBrackets: string | undefined): string =>
  inBrackets === undefined ? oneLine(value) : `${oneLine(value)} (${oneLine(inBrackets)})`;

/** Slack's three entities. Not idempotent: call it exactly once, last. */
export function escapeText(text: string): string {
  return text.replace(/[&<>]/gu, (character) =>
    character === "&" ? "&amp;" : character === "<" ? "&lt;" : "&gt;",
  );
}

export const CUT_MARK = " …";

/** Escaped text of at most `max` characters; whole characters and whole entities only. Tells whether something was cut. */
export function escapeWithin(text: string, max: number): { readonly text: string; readonly cut: boolean } {
  const whole = escapeText(text);
  if (whole.length <= max) return { text: whole, cut: false };
  const room = Math.max(0, max - CUT_MARK.length);
  let out = "";
  for (const { segment } of characters(text.slice(0, max))) {
    const next = escapeText(segment);
    if (out.length + next.length > room) break;
    out += next;
  }
  return { text: `${out.trimEnd()}${CUT_MARK}`, cut: true };
}

/** A user id as Slack gives them. Anything else is never made into a mention. */
const USER_ID = /^[UW][A-Z0-9_]{1,40}$/;
const GROUP_ID = /^S[A-Z0-9_]{1,40}$/;
const CHANNEL_ID = /^[CGD][A-Z0-9_]{1,40}$/;

/** `<@U…>` for an id of ours; for anything else its escaped text. */
export function mentionUser(userId: string): string {
  return USER_ID.test(userId) ? `<@${userId}>` : escapeText(oneLine(userId));
}

/** `<!subteam^S…>`: pings the members of a user group. */
export function mentionGroup(groupId: string): string {
  return GROUP_ID.test(groupId) ? `<!subteam^${groupId}>` : escapeText(oneLine(groupId));
}

/** A person by mention, or one of our parts in words: `U…`, `slack:U…`, `system:trip`, `cli:name`. */
export function actorName(actor: string): string {
  if (actor.startsWith("slack:")) return mentionUser(actor.slice(6));
  if (actor.startsWith("system:")) return "Countersign itself";
  return mentionUser(actor);
}

export function linkChannel(channelId: string): string {
  return CHANNEL_ID.test(channelId) ? `<#${channelId}>` : escapeText(oneLine(channelId));
}
