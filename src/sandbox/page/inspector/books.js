/** Both books: our ledger's operations and the provider's own refunds, joined, with a note where they disagree. */
/** @import { Panel } from "./drawer.js" */
import { get, Refused } from "../api.js";
import { fill, h } from "../dom.js";
import { num, obj } from "../json.js";
import { store } from "../store.js";
import { bookRow } from "./book-row.js";
import { compare, readEffects, readOperations } from "./compare.js";

const EVERY_MS = 2_000;

/** @returns {Panel} */
export function booksPanel() {
  const note = h("div", { class: "books-note", role: "status" });
  const rows = h("div", { class: "books-rows" });
  const refresh = h("button", { type: "button", class: "button button-small" }, "Look again");
  const element = h(
    "div",
    { class: "panel books" },
    h(
      "p",
      { class: "panel-intro" },
      "Left: our ledger. Right: the provider's own list of refunds, kept in its own database.",
    ),
    note,
    rows,
    refresh,
  );
  let visible = false;
  let timer = 0;
  let last = "";

  const look = async () => {
    window.clearTimeout(timer);
    if (!visible) return;
    const [ours, theirs, counts] = await Promise.all([
      read("inspector/operations"),
      read("payments/effects"),
      read("payments/counts"),
    ]);
    const state = JSON.stringify([ours, theirs, counts, store.as]);
    if (state !== last) {
      last = state;
      draw(note, rows, ours, theirs, obj(counts.value));
    }
    if (visible) timer = window.setTimeout(() => void look(), EVERY_MS);
  };
  refresh.addEventListener("click", () => void look());
  return {
    element,
    shown(now) {
      if (now === visible) return;
      visible = now;
      void look();
    },
  };
}

/** @param {string} path @returns {Promise<{ value: unknown, why: string }>} `why`: not there, and the reason */
async function read(path) {
  try {
    return { value: await get(path), why: "" };
  } catch (error) {
    if (error instanceof Refused && error.status === 404) {
      return {
        value: null,
        why: path.startsWith("payments/")
          ? "No payments sandbox is attached here."
          : "No ledger is attached here.",
      };
    }
    return { value: null, why: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * @param {HTMLElement} note @param {HTMLElement} rows
 * @param {{ value: unknown, why: string }} ours @param {{ value: unknown, why: string }} theirs @param {Record<string, unknown>} counts
 */
function draw(note, rows, ours, theirs, counts) {
  const missing = [ours.why, theirs.why].filter((why) => why !== "");
  if (missing.length > 0) {
    note.className = "books-note books-missing";
    fill(
      note,
      missing.map((why) => h("div", null, why)),
    );
  }
  // With one book alone there is nothing to compare.
  const nameOf = (/** @type {string} */ id) => store.person(id)?.realName ?? id;
  const all = compare(readOperations(ours.value), readEffects(theirs.value), nameOf).map((row) =>
    missing.length === 0 ? row : { ...row, verdict: /** @type {const} */ ("agree"), why: "Not compared." },
  );
  const bad = all.filter((row) => row.verdict === "disagree").length;
  const open = all.filter((row) => row.verdict === "open").length;
  const settled = all.filter((row) => row.verdict === "settled").length;
  if (missing.length === 0) {
    note.className = `books-note books-${bad > 0 ? "bad" : open > 0 ? "open" : "good"}`;
    const refunds = num(counts["committed"], 0);
    const line =
      bad > 0
        ? bad === 1
          ? "The books disagree in one place."
          : `The books disagree in ${bad} places.`
        : open > 0
          ? "The books do not contradict each other."
          : settled > 0
            ? "The books agree but for what people have settled."
            : "The books agree.";
    const more = [
      refunds === 1 ? "The provider counts 1 refund" : `The provider counts ${refunds} refunds`,
      num(counts["duplicates"], 0) === 0
        ? "no duplicate"
        : `${num(counts["duplicates"], 0)} beyond the first of an operation`,
      settled > 0 ? `${settled === 1 ? "1 difference" : `${settled} differences`} known and settled` : "",
      open > 0 ? `${open === 1 ? "1 outcome" : `${open} outcomes`} not known yet` : "",
    ].filter((part) => part !== "");
    fill(note, h("strong", null, line), h("div", null, `${more.join(", ")}.`));
  }
  const order = { disagree: 0, open: 1, settled: 2, elsewhere: 3, agree: 4 };
  const sorted = [...all].sort((a, b) => order[a.verdict] - order[b.verdict]);
  fill(
    rows,
    sorted.length === 0 ? h("p", { class: "empty" }, "No operation and no refund yet.") : sorted.map(bookRow),
  );
}
