// Search over both sides: operators, names of nodes and values, source lines.

import { el } from "./dom.js";

const MOST = 50;

export function searchBox(sides, choose) {
  const index = sides.flatMap((side) => side.graph.nodes.flatMap((node, number) =>
    side.itemOf[number] ? [{ side, number, node, text: textOf(side, node) }] : []));
  const list = el("ul", { class: "found", hidden: "", role: "listbox" });
  let found = [], at = 0;
  const input = el("input", { type: "search", id: "search", placeholder: "Search nodes   /",
    "aria-label": "Search nodes", autocomplete: "off", spellcheck: "false" });
  const close = () => { list.hidden = true; };
  const take = (entry) => { if (entry) choose(entry.side, entry.number); close(); };
  const show = () => {
    const parts = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = parts.length ? index.filter(({ text }) => parts.every((part) => text.includes(part))) : [];
    at = 0;
    list.replaceChildren(...found.slice(0, MOST).map((entry) =>
      el("li", { role: "option", onpointerdown: () => take(entry) },
        el("b", {}, entry.node.op), " ", el("span", {}, entry.node.name),
        el("i", {}, entry.side.key))),
      parts.length ? el("li", { class: "faint" }, `${found.length} found`) : "");
    list.hidden = !parts.length;
    point();
  };
  const point = () => {
    [...list.children].forEach((each, number) => each.classList.toggle("at", number === at && !!found.length));
    list.children[at]?.scrollIntoView?.({ block: "nearest" });
  };
  input.addEventListener("input", show);
  input.addEventListener("focus", show);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter") take(found[at]);
    else if (event.key === "Escape") input.blur();
    else if (step) {
      event.preventDefault();
      at = Math.max(0, Math.min(Math.min(found.length, MOST) - 1, at + step));
      point();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest?.("input")) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
  return el("div", { class: "search" }, input, list);
}

function textOf(side, node) {
  const values = node.out.map((value) => side.graph.values[value][0]);
  return [node.op, node.name, ...values, ...(node.source ?? [])].join(" ").toLowerCase();
}
