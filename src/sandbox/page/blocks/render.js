/** Block Kit to elements of the page, block by block, in the order that was sent. */
/** @import { JsonObject } from "../../slack/control-types.js" */
/** @import { Surface } from "./surface.js" */
import { h } from "../dom.js";
import { isObject, list, obj, str, textOf } from "../json.js";
import { markdown } from "../text/markdown.js";
import { textObject } from "../text/render.js";
import { elementNode } from "./elements.js";
import { alert, card, container, plan, table, taskCard } from "./extras.js";
import { imageBox } from "./image.js";
import { richText } from "./rich-text.js";

/**
 * @param {readonly JsonObject[]} blocks
 * @param {Surface} surface
 * @param {Record<string, string>} [errors] sentences by block id, for forms
 * @returns {HTMLElement[]}
 */
export function renderBlocks(blocks, surface, errors = {}) {
  return blocks.map((block) => renderBlock(block, surface, errors));
}

/** @param {JsonObject} block @param {Surface} surface @param {Record<string, string>} errors @returns {HTMLElement} */
export function renderBlock(block, surface, errors) {
  const node = bare(block, surface, errors);
  node.classList.add("block");
  node.dataset["blockId"] = str(block["block_id"]);
  return node;
}

/** @param {JsonObject} block @param {Surface} surface @param {Record<string, string>} errors @returns {HTMLElement} */
function bare(block, surface, errors) {
  switch (block["type"]) {
    case "section":
      return section(block, surface);
    case "header":
      return h(
        "div",
        { class: "header-block", role: "heading", "aria-level": "3" },
        textObject(block["text"]),
      );
    case "context":
      return h(
        "div",
        { class: "context-block" },
        list(block["elements"]).map((item) =>
          item["type"] === "image" ? imageBox(item, "context") : h("span", null, textObject(item)),
        ),
      );
    case "divider":
      return h("hr", { class: "divider-block" });
    case "actions":
    case "context_actions":
      return h("div", { class: "actions-block" }, elements(block, surface));
    case "input":
      return input(block, surface, errors);
    case "image":
      return imageBox(block, "block");
    case "rich_text":
      return richText(block);
    case "markdown":
      return h("div", { class: "markdown-block" }, markdown(str(block["text"])));
    case "table":
    case "data_table":
      return table(block);
    case "task_card":
      return taskCard(block);
    case "plan":
      return plan(block);
    case "alert":
      return alert(block);
    case "card":
      return card(block, surface);
    case "carousel":
      return h(
        "div",
        { class: "carousel", tabindex: "0" },
        list(block["elements"]).map((item) =>
          card({ ...item, block_id: block["block_id"] ?? null }, surface),
        ),
      );
    case "container":
      return container(block, (child) =>
        renderBlock({ ...child, block_id: child["block_id"] ?? block["block_id"] ?? null }, surface, errors),
      );
    default:
      return h("div", { class: "unknown" }, `A block that this page does not draw: ${str(block["type"])}`);
  }
}

/** @param {JsonObject} block @param {Surface} surface */
function elements(block, surface) {
  const place = { surface, blockId: str(block["block_id"]), dispatches: true };
  return list(block["elements"]).map((element) => elementNode(element, place));
}

/** @param {JsonObject} block @param {Surface} surface @returns {HTMLElement} */
function section(block, surface) {
  const fields = list(block["fields"]);
  const accessory = block["accessory"];
  return h(
    "div",
    { class: isObject(accessory) ? "section-block with-accessory" : "section-block" },
    h(
      "div",
      { class: "section-main" },
      isObject(block["text"]) ? h("div", { class: "section-text" }, textObject(block["text"])) : null,
      fields.length > 0
        ? h(
            "div",
            { class: "fields" },
            fields.map((field) => h("div", { class: "field" }, textObject(field))),
          )
        : null,
    ),
    isObject(accessory)
      ? h(
          "div",
          { class: "accessory" },
          elementNode(obj(accessory), { surface, blockId: str(block["block_id"]), dispatches: true }),
        )
      : null,
  );
}

let ids = 0;

/** @param {JsonObject} block @param {Surface} surface @param {Record<string, string>} errors @returns {HTMLElement} */
function input(block, surface, errors) {
  ids += 1;
  const blockId = str(block["block_id"]);
  const error = errors[blockId];
  const hint = textOf(block["hint"]);
  const name = `input-${ids}`;
  const described = [error === undefined ? "" : `${name}-error`, hint === "" ? "" : `${name}-hint`]
    .filter((id) => id !== "")
    .join(" ");
  const element = obj(block["element"]);
  const grouped = /^(?:checkboxes|radio_buttons|multi_)/u.test(str(element["type"]));
  /** @type {Record<string, string>} */
  const aria = {
    ...(grouped ? { "aria-labelledby": `${name}-label` } : { id: name }),
    ...(described === "" ? {} : { "aria-describedby": described }),
    ...(error === undefined ? {} : { "aria-invalid": "true" }),
    ...(block["optional"] === true ? {} : { "aria-required": "true" }),
  };
  const label = [
    textObject(block["label"]),
    block["optional"] === true ? h("span", { class: "optional" }, " (optional)") : null,
  ].flat();
  return h(
    "div",
    { class: error === undefined ? "input-block" : "input-block has-error" },
    grouped
      ? h("div", { class: "label", id: `${name}-label` }, label)
      : h("label", { class: "label", for: name, id: `${name}-label` }, label),
    elementNode(element, { surface, blockId, dispatches: block["dispatch_action"] === true, aria }),
    error === undefined ? null : h("p", { class: "input-error", id: `${name}-error` }, error),
    hint === "" ? null : h("p", { class: "hint", id: `${name}-hint` }, textObject(block["hint"])),
  );
}
