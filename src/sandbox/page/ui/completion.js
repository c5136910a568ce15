/** Completion below the hand: commands after a slash, people and groups after an at sign, channels after a hash. */
import { h } from "../dom.js";
import { store } from "../store.js";

/** @typedef {{ insert: string, label: string, detail: string }} Offer */

let ids = 0;

export class Completion {
  /** @type {Offer[]} */
  #offers = [];
  #at = 0;
  #from = 0;

  /** @param {HTMLTextAreaElement} input */
  constructor(input) {
    ids += 1;
    this.input = input;
    this.list = h("ul", {
      class: "completion-list",
      role: "listbox",
      id: `completion-${ids}`,
      "aria-label": "Suggestions",
    });
    this.hint = h("div", { class: "completion-hint" });
    this.element = h("div", { class: "completion", hidden: true }, this.list, this.hint);
    input.setAttribute("aria-autocomplete", "list");
    input.setAttribute("aria-controls", this.list.id);
    input.addEventListener("input", () => this.#update());
    input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
  }

  close() {
    this.#offers = [];
    this.element.hidden = true;
    this.input.removeAttribute("aria-activedescendant");
  }

  /** True when the key was for the list. @param {KeyboardEvent} event */
  takes(event) {
    if (this.element.hidden) return false;
    if (event.key === "Escape") {
      event.stopPropagation();
      event.preventDefault();
      this.close();
      return true;
    }
    if (this.#offers.length === 0) return false;
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      this.#at = (this.#at + step + this.#offers.length) % this.#offers.length;
      this.#draw();
      return true;
    }
    if (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey)) {
      const offer = this.#offers[this.#at];
      // A command that stands there whole is sent, not completed again.
      if (offer === undefined || (event.key === "Enter" && this.input.value.trim() === offer.insert.trim()))
        return false;
      event.preventDefault();
      this.#take(offer);
      return true;
    }
    return false;
  }

  /** @param {Offer} offer */
  #take(offer) {
    const { value, selectionStart } = this.input;
    this.input.value = `${value.slice(0, this.#from)}${offer.insert}${value.slice(selectionStart)}`;
    const cursor = this.#from + offer.insert.length;
    this.input.setSelectionRange(cursor, cursor);
    this.input.focus();
    this.input.dispatchEvent(new Event("input", { bubbles: true }));
  }

  #update() {
    const before = this.input.value.slice(0, this.input.selectionStart);
    const { offers, from, hint } = suggest(before);
    this.#offers = offers;
    this.#from = from;
    this.#at = 0;
    this.hint.textContent = hint;
    this.hint.hidden = hint === "";
    this.element.hidden = offers.length === 0 && hint === "";
    this.#draw();
  }

  #draw() {
    this.list.replaceChildren(
      ...this.#offers.map((offer, index) => {
        const item = h(
          "li",
          { role: "option", id: `${this.list.id}-${index}`, "aria-selected": String(index === this.#at) },
          h("span", { class: "completion-label" }, offer.label),
          h("span", { class: "completion-detail" }, offer.detail),
        );
        item.addEventListener("mousedown", (event) => {
          event.preventDefault();
          this.#take(offer);
        });
        return item;
      }),
    );
    if (this.#offers.length > 0)
      this.input.setAttribute("aria-activedescendant", `${this.list.id}-${this.#at}`);
    else this.input.removeAttribute("aria-activedescendant");
  }
}

/** What fits the text before the cursor. @param {string} before @returns {{ offers: Offer[], from: number, hint: string }} */
function suggest(before) {
  const workspace = store.workspace;
  if (workspace === null) return { offers: [], from: 0, hint: "" };
  if (/^\/\S*$/u.test(before)) {
    const offers = workspace.commands
      .filter((c) => c.command.startsWith(before))
      .map((c) => ({ insert: `${c.command} `, label: `${c.command} ${c.usageHint}`, detail: c.description }));
    return { offers, from: 0, hint: offers.length === 0 ? "There is no such command." : "" };
  }
  const command = workspace.commands.find((c) => before.startsWith(`${c.command} `));
  if (command !== undefined) return { offers: [], from: 0, hint: `${command.command} ${command.usageHint}` };
  const [, sign = "", typed = ""] = /(?:^|[\s(])([@#])([\p{L}\p{N}_.-]*)$/u.exec(before) ?? [];
  if (sign === "") return { offers: [], from: 0, hint: "" };
  const wanted = typed.toLowerCase();
  const from = before.length - typed.length - 1;
  return { offers: (sign === "#" ? channels(wanted) : people(wanted)).slice(0, 8), from, hint: "" };
}

/** @param {string} wanted @returns {Offer[]} */
function channels(wanted) {
  return (store.workspace?.channels ?? [])
    .filter((c) => c.kind === "channel" && c.name.includes(wanted))
    .map((c) => ({ insert: `#${c.name} `, label: `#${c.name}`, detail: c.topic }));
}

/** @param {string} wanted @returns {Offer[]} */
function people(wanted) {
  const { people: all = [], userGroups = [] } = store.workspace ?? {};
  return [
    ...all
      .filter(
        (p) =>
          p.kind !== "deactivated" && (p.name.includes(wanted) || p.realName.toLowerCase().includes(wanted)),
      )
      .map((p) => ({ insert: `@${p.name} `, label: p.realName, detail: p.title })),
    ...userGroups
      .filter((g) => !g.disabled && g.handle.includes(wanted))
      .map((g) => ({
        insert: `@${g.handle} `,
        label: `@${g.handle}`,
        detail: `${g.name}, ${g.users.length} people`,
      })),
    ...["here", "channel"]
      .filter((n) => n.startsWith(wanted))
      .map((n) => ({ insert: `@${n} `, label: `@${n}`, detail: "Everybody in this channel" })),
  ];
}
