/** The journal: calls of the app, deliveries to it, and what people did, as they went over the wire. */
/** @import { JournalEntry } from "../../slack/control-types.js" */
/** @import { Panel } from "./drawer.js" */
import { fill, h } from "../dom.js";
import { isObject, obj, str } from "../json.js";
import { store } from "../store.js";
import { clockSeconds } from "../text/dates.js";
import { jsonView } from "./json-view.js";

const SHOWN = 200;
const KINDS = /** @type {const} */ ([
  ["all", "All"],
  ["api", "Calls"],
  ["delivery", "Deliveries"],
  ["act", "People"],
  ["socket", "Sockets"],
]);

/** @returns {Panel} */
export function wirePanel() {
  let kind = "all";
  let visible = false;
  let waiting = false;
  /** @type {Map<number, { node: HTMLElement, entry: JournalEntry }>} */
  const drawn = new Map();
  const list = h("div", { class: "wire-list" });
  const search = h("input", {
    type: "search",
    class: "input",
    placeholder: "Filter: chat.update, block_actions …",
    "aria-label": "Filter the journal",
  });
  const kinds = h(
    "select",
    { class: "input select input-short", "aria-label": "Kind" },
    KINDS.map(([id, name]) => h("option", { value: id }, name)),
  );
  const element = h("div", { class: "panel wire" }, h("div", { class: "panel-tools" }, kinds, search), list);

  const draw = () => {
    waiting = false;
    if (!visible) return;
    const wanted = search.value.trim().toLowerCase();
    const entries = latest(store.journal)
      .filter((e) => kind === "all" || group(e) === kind)
      .filter((e) => wanted === "" || JSON.stringify(e).toLowerCase().includes(wanted))
      .slice(-SHOWN)
      .reverse();
    const nodes = entries.map((entry) => {
      const known = drawn.get(entry.seq);
      if (known?.entry === entry) return known.node;
      const node = row(entry);
      drawn.set(entry.seq, { node, entry });
      return node;
    });
    if (drawn.size > SHOWN * 4) drawn.clear();
    fill(list, nodes.length === 0 ? h("p", { class: "empty" }, "Nothing went over the wire yet.") : nodes);
  };
  const soon = () => {
    if (waiting || !visible) return;
    waiting = true;
    requestAnimationFrame(draw);
  };
  kinds.addEventListener("change", () => {
    kind = kinds.value;
    draw();
  });
  search.addEventListener("input", draw);
  store.on(["journal", "workspace"], soon);
  return {
    element,
    shown(now) {
      visible = now;
      if (now) draw();
    },
  };
}

/** An entry that was completed later comes again with its number. @param {JournalEntry[]} entries */
function latest(entries) {
  return [...new Map(entries.map((e) => [e.seq, e])).values()];
}

/** @param {JournalEntry} entry */
function group(entry) {
  if (entry.kind === "response_url") return "api";
  if (entry.kind === "admin") return "act";
  return entry.kind;
}

/** @param {JournalEntry} entry @returns {HTMLElement} */
function row(entry) {
  const { arrow, what, outcome, tone } = summary(entry);
  const details = h(
    "details",
    { class: `wire-row wire-${tone}`, data: { seq: entry.seq, kind: entry.kind } },
    h(
      "summary",
      null,
      h("span", { class: "wire-time" }, clockSeconds(entry.atMs, store.tz)),
      h("span", { class: "wire-arrow", title: arrow.title }, arrow.sign),
      h("span", { class: "wire-what" }, what),
      h("span", { class: "wire-outcome" }, outcome),
    ),
  );
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(...bodies(entry));
  });
  return details;
}

const IN = { sign: "→", title: "from the app" };
const OUT = { sign: "←", title: "to the app" };
const HERE = { sign: "•", title: "in the workspace" };

/** @param {JournalEntry} entry @returns {{ arrow: typeof IN, what: string, outcome: string, tone: string }} */
function summary(entry) {
  switch (entry.kind) {
    case "api": {
      const answer = obj(entry.response);
      const bad = answer["ok"] !== true;
      const status =
        entry.status === null
          ? "no answer"
          : answer["ok"] === true
            ? "ok"
            : `${entry.status} ${str(answer["error"])}`;
      const target = str(entry.args["channel"]) || str(entry.args["user_id"]);
      return {
        arrow: IN,
        what: target === "" ? entry.method : `${entry.method} ${target}`,
        outcome: entry.fault === null ? status : `${status}, fault`,
        tone: bad ? "bad" : "good",
      };
    }
    case "delivery": {
      const again = entry.attempt > 1 ? `, attempt ${entry.attempt}` : "";
      const took = entry.tookMs === null ? "" : ` ${entry.tookMs} ms`;
      const tone = entry.outcome === "acked" ? "good" : entry.outcome === "pending" ? "open" : "bad";
      return {
        arrow: OUT,
        what: `${entry.type}${again}`,
        outcome: `${entry.outcome.replaceAll("_", " ")}${took}`,
        tone,
      };
    }
    case "response_url":
      return {
        arrow: IN,
        what: "response url",
        outcome: String(entry.status),
        tone: entry.status === 200 ? "good" : "bad",
      };
    case "socket":
      return {
        arrow: HERE,
        what: `socket: ${entry.what}`,
        outcome: `${entry.connections} open`,
        tone: "plain",
      };
    case "act": {
      const refused = isObject(entry.result) && entry.result["ok"] === false;
      return {
        arrow: HERE,
        what: `${store.person(entry.as)?.realName ?? entry.as}: ${entry.what}`,
        outcome: refused ? str(obj(entry.result)["error"]) : "",
        tone: refused ? "bad" : "plain",
      };
    }
    case "admin":
      return { arrow: HERE, what: `admin: ${entry.what}`, outcome: "", tone: "plain" };
  }
}

/** @param {JournalEntry} entry @returns {Node[]} */
function bodies(entry) {
  const part = (/** @type {string} */ name, /** @type {unknown} */ value) => [
    h("div", { class: "wire-part" }, name),
    jsonView(value),
  ];
  switch (entry.kind) {
    case "api":
      return [
        ...part("Arguments", entry.args),
        ...part(
          entry.status === null ? "No answer was sent" : `Answer, HTTP ${entry.status}`,
          entry.response,
        ),
      ];
    case "delivery":
      return [
        ...part(
          `Payload over ${entry.transport === "socket" ? "a socket" : "HTTP"}, id ${entry.id}`,
          entry.payload,
        ),
        ...part("What the app answered", entry.response),
      ];
    case "response_url":
      return [...part(entry.url, entry.args), ...part("Answer", entry.response)];
    case "act":
      return [...part("Asked", entry.request), ...part("Came of it", entry.result)];
    case "admin":
      return part("Asked", entry.request);
    case "socket":
      return [];
  }
}
