/** Blocks beyond the common ones: tables, task cards and plans, alerts, cards, containers. */
/** @import { JsonObject } from "../../slack/control-types.js" */
/** @import { Surface } from "./surface.js" */
import { h } from "../dom.js";
import { isObject, list, obj, str, textOf } from "../json.js";
import { linkNode, textObject } from "../text/render.js";
import { elementNode } from "./elements.js";
import { imageBox } from "./image.js";
import { richText } from "./rich-text.js";

/** @param {JsonObject} block @returns {HTMLElement} */
export function table(block) {
  const rows = Array.isArray(block["rows"]) ? block["rows"].map(list) : [];
  const settings = Array.isArray(block["column_settings"]) ? block["column_settings"].map(obj) : [];
  const caption = str(block["caption"]);
  const cell = (/** @type {JsonObject} */ item, /** @type {number} */ index, /** @type {boolean} */ head) => {
    const align = str(settings[index]?.["align"]) || (item["type"] === "raw_number" ? "right" : "left");
    const content = item["type"] === "rich_text" ? richText(item) : str(item["text"]);
    return head
      ? h("th", { scope: "col", class: `align-${align}` }, content)
      : h("td", { class: `align-${align}` }, content);
  };
  return h(
    "div",
    { class: "table-scroll", tabindex: "0" },
    h(
      "table",
      null,
      caption === "" ? null : h("caption", null, caption),
      rows.map((row, at) =>
        h(
          "tr",
          null,
          row.map((item, index) => cell(item, index, at === 0)),
        ),
      ),
    ),
  );
}

const STATUS = /** @type {Record<string, string>} */ ({
  pending: "Waiting",
  in_progress: "Under way",
  complete: "Done",
  error: "Failed",
});

/** @param {JsonObject} block @returns {HTMLElement} */
export function taskCard(block) {
  const status = str(block["status"]);
  return h(
    "div",
    { class: `task-card task-${status}` },
    h("span", {
      class: "task-mark",
      role: "img",
      "aria-label": STATUS[status] ?? status,
      title: STATUS[status] ?? status,
    }),
    h(
      "div",
      null,
      h("div", { class: "task-title" }, str(block["title"])),
      isObject(block["details"]) ? richText(obj(block["details"])) : null,
      isObject(block["output"]) ? richText(obj(block["output"])) : null,
      list(block["sources"]).map((source) =>
        linkNode(str(source["url"]), [document.createTextNode(str(source["text"]))]),
      ),
    ),
  );
}

/** @param {JsonObject} block @returns {HTMLElement} */
export function plan(block) {
  return h(
    "div",
    { class: "plan-block" },
    h("div", { class: "plan-title" }, str(block["title"])),
    list(block["tasks"]).map(taskCard),
  );
}

/** @param {JsonObject} block @returns {HTMLElement} */
export function alert(block) {
  return h(
    "div",
    { class: `alert-block alert-${str(block["level"]) || "default"}`, role: "note" },
    textObject(block["text"]),
  );
}

/** @param {JsonObject} block @param {Surface} surface @returns {HTMLElement} */
export function card(block, surface) {
  const place = { surface, blockId: str(block["block_id"]), dispatches: true };
  const buttons = list(block["actions"]);
  return h(
    "div",
    { class: "card-block" },
    isObject(block["hero_image"]) ? imageBox(obj(block["hero_image"]), "block") : null,
    isObject(block["title"]) ? h("div", { class: "card-title" }, textObject(block["title"])) : null,
    ["subtitle", "body", "subtext"].map((part) =>
      isObject(block[part]) ? h("div", { class: `card-${part}` }, textObject(block[part])) : null,
    ),
    buttons.length > 0
      ? h(
          "div",
          { class: "actions-block" },
          buttons.map((element) => elementNode(element, place)),
        )
      : null,
  );
}

/** @param {JsonObject} block @param {(child: JsonObject) => HTMLElement} render @returns {HTMLElement} */
export function container(block, render) {
  const title = textOf(block["title"]);
  const children = list(block["child_blocks"]).map(render);
  if (block["is_collapsible"] !== true) {
    return h(
      "div",
      { class: "container-block" },
      title === "" ? null : h("div", { class: "container-title" }, title),
      children,
    );
  }
  return h(
    "details",
    { class: "container-block", open: block["default_collapsed"] !== true },
    h("summary", null, title || "Details"),
    children,
  );
}
