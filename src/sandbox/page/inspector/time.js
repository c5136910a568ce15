/** Slack's clock, the open questions of its behaviour as switches, and the way back to a fresh workspace. */
import { get, send } from "../api.js";
import { h } from "../dom.js";
import { obj } from "../json.js";
import { reload } from "../route.js";
import { store } from "../store.js";
import { ask } from "../ui/confirm.js";
import { action, fieldset } from "./form.js";

const JUMPS = /** @type {const} */ ([
  ["+1 minute", 60_000],
  ["+5 minutes", 300_000],
  ["+1 hour", 3_600_000],
]);

/** @type {[string, string][]} */
const SWITCHES = [
  ["rateLimits", "Rate limits"],
  ["strict", "Strict: unknown arguments fail"],
  ["delayedEvents", "Delayed events"],
  ["orgInstall", "Org-wide installation (team: null)"],
  ["freePlan", "Free plan (no user groups)"],
  ["editsNotify", "Edits notify groups"],
  ["retryInteractivity", "Interactivity is sent again"],
];

/** @returns {HTMLElement} */
export function timeControls() {
  const boxes = SWITCHES.map(([name, label]) => {
    const box = h("input", { type: "checkbox" });
    box.addEventListener("change", () => void send("settings", { [name]: box.checked }));
    return { name, box, label: h("label", { class: "choice" }, box, h("span", null, label)) };
  });
  store.on(["workspace"], async () => {
    const settings = obj(await get("settings"));
    for (const { name, box } of boxes) box.checked = settings[name] === true;
  });
  return fieldset(
    "Slack's clock and settings",
    h(
      "div",
      { class: "fault-form" },
      JUMPS.map(([label, ms]) => action(label, () => send("clock", { advanceMs: ms }).then(() => reload()))),
    ),
    h(
      "div",
      { class: "choices" },
      boxes.map((b) => b.label),
    ),
    h("div", { class: "fault-form" }, action("Fresh workspace", fresh)),
  );
}

async function fresh() {
  const sure = await ask({
    title: "Start over?",
    body: ["Every message, form and fault of this workspace goes. The ledger and the payments stay."],
    yes: "Start over",
    no: "Keep it",
    danger: true,
  });
  if (sure) await send("admin/reset", {});
}
