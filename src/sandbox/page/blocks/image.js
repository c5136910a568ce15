/** Images are not fetched: the page talks to this machine only. A box says what would be there. */
/** @import { JsonObject } from "../../slack/control-types.js" */
import { h } from "../dom.js";
import { str, textOf } from "../json.js";

/** @param {JsonObject} image @param {"block" | "accessory" | "context"} size @returns {HTMLElement} */
export function imageBox(image, size) {
  const alt = str(image["alt_text"]) || "Image";
  const title = textOf(image["title"]);
  const box = h(
    "span",
    {
      class: `image-box image-${size}`,
      role: "img",
      "aria-label": alt,
      title: `${alt} (${str(image["image_url"]) || "a file"}; images are not fetched here)`,
    },
    size === "context" ? null : h("span", { class: "image-alt" }, alt),
  );
  return size === "block"
    ? h("figure", { class: "image-block" }, title === "" ? null : h("figcaption", null, title), box)
    : box;
}
