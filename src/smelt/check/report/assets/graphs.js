// The tab of the graphs: both sides, what is selected, and what that is on the other side.

import { el, counted } from "./dom.js";
import { data, itemFor, makeSide, nodesBelow, pair, reveal, setOpen, visible } from "./model.js";
import { arrange } from "./scene.js";
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
  pair(...sides);
  const about = el("aside", { class: "details", hidden: "" });
  for (const side of sides) side.pane = new Pane(side, (item) => choose(side, item, true));

  function redraw() {
    arrange(...sides);
    sides.forEach(({ pane }) => pane.draw());
  }

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

  function toggle(item) {
    const held = [item, twinAround(item)].map((each) => each.side.pane.holding(each));
    setOpen(item, !item.open);
    redraw();
    held.forEach((restore) => restore());
  }

  function choose(side, item, isClick) {
    if (!item) return clear();
    if (isClick && item.kids) toggle(item);
    const numbers = nodesBelow(item);
    const partners = new Set(numbers.flatMap((number) => side.graph.nodes[number].partners ?? []));
    const others = [...partners].map((number) => side.other.itemOf[number]).filter(Boolean);
    const twins = item.twin ? [item.twin] : others;
    mark(side, [item], twins);
    show(details(side, item, go));
    if (item.twin) follow(side, item, item.twin);
    else if (others.length && item.kind === "node") follow(side, item, others[others.length >> 1]);
  }

  function show(content) {
    const close = el("button", { class: "close", "aria-label": "close", onclick: clear }, "×");
    about.replaceChildren(close, ...content.flat(2).filter(Boolean));
    keepMiddles(() => (about.hidden = false));
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
    const box = side.pane.drawn.get(visible(item)).querySelector(".title").getBoundingClientRect();
    const top = side.pane.root.getBoundingClientRect().top;
    side.other.pane.center(partner, box.top + box.height / 2 - top);
  }

  // Opens the groups around a node and shows it; a node that is folded away is shown by its reader.
  function go(side, number) {
    const item = itemFor(side, number);
    if (item) {
      goTo(side, item);
      if (side.itemOf[number] !== item) show(details(side, { kind: "node", index: number }, go));
    } else show(details(side, { kind: "node", index: number }, go));
  }

  function goTo(side, item) {
    reveal(item);
    redraw();
    side.pane.scale = Math.max(side.pane.scale, SCALE.readable);
    side.pane.center(item);
    choose(side, item, false);
  }

  const fit = (least) => sides.forEach(({ pane }) => pane.fit(pane.fitting(least)));
  const collapse = () => {
    for (const side of sides)
      for (const item of side.items) if (item.kids && item.parent) item.open = false;
    redraw();
    clear();
    fit(SCALE.readable);
  };
  const button = (text, title, onclick) => el("button", { title, onclick }, text);
  const search = searchBox(sides, go, goTo);
  const tools = el("div", { class: "tools" }, search.content,
    button("Fit", "Show all of each side (0: of one)", () => fit()),
    sides.some(({ items }) => items.some((item) => item.kids && item.parent))
      ? [button("Collapse all", "Close every group", collapse)] : [],
    kindKeys(sides, search.find));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") clear(); });
  const panes = el("div", { class: "panes" }, sides.map((side) => framed(side, go)), about);
  const first = new ResizeObserver(() => {
    if (!panes.clientHeight) return; // the tab is hidden
    fit(SCALE.readable);
    first.disconnect();
  });
  first.observe(panes);
  redraw();
  return { content: [tools, panes], go: (key, number) => go(sides[key === "before" ? 0 : 1], number),
    find: search.find, sides };
}

// The item itself, its twin, or the twin of the nearest group around it.
function twinAround(item) {
  let up = item;
  while (!up.twin && up.parent) up = up.parent;
  return up.twin ?? item;
}

// One key a kind of operators that is there; a click searches for them.
function kindKeys(sides, find) {
  const kinds = new Set(sides.flatMap(({ graph, itemOf }) =>
    graph.nodes.filter((node, index) => itemOf[index]).map((node) => node.kind)));
  return el("div", { class: "kinds" }, [...kinds].sort().map((kind) =>
    el("button", { class: `kind kind-${kind}`, title: `Find operators of this kind`, onclick: () => find(kind) }, kind)));
}

function framed(side, go) {
  const legend = LEGEND[side.key].map(([state, word]) => {
    const numbers = side.graph.nodes.flatMap((node, index) => (node.state === state && side.itemOf[index] ? [index] : []));
    let at = -1;
    const next = () => go(side, numbers[(at = (at + 1) % numbers.length)]);
    return numbers.length ? el("button", { class: `key is-${state}`, title: "Show the next one", onclick: next },
      `${numbers.length.toLocaleString("en")} ${word}`) : null;
  });
  const folded = side.graph.nodes.filter((node) => node.constant).length;
  const zoom = (text, factor) =>
    el("button", { "aria-label": text, onclick: () => side.pane.zoom(factor) }, text);
  return el("section", { class: "pane" },
    el("header", {}, el("b", {}, data.sides[side.key === "after" ? 1 : 0]), ` ${counted(side.graph.nodes.length, "node")}`, legend,
      folded ? el("small", { title: "They depend on constants only. They are listed among the inputs of their readers." },
        `${folded.toLocaleString("en")} of constants folded away`) : null,
      el("span", { class: "zoom" }, zoom("−", 0.8), zoom("+", 1.25))),
    side.pane.root);
}

function link(before, after) {
  after.graph.nodes.forEach((node, index) => {
    node.partners = node.from ?? [];
    for (const source of node.partners) (before.graph.nodes[source].partners ??= []).push(index);
  });
}
