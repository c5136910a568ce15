/** What an input holds, as the control API writes it, from Slack's state or its initial value. */
/** @import { InputValue, JsonObject } from "../../slack/control-types.js" */
import { isObject, list, str } from "../json.js";

/** @param {unknown} raw @returns {InputValue} */
function plain(raw) {
  if (raw === null || raw === undefined) return null;
  if (Array.isArray(raw)) return raw.map((item) => (isObject(item) ? str(item["value"]) : str(item)));
  if (isObject(raw)) return str(raw["value"]);
  return str(raw);
}

/** @param {JsonObject} element @param {JsonObject | undefined} state @returns {InputValue} */
export function inputValue(element, state) {
  if (state !== undefined) {
    const key = Object.keys(state).find((name) => name === "value" || name.startsWith("selected_"));
    return key === undefined ? null : plain(state[key]);
  }
  const key = Object.keys(element).find((name) => name.startsWith("initial_"));
  return key === undefined ? null : plain(element[key]);
}

/** @param {JsonObject} element @returns {{ label: string | null, options: JsonObject[] }[]} */
export function optionGroups(element) {
  const groups = list(element["option_groups"]);
  if (groups.length === 0) return [{ label: null, options: list(element["options"]) }];
  return groups.map((group) => ({
    label: isObject(group["label"]) ? str(group["label"]["text"]) : "",
    options: list(group["options"]),
  }));
}
