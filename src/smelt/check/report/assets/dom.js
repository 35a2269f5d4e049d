// Elements from text only: whatever a model calls its nodes, no name is parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat(2).filter((child) => child !== null && child !== undefined));
  return element;
}

export const el = (tag, attributes, ...children) =>
  filled(document.createElement(tag), attributes, children);

export const svg = (tag, attributes, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

export const counted = (count, word) =>
  `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

export function inBytes(size) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; size >= 1000 && unit < units.length - 1; unit++) size /= 1000;
  return `${unit && size < 100 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

export const inTime = (seconds) =>
  seconds < 1 ? `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms` : `${seconds.toFixed(2)} s`;

export const short = (value) => (typeof value === "number" ? +value.toPrecision(3) : value);

export const cut = (text, limit) => (text.length > limit ? text.slice(0, limit - 1) + "…" : text);

export function share(before, after) {
  const percent = before ? Math.round((after / before - 1) * 100) : 0;
  return percent ? `${percent > 0 ? "+" : "−"}${Math.abs(percent)}%` : "";
}

const NUMBER = /^[−+<]?[\d.,]+(e[-+]?\d+)?( (B|kB|MB|GB|TB|s|ms))?$/;

// Columns of numbers stand to the right; cells are texts or elements.
export function table(head, rows, className = "") {
  const numeric = head.map((_, column) => rows.some((row) => NUMBER.test(row[column])));
  const cell = (tag) => (content, column) =>
    el(tag, { class: numeric[column] ? "number" : false }, content?.nodeType ? content : String(content));
  return el("div", { class: "scroll" },
    el("table", { class: className },
      el("thead", {}, el("tr", {}, head.map(cell("th")))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell("td")))))));
}
