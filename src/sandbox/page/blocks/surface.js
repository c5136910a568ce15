/**
 * A place that holds blocks: a message, a modal or the app's home. It knows the values of its inputs and sends presses.
 */
/** @import { InputValue, JsonObject } from "../../slack/control-types.js" */
import { act } from "../api.js";
import { isObject, obj, str } from "../json.js";
import { confirmDialog } from "../ui/confirm.js";

/** @typedef {{ get: () => InputValue, set: (value: InputValue) => void }} Field */

export class Surface {
  /** Inputs by `blockId/actionId`. @type {Map<string, Field>} */
  fields = new Map();

  /**
   * @param {"message" | "modal" | "home"} kind
   * @param {{ channel: string, ts: string } | { viewId: string }} at
   * @param {Record<string, Record<string, JsonObject>>} [state] values that the sandbox keeps for this view
   */
  constructor(kind, at, state = {}) {
    this.kind = kind;
    this.at = at;
    this.state = state;
  }

  /** Values of all inputs, as the control API takes them. @returns {Record<string, InputValue>} */
  values() {
    return Object.fromEntries([...this.fields].map(([key, field]) => [key, field.get()]));
  }

  /** Puts typed values back after the blocks were drawn again. @param {Record<string, InputValue>} values */
  restore(values) {
    for (const [key, value] of Object.entries(values)) this.fields.get(key)?.set(value);
  }

  /**
   * Sends a press, after the confirm dialog where the element has one.
   * @param {string} blockId
   * @param {JsonObject} element
   * @param {HTMLElement} node shows that it is under way
   * @param {InputValue} [value] what was chosen, for elements that hold a value
   * @returns {Promise<boolean>} false when nothing was sent or it was refused
   */
  async press(blockId, element, node, value) {
    if (node.getAttribute("aria-busy") === "true") return false;
    const asks = isObject(element["confirm"]);
    if (asks && !(await confirmDialog(obj(element["confirm"])))) return false;
    node.setAttribute("aria-busy", "true");
    const key = `${blockId}/${str(element["action_id"])}`;
    const others = this.values();
    delete others[key];
    const result = await act("click", {
      at: this.at,
      blockId,
      actionId: str(element["action_id"]),
      values: others,
      ...(value === undefined ? {} : { value }),
      ...(asks ? { confirm: true } : {}),
    });
    node.removeAttribute("aria-busy");
    return result.ok;
  }
}
