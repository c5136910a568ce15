/** The dialog that stands before a press, with the app's own words. */
/** @import { JsonObject } from "../../slack/control-types.js" */
import { h } from "../dom.js";
import { textOf } from "../json.js";
import { textObject } from "../text/render.js";

/** @param {JsonObject} confirm Slack's confirm object @returns {Promise<boolean>} */
export function confirmDialog(confirm) {
  return ask({
    title: textOf(confirm["title"]),
    body: textObject(confirm["text"]),
    yes: textOf(confirm["confirm"]) || "Yes",
    no: textOf(confirm["deny"]) || "Cancel",
    danger: confirm["style"] === "danger",
  });
}

/** @param {{ title: string, body: (Node | string)[], yes: string, no: string, danger?: boolean }} question @returns {Promise<boolean>} */
export function ask({ title, body, yes, no, danger = false }) {
  return new Promise((resolve) => {
    const confirmed = h(
      "button",
      { type: "button", class: `button ${danger ? "button-danger-solid" : "button-primary"}` },
      yes,
    );
    const denied = h("button", { type: "button", class: "button", autofocus: true }, no);
    const dialog = h(
      "dialog",
      { class: "dialog dialog-small", "aria-labelledby": "confirm-title" },
      h("h2", { class: "dialog-title", id: "confirm-title" }, title),
      h("div", { class: "dialog-body" }, body),
      h("div", { class: "dialog-foot" }, denied, confirmed),
    );
    const end = (/** @type {boolean} */ answer) => {
      dialog.close();
      dialog.remove();
      resolve(answer);
    };
    confirmed.addEventListener("click", () => end(true));
    denied.addEventListener("click", () => end(false));
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      end(false);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
