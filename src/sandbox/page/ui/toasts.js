/** Short notes at the edge of the page: what Slack would say, and why something did not happen. */
import { byId, h, iconButton } from "../dom.js";

const SHOWN_MS = 8_000;
const SAME_MS = 2_000;
/** @type {Map<string, number>} */
const recent = new Map();

/**
 * @param {string} message
 * @param {{ kind?: "error" | "info", code?: string, channel?: string }} [options] `channel`: the note opens it
 */
export function toast(message, options = {}) {
  const now = performance.now();
  // A refusal comes as the answer and over the live stream: one note is enough.
  if (now - (recent.get(message) ?? Number.NEGATIVE_INFINITY) < SAME_MS) return;
  recent.set(message, now);
  const area = byId("toasts");
  // The same thing again takes the place of the older note.
  for (const older of area.children) if (older.querySelector("span")?.textContent === message) older.remove();
  const kind = options.kind ?? "info";
  const note = h(
    "div",
    { class: `toast toast-${kind}`, role: kind === "error" ? "alert" : "status" },
    h(
      "div",
      null,
      h("span", null, message),
      options.code === undefined ? null : h("span", { class: "toast-code" }, options.code),
      options.channel === undefined
        ? null
        : h(
            "button",
            { type: "button", class: "button button-small", data: { channel: options.channel } },
            "Show",
          ),
    ),
  );
  const gone = () => {
    note.remove();
    if (area.childElementCount === 0 && area.matches(":popover-open")) area.hidePopover();
  };
  note.append(iconButton("close", "Dismiss", { onclick: gone }));
  area.append(note);
  // Shown again, the notes stand above a dialog that was opened meanwhile.
  if (area.matches(":popover-open")) area.hidePopover();
  area.showPopover();
  setTimeout(gone, SHOWN_MS);
}
