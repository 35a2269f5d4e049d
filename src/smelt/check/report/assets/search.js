// Search over both sides: operators first, then groups and names of nodes, then values, then the rest.

import { el } from "./dom.js";

const MOST = 50;

// choose(side, number) shows a node, chooseItem(side, item) a group.
export function searchBox(sides, choose, chooseItem) {
  const index = sides.flatMap((side) => [...nodesOf(side, choose), ...groupsOf(side, chooseItem)]);
  const list = el("ul", { class: "found", hidden: "", role: "listbox" });
  let found = [], at = 0;
  const input = el("input", { type: "search", id: "search", placeholder: "Search operators, names, values   /",
    "aria-label": "Search nodes", autocomplete: "off", spellcheck: "false" });
  const close = () => { list.hidden = true; };
  const take = (entry) => { if (entry) entry.show(); close(); };
  const show = () => {
    const parts = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = parts.length ? ranked(index, parts) : [];
    at = 0;
    list.replaceChildren(...found.slice(0, MOST).map((entry) =>
      el("li", { role: "option", onpointerdown: () => take(entry) },
        el("b", {}, entry.title), " ", el("span", {}, entry.name),
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
  const find = (text) => {
    input.value = text;
    input.focus();
    show();
  };
  return { content: el("div", { class: "search" }, input, list), find };
}

// The entries that have every part, the best first; entries of one rank keep their order.
function ranked(index, parts) {
  const scored = index.map((entry) => [entry, parts.reduce((sum, part) => sum + rankOf(entry, part), entry.last)]);
  return scored.filter(([, rank]) => rank < Infinity).sort((a, b) => a[1] - b[1]).map(([entry]) => entry);
}

// The place of the first text of an entry that has this part: 0 if it is the whole operator.
function rankOf({ op, texts }, part) {
  if (op.full === part || op.short === part) return 0;
  if (op.short.startsWith(part)) return 1;
  const place = texts.findIndex((text) => text.includes(part));
  return place < 0 ? Infinity : place + 2;
}

function nodesOf(side, choose) {
  const { nodes, values } = side.graph;
  return nodes.map((node, number) => {
    const results = node.out.map((value) => values[value][0]);
    const texts = [node.op, node.name, results.join(" "), (node.source ?? []).join(" "), node.kind];
    const full = node.op.toLowerCase();
    return { side, title: node.op, name: node.name, op: { full, short: full.split(".").at(-1) },
      texts: texts.map((text) => text.toLowerCase()), show: () => choose(side, number),
      last: side.itemOf[number] ? 0 : 0.5 }; // nodes that are folded away come after others
  });
}

const groupsOf = (side, chooseItem) =>
  side.items.filter((item) => item.kids && item.parent && item.index < 0).map((item) => ({
    side, title: item.name, name: item.what, op: { full: "", short: "" },
    texts: ["", item.name.toLowerCase(), "", item.what.toLowerCase()],
    show: () => chooseItem(side, item), last: -0.5 })); // a group comes before the nodes in it
