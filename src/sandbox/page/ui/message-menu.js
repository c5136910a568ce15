/** What can be done with a message: shortcuts of the app, reactions, edit, delete, link. */
/** @import { MessageView } from "../../slack/control-types.js" */
/** @import { Item } from "./menu.js" */
import { act } from "../api.js";
import { h } from "../dom.js";
import { store } from "../store.js";
import { emojiChar, QUICK_REACTIONS } from "../text/emoji.js";
import { decode } from "../text/mrkdwn.js";
import { ask } from "./confirm.js";
import { openMenu } from "./menu.js";
import { toast } from "./toasts.js";

/** @param {HTMLElement} anchor @param {MessageView} message */
export function openMessageMenu(anchor, message) {
  /** @type {Item[]} */
  const items = [];
  const at = { channel: message.channel, ts: message.ts };
  for (const shortcut of store.workspace?.shortcuts ?? []) {
    if (shortcut.kind !== "message" || message.ephemeral) continue;
    items.push({
      label: shortcut.name,
      detail: store.workspace?.app.name ?? "",
      run: () => void act("shortcut", { callbackId: shortcut.callbackId, message: at }),
    });
  }
  if (items.length > 0) items.push("line");
  items.push({ label: "Copy link", run: () => void copyLink(message) });
  const own = message.user === store.as;
  if (own) {
    items.push("line", { label: "Edit", run: () => startEdit(message) });
  }
  if (own || message.ephemeral) {
    items.push({
      label: "Delete",
      danger: true,
      run: async () => {
        const sure = await ask({
          title: "Delete this message?",
          body: ["It goes for everybody."],
          yes: "Delete",
          no: "Keep it",
          danger: true,
        });
        if (sure) await act("delete", at);
      },
    });
  }
  openMenu(anchor, items);
}

/** @param {HTMLElement} anchor @param {MessageView} message */
export function openReactionMenu(anchor, message) {
  openMenu(
    anchor,
    QUICK_REACTIONS.map((name) => ({
      label: `${emojiChar(name) ?? ""}  ${name.replaceAll("_", " ")}`,
      run: () => void act("react", { channel: message.channel, ts: message.ts, name }),
    })),
  );
}

/** @param {MessageView} message */
async function copyLink(message) {
  const thread = message.threadTs === null ? "" : `?thread_ts=${message.threadTs}`;
  const link = `${location.origin}/archives/${message.channel}/p${message.ts.replace(".", "")}${thread}`;
  try {
    await navigator.clipboard.writeText(link);
    toast("Link copied.");
  } catch {
    toast(link);
  }
}

/** @param {MessageView} message */
export function startEdit(message) {
  const text = h("textarea", { class: "input", rows: "4", "aria-label": "Message" });
  text.value = decode(
    message.text.replace(/<(?:mailto:[^|>]*\||)([^<>]*)>/gu, (_whole, /** @type {string} */ inner) => inner),
  );
  const save = h("button", { type: "submit", class: "button button-primary" }, "Save");
  const cancel = h("button", { type: "button", class: "button" }, "Cancel");
  const form = h(
    "form",
    { class: "dialog-form", method: "dialog" },
    h("div", { class: "dialog-body" }, text),
    h("div", { class: "dialog-foot" }, cancel, save),
  );
  const dialog = h(
    "dialog",
    { class: "dialog", "aria-label": "Edit message" },
    h("h2", { class: "dialog-title" }, "Edit message"),
    form,
  );
  const end = () => {
    dialog.close();
    dialog.remove();
  };
  cancel.addEventListener("click", end);
  dialog.addEventListener("cancel", end);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const result = await act("edit", { channel: message.channel, ts: message.ts, text: text.value });
    if (result.ok) end();
  });
  document.body.append(dialog);
  dialog.showModal();
  text.focus();
}
