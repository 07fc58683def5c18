// Elements and texts. A text stays a text: nothing in this folder parses HTML, and the page's policy forbids it.

/** The element of the page with that id. */
export const byId = (id) => document.getElementById(id);

/** An element. Of the properties `text` is its text, `on...` listen, and the others are attributes; one that is
 * null, undefined or false is left out. Children are elements or texts; null and false are left out. */
export function el(name, properties = {}, ...children) {
  return filled(document.createElement(name), properties, children);
}

/** The same of a picture. */
export function svg(name, properties = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), properties, children);
}

function filled(made, properties, children) {
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "text") made.textContent = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Instead of all that was in it. */
export function show(place, ...children) {
  place.replaceChildren(...children.filter((child) => child !== null && child !== undefined && child !== false));
}

/** The same for a list of items with a button that has a `data-id`: the focus stays on the item that has it, or goes to
 * the one that takes its place, or of an empty list to the first control of its section. */
export function list(place, ...items) {
  const focused = [...place.children].findIndex((item) => item.contains(document.activeElement));
  const id = document.activeElement?.dataset.id;
  show(place, ...items);
  if (focused < 0) return;
  const same = id && place.querySelector(`[data-id="${CSS.escape(id)}"]`);
  const target = same ?? items[Math.min(focused, items.length - 1)]?.querySelector("button");
  (target ?? place.closest("section").querySelector("button, input")).focus({ preventScroll: true });
}

export function number(value, digits = 2) {
  return value === null || value === undefined ? "–" : value.toFixed(digits);
}

export function milliseconds(value) {
  return value >= 1000 ? `${(value / 1000).toFixed(1)} s` : `${Math.round(value)} ms`;
}

/** "1 document", "2 documents". */
export const count = (value, noun) => `${value.toLocaleString("en")} ${noun}${value === 1 ? "" : "s"}`;

/** How full a bar is, from 0 to 1; what it says is said beside it. */
export function bar(share, kind = "") {
  const fill = el("span", { class: "fill" });
  fill.style.width = `${Math.round(100 * Math.min(1, Math.max(0, share)))}%`;
  return el("span", { class: `track ${kind}`, "aria-hidden": "true" }, fill);
}
