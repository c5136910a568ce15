/** Puts the parts of the page together. */

import { byId, h, iconButton } from "./dom.js";
import { setUpInspector } from "./inspector/drawer.js";
import { closeThread, isNarrow, openChannel, showInspector, showList, start } from "./route.js";
import { store } from "./store.js";
import { clockTime } from "./text/dates.js";
import { setUpChannel } from "./ui/channel.js";
import { setUpHome } from "./ui/home.js";
import { setUpModals } from "./ui/modals.js";
import { openSwitcher, setUpPeople } from "./ui/people.js";
import { setUpSidebar } from "./ui/sidebar.js";
import { setUpThread } from "./ui/thread.js";
import { setUpThreads } from "./ui/threads.js";

setUpSidebar();
setUpChannel();
setUpThread();
setUpThreads();
setUpHome();
setUpPeople();
setUpModals();
setUpInspector();

store.on(["workspace"], () => {
  byId("team-name").textContent = store.workspace?.team.name ?? "";
});
store.on(["workspace", "connection"], () => {
  const connection = store.workspace?.connection;
  if (connection === undefined) return;
  const on = connection.connected > 0;
  const way = connection.mode === "socket" ? `Socket Mode, ${connection.connected} open` : "HTTP";
  const node = byId("connection");
  node.textContent = on ? "App connected" : "App not connected";
  node.title = on ? way : `${way}. Nobody answers: start the app.`;
  node.dataset["on"] = String(on);
});
store.on(["place"], () => {
  document.body.dataset["place"] = store.place.kind;
  byId("channel").hidden = store.place.kind !== "channel";
});
for (const place of ["channel-back", "home-back", "threads-back"]) {
  byId(place).replaceWith(
    iconButton("back", "Back to the channels", { class: "icon-button back", onclick: () => showList() }),
  );
}

// Links to channels inside messages and notes stay on the page.
document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target.closest("[data-channel]") : null;
  if (!(target instanceof HTMLElement) || target.dataset["channel"] === undefined) return;
  if (/** @type {MouseEvent} */ (event).ctrlKey || /** @type {MouseEvent} */ (event).metaKey) return;
  event.preventDefault();
  void openChannel(target.dataset["channel"]);
});

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || document.querySelector("dialog:modal, .menu:popover-open") !== null) return;
  if (event.altKey && event.code === "KeyI" && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    showInspector(!store.inspectorOpen);
    const tab = byId("inspector").querySelector("[role=tab][aria-selected=true]");
    if (store.inspectorOpen && tab instanceof HTMLElement) tab.focus();
    else byId("inspector-toggle").focus();
    return;
  }
  if (event.key === "Escape" && store.inspectorOpen && isIn(event.target, "inspector")) {
    showInspector(false);
    byId("inspector-toggle").focus();
    return;
  }
  // Behind a form of the app only the inspector is in use.
  if (document.querySelector("dialog[open]") !== null) return;
  if (event.key === "Escape") {
    if (store.thread !== null) closeThread();
    else if (store.inspectorOpen) showInspector(false);
    else if (isNarrow() && store.place.kind !== "list") showList();
    return;
  }
  if (!event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "ArrowUp" || event.key === "ArrowDown") {
    event.preventDefault();
    step(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.code === "KeyP") {
    event.preventDefault();
    openSwitcher();
  }
});

/** @param {EventTarget | null} target @param {string} id */
function isIn(target, id) {
  return target instanceof Node && byId(id).contains(target);
}

/** The next channel of the list. @param {number} by */
function step(by) {
  const mine = (store.workspace?.channels ?? []).filter(
    (c) => c.isMember && !c.isArchived && c.kind !== "dm",
  );
  const at = mine.findIndex((c) => store.place.kind === "channel" && store.place.channel === c.id);
  const next = mine[(at + by + mine.length) % mine.length];
  if (next !== undefined) void openChannel(next.id);
}

setInterval(() => {
  if (store.workspace !== null)
    byId("clock").textContent =
      `${clockTime(store.nowMs(), store.tz)}${Math.abs(store.clockSkewMs) > 60_000 ? " (moved)" : ""}`;
}, 1000);

try {
  await start();
} catch {
  byId("channels").replaceChildren(
    h("p", { class: "empty" }, "The sandbox does not answer. Start it and load this page again."),
  );
}
