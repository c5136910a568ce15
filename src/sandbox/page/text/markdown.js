/**
 * The text of a `markdown` block. `marked` reads it into tokens; only tokens that Slack shows become elements, and raw
 * HTML stays the text that it is.
 */
/** @import { Token, Tokens } from "marked" */
import { append, h } from "../dom.js";
import { emojiChar } from "./emoji.js";
import { decode } from "./mrkdwn.js";
import { emojiNode, linkNode } from "./render.js";

/** The sandbox serves the package's file from here. A variable, because it is an address and no file of this directory. */
const MARKED = "/vendor/marked.js";
const { lexer } = /** @type {typeof import("marked")} */ (await import(MARKED));

/** @param {string} source @returns {Node[]} */
export function markdown(source) {
  return blocks(lexer(source, { gfm: true }));
}

/** @param {Token[]} tokens @returns {Node[]} */
function blocks(tokens) {
  return tokens.flatMap((token) => block(token));
}

/** @param {Token} token @returns {Node[]} */
function block(token) {
  switch (token.type) {
    case "space":
    case "def":
      return [];
    case "heading":
      return [
        h(
          "div",
          {
            class: `md-heading md-heading-${Math.min(token["depth"], 4)}`,
            role: "heading",
            "aria-level": String(token["depth"] + 2),
          },
          inline(token),
        ),
      ];
    case "paragraph":
      return [h("p", null, inline(token))];
    case "text":
      return "tokens" in token && token.tokens !== undefined ? inline(token) : withEmoji(token.raw);
    case "code":
      return [h("pre", { tabindex: "0" }, token["text"])];
    case "blockquote":
      return [h("blockquote", null, blocks(token.tokens ?? []))];
    case "hr":
      return [h("hr")];
    case "list":
      return [listNode(/** @type {Tokens.List} */ (token))];
    case "table":
      return [tableNode(/** @type {Tokens.Table} */ (token))];
    default:
      return [document.createTextNode(token.raw)];
  }
}

/** @param {Tokens.List} token @returns {Node} */
function listNode(token) {
  const items = token.items.map((item) =>
    h(
      "li",
      item.task ? { class: "task" } : null,
      item.task ? `${item.checked === true ? "☑" : "☐"} ` : null,
      blocks(item.tokens.filter((inner) => String(inner.type) !== "checkbox")),
    ),
  );
  if (!token.ordered) return h("ul", null, items);
  return h("ol", { start: typeof token.start === "number" ? String(token.start) : null }, items);
}

/** @param {Tokens.Table} token @returns {Node} */
function tableNode(token) {
  const head = h(
    "tr",
    null,
    token.header.map((cell) => h("th", { scope: "col" }, cell.tokens.flatMap(span))),
  );
  const rows = token.rows.map((row) =>
    h(
      "tr",
      null,
      row.map((cell) => h("td", null, cell.tokens.flatMap(span))),
    ),
  );
  return h(
    "div",
    { class: "table-scroll", tabindex: "0" },
    h("table", null, h("thead", null, head), h("tbody", null, rows)),
  );
}

/** @param {{ tokens?: Token[] | undefined, raw: string }} token @returns {Node[]} */
function inline(token) {
  return (token.tokens ?? []).flatMap(span);
}

/** @param {Token} token @returns {Node[]} */
function span(token) {
  switch (token.type) {
    case "strong":
      return [h("strong", null, inline(token))];
    case "em":
      return [h("em", null, inline(token))];
    case "del":
      return [h("s", null, inline(token))];
    case "codespan":
      return [h("code", null, token["text"])];
    case "br":
      return [h("br")];
    case "link":
      return [linkNode(token["href"], inline(token))];
    case "image":
      return [linkNode(token["href"], [document.createTextNode(token["text"] || token["href"])])];
    case "escape":
      return [document.createTextNode(token["text"])];
    case "text":
      return "tokens" in token && token.tokens !== undefined ? inline(token) : lines(token["text"]);
    default:
      return [document.createTextNode(token.raw)];
  }
}

/** Slack keeps single line breaks. @param {string} text @returns {Node[]} */
function lines(text) {
  return text
    .split("\n")
    .flatMap((line, index) => (index === 0 ? withEmoji(line) : [h("br"), ...withEmoji(line)]));
}

/** @param {string} raw @returns {Node[]} */
function withEmoji(raw) {
  const holder = document.createDocumentFragment();
  for (const part of decode(raw).split(/(:[a-z0-9_+'-]+:)/u)) {
    const name = /^:(.+):$/u.exec(part)?.[1];
    append(holder, [name !== undefined && emojiChar(name) !== undefined ? emojiNode(name) : part]);
  }
  return [...holder.childNodes];
}
