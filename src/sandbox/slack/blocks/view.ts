/** Modal and home views: their own fields, their blocks, and what holds between them. */
import { checkBlocks } from "./blocks.js";
import { bool, isObject, object, oneOf, type Problem, str } from "./check.js";
import { plainText } from "./text-objects.js";

const COMMON = { private_metadata: str(3000), callback_id: str(255), external_id: str(255) };

const modal = object({
  required: { type: oneOf("modal"), title: plainText(24), blocks: () => undefined },
  optional: {
    ...COMMON,
    submit: plainText(24),
    close: plainText(24),
    clear_on_close: bool,
    notify_on_close: bool,
  },
});

const home = object({
  required: { type: oneOf("home"), blocks: () => undefined },
  optional: COMMON,
});

/** Largest view in bytes of JSON. */
export const VIEW_MAX_BYTES = 250_000;

/** Everything wrong with a view, pointers below `/view`. */
export function checkView(view: unknown): Problem[] {
  if (!isObject(view)) return [{ message: "must provide an object", pointer: "/view" }];
  const out: Problem[] = [];
  const type = view["type"];
  if (type !== "modal" && type !== "home") {
    const message = typeof type === "string" ? `unsupported type: ${type}` : "missing required field: type";
    out.push({ message, pointer: typeof type === "string" ? "/view/type" : "/view" });
    return out;
  }
  (type === "modal" ? modal : home)(view, "/view", out);
  const blocks = view["blocks"];
  if (blocks === undefined || blocks === null) return out;
  out.push(...checkBlocks(blocks, type, "/view/blocks"));
  if (
    type === "modal" &&
    (view["submit"] === undefined || view["submit"] === null) &&
    Array.isArray(blocks)
  ) {
    blocks.forEach((entry: unknown, index) => {
      if (isObject(entry) && entry["type"] === "input") {
        out.push({
          message: "must define `submit` to use an `input` block in modals",
          pointer: `/view/blocks/${index}/input`,
        });
      }
    });
  }
  return out;
}
