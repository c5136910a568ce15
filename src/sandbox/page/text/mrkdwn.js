/**
 * Slack's mrkdwn to a tree. Pure: no DOM, no names; the renderer puts those in.
 *
 * 1. Only `&amp;`, `&lt;` and `&gt;` are entities; everything between `<` and `>` is a link, a mention or a date.
 * 2. `*`, `_`, `~` mark only where Slack marks: not inside words, not across lines, not around spaces.
 * 3. Code keeps what stands in it; a link there shows its target.
 */
import { emojiChar } from "./emoji.js";

/**
 * @typedef {(
 *   | { t: "text", text: string }
 *   | { t: "bold" | "italic" | "strike" | "quote", children: Mark[] }
 *   | { t: "code" | "pre", text: string }
 *   | { t: "link", url: string, children: Mark[] }
 *   | { t: "user" | "channel" | "group", id: string, label: string }
 *   | { t: "broadcast", range: string }
 *   | { t: "date", seconds: number, format: string, url: string, fallback: string }
 *   | { t: "emoji", name: string }
 *   | { t: "break" }
 * )} Mark
 */

/** @param {string} text */
export function decode(text) {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

/**
 * @param {string} source
 * @param {{ verbatim?: boolean }} [options] `verbatim`: bare addresses stay text
 * @returns {Mark[]}
 */
export function parseMrkdwn(source, options = {}) {
  const link = options.verbatim !== true;
  /** @type {Mark[]} */
  const out = [];
  const parts = source.split("```");
  // An unclosed fence is no fence.
  const tail = parts.length % 2 === 0 ? `\`\`\`${parts.pop() ?? ""}` : "";
  parts.forEach((part, index) => {
    if (index % 2 === 1) out.push({ t: "pre", text: plainEntities(part.replace(/^\n|\n$/gu, "")) });
    else blocks(trimAround(part, index, parts.length), link, out);
  });
  if (tail !== "") blocks(tail, link, out);
  return out;
}

/** A fence stands on its own lines: the breaks next to it are not shown twice. @param {string} part @param {number} index @param {number} count */
function trimAround(part, index, count) {
  const start = index > 0 ? part.replace(/^\n/u, "") : part;
  return index < count - 1 ? start.replace(/\n$/u, "") : start;
}

const QUOTE = /^(?:&gt;|>)(?!&gt;|>) ?/u;
const QUOTE_REST = /^(?:&gt;|>){3} ?/u;

/** @param {string} text @param {boolean} link @param {Mark[]} out */
function blocks(text, link, out) {
  if (text === "") return;
  const lines = text.split("\n");
  let broken = false;
  for (let i = 0; i < lines.length; i += 1) {
    const line = lines[i] ?? "";
    if (QUOTE_REST.test(line)) {
      const rest = [line.replace(QUOTE_REST, ""), ...lines.slice(i + 1)];
      out.push({ t: "quote", children: joined(rest, link) });
      return;
    }
    if (QUOTE.test(line)) {
      const quoted = [];
      while (i < lines.length && QUOTE.test(lines[i] ?? "")) {
        quoted.push((lines[i] ?? "").replace(QUOTE, ""));
        i += 1;
      }
      i -= 1;
      out.push({ t: "quote", children: joined(quoted, link) });
      broken = false;
      continue;
    }
    if (broken) out.push({ t: "break" });
    inline(line, link, out);
    broken = true;
  }
}

/** @param {string[]} lines @param {boolean} link @returns {Mark[]} */
function joined(lines, link) {
  /** @type {Mark[]} */
  const out = [];
  lines.forEach((line, index) => {
    if (index > 0) out.push({ t: "break" });
    inline(line, link, out);
  });
  return out;
}

const MARKERS = /** @type {const} */ ({ "*": "bold", _: "italic", "~": "strike" });
const WORD = /[\p{L}\p{N}]/u;
const EMOJI = /:([a-z0-9_+'-]+(?:::skin-tone-[2-6])?):/uy;

/** Marks inside marks beyond this depth are text: nobody writes them, and hostile text must not exhaust the stack. */
const DEEPEST = 8;

/**
 * One line. Its time grows with its length: a mark that found no end is not looked for again.
 * @param {string} text @param {boolean} link @param {Mark[]} out @param {number} [depth]
 */
function inline(text, link, out, depth = 0) {
  const ends = { tick: text.lastIndexOf("`"), angle: text.lastIndexOf(">") };
  /** @type {Set<string>} */
  const endless = new Set();
  let plain = "";
  let i = 0;
  while (i < text.length) {
    const char = text[i] ?? "";
    const found = special(text, i, char);
    if (found === null) {
      plain += char;
      i += 1;
      continue;
    }
    if (plain !== "") pushText(plain, link, out);
    plain = "";
    out.push(found.mark);
    i = found.next;
  }
  if (plain !== "") pushText(plain, link, out);

  /** @param {string} line @param {number} at @param {string} char @returns {{ mark: Mark, next: number } | null} */
  function special(line, at, char) {
    if (char === "`" && at < ends.tick) {
      const end = line.indexOf("`", at + 1);
      return end > at + 1
        ? { mark: { t: "code", text: plainEntities(line.slice(at + 1, end)) }, next: end + 1 }
        : null;
    }
    if (char === "<" && at < ends.angle) {
      const end = line.indexOf(">", at);
      const mark = end > at + 1 ? entity(line.slice(at + 1, end)) : null;
      return mark === null ? null : { mark, next: end + 1 };
    }
    if (char === ":") {
      EMOJI.lastIndex = at;
      const name = EMOJI.exec(line)?.[1];
      if (name === undefined || emojiChar(name) === undefined) return null;
      return { mark: { t: "emoji", name }, next: at + name.length + 2 };
    }
    if ((char !== "*" && char !== "_" && char !== "~") || depth >= DEEPEST || endless.has(char)) return null;
    if (!opens(line, at)) return null;
    const end = closing(line, at, ends);
    if (end === -1) {
      endless.add(char);
      return null;
    }
    /** @type {Mark[]} */
    const children = [];
    inline(line.slice(at + 1, end), link, children, depth + 1);
    return { mark: { t: MARKERS[char], children }, next: end + 1 };
  }
}

/** Can a mark open here: not inside a word, not before a space or itself. @param {string} text @param {number} at */
function opens(text, at) {
  const mark = text[at];
  const before = text[at - 1] ?? "";
  const first = text[at + 1] ?? "";
  return !WORD.test(before) && before !== mark && first !== "" && first !== mark && !/\s/u.test(first);
}

/**
 * Where the mark that opens at `start` closes, or -1.
 * @param {string} text @param {number} start @param {{ tick: number, angle: number }} ends
 */
function closing(text, start, ends) {
  const mark = text[start];
  for (let i = start + 1; i < text.length; i += 1) {
    const char = text[i];
    if (char === "`" && i < ends.tick) i = text.indexOf("`", i + 1);
    else if (char === "<" && i < ends.angle) i = text.indexOf(">", i + 1);
    else if (char === mark && !/\s/u.test(text[i - 1] ?? " ")) {
      const after = text[i + 1] ?? "";
      if (!WORD.test(after) && after !== mark) return i;
    }
  }
  return -1;
}

/** What stands between `<` and `>`; null when it is none of Slack's. @param {string} inner @returns {Mark | null} */
function entity(inner) {
  const bar = inner.indexOf("|");
  const target = bar === -1 ? inner : inner.slice(0, bar);
  const label = bar === -1 ? "" : decode(inner.slice(bar + 1));
  if (/^@[UWB]\w*$/u.test(target)) return { t: "user", id: target.slice(1), label };
  if (/^#[CGD]\w*$/u.test(target)) return { t: "channel", id: target.slice(1), label };
  if (target.startsWith("!subteam^")) return { t: "group", id: target.slice(9), label };
  if (target.startsWith("!date^")) return date(target.slice(6), label);
  if (/^!(?:here|channel|everyone)$/u.test(target)) return { t: "broadcast", range: target.slice(1) };
  if (target.startsWith("!")) return { t: "text", text: label === "" ? `<${decode(inner)}>` : label };
  if (/^(?:https?|mailto|tel):/iu.test(target)) {
    const url = decode(target);
    return {
      t: "link",
      url,
      children: [{ t: "text", text: label === "" ? url.replace(/^mailto:/u, "") : label }],
    };
  }
  return null;
}

/** `TS^FORMAT[^URL]`. @param {string} target @param {string} fallback @returns {Mark} */
function date(target, fallback) {
  const [seconds = "", format = "", url = ""] = target.split("^");
  if (!/^\d+$/u.test(seconds) || format === "") return { t: "text", text: fallback };
  return { t: "date", seconds: Number(seconds), format: decode(format), url: decode(url), fallback };
}

/** Code shows links as their target. @param {string} text */
function plainEntities(text) {
  return decode(text.replace(/<([^<>|]+)(?:\|[^<>]*)?>/gu, (_whole, /** @type {string} */ target) => target));
}

const BARE_URL = /\bhttps?:\/\/[^\s<>|]*[^\s<>|.,;:!?)\]'"]/giu;

/** @param {string} raw @param {boolean} link @param {Mark[]} out */
function pushText(raw, link, out) {
  const text = decode(raw);
  if (!link) {
    out.push({ t: "text", text });
    return;
  }
  let from = 0;
  for (const found of text.matchAll(BARE_URL)) {
    if (found.index > from) out.push({ t: "text", text: text.slice(from, found.index) });
    out.push({ t: "link", url: found[0], children: [{ t: "text", text: found[0] }] });
    from = found.index + found[0].length;
  }
  if (from < text.length) out.push({ t: "text", text: text.slice(from) });
}

/**
 * A plain_text: emoji, line breaks and the three entities, which Slack decodes in every text object; nothing else.
 * @param {string} text @param {boolean} emoji @returns {Mark[]}
 */
export function parsePlain(text, emoji) {
  /** @type {Mark[]} */
  const out = [];
  text.split("\n").forEach((raw, index) => {
    const line = decode(raw);
    if (index > 0) out.push({ t: "break" });
    if (!emoji) {
      if (line !== "") out.push({ t: "text", text: line });
      return;
    }
    let from = 0;
    for (const found of line.matchAll(/:([a-z0-9_+'-]+(?:::skin-tone-[2-6])?):/gu)) {
      const name = found[1] ?? "";
      if (emojiChar(name) === undefined || found.index < from) continue;
      if (found.index > from) out.push({ t: "text", text: line.slice(from, found.index) });
      out.push({ t: "emoji", name });
      from = found.index + found[0].length;
    }
    if (from < line.length) out.push({ t: "text", text: line.slice(from) });
  });
  return out;
}
