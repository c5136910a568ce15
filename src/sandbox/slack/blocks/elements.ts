/** Block elements: buttons, selects, inputs, pickers. */
import {
  bool,
  type Check,
  type Fields,
  int,
  isObject,
  list,
  matches,
  object,
  oneOf,
  type Problem,
  str,
  url,
  webUrl,
} from "./check.js";
import {
  confirmDialog,
  conversationFilter,
  dispatchConfig,
  option,
  optionGroup,
  plainText,
} from "./text-objects.js";

const actionId = { action_id: str(255, 1) };
const confirm = { confirm: confirmDialog };
const focus = { focus_on_load: bool };
const placeholder = { placeholder: plainText(150) };
const dispatch = { dispatch_action_config: dispatchConfig };
const maxSelected = { max_selected_items: int(1, 1000) };
const style = { style: oneOf("primary", "danger") };
const accessibility = { accessibility_label: str(75, 1) };

/** An element of this type with these fields. */
function element(type: string, fields: Fields, also?: Check): Check {
  return object(
    {
      required: { type: oneOf(type), ...fields.required },
      optional: { ...actionId, ...fields.optional },
    },
    also,
  );
}

/** A static select has options or option groups, not both and not neither. */
const optionsOrGroups: Check = (value, at, out) => {
  const has = value as Record<string, unknown>;
  if (has["options"] === undefined && has["option_groups"] === undefined) {
    out.push({ message: "must define either `options` or `option_groups`", pointer: at });
  }
  if (has["options"] !== undefined && has["option_groups"] !== undefined) {
    out.push({ message: "cannot provide both `options` and `option_groups`", pointer: at });
  }
};

const selectOptions = {
  options: list(option("plain"), 100, 1),
  option_groups: list(optionGroup, 100, 1),
};

/** A day that there is: no 31st of February. */
const date: Check = (value, at, out) => {
  const day =
    typeof value === "string" && /^\d{4}-\d{2}-\d{2}$/u.test(value) ? new Date(`${value}T00:00Z`) : null;
  if (day === null || Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== value) {
    out.push({ message: "must be a date of the form YYYY-MM-DD", pointer: at });
  }
};
const time = matches(/^([01]\d|2[0-3]):[0-5]\d$/u, "must be a time of the form HH:mm");

const image: Check = object(
  {
    required: { type: oneOf("image"), alt_text: str(2000, 1) },
    optional: { image_url: webUrl, slack_file: object({ optional: { id: str(), url: str(3000) } }) },
  },
  (value, at, out) => {
    const has = value as Record<string, unknown>;
    if (has["image_url"] === undefined && has["slack_file"] === undefined) {
      out.push({ message: "must define either `image_url` or `slack_file`", pointer: at });
    }
  },
);

const textLength: Check = (value, at, out) => {
  const { min_length: min, max_length: max } = value as { min_length?: unknown; max_length?: unknown };
  if (typeof min === "number" && typeof max === "number" && min > max) {
    out.push({ message: "`min_length` must not be greater than `max_length`", pointer: `${at}/min_length` });
  }
};

/** What makes an option the same as another: all that is shown of it, and its value. */
const optionKey = (option: unknown): string => {
  const { text, value, description } = (isObject(option) ? option : {}) as Record<string, unknown>;
  const shown = (object: unknown): unknown => (isObject(object) ? [object["type"], object["text"]] : null);
  return JSON.stringify([shown(text), value ?? null, shown(description)]);
};

/** Initial options must be among the options, exactly. */
function initialAmong(field: "initial_option" | "initial_options"): Check {
  return (value, at, out) => {
    const has = value as Record<string, unknown>;
    const initial = has[field];
    if (initial === undefined) return;
    const groups = Array.isArray(has["option_groups"]) ? has["option_groups"] : [];
    const all: unknown[] = [
      ...(Array.isArray(has["options"]) ? has["options"] : []),
      ...groups.flatMap((g: { options?: unknown }) => (Array.isArray(g?.options) ? g.options : [])),
    ];
    const known = new Set(all.map(optionKey));
    for (const one of Array.isArray(initial) ? initial : [initial]) {
      if (!known.has(optionKey(one))) {
        out.push({ message: `\`${field}\` must be one of the options`, pointer: `${at}/${field}` });
      }
    }
  };
}

/** Bounds are numbers as text, and the lower one is not above the other. */
const numberRange: Check = (value, at, out) => {
  const has = value as Record<string, unknown>;
  for (const field of ["min_value", "max_value", "initial_value"]) {
    const text = has[field];
    if (typeof text === "string" && !/^-?\d+(\.\d+)?$/u.test(text)) {
      out.push({ message: "must be a number", pointer: `${at}/${field}` });
    }
  }
  if (Number(has["min_value"]) > Number(has["max_value"])) {
    out.push({ message: "`min_value` must not be greater than `max_value`", pointer: `${at}/min_value` });
  }
};

function both(...checks: Check[]): Check {
  return (value: unknown, at: string, out: Problem[]) => {
    for (const check of checks) check(value, at, out);
  };
}

const feedbackButton = object({
  required: { text: plainText(75), value: str(2000) },
  optional: accessibility,
});

export const ELEMENTS = {
  button: element("button", {
    required: { text: plainText(75) },
    optional: { value: str(2000), url: url(3000), ...style, ...confirm, ...accessibility },
  }),
  image,
  checkboxes: element(
    "checkboxes",
    {
      required: { options: list(option("any"), 10, 1) },
      optional: { initial_options: list(option("any"), 10, 1), ...confirm, ...focus },
    },
    initialAmong("initial_options"),
  ),
  radio_buttons: element(
    "radio_buttons",
    {
      required: { options: list(option("any"), 10, 1) },
      optional: { initial_option: option("any"), ...confirm, ...focus },
    },
    initialAmong("initial_option"),
  ),
  overflow: element("overflow", {
    required: { options: list(option("overflow"), 5, 1) },
    optional: confirm,
  }),
  datepicker: element("datepicker", {
    optional: { initial_date: date, ...confirm, ...focus, ...placeholder },
  }),
  timepicker: element("timepicker", {
    optional: { initial_time: time, timezone: str(100, 1), ...confirm, ...focus, ...placeholder },
  }),
  datetimepicker: element("datetimepicker", {
    optional: { initial_date_time: int(1_000_000_000, 9_999_999_999), ...confirm, ...focus },
  }),
  static_select: element(
    "static_select",
    { optional: { ...selectOptions, initial_option: option("plain"), ...confirm, ...focus, ...placeholder } },
    both(optionsOrGroups, initialAmong("initial_option")),
  ),
  multi_static_select: element(
    "multi_static_select",
    {
      optional: {
        ...selectOptions,
        initial_options: list(option("plain"), 100, 1),
        ...confirm,
        ...focus,
        ...placeholder,
        ...maxSelected,
      },
    },
    both(optionsOrGroups, initialAmong("initial_options")),
  ),
  users_select: element("users_select", {
    optional: { initial_user: str(), ...confirm, ...focus, ...placeholder },
  }),
  multi_users_select: element("multi_users_select", {
    optional: { initial_users: list(str(), 100), ...confirm, ...focus, ...placeholder, ...maxSelected },
  }),
  conversations_select: element("conversations_select", {
    optional: {
      initial_conversation: str(),
      default_to_current_conversation: bool,
      response_url_enabled: bool,
      filter: conversationFilter,
      ...confirm,
      ...focus,
      ...placeholder,
    },
  }),
  channels_select: element("channels_select", {
    optional: { initial_channel: str(), response_url_enabled: bool, ...confirm, ...focus, ...placeholder },
  }),
  plain_text_input: element(
    "plain_text_input",
    {
      optional: {
        initial_value: str(3000),
        multiline: bool,
        min_length: int(0, 3000),
        max_length: int(1, 3000),
        ...dispatch,
        ...focus,
        ...placeholder,
      },
    },
    textLength,
  ),
  email_text_input: element("email_text_input", {
    optional: { initial_value: str(3000), ...dispatch, ...focus, ...placeholder },
  }),
  url_text_input: element("url_text_input", {
    optional: { initial_value: str(3000), ...dispatch, ...focus, ...placeholder },
  }),
  number_input: element(
    "number_input",
    {
      required: { is_decimal_allowed: bool },
      optional: {
        initial_value: str(100),
        min_value: str(100),
        max_value: str(100),
        ...dispatch,
        ...focus,
        ...placeholder,
      },
    },
    numberRange,
  ),
  feedback_buttons: element("feedback_buttons", {
    required: { positive_button: feedbackButton, negative_button: feedbackButton },
  }),
  icon_button: element("icon_button", {
    required: { icon: oneOf("trash"), text: plainText(75) },
    optional: { value: str(2000), visible_to_user_ids: list(str(), 100), ...confirm, ...accessibility },
  }),
} satisfies Record<string, Check>;

export type ElementType = keyof typeof ELEMENTS;
