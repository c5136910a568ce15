/** The list of channels with what is unread, direct messages, and the app. */
/** @import { ChannelView } from "../../slack/control-types.js" */
import { byId, fill, h, icon } from "../dom.js";
import { openChannel, openHome, openThreads } from "../route.js";
import { store } from "../store.js";
import { avatar } from "./avatar.js";

export function setUpSidebar() {
  store.on(["workspace", "channels", "place", "people", "messages", "thread"], draw);
  byId("sidebar").addEventListener("keydown", moveFocus);
}

function draw() {
  const workspace = store.workspace;
  if (workspace === null) return;
  const focused =
    document.activeElement instanceof HTMLElement ? document.activeElement.dataset["entry"] : undefined;
  const rooms = workspace.channels.filter((c) => c.kind !== "dm");
  const mine = rooms.filter((c) => c.isMember && !c.isArchived);
  const others = rooms.filter((c) => !c.isMember && !c.isArchived);
  const archived = rooms.filter((c) => c.isArchived);
  const direct = workspace.channels.filter((c) => c.kind === "dm" && c.dmWith !== workspace.app.botUserId);
  fill(
    byId("channels"),
    h("ul", { class: "channel-top" }, h("li", null, threadsEntry())),
    group("Channels", mine.map(entry)),
    others.length > 0 ? group("Not joined", others.map(entry)) : null,
    direct.length > 0 ? group("Direct messages", direct.map(entry)) : null,
    group("Apps", [homeEntry()]),
    archived.length > 0 ? group("Archived", archived.map(entry)) : null,
  );
  if (focused !== undefined) {
    const again = byId("channels").querySelector(`[data-entry="${CSS.escape(focused)}"]`);
    if (again instanceof HTMLElement) again.focus({ preventScroll: true });
  }
}

/** @param {string} name @param {HTMLElement[]} entries */
function group(name, entries) {
  return h(
    "section",
    { class: "channel-group", "aria-label": name },
    h("h2", null, name),
    h(
      "ul",
      null,
      entries.map((item) => h("li", null, item)),
    ),
  );
}

/** @param {ChannelView} channel @returns {HTMLElement} */
function entry(channel) {
  const other = store.person(channel.dmWith);
  const name = channel.kind === "dm" ? (other?.realName ?? channel.name) : channel.name;
  const open = store.place.kind === "channel" && store.place.channel === channel.id;
  const unread = channel.unreadCount > 0;
  const counts = [
    unread ? `${channel.unreadCount} unread` : "",
    channel.mentionCount > 0 ? `${channel.mentionCount} mentions` : "",
  ]
    .filter((c) => c !== "")
    .join(", ");
  const node = h(
    "button",
    {
      type: "button",
      class: `channel-entry${open ? " channel-open" : ""}${unread ? " channel-unread" : ""}${channel.isMember ? "" : " channel-foreign"}`,
      "aria-current": open ? "page" : null,
      "aria-label": counts === "" ? name : `${name}, ${counts}`,
      data: { entry: channel.id },
    },
    channel.kind === "dm"
      ? avatar(other, name, "small")
      : icon(channel.isArchived ? "archive" : channel.kind === "private" ? "lock" : "hash"),
    h("span", { class: "channel-name" }, name),
    channel.isExtShared
      ? h("span", { class: "shared-mark", title: "Shared with another company" }, icon("shared"))
      : null,
    channel.mentionCount > 0 ? h("span", { class: "count" }, channel.mentionCount) : null,
  );
  node.addEventListener("click", () => void openChannel(channel.id));
  return node;
}

/** The way to the person's threads. */
function threadsEntry() {
  const open = store.place.kind === "threads";
  const unread = store.threads().filter((t) => t.isUnread).length;
  const node = h(
    "button",
    {
      type: "button",
      class: `channel-entry${open ? " channel-open" : ""}${unread > 0 ? " channel-unread" : ""}`,
      "aria-current": open ? "page" : null,
      "aria-label": unread > 0 ? `Threads, ${unread} unread` : null,
      data: { entry: "threads" },
    },
    icon("threads"),
    h("span", { class: "channel-name" }, "Threads"),
  );
  node.addEventListener("click", () => openThreads());
  return node;
}

/** The app: its home, and what is unread of its messages. */
function homeEntry() {
  const app = store.workspace?.app;
  const messages = store.workspace?.channels.find((c) => c.kind === "dm" && c.dmWith === app?.botUserId);
  const open =
    store.place.kind === "home" || (store.place.kind === "channel" && store.place.channel === messages?.id);
  const unread = messages?.unreadCount ?? 0;
  const node = h(
    "button",
    {
      type: "button",
      class: `channel-entry${open ? " channel-open" : ""}${unread > 0 ? " channel-unread" : ""}`,
      "aria-current": open ? "page" : null,
      "aria-label": unread > 0 ? `${app?.name}, ${unread} unread` : null,
      data: { entry: "home" },
    },
    avatar(store.person(app?.botUserId ?? null), app?.name ?? "App", "small"),
    h("span", { class: "channel-name" }, app?.name ?? "App"),
    unread > 0 ? h("span", { class: "count" }, unread) : null,
  );
  node.addEventListener("click", () => openHome());
  return node;
}

/** @param {KeyboardEvent} event */
function moveFocus(event) {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  const entries = /** @type {HTMLElement[]} */ ([...byId("channels").querySelectorAll("button")]);
  const at = entries.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  if (step === 0 || at === -1) return;
  event.preventDefault();
  entries[at + step]?.focus();
}
