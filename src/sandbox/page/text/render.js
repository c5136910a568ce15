/** The trees of mrkdwn and plain text as nodes of the page, with the names of people, channels and groups put in. */
/** @import { Mark } from "./mrkdwn.js" */
import { h } from "../dom.js";
import { isObject, str } from "../json.js";
import { store } from "../store.js";
import { formatDate, fullTime } from "./dates.js";
import { emojiChar } from "./emoji.js";
import { parseMrkdwn, parsePlain } from "./mrkdwn.js";

/** @param {string} source @param {{ verbatim?: boolean }} [options] @returns {Node[]} */
export function mrkdwn(source, options) {
  return parseMrkdwn(source, options).map(node);
}

/** A text object of either kind, or nothing. @param {unknown} value @returns {Node[]} */
export function textObject(value) {
  if (!isObject(value)) return [];
  const text = str(value["text"]);
  return value["type"] === "mrkdwn"
    ? mrkdwn(text, { verbatim: value["verbatim"] === true })
    : parsePlain(text, value["emoji"] !== false).map(node);
}

/** @param {Mark} mark @returns {Node} */
function node(mark) {
  switch (mark.t) {
    case "text":
      return document.createTextNode(mark.text);
    case "bold":
      return h("strong", null, mark.children.map(node));
    case "italic":
      return h("em", null, mark.children.map(node));
    case "strike":
      return h("s", null, mark.children.map(node));
    case "quote":
      return h("blockquote", null, mark.children.map(node));
    case "code":
      return h("code", null, mark.text);
    case "pre":
      return h("pre", { tabindex: "0" }, mark.text);
    case "link":
      return linkNode(mark.url, mark.children.map(node));
    case "user":
      return userNode(mark.id, mark.label);
    case "channel":
      return channelNode(mark.id, mark.label);
    case "group":
      return groupNode(mark.id, mark.label);
    case "broadcast":
      return h("span", { class: "mention mention-me" }, `@${mark.range}`);
    case "date":
      return dateNode(mark);
    case "emoji":
      return emojiNode(mark.name);
    case "break":
      return h("br");
  }
}

/** @param {string} url @param {Node[]} children @returns {HTMLElement} */
export function linkNode(url, children) {
  const anchor = h("a", { href: url, target: "_blank", rel: "noopener noreferrer", title: url }, children);
  // An address that may not be opened stays readable and does nothing.
  return anchor.hasAttribute("href") ? anchor : h("span", { title: "This address is not opened." }, children);
}

/** @param {string} id @param {string} [label] @returns {HTMLElement} */
export function userNode(id, label = "") {
  const person = store.person(id);
  const mine = id === store.as;
  return h(
    "span",
    {
      class: mine ? "mention mention-me" : "mention",
      title: person === undefined ? id : `${person.realName}, ${person.title}`,
    },
    `@${person?.realName ?? (label || id)}`,
  );
}

/** @param {string} id @param {string} [label] @returns {HTMLElement} */
export function channelNode(id, label = "") {
  const channel = store.channel(id);
  if (channel === undefined)
    return h("span", { class: "mention" }, label === "" ? "a private channel" : `#${label}`);
  return h(
    "a",
    { class: "mention", href: `/archives/${id}?as=${store.as}`, data: { channel: id } },
    `#${channel.name}`,
  );
}

/** @param {string} id @param {string} [label] @returns {HTMLElement} */
export function groupNode(id, label = "") {
  const group = store.group(id);
  const mine = group?.users.includes(store.as) === true;
  const name = group === undefined ? label.replace(/^@/u, "") || id : group.handle;
  return h("span", { class: mine ? "mention mention-me" : "mention", title: group?.name ?? id }, `@${name}`);
}

/** @param {string} name @returns {HTMLElement} */
export function emojiNode(name) {
  const char = emojiChar(name);
  return h(
    "span",
    { class: "emoji", role: "img", "aria-label": name.replaceAll("_", " "), title: `:${name}:` },
    char ?? `:${name}:`,
  );
}

/** @param {{ seconds: number, format: string, fallback: string, url: string }} date @returns {HTMLElement} */
export function dateNode(date) {
  const text = formatDate(date, { tz: store.tz, nowMs: store.nowMs() });
  const title = fullTime(date.seconds * 1000, store.tz);
  const time = h("time", { datetime: new Date(date.seconds * 1000).toISOString(), title }, text);
  return date.url === "" ? time : linkNode(date.url, [time]);
}
