/** Small forms of the inspector. */
import { h } from "../dom.js";
import { toast } from "../ui/toasts.js";

/** @param {string} name @param {Iterable<readonly [string, string]>} options */
export function choose(name, options) {
  return h(
    "select",
    { class: "input select", "aria-label": name },
    [...options].map(([value, label]) => h("option", { value }, label)),
  );
}

/** @param {string} name @param {number} value @param {{ min?: number, max?: number }} [limits] */
export function count(name, value, limits = {}) {
  return h("input", {
    type: "number",
    class: "input input-number",
    "aria-label": name,
    title: name,
    value,
    min: String(limits.min ?? 1),
    max: String(limits.max ?? 1000),
  });
}

/** A button that does something and says what came of it. @param {string} label @param {() => Promise<unknown>} run @param {string} [done] */
export function action(label, run, done) {
  const button = h("button", { type: "button", class: "button button-small" }, label);
  button.addEventListener("click", async () => {
    button.setAttribute("aria-busy", "true");
    try {
      await run();
      if (done !== undefined) toast(done);
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), { kind: "error" });
    }
    button.removeAttribute("aria-busy");
  });
  return button;
}

/** @param {string} name @param {...(Node | string | null)} children */
export function fieldset(name, ...children) {
  return h("section", { class: "fault-group" }, h("h3", null, name), children);
}
