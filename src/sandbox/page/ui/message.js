/** One message, as it stands in a channel or a thread. */
/** @import { JsonObject, MessageView } from "../../slack/control-types.js" */
import { act } from "../api.js";
import { renderBlocks } from "../blocks/render.js";
import { Surface } from "../blocks/surface.js";
import { h, iconButton } from "../dom.js";
import { isObject, list, str } from "../json.js";
import { openThread } from "../route.js";
import { store } from "../store.js";
import { ago, clockTime, fullTime, tsMs } from "../text/dates.js";
import { emojiNode, linkNode, mrkdwn } from "../text/render.js";
import { avatar } from "./avatar.js";
import { openMessageMenu, openReactionMenu, startEdit } from "./message-menu.js";

/** @typedef {{ compact: boolean, inThread: boolean }} Manner */

/** @param {MessageView} message @param {Manner} manner @returns {HTMLElement} */
export function messageNode(message, manner) {
  const person = store.person(message.user);
  const ms = tsMs(message.ts);
  const time = h(
    "time",
    { class: "time", datetime: new Date(ms).toISOString(), title: fullTime(ms, store.tz) },
    clockTime(ms, store.tz),
  );
  const node = h(
    "article",
    {
      class: classes(message, manner),
      tabindex: "-1",
      "aria-label": `${message.authorName}, ${clockTime(ms, store.tz)}`,
      data: { ts: message.ts },
    },
    h(
      "div",
      { class: "message-side" },
      manner.compact ? time.cloneNode(true) : avatar(person, message.authorName),
    ),
    h(
      "div",
      { class: "message-main" },
      message.ephemeral ? ephemeralNote(message) : null,
      manner.compact ? null : heading(message, time),
      message.broadcast && !manner.inThread ? threadNote(message) : null,
      content(message),
      message.edited && message.botId === null ? h("span", { class: "edited" }, "(edited)") : null,
      message.reactions.length > 0 ? reactions(message) : null,
      message.replyCount > 0 && !manner.inThread ? repliesLink(message) : null,
    ),
    message.subtype === "tombstone" ? null : toolbar(message, manner),
  );
  node.addEventListener("keydown", (event) => keys(event, node, message, manner));
  return node;
}

/** @param {MessageView} message @param {Manner} manner */
function classes(message, { compact }) {
  const names = ["message"];
  if (compact) names.push("message-compact");
  if (message.ephemeral) names.push("message-ephemeral");
  if (message.streaming) names.push("message-streaming");
  if (message.subtype !== null && /^(?:channel|group)_|^tombstone$/u.test(message.subtype))
    names.push("message-system");
  return names.join(" ");
}

/** @param {MessageView} message @param {HTMLElement} time */
function heading(message, time) {
  const person = store.person(message.user);
  const foreign = person !== undefined && person.teamId !== store.workspace?.me.teamId;
  return h(
    "div",
    { class: "message-head" },
    h("span", { class: "author", title: person?.title ?? "" }, message.authorName),
    message.botId === null ? null : h("span", { class: "badge" }, "App"),
    foreign ? h("span", { class: "badge badge-foreign", title: person.title }, "Other company") : null,
    time,
  );
}

/** @param {MessageView} message */
function ephemeralNote(message) {
  const dismiss = h("button", { type: "button", class: "link-button" }, "Dismiss");
  dismiss.addEventListener("click", async () => {
    const result = await act("delete", { channel: message.channel, ts: message.ts });
    if (result.ok) {
      store.dropLive(message.channel, message.ts);
      store.emit("message", { channel: message.channel, ts: message.ts });
    }
  });
  return h("div", { class: "ephemeral-note" }, "Only visible to you", dismiss);
}

/** @param {MessageView} message */
function threadNote(message) {
  const link = h("button", { type: "button", class: "link-button" }, "replied to a thread");
  link.addEventListener("click", () => void openThread(message.channel, message.threadTs ?? message.ts));
  return h("div", { class: "thread-note" }, link);
}

/** @param {MessageView} message @returns {HTMLElement} */
function content(message) {
  const surface = new Surface("message", { channel: message.channel, ts: message.ts });
  const body =
    message.blocks.length > 0
      ? renderBlocks(message.blocks, surface)
      : [h("div", { class: "plain-body" }, mrkdwn(message.text))];
  return h(
    "div",
    { class: "message-content" },
    body,
    message.attachments.map((a) => attachment(a, message)),
    message.files.map(file),
  );
}

/** Attachments of the older kind. @param {JsonObject} raw @param {MessageView} message */
function attachment(raw, message) {
  const color = str(raw["color"]).replace(/^#?/u, "#");
  const surface = new Surface("message", { channel: message.channel, ts: message.ts });
  const title = str(raw["title"]);
  const text = str(raw["text"]) || (Array.isArray(raw["blocks"]) ? "" : str(raw["fallback"]));
  return h(
    "div",
    { class: "attachment", css: /^#[0-9a-f]{3,8}$/iu.test(color) ? { "--bar": color } : {} },
    raw["pretext"] === undefined ? null : h("div", null, mrkdwn(str(raw["pretext"]))),
    title === ""
      ? null
      : h(
          "div",
          { class: "attachment-title" },
          raw["title_link"] === undefined
            ? title
            : linkNode(str(raw["title_link"]), [document.createTextNode(title)]),
        ),
    text === "" ? null : h("div", null, mrkdwn(text)),
    list(raw["fields"]).map((field) =>
      h("div", null, h("strong", null, str(field["title"])), " ", mrkdwn(str(field["value"]))),
    ),
    renderBlocks(list(raw["blocks"]), surface),
    isObject(raw["footer"]) || raw["footer"] === undefined
      ? null
      : h("div", { class: "attachment-foot" }, str(raw["footer"])),
  );
}

/** @param {{ name: string, mimetype: string, size: number }} one */
function file(one) {
  return h(
    "div",
    { class: "file" },
    h("span", { class: "file-name" }, one.name),
    h("span", null, `${one.mimetype}, ${Math.ceil(one.size / 1024)} kB`),
  );
}

/** @param {MessageView} message */
function reactions(message) {
  return h(
    "div",
    { class: "reactions" },
    message.reactions.map((reaction) => {
      const mine = reaction.users.includes(store.as);
      const names = reaction.users.map((id) => store.person(id)?.realName ?? id).join(", ");
      const node = h(
        "button",
        {
          type: "button",
          class: mine ? "reaction reaction-mine" : "reaction",
          "aria-pressed": String(mine),
          title: `${names}: ${reaction.name}`,
        },
        emojiNode(reaction.name),
        h("span", null, reaction.users.length),
      );
      node.addEventListener(
        "click",
        () => void act("react", { channel: message.channel, ts: message.ts, name: reaction.name }),
      );
      return node;
    }),
  );
}

/** @param {MessageView} message */
function repliesLink(message) {
  const last = message.latestReplyTs;
  const isOpen = store.thread === message.ts;
  const isNew = !isOpen && last !== null && store.newAfter !== null && last > store.newAfter;
  const node = h(
    "button",
    { type: "button", class: isNew ? "replies replies-new" : "replies" },
    message.replyUsers
      .slice(0, 4)
      .map((id) => avatar(store.person(id), store.person(id)?.realName ?? id, "small")),
    h(
      "span",
      { class: "replies-count" },
      message.replyCount === 1 ? "1 reply" : `${message.replyCount} replies`,
    ),
    last === null ? null : h("span", { class: "replies-last" }, ago(tsMs(last), store.nowMs())),
  );
  node.addEventListener("click", () => void openThread(message.channel, message.ts));
  return node;
}

/** @param {MessageView} message @param {Manner} manner */
function toolbar(message, manner) {
  const more = iconButton("more", "More actions", { "aria-haspopup": "menu" });
  more.addEventListener("click", () => openMessageMenu(more, message));
  if (message.ephemeral) return null;
  const react = iconButton("smile", "React", { "aria-haspopup": "menu" });
  react.addEventListener("click", () => openReactionMenu(react, message));
  const reply = iconButton("reply", "Reply in thread");
  reply.addEventListener("click", () => void openThread(message.channel, message.threadTs ?? message.ts));
  return h(
    "div",
    { class: "toolbar", role: "toolbar", "aria-label": "Message" },
    react,
    manner.inThread ? null : reply,
    more,
  );
}

/** @param {KeyboardEvent} event @param {HTMLElement} node @param {MessageView} message @param {Manner} manner */
function keys(event, node, message, manner) {
  if (event.target !== node || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Enter" || event.key === "t") {
    if (manner.inThread) return;
    event.preventDefault();
    void openThread(message.channel, message.threadTs ?? message.ts);
  } else if (event.key === "." || event.key === "m") {
    event.preventDefault();
    openMessageMenu(node, message);
  } else if (event.key === "e" && message.user === store.as) {
    event.preventDefault();
    startEdit(message);
  }
}
