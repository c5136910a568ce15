/**
 * Slack's wire text, decoded once (facts: S-SL-6). `<mailto:a@b|a@b>` becomes `a@b`, `<https://x|label>` its label, mentions
 * their id, and `&amp; &lt; &gt;` their characters; everything else stays as the person typed it.
 */
export function decodeSlackText(wire: string): string {
  return wire
    .split(/(<[^<>]*>)/u)
    .map((part) =>
      part.startsWith("<") && part.endsWith(">") ? decodeEntity(part.slice(1, -1)) : unescapeText(part),
    )
    .join("");
}

function decodeEntity(inner: string): string {
  const bar = inner.indexOf("|");
  const target = bar < 0 ? inner : inner.slice(0, bar);
  const label = bar < 0 ? "" : inner.slice(bar + 1);
  if (target.startsWith("@")) return `@${unescapeText(label === "" ? target.slice(1) : label)}`;
  if (target.startsWith("#")) return `#${unescapeText(label === "" ? target.slice(1) : label)}`;
  if (target.startsWith("!date^")) return unescapeText(label === "" ? "" : label);
  if (target.startsWith("!subteam^")) return unescapeText(label === "" ? `@${target.slice(9)}` : label);
  if (target.startsWith("!")) return `@${unescapeText(label === "" ? target.slice(1) : label)}`;
  if (label !== "") return unescapeText(label);
  return unescapeText(target.replace(/^(?:mailto|tel):/u, ""));
}

function unescapeText(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

/**
 * What a person typed behind `/ops`: curly quotes, non-breaking blanks and long dashes are what keyboards make of plain ones
 * (S-SL-6). Names the first character that is still none of ours.
 */
export function normaliseCommand(
  typed: string,
):
  | { readonly ok: true; readonly words: readonly string[] }
  | { readonly ok: false; readonly character: string } {
  const plain = decodeSlackText(typed)
    .normalize("NFKC")
    .replace(/[\u2018\u2019\u201A\u201B\u201C\u201D\u201E\u201F\u00AB\u00BB"'`]/gu, "")
    .replace(/[\u2010-\u2015\u2212]/gu, "-")
    .replace(/[\u200B-\u200D\u2060\uFEFF\u00AD]/gu, "")
    .replace(/\s+/gu, " ")
    .trim();
  const odd = /[^A-Za-z0-9_\-.:#@ ]/u.exec(plain);
  if (odd !== null) return { ok: false, character: odd[0] };
  return { ok: true, words: plain === "" ? [] : plain.split(" ") };
}
