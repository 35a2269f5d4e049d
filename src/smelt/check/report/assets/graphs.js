// The tab of the graphs: both sides, what is selected, and what that is on the other side.

import { el, counted } from "./dom.js";
import { data, makeSide, nodesBelow, reveal, visible } from "./model.js";
import { Pane, SCALE } from "./pane.js";
import { details } from "./details.js";
import { searchBox } from "./search.js";

const LEGEND = {
  before: [["changed", "rewritten"], ["gone", "removed"]],
  after: [["new", "made"], ["changed", "attributes changed"]],
};

export function graphsTab() {
  const sides = [makeSide("before", data.before), makeSide("after", data.after)];
  [sides[0].other, sides[1].other] = [sides[1], sides[0]];
  link(...sides);
  const about = el("aside", { class: "details", hidden: "" });
  for (const side of sides) side.pane = new Pane(side, (item) => choose(side, item, true));

  function clear() {
    keepMiddles(() => (about.hidden = true));
    mark(sides[0], [], []);
  }

  function mark(side, items, partners) {
    side.pane.mark("selected", items);
    side.pane.mark("partner", []);
    side.other.pane.mark("selected", []);
    side.other.pane.mark("partner", partners);
  }

  function choose(side, item, isClick) {
    if (!item) return clear();
    if (isClick && item.kids) side.pane.toggle(item);
    const numbers = nodesBelow(item);
    const partners = new Set(numbers.flatMap((number) => side.graph.nodes[number].partners ?? []));
    const others = [...partners].map((number) => side.other.itemOf[number]).filter(Boolean);
    mark(side, [item], others);
    const close = el("button", { class: "close", "aria-label": "close", onclick: clear }, "×");
    about.replaceChildren(close, ...details(side, item, go).flat(2).filter(Boolean));
    keepMiddles(() => (about.hidden = false));
    if (others.length && item.kind === "node") follow(side, item, others[others.length >> 1]);
  }

  // What is seen in the middle of a pane stays there while the panes become narrower or wider.
  function keepMiddles(change) {
    const widths = sides.map(({ pane }) => pane.root.clientWidth);
    change();
    sides.forEach(({ pane }, index) => {
      pane.x += (pane.root.clientWidth - widths[index]) / 2;
      pane.move();
    });
  }

  // The partner comes to the height of what is selected, where it is drawn already.
  function follow(side, item, partner) {
    const box = side.pane.drawn.get(visible(item)).getBoundingClientRect();
    const top = side.pane.root.getBoundingClientRect().top;
    side.other.pane.center(partner, box.top + box.height / 2 - top);
  }

  function go(side, number) {
    const item = side.itemOf[number];
    if (!item) return;
    reveal(item);
    side.pane.draw();
    side.pane.center(item);
    choose(side, item, false);
  }

  const fit = (least) => {
    const scale = Math.min(...sides.map(({ pane }) => pane.fitting(least)));
    sides.forEach(({ pane }) => pane.fit(scale));
  };
  const openAll = (isOpen) => {
    for (const side of sides) {
      for (const item of side.items) if (item.kids && item.parent) item.open = isOpen;
      side.pane.draw();
    }
    clear();
    fit(SCALE.readable);
  };
  const button = (text, title, onclick) => el("button", { title, onclick }, text);
  const tools = el("div", { class: "tools" }, searchBox(sides, go),
    button("Fit", "Show all of both (0: of one)", () => fit()),
    sides.some(({ items }) => items.some((item) => item.kids && item.parent))
      ? [button("Collapse all", "Close every group", () => openAll(false))] : []);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") clear(); });
  const panes = el("div", { class: "panes" }, sides.map(framed), about);
  const first = new ResizeObserver(() => {
    if (!panes.clientHeight) return; // the tab is hidden
    fit(SCALE.readable);
    first.disconnect();
  });
  first.observe(panes);
  return { content: [tools, panes], go: (key, number) => go(sides[key === "before" ? 0 : 1], number), sides };
}

function framed(side) {
  const legend = LEGEND[side.key].map(([state, word]) => {
    const count = side.graph.nodes.filter((node) => node.state === state).length;
    return count ? el("span", { class: `key is-${state}` }, `${count.toLocaleString("en")} ${word}`) : null;
  });
  const zoom = (text, factor) =>
    el("button", { "aria-label": text, onclick: () => side.pane.zoom(factor) }, text);
  return el("section", { class: "pane" },
    el("header", {}, el("b", {}, data.sides[side.key === "after" ? 1 : 0]), ` ${counted(side.graph.nodes.length, "node")}`, legend,
      el("span", { class: "zoom" }, zoom("−", 0.8), zoom("+", 1.25))),
    side.pane.root);
}

function link(before, after) {
  after.graph.nodes.forEach((node, index) => {
    node.partners = node.from ?? [];
    for (const source of node.partners) (before.graph.nodes[source].partners ??= []).push(index);
  });
}
