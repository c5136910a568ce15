/** The inspector: what went over the wire, faults to switch on, and both books side by side. */
import { byId, h, iconButton } from "../dom.js";
import { showInspector } from "../route.js";
import { store } from "../store.js";
import { booksPanel } from "./books.js";
import { faultsPanel } from "./faults-panel.js";
import { wirePanel } from "./wire.js";

/** @typedef {{ element: HTMLElement, shown: (visible: boolean) => void }} Panel */

export function setUpInspector() {
  const drawer = byId("inspector");
  const toggle = byId("inspector-toggle");
  /** @type {[string, string, Panel][]} */
  const panels = [
    ["requests", "Requests", wirePanel()],
    ["faults", "Faults", faultsPanel()],
    ["books", "Books", booksPanel()],
  ];
  let current = "requests";
  const tabs = panels.map(([id, name, panel]) => {
    panel.element.id = `panel-${id}`;
    panel.element.setAttribute("role", "tabpanel");
    panel.element.setAttribute("aria-labelledby", `tab-${id}`);
    const tab = h(
      "button",
      { type: "button", class: "tab", role: "tab", id: `tab-${id}`, "aria-controls": `panel-${id}` },
      name,
    );
    tab.addEventListener("click", () => choose(id));
    return tab;
  });
  const tablist = h("div", { class: "tabs", role: "tablist", "aria-label": "Inspector" }, tabs);
  tablist.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    const at = panels.findIndex(([id]) => id === current);
    const next = (at + step + panels.length) % panels.length;
    choose(panels[next]?.[0] ?? current);
    tabs[next]?.focus();
  });
  drawer.append(
    h(
      "header",
      { class: "pane-head" },
      h("div", { class: "pane-titles" }, h("h2", null, "Inspector")),
      tablist,
      iconButton("close", "Close inspector", { onclick: () => showInspector(false) }),
    ),
    ...panels.map(([, , panel]) => panel.element),
  );
  const show = () => {
    const open = store.inspectorOpen;
    drawer.hidden = !open;
    document.body.toggleAttribute("data-inspector", open);
    toggle.setAttribute("aria-expanded", String(open));
    panels.forEach(([id, , panel], index) => {
      const on = id === current;
      panel.element.hidden = !on;
      panel.shown(open && on);
      tabs[index]?.setAttribute("aria-selected", String(on));
      tabs[index]?.setAttribute("tabindex", on ? "0" : "-1");
    });
  };
  /** @param {string} id */
  function choose(id) {
    current = id;
    show();
  }
  toggle.addEventListener("click", () => showInspector(!store.inspectorOpen));
  store.on(["inspector", "workspace"], show);
}
