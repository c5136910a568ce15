/** Drawn avatars: initials on the person's colour; the app has its mark. */
/** @import { PersonView } from "../../slack/control-types.js" */
import { h } from "../dom.js";
import { store } from "../store.js";

/** @param {PersonView | undefined} person @param {string} name @param {"large" | "small"} [size] */
export function avatar(person, name, size = "large") {
  const isApp = person !== undefined && person.id === store.workspace?.app.botUserId;
  const initials = name
    .split(/\s+/u)
    .map((word) => [...word][0] ?? "")
    .slice(0, 2)
    .join("")
    .toUpperCase();
  return h(
    "span",
    {
      class: `avatar avatar-${size}${isApp ? " avatar-app" : ""}`,
      "aria-hidden": "true",
      css: person === undefined || isApp ? {} : { "--avatar": `#${person.color}` },
    },
    isApp ? "" : initials || "?",
  );
}
