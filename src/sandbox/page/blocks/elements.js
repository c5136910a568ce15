/** Interactive elements: buttons and menus that send at once, and inputs that hold a value. */
/** @import { JsonObject } from "../../slack/control-types.js" */
/** @import { Surface } from "./surface.js" */
import { h, icon, iconButton } from "../dom.js";
import { list, obj, str, textOf } from "../json.js";
import { decode } from "../text/mrkdwn.js";
import { textObject } from "../text/render.js";
import { openMenu } from "../ui/menu.js";
import { imageBox } from "./image.js";
import { choices, multiSelect, picker, select, textInput } from "./inputs.js";

/**
 * @typedef {object} Place
 * @property {Surface} surface
 * @property {string} blockId
 * @property {boolean} dispatches does a changed value go to the app at once?
 * @property {Record<string, string>} [aria] for inputs: label, hint and error
 */

/** @param {JsonObject} element @param {Place} place @returns {HTMLElement} */
export function elementNode(element, place) {
  switch (element["type"]) {
    case "button":
    case "workflow_button":
      return button(element, place);
    case "overflow":
      return overflow(element, place);
    case "icon_button":
      return button({ ...element, style: "" }, place);
    case "feedback_buttons":
      return feedback(element, place);
    case "image":
      return imageBox(element, "accessory");
    case "static_select":
    case "users_select":
    case "conversations_select":
    case "channels_select":
      return select(element, place);
    case "multi_static_select":
    case "multi_users_select":
      return multiSelect(element, place);
    case "checkboxes":
    case "radio_buttons":
      return choices(element, place);
    case "datepicker":
    case "timepicker":
    case "datetimepicker":
      return picker(element, place);
    case "plain_text_input":
    case "email_text_input":
    case "url_text_input":
    case "number_input":
      return textInput(element, place);
    default:
      return h("span", { class: "unknown" }, `(${str(element["type"])})`);
  }
}

/** @param {JsonObject} element @param {Place} place @returns {HTMLElement} */
function button(element, { surface, blockId }) {
  const style = str(element["style"]);
  const url = str(element["url"]);
  const node = h(
    "button",
    {
      type: "button",
      class: `button${style === "primary" ? " button-primary" : style === "danger" ? " button-danger" : ""}`,
      "aria-label": decode(str(element["accessibility_label"])) || null,
      data: { action: str(element["action_id"]), block: blockId },
    },
    textObject(element["text"]),
    url === "" ? null : icon("open"),
  );
  node.addEventListener("click", () => {
    if (/^https?:/iu.test(url)) window.open(url, "_blank", "noopener,noreferrer");
    void surface.press(blockId, element, node);
  });
  return node;
}

/** @param {JsonObject} element @param {Place} place @returns {HTMLElement} */
function overflow(element, { surface, blockId }) {
  const node = iconButton("more", "More", {
    data: { action: str(element["action_id"]), block: blockId },
    "aria-haspopup": "menu",
  });
  node.addEventListener("click", () => {
    openMenu(
      node,
      list(element["options"]).map((option) => ({
        label: textOf(option["text"]),
        detail: textOf(option["description"]),
        run: () => void surface.press(blockId, element, node, str(option["value"])),
      })),
    );
  });
  return node;
}

/** @param {JsonObject} element @param {Place} place @returns {HTMLElement} */
function feedback(element, { surface, blockId }) {
  return h(
    "span",
    { class: "feedback" },
    ["positive_button", "negative_button"].map((name) => {
      const part = obj(element[name]);
      const node = h(
        "button",
        {
          type: "button",
          class: "button button-small",
          "aria-label": decode(str(part["accessibility_label"])) || null,
        },
        textObject(part["text"]),
      );
      node.addEventListener("click", () => void surface.press(blockId, element, node, str(part["value"])));
      return node;
    }),
  );
}
