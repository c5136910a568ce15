/**
 * A list of messages that follows the store: what did not change stays the same element, so that scroll position, focus
 * and open menus survive a live update.
 */
/** @import { MessageView } from "../../slack/control-types.js" */
import { focusAction, focusedAction, h } from "../dom.js";
import { store } from "../store.js";
import { dayKey, dayName, tsMs } from "../text/dates.js";
import { messageNode } from "./message.js";

const TOGETHER_MS = 5 * 60_000;
const FIRST_SHOWN = 150;

export class MessageList {
  /** @type {Map<string, { node: HTMLElement, message: MessageView, manner: string }>} */
  #drawn = new Map();
  #shown = FIRST_SHOWN;

  /** @param {HTMLElement} element @param {{ inThread: boolean }} options */
  constructor(element, { inThread }) {
    this.element = element;
    this.inThread = inThread;
    element.addEventListener("keydown", (event) => this.#move(event));
    element.addEventListener("focusin", (event) => this.#mark(/** @type {Node} */ (event.target)));
  }

  /** Another channel or thread: nothing of the old one stays. */
  clear() {
    this.#drawn.clear();
    this.#shown = FIRST_SHOWN;
    this.element.replaceChildren();
  }

  atBottom() {
    const box = this.element;
    return box.scrollHeight - box.scrollTop - box.clientHeight < 80;
  }

  toBottom() {
    this.element.scrollTop = this.element.scrollHeight;
  }

  /** @param {MessageView[]} all oldest first @param {string | null} newAfter the line "New" stands after this timestamp */
  draw(all, newAfter) {
    const messages = all.slice(-this.#shown);
    /** @type {HTMLElement[]} */
    const wanted = [];
    if (messages.length < all.length) wanted.push(this.#earlier(all, newAfter));
    let previous = /** @type {MessageView | null} */ (null);
    let marked = newAfter === null;
    for (const message of messages) {
      const day = this.inThread ? null : this.#day(message, previous);
      if (day !== null) wanted.push(day);
      const isNew =
        !marked && message.ts > (newAfter ?? "") && message.user !== store.as && !message.ephemeral;
      if (isNew) {
        marked = true;
        wanted.push(h("div", { class: "new-line", role: "separator" }, h("span", null, "New")));
      }
      const compact =
        day === null &&
        !isNew &&
        follows(message, previous) &&
        !(this.inThread && previous?.threadTs === null);
      wanted.push(this.#node(message, compact));
      if (this.inThread && message.threadTs === null) wanted.push(repliesLine(all.filter(isReply).length));
      previous = message;
    }
    this.#place(wanted);
  }

  /** @param {MessageView} message @param {boolean} compact */
  #node(message, compact) {
    const manner = `${compact}/${store.newAfter}/${store.thread === message.ts}`;
    const known = this.#drawn.get(message.ts);
    if (known !== undefined && known.message === message && known.manner === manner) return known.node;
    const node = messageNode(message, { compact, inThread: this.inThread });
    if (known !== undefined) {
      if (known.node.classList.contains("message-wanted")) mark(node);
      node.tabIndex = known.node.tabIndex;
      if (known.node.contains(document.activeElement)) {
        const action = focusedAction(known.node);
        queueMicrotask(() => {
          // Unless it went elsewhere meanwhile: into the thread that was just opened.
          if (document.activeElement !== document.body) return;
          if (!focusAction(node, action)) node.focus({ preventScroll: true });
        });
      }
    }
    this.#drawn.set(message.ts, { node, message, manner });
    return node;
  }

  /** Moves and removes only what differs. @param {HTMLElement[]} wanted */
  #place(wanted) {
    const keep = new Set(wanted);
    for (const child of [...this.element.children]) {
      if (!keep.has(/** @type {HTMLElement} */ (child))) child.remove();
    }
    wanted.forEach((node, index) => {
      const there = this.element.children[index];
      if (there !== node) this.element.insertBefore(node, there ?? null);
    });
    const articles = this.articles();
    if (!articles.some((node) => node.tabIndex === 0)) {
      const last = articles.at(-1);
      if (last !== undefined) last.tabIndex = 0;
    }
  }

  /** @param {MessageView} message @param {MessageView | null} previous */
  #day(message, previous) {
    const ms = tsMs(message.ts);
    if (previous !== null && dayKey(tsMs(previous.ts), store.tz) === dayKey(ms, store.tz)) return null;
    return h(
      "div",
      { class: "day-line", role: "separator" },
      h("span", null, dayName(ms, store.tz, store.nowMs())),
    );
  }

  /** @param {MessageView[]} all @param {string | null} newAfter */
  #earlier(all, newAfter) {
    const button = h("button", { type: "button", class: "button button-small" }, "Show earlier messages");
    button.addEventListener("click", () => {
      this.#shown += FIRST_SHOWN;
      const before = this.element.scrollHeight;
      this.draw(all, newAfter);
      this.element.scrollTop += this.element.scrollHeight - before;
    });
    return h("div", { class: "earlier" }, button);
  }

  articles() {
    return [...this.element.querySelectorAll("article")];
  }

  /** Scrolls to a message and shows which one. @param {string} ts */
  reveal(ts) {
    const node = this.#drawn.get(ts)?.node;
    if (node === undefined) return false;
    node.scrollIntoView({ block: "center" });
    mark(node);
    node.focus({ preventScroll: true });
    return true;
  }

  /** Only one message of the list is a tab stop. @param {Node} target */
  #mark(target) {
    for (const node of this.articles()) node.tabIndex = node.contains(target) ? 0 : -1;
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const articles = this.articles();
    const at = articles.indexOf(/** @type {HTMLElement} */ (event.target));
    if (step === 0 || at === -1) return;
    event.preventDefault();
    articles[at + step]?.focus();
  }
}

/** Shows which message a link meant, until somebody goes on from it. @param {HTMLElement} node */
function mark(node) {
  node.classList.add("message-wanted");
  node.addEventListener("blur", () => node.classList.remove("message-wanted"), { once: true });
}

/** @param {MessageView} message @param {MessageView | null} previous */
function follows(message, previous) {
  return (
    previous !== null &&
    previous.user === message.user &&
    !message.ephemeral &&
    !previous.ephemeral &&
    !message.broadcast &&
    previous.replyCount === 0 &&
    message.blocks.every((b) => b.type === "rich_text") &&
    tsMs(message.ts) - tsMs(previous.ts) < TOGETHER_MS
  );
}

/** What only one person sees is no reply. @param {MessageView} message */
const isReply = (message) => message.threadTs !== null && !message.ephemeral;

/** @param {number} count */
function repliesLine(count) {
  return h(
    "div",
    { class: "replies-line", role: "separator" },
    h("span", null, count === 1 ? "1 reply" : `${count} replies`),
  );
}
