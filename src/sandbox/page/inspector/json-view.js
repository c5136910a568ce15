/** JSON as text with colours for its parts: every part is a text node. */
import { h } from "../dom.js";

const PARTS = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/gu;
/** More than this is cut: the whole stays in the journal. */
const MAX = 40_000;

/** @param {unknown} value @returns {HTMLElement} */
export function jsonView(value) {
  const whole = JSON.stringify(value, null, 2) ?? "null";
  const text = whole.slice(0, MAX);
  const pre = h("pre", { class: "json", tabindex: "0" });
  let from = 0;
  for (const found of text.matchAll(PARTS)) {
    if (found.index > from) pre.append(text.slice(from, found.index));
    const [all, string, colon, word] = found;
    const kind =
      string !== undefined
        ? colon !== undefined
          ? "key"
          : "string"
        : word !== undefined
          ? "word"
          : "number";
    pre.append(h("span", { class: `json-${kind}` }, string ?? all), colon ?? "");
    from = found.index + all.length;
  }
  pre.append(text.slice(from));
  if (whole.length > MAX) pre.append(`\n… ${whole.length - MAX} more characters`);
  return pre;
}
