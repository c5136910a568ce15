/** Modals: the person's stack, the top one on the screen. What was typed survives every redrawing of the same view. */
/** @import { ModalView } from "../../slack/control-types.js" */
import { act } from "../api.js";
import { renderBlocks } from "../blocks/render.js";
import { Surface } from "../blocks/surface.js";
import { h, iconButton } from "../dom.js";
import { store } from "../store.js";
import { avatar } from "./avatar.js";
import { toast } from "./toasts.js";

/** @type {HTMLDialogElement | null} */
let dialog = null;
/** @type {{ id: string, surface: Surface } | null} */
let shown = null;
/** Typed values of every view of the stack. @type {Map<string, Record<string, import("../../slack/control-types.js").InputValue>>} */
const typed = new Map();
/** @type {Element | null} */
let opener = null;

export function setUpModals() {
  store.on(["workspace", "modals"], draw);
}

function draw() {
  const stack = store.workspace?.modals ?? [];
  const top = stack.at(-1);
  if (shown !== null) typed.set(shown.id, shown.surface.values());
  for (const id of [...typed.keys()]) if (!stack.some((view) => view.id === id)) typed.delete(id);
  if (top === undefined) {
    close();
    return;
  }
  const focus = focusedField();
  const another = shown?.id !== top.id;
  const surface = new Surface("modal", { viewId: top.id }, top.values);
  const form = formOf(top, stack.length, surface);
  surface.restore(typed.get(top.id) ?? {});
  if (dialog === null) {
    opener = document.activeElement;
    dialog = h("dialog", { class: "dialog modal", "aria-labelledby": "modal-title" });
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      leave(false);
    });
    document.body.append(dialog);
  }
  const scroll = dialog.querySelector(".dialog-body")?.scrollTop ?? 0;
  dialog.replaceChildren(form);
  shown = { id: top.id, surface };
  if (!dialog.open) dialog.showModal();
  if (!another) form.querySelector(".dialog-body")?.scrollTo(0, scroll);
  setFocus(form, another ? null : focus, Object.keys(top.errors).length > 0);
}

/** @param {ModalView} view @param {number} depth @param {Surface} surface */
function formOf(view, depth, surface) {
  const app = store.workspace?.app;
  const submit =
    view.submitLabel === null
      ? null
      : h("button", { type: "submit", class: "button button-primary" }, view.submitLabel);
  const cancel = h(
    "button",
    { type: "button", class: "button", onclick: () => leave(false) },
    view.closeLabel,
  );
  const form = h(
    "form",
    { class: "dialog-form", novalidate: true, data: { viewId: view.id, callbackId: view.callbackId } },
    h(
      "div",
      { class: "dialog-head" },
      avatar(store.person(app?.botUserId ?? null), app?.name ?? "", "small"),
      h("h2", { class: "dialog-title", id: "modal-title" }, view.title),
      depth > 1 ? h("span", { class: "depth" }, `${depth} forms open`) : null,
      iconButton("close", depth > 1 ? "Close all forms" : "Close", { onclick: () => leave(true) }),
    ),
    h("div", { class: "dialog-body" }, renderBlocks(view.blocks, surface, view.errors)),
    h("div", { class: "dialog-foot" }, cancel, submit),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (form.getAttribute("aria-busy") === "true" || submit === null) return;
    form.setAttribute("aria-busy", "true");
    const result = await act(
      "submit-view",
      { viewId: view.id, values: surface.values() },
      { quiet: ["invalid_input", "view_errors"] },
    );
    form.removeAttribute("aria-busy");
    const current = store.workspace?.modals.at(-1);
    if (
      !result.ok &&
      (result.error === "invalid_input" || result.error === "view_errors") &&
      Object.keys(current?.errors ?? {}).length === 0
    ) {
      // The live stream brings the sentences at their inputs; without an input for them they are told here.
      if (result.errors === undefined || Object.keys(result.errors).length === 0)
        toast(result.message, { kind: "error", code: result.error });
    }
  });
  return form;
}

/** @param {boolean} all */
function leave(all) {
  if (shown !== null) void act("close-view", { viewId: shown.id, ...(all ? { all: true } : {}) });
}

function close() {
  if (dialog === null) return;
  dialog.close();
  dialog.remove();
  dialog = null;
  shown = null;
  if (opener instanceof HTMLElement && opener.isConnected) opener.focus({ preventScroll: true });
  opener = null;
}

/** Which input has the focus, so that it can have it again. */
function focusedField() {
  const active = document.activeElement;
  const holder =
    active instanceof HTMLElement && dialog?.contains(active) === true
      ? active.closest("[data-action]")
      : null;
  return holder instanceof HTMLElement
    ? { block: holder.dataset["block"] ?? "", action: holder.dataset["action"] ?? "" }
    : null;
}

/** @param {HTMLElement} form @param {{ block: string, action: string } | null} before @param {boolean} hasErrors */
function setFocus(form, before, hasErrors) {
  const wrong = hasErrors ? form.querySelector("[aria-invalid]") : null;
  const same =
    before === null
      ? null
      : form.querySelector(
          `[data-block="${CSS.escape(before.block)}"][data-action="${CSS.escape(before.action)}"]`,
        );
  const first =
    form.querySelector("[autofocus]") ?? form.querySelector(".dialog-body :is(input, textarea, select)");
  const target = wrong ?? same ?? first ?? form.querySelector("button[type=submit]");
  if (target instanceof HTMLElement) {
    const inner = target.matches("input, textarea, select, button") ? target : target.querySelector("input");
    if (inner instanceof HTMLElement) inner.focus();
  }
}
