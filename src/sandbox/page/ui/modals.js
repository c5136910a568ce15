/** Modals: the person's stack, the top one on the screen. What was typed survives every redrawing of the same view. */
/** @import { ModalView } from "../../slack/control-types.js" */
import { act } from "../api.js";
import { renderBlocks } from "../blocks/render.js";
import { Surface } from "../blocks/surface.js";
import { byId, h, iconButton } from "../dom.js";
import { store } from "../store.js";
import { avatar } from "./avatar.js";
import { toast } from "./toasts.js";

/** @type {HTMLDialogElement | null} */
let dialog = null;
/** @type {{ id: string, surface: Surface } | null} */
let shown = null;
/** What dims the workspace behind the form. @type {HTMLElement | null} */
let layer = null;
/** Typed values of every view of the stack. @type {Map<string, Record<string, import("../../slack/control-types.js").InputValue>>} */
const typed = new Map();
/** Gives the focus back to what opened the form, also when that was drawn anew meanwhile. */
let giveBack = () => {};

export function setUpModals() {
  store.on(["workspace", "modals"], draw);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || dialog === null) return;
    const target = event.target instanceof Element ? event.target : null;
    // A dialog or menu above the form closes first; in the inspector Escape is the inspector's.
    if (document.querySelector("dialog:modal, .menu:popover-open") !== null || target?.closest("#inspector"))
      return;
    event.preventDefault();
    leave(false);
  });
}

/** The parts of the workspace behind a form take neither clicks nor the focus. @param {boolean} held */
function holdWorkspace(held) {
  for (const id of ["sidebar", "stage", "thread", "me"]) byId(id).inert = held;
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
    giveBack = wayBack(document.activeElement);
    dialog = h("dialog", { class: "dialog modal", "aria-labelledby": "modal-title" });
    layer = h("div", { class: "modal-layer" }, dialog);
    document.body.append(layer);
  }
  const scroll = dialog.querySelector(".dialog-body")?.scrollTop ?? 0;
  dialog.replaceChildren(form);
  shown = { id: top.id, surface };
  if (!dialog.open) {
    // Not `showModal`: the inspector beside it stays in use, to switch a fault on while a form is open.
    dialog.show();
    holdWorkspace(true);
  }
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
  layer?.remove();
  layer = null;
  holdWorkspace(false);
  dialog = null;
  shown = null;
  giveBack();
  giveBack = () => {};
}

/** @param {Element | null} opener @returns {() => void} */
function wayBack(opener) {
  const list = opener?.closest("[id]")?.id ?? "";
  const ts = opener?.closest("article")?.dataset["ts"];
  const { block, action } = opener instanceof HTMLElement ? opener.dataset : {};
  const message = ts === undefined ? "" : `article[data-ts="${CSS.escape(ts)}"]`;
  const control =
    block === undefined || action === undefined
      ? ""
      : `[data-block="${CSS.escape(block)}"][data-action="${CSS.escape(action)}"]`;
  return () => {
    const again = [`${message} ${control}`, message]
      .filter((selector) => selector.trim() !== "")
      .map((selector) => document.getElementById(list)?.querySelector(selector))
      .find((found) => found != null);
    const target = opener?.isConnected === true ? opener : again;
    if (target instanceof HTMLElement) target.focus({ preventScroll: true });
  };
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
