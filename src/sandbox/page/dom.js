/**
 * Building the page from values. Text becomes text nodes, never markup: nothing of the page parses HTML.
 */

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, unknown>} Props */

/**
 * An element. Properties that begin with `on` are listeners, `data` is the dataset, `css` custom properties; null, undefined
 * and false leave an attribute out, true writes it empty.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props | null} [props]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) apply(element, name, value);
  append(element, children);
  return element;
}

/** @param {HTMLElement} element @param {string} name @param {unknown} value */
function apply(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on") && typeof value === "function") {
    element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
  } else if (name === "data") {
    for (const [key, item] of Object.entries(/** @type {Record<string, unknown>} */ (value))) {
      if (item !== null && item !== undefined && item !== false) element.dataset[key] = String(item);
    }
  } else if (name === "css") {
    for (const [key, item] of Object.entries(/** @type {Record<string, string>} */ (value))) {
      element.style.setProperty(key, item);
    }
  } else if (name === "href") {
    const safe = safeUrl(String(value));
    if (safe !== null) element.setAttribute("href", safe);
  } else if (name === "value" && "value" in element) {
    element.value = String(value);
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** @param {Node} parent @param {(Child | Child[])[]} children */
export function append(parent, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false || child === "") continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** @param {Element} element @param {...(Child | Child[])} children */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/** Addresses that a click may open; null for everything else (`javascript:` and its like). @param {string} raw */
export function safeUrl(raw) {
  if (raw.startsWith("/") && !raw.startsWith("//")) return raw;
  if (raw.startsWith("#")) return raw;
  try {
    const url = new URL(raw);
    return ["http:", "https:", "mailto:", "tel:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** The element with this id; the page's own skeleton always has it. @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found;
}

const PATHS = {
  back: "M12 4 6 10l6 6",
  close: "M5 5l10 10M15 5 5 15",
  hash: "M8 3 6 17M14 3l-2 14M3.5 7.5h14M2.5 12.5h14",
  lock: "M5 9h10v8H5zM7 9V6.5a3 3 0 0 1 6 0V9",
  more: "M4.5 10h.01M10 10h.01M15.5 10h.01",
  reply: "M3 5h14v9H9l-4 3v-3H3z",
  send: "M3 10 17 4l-4 13-3-5.5z",
  smile:
    "M10 17.5a7.5 7.5 0 1 0 0-15 7.5 7.5 0 0 0 0 15M7 12c1.600 2 4.400 2 6 0M7.500 7.500v.5M12.500 7.500v.5",
  shared: "M8 14a4 4 0 1 1 0-8 4 4 0 0 1 0 8M12 14a4 4 0 1 1 0-8 4 4 0 0 1 0 8",
  panel: "M3 4h14v12H3zM12 4v12",
  home: "M3 9.500 10 3l7 6.500V17H3z",
  archive: "M3 4h14v4H3zM4 8v8h12V8M8 11h4",
  down: "M5 8l5 5 5-5",
  open: "M8 4H4v12h12v-4M11 4h5v5M16 4 9 11",
  clip: "M15.500 9.500l-5.800 5.800a3.500 3.500 0 0 1-5-5l6.500-6.500a2.300 2.300 0 0 1 3.300 3.300l-6.300 6.300a1.100 1.100 0 0 1-1.600-1.600l5.300-5.300",
  threads: "M3 4h14v9H9l-4 3.500V13H3zM6.500 7h7M6.500 10h4.500",
  bolt: "M11 2 4 11h5l-1 7 8-10h-5z",
  help: "M10 17.500a7.500 7.500 0 1 0 0-15 7.500 7.500 0 0 0 0 15M7.800 8a2.200 2.200 0 1 1 3.200 2c-.7.400-1 .8-1 1.500M10 14v.01",
};

/** @param {keyof typeof PATHS} name @returns {SVGSVGElement} */
export function icon(name) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(ns, "path");
  path.setAttribute("d", PATHS[name]);
  svg.appendChild(path);
  return svg;
}

/** A button that shows an icon and says its name. @param {keyof typeof PATHS} name @param {string} label @param {Props} [props] */
export function iconButton(name, label, props) {
  return h(
    "button",
    { type: "button", class: "icon-button", "aria-label": label, title: label, ...props },
    icon(name),
  );
}

/**
 * The element of an app that has the focus inside `box`, so that its successor can have it when `box` is drawn anew.
 * @param {Element} box
 */
export function focusedAction(box) {
  const active = document.activeElement;
  const element = active !== null && box.contains(active) ? active.closest("[data-action]") : null;
  return element instanceof HTMLElement ? { ...element.dataset } : null;
}

/**
 * Gives the focus to the same element of the same block. False: there is none any more, and nobody else gets it.
 * @param {Element} box @param {ReturnType<typeof focusedAction>} was
 */
export function focusAction(box, was) {
  if (was === null) return false;
  const again = box.querySelector(
    `[data-block="${CSS.escape(was["block"] ?? "")}"][data-action="${CSS.escape(was["action"] ?? "")}"]`,
  );
  if (!(again instanceof HTMLElement)) return false;
  again.focus({ preventScroll: true });
  return true;
}
