/** Every thread that concerns the person: what began it and its newest replies, with the way in. */
/** @import { MessageView } from "../../slack/control-types.js" */
import { byId, fill, h } from "../dom.js";
import { loadThread, openThread } from "../route.js";
import { store } from "../store.js";
import { messageNode } from "./message.js";

const SHOWN = 30;
const REPLIES_SHOWN = 2;

export function setUpThreads() {
  store.on(["workspace", "place", "messages", "message", "people", "channels"], draw);
}

function draw() {
  const panel = byId("threads");
  panel.hidden = store.place.kind !== "threads";
  if (panel.hidden) return;
  document.title = `Threads · ${store.workspace?.me.realName ?? ""}`;
  const body = byId("threads-body");
  const held =
    document.activeElement instanceof HTMLElement ? document.activeElement.dataset["thread"] : undefined;
  const { scrollTop } = body;
  const threads = store.threads().slice(0, SHOWN);
  fill(
    body,
    threads.length === 0
      ? h("p", { class: "empty" }, "No thread concerns you yet.")
      : threads.map(({ parent, isUnread }) => entry(parent, isUnread)),
  );
  body.scrollTop = scrollTop;
  if (held === undefined) return;
  const again = body.querySelector(`[data-thread="${CSS.escape(held)}"]`);
  if (again instanceof HTMLElement) again.focus({ preventScroll: true });
}

/** @param {MessageView} parent @param {boolean} isUnread */
function entry(parent, isUnread) {
  void loadThread(parent.channel, parent.ts);
  const replies = store.sorted(parent.channel, parent.ts).filter((m) => m.ts !== parent.ts && !m.ephemeral);
  const hidden = parent.replyCount - Math.min(replies.length, REPLIES_SHOWN);
  const channel = store.channel(parent.channel);
  const name = channel === undefined || channel.kind === "dm" ? "Direct message" : `#${channel.name}`;
  const open = h(
    "button",
    { type: "button", class: "button button-small", data: { thread: parent.ts } },
    hidden > 0 ? `Open thread, ${hidden} more` : "Open thread",
  );
  open.addEventListener("click", () => void openThread(parent.channel, parent.ts));
  return h(
    "section",
    { class: isUnread ? "thread-entry thread-unread" : "thread-entry", "aria-label": `Thread in ${name}` },
    h(
      "h2",
      null,
      h("a", { href: `/archives/${parent.channel}?as=${store.as}`, data: { channel: parent.channel } }, name),
      isUnread ? h("span", { class: "badge badge-new" }, "New") : null,
    ),
    [parent, ...replies.slice(-REPLIES_SHOWN)].map((m) => messageNode(m, { compact: false, inThread: true })),
    h("div", { class: "thread-foot" }, open),
  );
}
