/** The side panel with one thread. */
import { byId, iconButton } from "../dom.js";
import { closeThread, isNarrow } from "../route.js";
import { store } from "../store.js";
import { Composer } from "./composer.js";
import { MessageList } from "./message-list.js";

/** Closed, the thread gives the focus back to the message it hangs on. @param {string} ts */
function focusParent(ts) {
  const parent = byId("messages").querySelector(`article[data-ts="${CSS.escape(ts)}"]`);
  if (parent instanceof HTMLElement) parent.focus({ preventScroll: true });
}

export function setUpThread() {
  const panel = byId("thread");
  const list = new MessageList(byId("thread-messages"), { inThread: true });
  const composer = new Composer({ label: "Reply", withBroadcast: true });
  byId("thread-composer").replaceWith(composer.element);
  byId("thread-close").replaceWith(
    iconButton("close", "Close thread", { id: "thread-close", onclick: () => closeThread() }),
  );
  let shown = "";

  const draw = () => {
    const channel = store.openChannel;
    const ts = store.thread;
    const hadFocus = panel.contains(document.activeElement);
    panel.hidden = channel === null || ts === null;
    document.body.toggleAttribute("data-thread", !panel.hidden);
    if (channel === null || ts === null) {
      if (hadFocus) focusParent(shown.split("/").at(-1) ?? "");
      shown = "";
      return;
    }
    const key = `${store.as}/${channel.id}/${ts}`;
    const another = key !== shown;
    const stick = another || list.atBottom();
    if (another) list.clear();
    shown = key;
    byId("thread-where").textContent = channel.kind === "dm" ? "Direct message" : `#${channel.name}`;
    composer.open(channel.id, ts);
    list.draw(store.sorted(channel.id, ts), null);
    if (store.wanted !== null && list.reveal(store.wanted)) store.wanted = null;
    else if (stick) list.toBottom();
  };
  store.on(["thread", "workspace", "people"], draw);
  store.on(["messages", "message"], (detail) => {
    if (store.thread !== null && detail.channel === store.openChannel?.id) draw();
  });
  // Opened by hand, the panel takes the focus; a live update leaves it where it is. On a phone the keyboard would cover the thread.
  store.on(["thread"], () => {
    if (store.thread === null) return;
    if (isNarrow()) byId("thread-close").focus();
    else composer.input.focus();
  });
}
