/** Elements that hold a value. In a form the value goes with the submission; elsewhere a change is sent at once. */
/** @import { InputValue, JsonObject } from "../../slack/control-types.js" */
/** @import { Place } from "./elements.js" */
import { h } from "../dom.js";
import { num, obj, str, textOf } from "../json.js";
import { store } from "../store.js";
import { textObject } from "../text/render.js";
import { inputValue, optionGroups } from "./values.js";

let ids = 0;

/** @param {JsonObject} element @param {Place} place */
function key(element, { blockId }) {
  return `${blockId}/${str(element["action_id"])}`;
}

/** @param {JsonObject} element @param {Place} place @returns {InputValue} */
function initial(element, { surface, blockId }) {
  return inputValue(element, surface.state[blockId]?.[str(element["action_id"])]);
}

/** @param {JsonObject} element @param {Place} place */
function common(element, place) {
  return {
    ...place.aria,
    data: { action: str(element["action_id"]), block: place.blockId },
    autofocus: element["focus_on_load"] === true,
  };
}

/** @param {InputValue} value @returns {string} */
const one = (value) => (Array.isArray(value) ? (value[0] ?? "") : (value ?? ""));
/** @param {InputValue} value @returns {string[]} */
const many = (value) => (Array.isArray(value) ? value : value === null ? [] : [value]);

/** People, channels or options, as a menu offers them. @param {JsonObject} element */
function offered(element) {
  const type = str(element["type"]);
  const asOption = (/** @type {string} */ value, /** @type {string} */ text) => ({
    value,
    text: { type: "plain_text", text },
  });
  if (type.endsWith("users_select")) {
    const people = (store.workspace?.people ?? []).filter(
      (p) => p.kind !== "bot" && p.kind !== "deactivated",
    );
    return [{ label: null, options: people.map((p) => asOption(p.id, p.realName)) }];
  }
  if (type === "conversations_select" || type === "channels_select") {
    const channels = (store.workspace?.channels ?? []).filter(
      (c) => c.kind !== "dm" || type === "conversations_select",
    );
    return [
      {
        label: null,
        options: channels.map((c) =>
          asOption(c.id, c.kind === "dm" ? (store.person(c.dmWith)?.realName ?? c.id) : `#${c.name}`),
        ),
      },
    ];
  }
  return optionGroups(element);
}

/** @param {JsonObject} element @param {Place} place @returns {HTMLElement} */
export function select(element, place) {
  const groups = offered(element);
  const holder = textOf(element["placeholder"]) || "Choose";
  const options = (/** @type {JsonObject[]} */ all) =>
    all.map((o) =>
      h("option", { value: str(o["value"]), title: textOf(o["description"]) || null }, textOf(o["text"])),
    );
  const node = h(
    "select",
    {
      class: "input select",
      "aria-label": place.aria === undefined ? holder : null,
      ...common(element, place),
    },
    h("option", { value: "" }, holder),
    groups.flatMap((g) =>
      g.label === null ? options(g.options) : h("optgroup", { label: g.label }, options(g.options)),
    ),
  );
  node.value = one(initial(element, place));
  let last = node.value;
  place.surface.fields.set(key(element, place), {
    get: () => node.value || null,
    set: (value) => {
      node.value = one(value);
      last = node.value;
    },
  });
  if (place.dispatches) {
    node.addEventListener("change", async () => {
      const sent = await place.surface.press(place.blockId, element, node, node.value || null);
      if (sent) last = node.value;
      else node.value = last;
    });
  }
  return node;
}

/** @param {JsonObject} element @param {Place} place @returns {HTMLElement} */
export function multiSelect(element, place) {
  const chosen = new Set(many(initial(element, place)));
  const boxes = offered(element).flatMap((group) =>
    group.options.map((option) => choice("checkbox", "", option, chosen)),
  );
  return group(element, place, boxes, "multi");
}

/** @param {JsonObject} element @param {Place} place @returns {HTMLElement} */
export function choices(element, place) {
  const kind = element["type"] === "radio_buttons" ? "radio" : "checkbox";
  const chosen = new Set(many(initial(element, place)));
  ids += 1;
  const boxes = optionGroups(element).flatMap((g) =>
    g.options.map((option) => choice(kind, `choice-${ids}`, option, chosen)),
  );
  return group(element, place, boxes, kind);
}

/** @param {"radio" | "checkbox"} kind @param {string} name @param {JsonObject} option @param {Set<string>} chosen */
function choice(kind, name, option, chosen) {
  const value = str(option["value"]);
  const box = h("input", { type: kind, name: name || null, value });
  box.checked = chosen.has(value);
  const detail = textObject(option["description"]);
  const label = h(
    "label",
    { class: "choice" },
    box,
    h(
      "span",
      null,
      textObject(option["text"]),
      detail.length > 0 ? h("span", { class: "choice-detail" }, detail) : null,
    ),
  );
  return { box, label };
}

/** @param {JsonObject} element @param {Place} place @param {{ box: HTMLInputElement, label: HTMLElement }[]} boxes @param {"radio" | "checkbox" | "multi"} kind */
function group(element, place, boxes, kind) {
  const node = h(
    "div",
    {
      role: kind === "radio" ? "radiogroup" : "group",
      class: `choices choices-${kind}`,
      ...common(element, place),
    },
    boxes.map((b) => b.label),
  );
  const get = () => {
    const values = boxes.filter((b) => b.box.checked).map((b) => b.box.value);
    return kind === "radio" ? (values[0] ?? null) : values;
  };
  place.surface.fields.set(key(element, place), {
    get,
    set: (value) => {
      const wanted = new Set(many(value));
      for (const { box } of boxes) box.checked = wanted.has(box.value);
    },
  });
  if (place.dispatches)
    node.addEventListener("change", () => void place.surface.press(place.blockId, element, node, get()));
  return node;
}

/** @param {JsonObject} element @param {Place} place @returns {HTMLElement} */
export function picker(element, place) {
  const type =
    element["type"] === "datepicker" ? "date" : element["type"] === "timepicker" ? "time" : "datetime-local";
  const node = h("input", {
    type,
    class: "input input-short",
    "aria-label": place.aria === undefined ? textOf(element["placeholder"]) || null : null,
    ...common(element, place),
  });
  const whole = type === "datetime-local";
  const show = (/** @type {InputValue} */ value) => {
    const text = one(value);
    node.value = whole && text !== "" ? localInput(Number(text)) : text;
  };
  const get = () =>
    node.value === "" ? null : whole ? String(Math.floor(new Date(node.value).getTime() / 1000)) : node.value;
  show(initial(element, place));
  place.surface.fields.set(key(element, place), { get, set: show });
  if (place.dispatches)
    node.addEventListener("change", () => void place.surface.press(place.blockId, element, node, get()));
  return node;
}

/** @param {number} seconds */
function localInput(seconds) {
  const at = new Date(seconds * 1000);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** @param {JsonObject} element @param {Place} place @returns {HTMLElement} */
export function textInput(element, place) {
  const multiline = element["multiline"] === true;
  const props = {
    class: "input",
    placeholder: textOf(element["placeholder"]) || null,
    spellcheck: "true",
    ...common(element, place),
  };
  const node = multiline
    ? h("textarea", { rows: "4", ...props })
    : h("input", { type: "text", inputmode: inputMode(str(element["type"])), autocomplete: "off", ...props });
  node.value = one(initial(element, place));
  place.surface.fields.set(key(element, place), {
    get: () => (node.value === "" ? null : node.value),
    set: (value) => {
      node.value = one(value);
    },
  });
  const triggers = obj(element["dispatch_action_config"])["trigger_actions_on"];
  const onType = Array.isArray(triggers) && triggers.includes("on_character_entered");
  if (place.dispatches) {
    node.addEventListener(onType ? "input" : "keydown", (event) => {
      if (!onType && /** @type {KeyboardEvent} */ (event).key !== "Enter") return;
      if (!onType) event.preventDefault();
      void place.surface.press(place.blockId, element, node, node.value || null);
    });
  }
  const max = num(element["max_length"], 0);
  return max > 0 && max <= 500 ? counted(node, max) : node;
}

/** @param {string} type */
function inputMode(type) {
  return type === "number_input"
    ? "decimal"
    : type === "email_text_input"
      ? "email"
      : type === "url_text_input"
        ? "url"
        : "text";
}

/** The input with the characters that are left. @param {HTMLInputElement | HTMLTextAreaElement} node @param {number} max */
function counted(node, max) {
  const left = h("span", { class: "counter", "aria-hidden": "true" });
  const show = () => {
    const rest = max - node.value.length;
    // Of an empty field nothing: a bare number in it reads like what was filled in.
    left.textContent = node.value === "" ? "" : `${rest} left`;
    left.classList.toggle("counter-over", rest < 0);
  };
  node.addEventListener("input", show);
  show();
  return h("div", { class: "counted" }, node, left);
}
