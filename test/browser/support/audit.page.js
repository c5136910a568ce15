/**
 * Looks at the page as somebody would who cannot see it well: every control has a name, every text stands out, every id is there
 * once. Evaluated in the browser; answers what is wrong, one sentence each.
 */
(() => {
  const wrong = [];
  const seen = (node) => node.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const say = (node, what) => {
    const text = (node.textContent ?? "").trim().slice(0, 40);
    wrong.push(`${node.tagName.toLowerCase()}.${node.className} "${text}": ${what}`);
  };

  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  for (const id of new Set(ids.filter((one, at) => ids.indexOf(one) !== at)))
    wrong.push(`#${id} is there twice`);

  for (const node of document.querySelectorAll(
    "button, a[href], input, select, textarea, dialog, nav, aside",
  )) {
    if (!seen(node)) continue;
    const labelled = (node.getAttribute("aria-labelledby") ?? "")
      .split(" ")
      .map((id) => document.getElementById(id)?.textContent ?? "")
      .join("");
    const own = ["BUTTON", "A"].includes(node.tagName) ? (node.textContent ?? "") : "";
    const outer = [...(node.labels ?? [])].map((label) => label.textContent ?? "").join("");
    const name = node.getAttribute("aria-label") ?? (labelled || outer || own || node.title);
    if (name.trim() === "") say(node, "has no name");
    // What is written on a control is part of its name: people who speak to the machine say what they see.
    const label = node.getAttribute("aria-label");
    const visible = own.replace(/\s+/g, " ").trim();
    const isPlain = node.tagName === "BUTTON" && node.childElementCount === 0;
    if (isPlain && label !== null && !label.toLowerCase().includes(visible.toLowerCase()))
      say(node, `is named "${label}"`);
  }

  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  /** Red, green, blue, alpha of any colour that CSS knows. */
  const parts = (css) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = css;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a)];
  const ground = (node) => {
    const layers = [];
    for (let at = node; at !== null; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.backgroundImage !== "none") return null;
      layers.push(parts(style.backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((value) => {
      const c = value / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text !== null; text = walker.nextNode()) {
    const node = text.parentElement;
    if (text.data.trim() === "" || node === null || !seen(node)) continue;
    if (node.closest("[inert], :disabled, .emoji, .visually-hidden, .skip, [aria-disabled=true]") !== null)
      continue;
    const below = ground(node);
    if (below === null) continue;
    const style = getComputedStyle(node);
    const [a, b] = [light(over(parts(style.color), below)), light(below)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = Number.parseFloat(style.fontSize);
    const big = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (big ? 3 : 4.5)) say(node, `stands out by ${ratio.toFixed(2)} only`);
  }
  return wrong;
})();
