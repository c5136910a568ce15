/** Faults of Slack: of the Web API, of deliveries to the app, and of its sockets. */
/** @import { ActiveFault } from "../../slack/control-types.js" */
import { send } from "../api.js";
import { fill, h } from "../dom.js";
import { store } from "../store.js";
import { action, choose, count, fieldset } from "./form.js";

const METHODS = [
  "*",
  "chat.postMessage",
  "chat.update",
  "chat.postEphemeral",
  "views.open",
  "views.update",
  "views.publish",
  "users.info",
  "usergroups.users.list",
  "conversations.replies",
  "apps.connections.open",
];

/** Kind, what it does, what else it needs. @type {[string, string, Record<string, unknown>][]} */
const API = [
  ["error", "answers internal_error", { kind: "error", error: "internal_error" }],
  ["ratelimited", "answers 429, Retry-After 5", { kind: "ratelimited", retryAfterSeconds: 5 }],
  ["http", "answers HTTP 503", { kind: "http", status: 503 }],
  ["reset", "is reset before anything happens", { kind: "reset" }],
  ["accept_then_drop", "takes effect, the answer is lost", { kind: "accept_then_drop" }],
  ["delay", "takes effect, answers after 10 s", { kind: "delay", delayMs: 10_000 }],
  ["hang", "never answers", { kind: "hang" }],
];

/** @type {[string, string][]} */
const DELIVERY = [
  ["duplicate", "arrives twice"],
  ["reorder", "is overtaken by the next"],
  ["delay", "comes 5 s late"],
  ["drop", "is lost"],
];

/** @type {[string, string][]} */
const SOCKET = [
  ["refresh", "Refresh"],
  ["kill", "Cut"],
  ["deaf", "Deaf"],
  ["rude", "Rude close"],
  ["polite", "Polite again"],
  ["link_disabled", "Disable"],
  ["enable", "Enable"],
];

const TYPES = [
  "any",
  "message",
  "app_mention",
  "block_actions",
  "view_submission",
  "slash_commands",
  "app_home_opened",
];

/** @returns {{ element: HTMLElement }} */
export function slackFaults() {
  const method = choose(
    "Method",
    METHODS.map((m) => [m, m === "*" ? "any call" : m]),
  );
  const kind = choose(
    "What happens",
    API.map(([id, name]) => [id, name]),
  );
  const times = count("How many times", 1);
  const type = choose(
    "Delivery",
    TYPES.map((t) => [t, t === "any" ? "any delivery" : t]),
  );
  const how = choose("What happens to it", DELIVERY);
  const often = count("How many times", 1);
  const active = h("ul", { class: "fault-list" });
  store.on(["faults", "workspace"], () => drawActive(active));
  return {
    element: fieldset(
      "Slack",
      h(
        "div",
        { class: "fault-form" },
        h("span", null, "The next"),
        times,
        h("span", null, "of"),
        method,
        kind,
        action("Switch on", () =>
          send("faults/api", {
            method: method.value,
            times: Number(times.value),
            ...API.find(([id]) => id === kind.value)?.[2],
          }),
        ),
      ),
      h(
        "div",
        { class: "fault-form" },
        h("span", null, "The next"),
        often,
        h("span", null, "of"),
        type,
        how,
        action("Switch on", () =>
          send("faults/delivery", {
            kind: how.value,
            times: Number(often.value),
            ...(type.value === "any"
              ? {}
              : { type: type.value === "slash_commands" ? "slash_command" : type.value }),
            ...(how.value === "delay" ? { delayMs: 5000 } : {}),
          }),
        ),
      ),
      h(
        "div",
        { class: "fault-form" },
        h("span", null, "Sockets:"),
        SOCKET.map(([id, name]) => action(name, () => send("faults/socket", { kind: id }))),
      ),
      active,
    ),
  };
}

/** @param {HTMLElement} list */
function drawActive(list) {
  fill(
    list,
    store.faults.map((fault) =>
      h(
        "li",
        null,
        h("span", null, describe(fault)),
        action("Off", () => send("faults/clear", { id: fault.id })),
      ),
    ),
  );
}

/** @param {ActiveFault} active */
function describe({ target, left, fault }) {
  if (target === "api" && "method" in fault) {
    const words = API.find(([id]) => id === fault.kind)?.[1] ?? fault.kind;
    return `${fault.method === "*" ? "Any call" : fault.method} ${words}, ${left} left`;
  }
  const words = DELIVERY.find(([id]) => id === fault.kind)?.[1] ?? fault.kind;
  return `${"type" in fault && fault.type !== undefined ? fault.type : "Any delivery"} ${words}, ${left} left`;
}
