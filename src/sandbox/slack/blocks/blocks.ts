/**
 * Blocks by surface, and what holds for all of a surface together: how many, unique block ids, unique action ids in a
 * block. A block type that the sandbox does not know is refused as Slack refuses one it does not know.
 */
import {
  anySchema,
  bool,
  byType,
  type Check,
  type Fields,
  int,
  isObject,
  list,
  num,
  object,
  oneOf,
  type Problem,
  str,
  url,
  webUrl,
} from "./check.js";
import { ELEMENTS, type ElementType } from "./elements.js";
import { RICH_TEXT_ELEMENTS } from "./rich-text.js";
import { anyText, mrkdwn, plainText } from "./text-objects.js";

export type Surface = "message" | "modal" | "home";

function pick(...types: ElementType[]): Check {
  return byType(Object.fromEntries(types.map((type) => [type, ELEMENTS[type]])));
}

function block(type: string, fields: Fields, also?: Check): Check {
  return object(
    {
      required: { type: oneOf(type), ...fields.required },
      optional: { block_id: str(255, 1), ...fields.optional },
    },
    also,
  );
}

/** No action id twice in one block. */
const uniqueActionIds: Check = (value, at, out) => {
  const elements = (value as { elements?: unknown }).elements;
  if (!Array.isArray(elements)) return;
  const seen = new Set<string>();
  elements.forEach((entry: unknown, index) => {
    const id = isObject(entry) ? entry["action_id"] : undefined;
    if (typeof id !== "string") return;
    if (seen.has(id)) {
      out.push({
        message: `\`action_id\` "${id}" already exists`,
        pointer: `${at}/elements/${index}/action_id`,
      });
    }
    seen.add(id);
  });
};

const SELECTS = [
  "static_select",
  "multi_static_select",
  "users_select",
  "multi_users_select",
  "conversations_select",
  "channels_select",
] as const satisfies ElementType[];
const PICKERS = ["datepicker", "timepicker", "datetimepicker"] as const satisfies ElementType[];
const CHOICES = ["checkboxes", "radio_buttons"] as const satisfies ElementType[];

const divider = block("divider", {});

const section = block(
  "section",
  {
    optional: {
      text: anyText(3000),
      fields: list(anyText(2000), 10, 1),
      accessory: pick("button", "image", "overflow", "datepicker", "timepicker", ...CHOICES, ...SELECTS),
      expand: bool,
    },
  },
  (value, at, out) => {
    const has = value as Record<string, unknown>;
    if (has["text"] === undefined && has["fields"] === undefined) {
      out.push({ message: "must define either `text` or `fields`", pointer: at });
    }
  },
);

const header = block("header", { required: { text: plainText(150) } });

const contextText: Record<string, Check> = {
  image: ELEMENTS.image,
  plain_text: plainText(3000),
  mrkdwn: mrkdwn(3000),
};
const context = block("context", { required: { elements: list(anySchema(byType(contextText)), 10, 1) } });

const actions = block(
  "actions",
  { required: { elements: list(pick("button", "overflow", ...CHOICES, ...PICKERS, ...SELECTS), 25, 1) } },
  uniqueActionIds,
);

const contextActions = block(
  "context_actions",
  { required: { elements: list(pick("feedback_buttons", "icon_button"), 5, 1) } },
  uniqueActionIds,
);

const image = block(
  "image",
  {
    required: { alt_text: str(2000, 1) },
    optional: {
      image_url: webUrl,
      slack_file: object({ optional: { id: str(), url: str(3000) } }),
      title: plainText(2000),
    },
  },
  (value, at, out) => {
    const has = value as Record<string, unknown>;
    if (has["image_url"] === undefined && has["slack_file"] === undefined) {
      out.push({ message: "must define either `image_url` or `slack_file`", pointer: at });
    }
  },
);

const input = block("input", {
  required: {
    label: plainText(2000),
    element: pick(
      "plain_text_input",
      "email_text_input",
      "url_text_input",
      "number_input",
      ...CHOICES,
      ...PICKERS,
      ...SELECTS,
    ),
  },
  optional: { hint: plainText(2000), optional: bool, dispatch_action: bool },
});

const markdown = block("markdown", { required: { text: str(12_000, 1) } });

const richText = block("rich_text", { required: { elements: list(byType(RICH_TEXT_ELEMENTS), 1000) } });

const cell = byType({
  raw_text: object({ required: { type: oneOf("raw_text"), text: str(10_000, 1) } }),
  raw_number: object({ required: { type: oneOf("raw_number"), value: num, text: str(10_000, 1) } }),
  rich_text: richText,
});
const columnSetting: Check = (value, at, out) => {
  if (value === null) return;
  object({ optional: { align: oneOf("left", "center", "right"), is_wrapped: bool } })(value, at, out);
};
const table = block("table", {
  required: { rows: list(list(cell, 20, 1), 100, 1) },
  optional: { column_settings: list(columnSetting, 20) },
});
const dataTable = block("data_table", {
  required: { caption: str(2000, 1), rows: list(list(cell, 20, 1), 1000, 1) },
  optional: { page_size: int(1, 100), row_header_column_index: int(0, 19) },
});

const source = object({ required: { type: oneOf("url"), url: url(3000), text: str(3000, 1) } });
const taskCard = block("task_card", {
  required: {
    task_id: str(255, 1),
    title: str(3000, 1),
    status: oneOf("pending", "in_progress", "complete", "error"),
  },
  optional: { details: richText, output: richText, sources: list(source, 100) },
});
const plan = block("plan", { required: { title: str(3000, 1) }, optional: { tasks: list(taskCard, 50) } });

const alert = block("alert", {
  required: { text: anyText(200) },
  optional: { level: oneOf("default", "info", "warning", "error", "success") },
});

const card = block(
  "card",
  {
    optional: {
      hero_image: ELEMENTS.image,
      icon: ELEMENTS.image,
      title: mrkdwn(150),
      subtitle: mrkdwn(150),
      body: mrkdwn(200),
      subtext: mrkdwn(200),
      actions: list(pick("button"), 3, 1),
    },
  },
  (value, at, out) => {
    const has = value as Record<string, unknown>;
    if (["hero_image", "title", "actions", "body"].every((name) => has[name] === undefined)) {
      out.push({ message: "must define `hero_image`, `title`, `actions` or `body`", pointer: at });
    }
  },
);
const carousel = block("carousel", { required: { elements: list(card, 10, 1) } });

const CHILDREN = { actions, context, divider, header, image, rich_text: richText, section, table };
const container = block("container", {
  required: { child_blocks: list(byType(CHILDREN), 10, 1) },
  optional: {
    title: plainText(150),
    rich_text_title: richText,
    subtitle: anyText(150),
    width: oneOf("narrow", "standard", "wide", "full"),
    icon: ELEMENTS.image,
    is_collapsible: bool,
    default_collapsed: bool,
    has_header_divider: bool,
  },
});

const COMMON = { section, header, context, actions, divider, image, rich_text: richText, markdown };
const RICH = { table, data_table: dataTable, context_actions: contextActions, card, carousel, container };

/** Inputs only in views, alerts only in modals, the agent's blocks only in messages. */
const BLOCKS: Record<Surface, Check> = {
  message: byType({ ...COMMON, ...RICH, task_card: taskCard, plan }),
  modal: byType({ ...COMMON, ...RICH, input, alert }),
  home: byType({ ...COMMON, ...RICH, input }),
};

export const MAX_BLOCKS: Record<Surface, number> = { message: 50, modal: 100, home: 100 };

const uniqueBlockIds: Check = (value, at, out) => {
  if (!Array.isArray(value)) return;
  const seen = new Set<string>();
  value.forEach((entry: unknown, index) => {
    const id = isObject(entry) ? entry["block_id"] : undefined;
    if (typeof id !== "string") return;
    if (seen.has(id)) {
      out.push({ message: `\`block_id\` "${id}" already exists`, pointer: `${at}/${index}/block_id` });
    }
    seen.add(id);
  });
};

/** Markdown of all blocks together; and one table a message. Source: Slack's pages of these blocks. */
const MAX_MARKDOWN = 12_000;

const together: Check = (value, at, out) => {
  if (!Array.isArray(value)) return;
  const of = (type: string): Record<string, unknown>[] =>
    value.filter(isObject).filter((entry) => entry["type"] === type);
  const characters = of("markdown").reduce((sum, entry) => sum + String(entry["text"] ?? "").length, 0);
  if (of("markdown").length > 1 && characters > MAX_MARKDOWN) {
    out.push({
      message: `markdown blocks must be less than ${MAX_MARKDOWN + 1} characters in all`,
      pointer: at,
    });
  }
  if (of("table").length > 1) out.push({ message: "only one table allowed", pointer: at });
};

/** Only one element of a view may take the focus. */
const oneFocus: Check = (value, at, out) => {
  if (!Array.isArray(value)) return;
  let focused = 0;
  value.forEach((entry: unknown, index) => {
    const element = isObject(entry) ? entry["element"] : undefined;
    if (!isObject(element) || element["focus_on_load"] !== true) return;
    focused += 1;
    if (focused > 1) {
      out.push({
        message: "`focus_on_load` can only be set to true on one element",
        pointer: `${at}/${index}/element/focus_on_load`,
      });
    }
  });
};

/** Everything wrong with a list of blocks on this surface, with pointers below `at`. */
export function checkBlocks(blocks: unknown, surface: Surface, at: string): Problem[] {
  const out: Problem[] = [];
  list(BLOCKS[surface], MAX_BLOCKS[surface])(blocks, at, out);
  uniqueBlockIds(blocks, at, out);
  together(blocks, at, out);
  if (surface !== "message") oneFocus(blocks, at, out);
  return out;
}
