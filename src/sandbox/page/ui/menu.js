/** A small menu at a button, worked by arrow keys. */
import { h } from "../dom.js";

/** @typedef {{ label: string, detail?: string, danger?: boolean, run: () => void } | "line"} Item */

/** @param {HTMLElement} anchor @param {Item[]} items */
export function openMenu(anchor, items) {
  const menu = h("div", { class: "menu", role: "menu", popover: "auto" });
  for (const item of items) {
    if (item === "line") {
      menu.append(h("hr"));
      continue;
    }
    const entry = h(
      "button",
      {
        type: "button",
        role: "menuitem",
        class: item.danger === true ? "menu-item menu-danger" : "menu-item",
      },
      h("span", null, item.label),
      item.detail === undefined || item.detail === ""
        ? null
        : h("span", { class: "menu-detail" }, item.detail),
    );
    entry.addEventListener("click", () => {
      menu.hidePopover();
      item.run();
    });
    menu.append(entry);
  }
  menu.addEventListener("toggle", (event) => {
    if (/** @type {ToggleEvent} */ (event).newState === "closed") {
      const inside = menu.contains(document.activeElement);
      menu.remove();
      if (inside || document.activeElement === document.body) anchor.focus();
    }
  });
  menu.addEventListener("keydown", (event) => moveFocus(event, menu));
  // Inside a dialog the menu has to be part of it, or it would be inert.
  (anchor.closest("dialog") ?? document.body).append(menu);
  menu.showPopover();
  place(menu, anchor);
  menu.querySelector("button")?.focus();
}

/** @param {HTMLElement} menu @param {HTMLElement} anchor */
function place(menu, anchor) {
  const at = anchor.getBoundingClientRect();
  const width = menu.offsetWidth;
  const height = menu.offsetHeight;
  const left = Math.min(Math.max(8, at.right - width), window.innerWidth - width - 8);
  const below = at.bottom + 4;
  const top = below + height > window.innerHeight - 8 ? Math.max(8, at.top - height - 4) : below;
  menu.style.left = `${left}px`;
  menu.style.top = `${top}px`;
}

/** @param {KeyboardEvent} event @param {HTMLElement} menu */
function moveFocus(event, menu) {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (step === 0) return;
  event.preventDefault();
  event.stopPropagation();
  const entries = [...menu.querySelectorAll("button")];
  const at = entries.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
  entries[(at + step + entries.length) % entries.length]?.focus();
}
