/** The open channel: its head, its messages, and where to write. */
/** @import { ChannelView } from "../../slack/control-types.js" */
import { act } from "../api.js";
import { byId, fill, h, icon } from "../dom.js";
import { openHome } from "../route.js";
import { store } from "../store.js";
import { mrkdwn } from "../text/render.js";
import { Composer } from "./composer.js";
import { MessageList } from "./message-list.js";

/** @type {string | null} */
let shown = null;
let readSent = "";

export function setUpChannel() {
  const list = new MessageList(byId("messages"), { inThread: false });
  const composer = new Composer({ label: "Message", withBroadcast: false });
  byId("composer").replaceWith(composer.element);
  byId("app-home").addEventListener("click", () => openHome());
  const jump = byId("jump");
  jump.addEventListener("click", () => list.toBottom());
  list.element.addEventListener("scroll", () => {
    jump.hidden = list.atBottom();
    markRead(list);
  });
  document.addEventListener("visibilitychange", () => markRead(list));

  const draw = () => {
    const channel = store.openChannel;
    if (channel === null) {
      shown = null;
      return;
    }
    const another = shown !== `${store.as}/${channel.id}`;
    const stick = another || list.atBottom();
    if (another) list.clear();
    shown = `${store.as}/${channel.id}`;
    head(channel);
    composer.open(channel.id, null);
    const messages = store.sorted(channel.id, null);
    list.draw(messages, store.newAfter);
    byId("channel-empty").hidden = messages.length > 0 || !store.loadedChannels.has(channel.id);
    if (store.wanted !== null && list.reveal(store.wanted)) store.wanted = null;
    else if (stick) list.toBottom();
    jump.hidden = list.atBottom();
    markRead(list);
  };
  store.on(["workspace", "place", "people", "thread"], draw);
  store.on(["messages", "message"], (detail) => {
    if (detail.channel === store.openChannel?.id) draw();
  });
  store.on(["channels"], (detail) => {
    const channel = store.openChannel;
    if (channel === null || detail.channel !== channel.id) return;
    head(channel);
    composer.open(channel.id, null);
    markRead(list);
  });
  store.on(["message"], announce);
}

/** @param {ChannelView} channel */
function head(channel) {
  const other = store.person(channel.dmWith);
  const name = channel.kind === "dm" ? (other?.realName ?? channel.name) : channel.name;
  fill(
    byId("channel-title"),
    channel.kind === "dm"
      ? null
      : icon(channel.isArchived ? "archive" : channel.kind === "private" ? "lock" : "hash"),
    h("span", null, name),
  );
  const notes = [
    channel.isArchived ? "archived" : "",
    channel.isExtShared ? "shared with another company" : "",
  ].filter((n) => n !== "");
  fill(
    byId("channel-topic"),
    notes.map((note) => h("span", { class: "badge badge-foreign" }, note)),
    h("span", { class: "topic-text" }, channel.kind === "dm" ? (other?.title ?? "") : channel.topic),
    channel.kind === "dm"
      ? null
      : h(
          "span",
          {
            class: "members",
            title: channel.memberIds.map((id) => store.person(id)?.realName ?? id).join(", "),
          },
          `${channel.memberIds.length} members`,
        ),
  );
  byId("app-tabs").hidden = channel.kind !== "dm" || channel.dmWith !== store.workspace?.app.botUserId;
  document.title = `${channel.kind === "dm" ? name : `#${name}`} · ${store.workspace?.me.realName ?? ""} · ${store.workspace?.team.name ?? ""}`;
}

/** Read is what was on the screen of somebody who looks. @param {MessageList} list */
function markRead(list) {
  const channel = store.openChannel;
  if (channel === null || document.visibilityState !== "visible" || !list.atBottom()) return;
  if (channel.unreadCount === 0 && channel.mentionCount === 0) return;
  if (!store.loadedChannels.has(channel.id) || !channel.isMember) return;
  const last =
    [...(store.messages.get(channel.id)?.values() ?? [])]
      .flatMap((m) => [m.ts, m.latestReplyTs ?? ""])
      .sort()
      .at(-1) ?? "";
  const key = `${store.as}/${channel.id}/${last}`;
  if (last === "" || last <= (channel.lastReadTs ?? "") || key === readSent) return;
  readSent = key;
  void act("read", { channel: channel.id, ts: last });
}

const SPOKEN_MOST = 200;

/** The text as it stands on the page: names for ids, dates in words, no signs of markup. @param {string} source */
function spokenText(source) {
  const text = h("span", null, mrkdwn(source)).textContent ?? "";
  return text.length > SPOKEN_MOST ? `${text.slice(0, SPOKEN_MOST)}…` : text;
}

/** @type {Set<string>} */
const spoken = new Set();

/** Says new messages of others to those who listen. @param {{ channel?: string, ts?: string }} detail */
function announce({ channel = "", ts = "" }) {
  const message = store.message(channel, ts);
  const open = store.openChannel;
  if (message === undefined || open?.id !== channel || message.user === store.as || spoken.has(ts)) return;
  spoken.add(ts);
  byId("announcer").textContent = `${message.authorName}: ${spokenText(message.text)}`;
}
