/**
 * State of inputs: what Slack sends as `state.values`, what a typed or chosen value becomes, and the checks that Slack's
 * client makes before it submits a form.
 */
import type { InputValue } from "../control-types.js";
import type { Block, ElementState, Json, JsonObject, StateValues } from "../model.js";
import { isObject } from "./check.js";
import { elementsOf, type Located } from "./elements-of.js";

const TEXT_INPUTS = new Set(["plain_text_input", "email_text_input", "url_text_input", "number_input"]);

/** Where each kind of element keeps its value, and its initial value. */
const FIELDS: Record<string, { field: string; initial: string; many: boolean }> = {
  plain_text_input: { field: "value", initial: "initial_value", many: false },
  email_text_input: { field: "value", initial: "initial_value", many: false },
  url_text_input: { field: "value", initial: "initial_value", many: false },
  number_input: { field: "value", initial: "initial_value", many: false },
  static_select: { field: "selected_option", initial: "initial_option", many: false },
  radio_buttons: { field: "selected_option", initial: "initial_option", many: false },
  multi_static_select: { field: "selected_options", initial: "initial_options", many: true },
  checkboxes: { field: "selected_options", initial: "initial_options", many: true },
  users_select: { field: "selected_user", initial: "initial_user", many: false },
  multi_users_select: { field: "selected_users", initial: "initial_users", many: true },
  conversations_select: { field: "selected_conversation", initial: "initial_conversation", many: false },
  channels_select: { field: "selected_channel", initial: "initial_channel", many: false },
  datepicker: { field: "selected_date", initial: "initial_date", many: false },
  timepicker: { field: "selected_time", initial: "initial_time", many: false },
  datetimepicker: { field: "selected_date_time", initial: "initial_date_time", many: false },
};

/** Elements that hold a value (buttons and overflow menus do not). */
export function isStateful(type: string): boolean {
  return Object.hasOwn(FIELDS, type);
}

export function initialState(located: Located): ElementState | null {
  const where = FIELDS[located.type];
  if (!where) return null;
  return {
    type: located.type,
    [where.field]: located.element[where.initial] ?? (where.many ? [] : null),
  };
}

/** State of all inputs of these blocks: `kept` where the same block id and action id had a value, else the initial one. */
export function stateOf(blocks: Block[], kept: StateValues = {}): StateValues {
  const out: StateValues = {};
  for (const located of elementsOf(blocks)) {
    const fresh = initialState(located);
    if (!fresh) continue;
    const old = kept[located.blockId]?.[located.actionId];
    const values = out[located.blockId] ?? {};
    values[located.actionId] = old && old.type === located.type ? old : fresh;
    out[located.blockId] = values;
  }
  return out;
}

export function optionsOf(element: JsonObject): JsonObject[] {
  const list = (value: Json | undefined): JsonObject[] =>
    Array.isArray(value) ? value.filter((v): v is JsonObject => isObject(v)) : [];
  return [
    ...list(element["options"]),
    ...list(element["option_groups"]).flatMap((group) => list(group["options"])),
  ];
}

/** Option with this value, or with this visible text. */
function findOption(element: JsonObject, wanted: string): JsonObject | undefined {
  const all = optionsOf(element);
  return (
    all.find((o) => o["value"] === wanted) ??
    all.find((o) => isObject(o["text"]) && o["text"]["text"] === wanted)
  );
}

/** The state that this value gives, or a sentence saying why it cannot be given. */
export function stateFrom(located: Located, value: InputValue): ElementState | string {
  const where = FIELDS[located.type];
  if (!where) return `${located.type} holds no value`;
  const wrap = (inner: Json): ElementState => ({ type: located.type, [where.field]: inner });
  if (value === null || value === "") return wrap(where.many ? [] : null);
  if (where.field === "selected_option" || where.field === "selected_options") {
    const wanted = Array.isArray(value) ? value : [value];
    const found: JsonObject[] = [];
    for (const one of wanted) {
      const option = findOption(located.element, one);
      if (!option) return `"${located.label}" has no option "${one}"`;
      found.push(option);
    }
    return wrap(where.many ? found : (found[0] ?? null));
  }
  if (where.many) return wrap(Array.isArray(value) ? value : [value]);
  if (Array.isArray(value)) return `"${located.label}" takes one value`;
  if (located.type === "datetimepicker") return wrap(Number(value));
  return wrap(value);
}

const EMAIL = /^[^\s@]+@[^\s@]+\.[^\s@]+$/u;

function textProblem(located: Located, text: string): string | null {
  const element = located.element;
  const min = element["min_length"];
  const max = typeof element["max_length"] === "number" ? element["max_length"] : 3000;
  if (typeof min === "number" && text.length < min) return `Enter at least ${min} characters`;
  if (text.length > max) return `Enter no more than ${max} characters`;
  if (located.type === "email_text_input" && !EMAIL.test(text)) return "Enter a valid e-mail address";
  if (located.type === "url_text_input" && !/^https?:\/\/\S+$/u.test(text)) return "Enter a valid URL";
  if (located.type === "number_input") return numberProblem(element, text);
  return null;
}

function numberProblem(element: JsonObject, text: string): string | null {
  const decimal = element["is_decimal_allowed"] === true;
  if (!(decimal ? /^-?\d+(\.\d+)?$/u : /^-?\d+$/u).test(text)) {
    return decimal ? "Enter a number" : "Enter a whole number";
  }
  const min = element["min_value"];
  const max = element["max_value"];
  if (typeof min === "string" && Number(text) < Number(min)) return `Enter a number of at least ${min}`;
  if (typeof max === "string" && Number(text) > Number(max)) return `Enter a number of at most ${max}`;
  return null;
}

/** What Slack's client would say about these values, by block id; empty when the form may be sent. */
export function clientProblems(blocks: Block[], values: StateValues): Record<string, string> {
  const problems: Record<string, string> = {};
  for (const located of elementsOf(blocks)) {
    const where = FIELDS[located.type];
    if (!where || !located.input) continue;
    const value = values[located.blockId]?.[located.actionId]?.[where.field];
    const empty =
      value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0);
    if (empty) {
      if (!located.input.optional) problems[located.blockId] = "Please complete this required field.";
      continue;
    }
    if (TEXT_INPUTS.has(located.type)) {
      const problem = textProblem(located, String(value));
      if (problem) problems[located.blockId] = problem;
    }
    const most = located.element["max_selected_items"];
    if (Array.isArray(value) && typeof most === "number" && value.length > most) {
      problems[located.blockId] = `Choose no more than ${most}`;
    }
  }
  return problems;
}

/** `actions[0]` of a block_actions payload for this element, without `action_ts`. */
export function actionJson(located: Located, chosen: ElementState | null): JsonObject {
  const element = located.element;
  const copied: JsonObject = {};
  for (const name of ["text", "value", "style", "placeholder", "url", "accessibility_label", "confirm"]) {
    if (element[name] !== undefined && !(name === "value" && isStateful(located.type))) {
      copied[name] = element[name];
    }
  }
  if (!chosen)
    return { type: located.type, block_id: located.blockId, action_id: located.actionId, ...copied };
  const { type: _type, ...rest } = chosen;
  const initial = FIELDS[located.type]?.initial;
  return {
    type: located.type,
    block_id: located.blockId,
    action_id: located.actionId,
    ...copied,
    ...(initial !== undefined && initial !== "initial_value" && element[initial] !== undefined
      ? { [initial]: element[initial] }
      : {}),
    ...rest,
  };
}
