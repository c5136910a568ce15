/** Where a person writes: a message, a reply, or a slash command; with completion. */
import { act } from "../api.js";
import { fill, h, icon, iconButton } from "../dom.js";
import { store } from "../store.js";
import { Completion } from "./completion.js";
import { openMenu } from "./menu.js";
import { toast } from "./toasts.js";

const FILES_MOST = 10;

export class Composer {
  #channel = "";
  /** @type {string | null} */
  #thread = null;
  #sending = false;
  /** @type {{ name: string, mimetype: string, size: number }[]} */
  #files = [];

  /** @param {{ label: string, withBroadcast: boolean }} options */
  constructor({ label, withBroadcast }) {
    this.input = h("textarea", {
      class: "composer-input",
      rows: "1",
      "aria-label": label,
      autocomplete: "off",
    });
    this.broadcast = h("input", { type: "checkbox" });
    this.broadcastName = h("span");
    const shortcuts = iconButton("bolt", "Commands and shortcuts", {
      "aria-haspopup": "menu",
      class: "icon-button composer-bolt",
    });
    shortcuts.addEventListener("click", () => this.#offer(shortcuts));
    this.sendButton = h(
      "button",
      { type: "submit", class: "send-button", "aria-label": "Send", title: "Send (Enter)" },
      icon("send"),
    );
    this.picker = h("input", { type: "file", multiple: true, hidden: true });
    this.picker.addEventListener("change", () => {
      this.#attach(this.picker.files ?? []);
      this.picker.value = "";
    });
    const attach = iconButton("clip", "Attach files", { onclick: () => this.picker.click() });
    this.fileList = h("ul", { class: "composer-files", "aria-label": "Files to send", hidden: true });
    this.completion = new Completion(this.input);
    this.reason = h("p", { class: "composer-reason" });
    this.form = h(
      "form",
      { class: "composer" },
      this.completion.element,
      h(
        "div",
        { class: "composer-box" },
        this.fileList,
        h("div", { class: "composer-line" }, shortcuts, attach, this.input, this.picker, this.sendButton),
      ),
      withBroadcast ? h("label", { class: "broadcast" }, this.broadcast, this.broadcastName) : null,
    );
    this.element = h("div", { class: "composer-place" }, this.reason, this.form);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#send();
    });
    this.input.addEventListener("paste", (event) => {
      const files = event.clipboardData?.files;
      if (files === undefined || files.length === 0) return;
      event.preventDefault();
      this.#attach(files);
    });
    this.form.addEventListener("dragover", (event) => event.preventDefault());
    this.form.addEventListener("drop", (event) => {
      event.preventDefault();
      this.#attach(event.dataTransfer?.files ?? []);
    });
    this.input.addEventListener("keydown", (event) => this.#keys(event));
    this.input.addEventListener("input", () => {
      store.drafts.set(this.#key(), this.input.value);
      this.#grow();
    });
  }

  /** @param {string} channel @param {string | null} thread */
  open(channel, thread) {
    const found = store.channel(channel);
    const name =
      found === undefined
        ? ""
        : found.kind === "dm"
          ? (store.person(found.dmWith)?.realName ?? "")
          : `#${found.name}`;
    const same = this.#channel === channel && this.#thread === thread;
    this.#channel = channel;
    this.#thread = thread;
    this.input.placeholder = thread === null ? `Message ${name}` : "Reply";
    this.broadcastName.textContent = `Also send to ${name}`;
    const reason = whyNot(channel);
    this.form.hidden = reason !== null;
    this.reason.hidden = reason === null;
    this.reason.replaceChildren();
    if (reason !== null) this.reason.append(reason.text, ...(reason.join ? [this.#joinButton(channel)] : []));
    if (same) return;
    this.input.value = store.drafts.get(this.#key()) ?? "";
    this.broadcast.checked = false;
    this.#files = [];
    this.completion.close();
    this.#drawFiles();
  }

  /** Name, kind and size go along; what is in a file stays on this machine. @param {ArrayLike<File>} files */
  #attach(files) {
    this.#files.push(
      ...Array.from(files, ({ name, type, size }) => ({
        name,
        mimetype: type === "" ? "application/octet-stream" : type,
        size,
      })),
    );
    if (this.#files.length > FILES_MOST) {
      this.#files.length = FILES_MOST;
      toast(`A message takes ${FILES_MOST} files at most.`, { kind: "error" });
    }
    this.#drawFiles();
    this.input.focus();
  }

  #drawFiles() {
    this.fileList.hidden = this.#files.length === 0;
    fill(
      this.fileList,
      this.#files.map((file, index) =>
        h(
          "li",
          null,
          h("span", { class: "file-name" }, file.name),
          iconButton("close", `Leave out ${file.name}`, {
            onclick: () => {
              this.#files.splice(index, 1);
              this.#drawFiles();
              this.input.focus();
            },
          }),
        ),
      ),
    );
    this.#grow();
  }

  #key() {
    return `${store.as}/${this.#channel}/${this.#thread ?? ""}`;
  }

  /** @param {string} channel */
  #joinButton(channel) {
    const button = h("button", { type: "button", class: "button button-small" }, "Join");
    button.addEventListener("click", async () => {
      const { send } = await import("../api.js");
      await send("admin/member", { channel, user: store.as, on: true });
    });
    return button;
  }

  #grow() {
    // Browsers without field-sizing are helped by hand; a hidden field has no height to read.
    if (!CSS.supports("field-sizing", "content") && this.input.offsetParent !== null) {
      this.input.style.height = "auto";
      this.input.style.height = `${Math.min(this.input.scrollHeight, 220)}px`;
    }
    this.sendButton.disabled = this.input.value.trim() === "" && this.#files.length === 0;
  }

  /** @param {KeyboardEvent} event */
  #keys(event) {
    if (this.completion.takes(event)) {
      this.#grow();
      return;
    }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      void this.#send();
    }
  }

  async #send() {
    const text = this.input.value.trim();
    if ((text === "" && this.#files.length === 0) || this.#sending) return;
    this.#sending = true;
    this.form.setAttribute("aria-busy", "true");
    const key = this.#key();
    const sent = await (text.startsWith("/") && this.#files.length === 0
      ? this.#command(text)
      : this.#post(text));
    this.#sending = false;
    this.form.removeAttribute("aria-busy");
    if (!sent) return;
    store.drafts.delete(key);
    if (key !== this.#key()) return;
    if (this.input.value.trim() === text) this.input.value = "";
    this.broadcast.checked = false;
    this.#files = [];
    this.completion.close();
    this.#drawFiles();
  }

  /** @param {string} text */
  async #post(text) {
    const reply = this.#thread === null ? {} : { threadTs: this.#thread, broadcast: this.broadcast.checked };
    const files = this.#files.length === 0 ? {} : { files: this.#files };
    return (await act("post", { channel: this.#channel, text, ...files, ...reply })).ok;
  }

  /** @param {string} text */
  async #command(text) {
    const [, command = "", rest = ""] = /^(\/\S+)\s*([\s\S]*)$/u.exec(text) ?? [];
    const place = this.#thread === null ? {} : { threadTs: this.#thread };
    return (await act("command", { channel: this.#channel, command, text: rest, ...place })).ok;
  }

  /** @param {HTMLElement} anchor */
  #offer(anchor) {
    const { commands = [], shortcuts = [] } = store.workspace ?? {};
    openMenu(anchor, [
      ...commands.map((c) => ({
        label: `${c.command} ${c.usageHint}`,
        detail: c.description,
        run: () => this.type(`${c.command} `),
      })),
      ...shortcuts
        .filter((s) => s.kind === "global")
        .map((s) => ({
          label: s.name,
          detail: s.description,
          run: () => void act("shortcut", { callbackId: s.callbackId }),
        })),
    ]);
  }

  /** @param {string} text */
  type(text) {
    this.input.value = text;
    this.input.focus();
    this.input.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

/** Why nothing can be written here, or null. @param {string} channel @returns {{ text: string, join: boolean } | null} */
function whyNot(channel) {
  const found = store.channel(channel);
  const me = store.workspace?.me;
  if (found === undefined || me === undefined) return null;
  if (!me.canAct) return { text: `${me.realName} cannot write: ${me.title.toLowerCase()}.`, join: false };
  if (found.isArchived) return { text: "This channel is archived. Nobody can write here.", join: false };
  if (!found.isMember)
    return { text: "You are not in this channel. ", join: me.kind === "member" && found.kind === "channel" };
  return null;
}
