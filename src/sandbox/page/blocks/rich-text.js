/** rich_text: what people write, and lists, quotes and code of the app. */
/** @import { JsonObject } from "../../slack/control-types.js" */
import { append, h } from "../dom.js";
import { list, num, obj, str } from "../json.js";
import { channelNode, dateNode, emojiNode, groupNode, linkNode, userNode } from "../text/render.js";

/** @param {JsonObject} block @returns {HTMLElement} */
export function richText(block) {
  return h("div", { class: "rich-text" }, list(block["elements"]).map(part));
}

/** @param {JsonObject} element @returns {Node} */
function part(element) {
  switch (element["type"]) {
    case "rich_text_section":
      return h("div", null, spans(element));
    case "rich_text_preformatted":
      return h("pre", { tabindex: "0" }, spans(element));
    case "rich_text_quote":
      return h("blockquote", null, spans(element));
    case "rich_text_list":
      return listOf(element);
    default:
      return h("div", { class: "unknown" }, `(${str(element["type"])})`);
  }
}

/** @param {JsonObject} element @returns {HTMLElement} */
function listOf(element) {
  const items = list(element["elements"]).map((item) => h("li", null, spans(item)));
  const indent = { css: { "--indent": String(num(element["indent"], 0)) } };
  return element["style"] === "ordered"
    ? h("ol", { ...indent, start: String(num(element["offset"], 0) + 1) }, items)
    : h("ul", indent, items);
}

/** @param {JsonObject} element @returns {Node[]} */
function spans(element) {
  return list(element["elements"]).map((item) => styled(item, bare(item)));
}

/** @param {JsonObject} item @returns {Node} */
function bare(item) {
  switch (item["type"]) {
    case "text":
      return breaks(str(item["text"]));
    case "link":
      return linkNode(str(item["url"]), [document.createTextNode(str(item["text"]) || str(item["url"]))]);
    case "user":
      return userNode(str(item["user_id"]));
    case "usergroup":
      return groupNode(str(item["usergroup_id"]));
    case "channel":
      return channelNode(str(item["channel_id"]));
    case "broadcast":
      return h("span", { class: "mention mention-me" }, `@${str(item["range"])}`);
    case "emoji":
      return emojiNode(str(item["name"]));
    case "date":
      return dateNode({
        seconds: num(item["timestamp"], 0),
        format: str(item["format"]),
        fallback: str(item["fallback"]),
        url: str(item["url"]),
      });
    case "color":
      return h("code", null, str(item["value"]));
    default:
      return document.createTextNode(str(item["text"]));
  }
}

/** @param {string} text @returns {Node} */
function breaks(text) {
  const holder = document.createDocumentFragment();
  text.split("\n").forEach((line, index) => {
    append(holder, [index > 0 ? h("br") : null, line]);
  });
  return holder;
}

/** @param {JsonObject} item @param {Node} inner @returns {Node} */
function styled(item, inner) {
  const style = obj(item["style"]);
  let node = inner;
  if (style["code"] === true) node = h("code", null, node);
  if (style["bold"] === true) node = h("strong", null, node);
  if (style["italic"] === true) node = h("em", null, node);
  if (style["strike"] === true) node = h("s", null, node);
  if (style["underline"] === true) node = h("u", null, node);
  return node;
}
