/** Walks stored blocks: fills in what Slack fills in, and finds the interactive elements with their labels. */
import type { SandboxContext } from "../context.js";
import type { Block, Json, JsonObject } from "../model.js";
import { isObject } from "./check.js";

/** An interactive element where it stands. */
export interface Located {
  blockId: string;
  actionId: string;
  type: string;
  element: JsonObject;
  /** What a person would call it: the button's text, or the label of its input block. */
  label: string;
  /** Stands in an input block; `optional` and `dispatches` are the block's. */
  input: { optional: boolean; dispatches: boolean } | null;
}

const NOT_INTERACTIVE = new Set(["image", "plain_text", "mrkdwn", "raw_text", "raw_number", "url"]);

function textOf(value: Json | undefined): string {
  return isObject(value) && typeof value["text"] === "string" ? value["text"] : "";
}

/** Stored form: block ids and action ids where there are none, `emoji` and `verbatim` as Slack adds them. */
export function normaliseBlocks(ctx: SandboxContext, blocks: unknown[]): Block[] {
  return blocks.map((raw) => {
    const block = structuredClone(raw) as Block;
    if (typeof block.block_id !== "string") block.block_id = ctx.ids.short();
    if (block.type === "input") {
      block["optional"] ??= false;
      block["dispatch_action"] ??= false;
    }
    fillIn(ctx, block, true);
    return block;
  });
}

function fillIn(ctx: SandboxContext, value: Json | undefined, isBlock: boolean): void {
  if (Array.isArray(value)) {
    for (const item of value) fillIn(ctx, item, false);
    return;
  }
  if (!isObject(value)) return;
  const object = value as JsonObject;
  const type = object["type"];
  if (type === "plain_text" && object["emoji"] === undefined) object["emoji"] = true;
  if (type === "mrkdwn" && object["verbatim"] === undefined) object["verbatim"] = false;
  if (!isBlock && typeof type === "string" && INTERACTIVE.has(type) && object["action_id"] === undefined) {
    object["action_id"] = ctx.ids.short();
  }
  for (const child of Object.values(object)) fillIn(ctx, child, false);
}

const INTERACTIVE = new Set([
  "button",
  "checkboxes",
  "radio_buttons",
  "overflow",
  "datepicker",
  "timepicker",
  "datetimepicker",
  "static_select",
  "multi_static_select",
  "users_select",
  "multi_users_select",
  "conversations_select",
  "channels_select",
  "plain_text_input",
  "email_text_input",
  "url_text_input",
  "number_input",
  "feedback_buttons",
  "icon_button",
]);

function* nested(block: JsonObject): Generator<JsonObject> {
  const list = (name: string): Json[] => (Array.isArray(block[name]) ? (block[name] as Json[]) : []);
  const accessory = block["accessory"];
  if (isObject(accessory)) yield accessory as JsonObject;
  for (const name of ["elements", "actions"]) {
    for (const item of list(name)) if (isObject(item)) yield item as JsonObject;
  }
}

/** Every interactive element of the blocks, in reading order. */
export function* elementsOf(blocks: Block[]): Generator<Located> {
  for (const block of blocks) {
    if (block.type === "input") {
      const element = block["element"];
      if (!isObject(element)) continue;
      yield {
        blockId: block.block_id,
        actionId: String(element["action_id"]),
        type: String(element["type"]),
        element: element as JsonObject,
        label: textOf(block["label"]),
        input: { optional: block["optional"] === true, dispatches: block["dispatch_action"] === true },
      };
      continue;
    }
    for (const element of nested(block)) {
      const type = String(element["type"]);
      if (type === "card") yield* elementsOf([{ ...element, type, block_id: block.block_id }]);
      if (NOT_INTERACTIVE.has(type) || !INTERACTIVE.has(type)) continue;
      yield {
        blockId: block.block_id,
        actionId: String(element["action_id"]),
        type,
        element,
        label: textOf(element["text"]) || textOf(element["placeholder"]),
        input: null,
      };
    }
    const children = block["child_blocks"];
    if (Array.isArray(children)) {
      yield* elementsOf(
        children.filter(isObject).map((entry) => {
          const child = entry as Block;
          return { ...child, block_id: child.block_id ?? block.block_id };
        }),
      );
    }
  }
}
