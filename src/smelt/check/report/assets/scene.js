// Sizes and places of everything that a side shows, group by group from the inside out.

import { counted, cut } from "./dom.js";
import { layered } from "./layout.js";

const LETTER = { title: 7.2, line: 6.1 };
const PAD = { x: 14, top: 34, bottom: 14 };

export function words(side, item) {
  const { nodes, values } = side.graph;
  if (item.kind === "group") {
    const inside = item.size ? counted(item.size, "node") + (item.changed ? `, ${item.changed} changed` : "") : "";
    return [`${item.open ? "−" : "+"} ${cut(item.name, 36)}`, inside];
  }
  if (item.kind !== "node") return [cut(item.name, 26), cut(values[item.value][1], 30)];
  const node = nodes[item.index];
  const value = node.out[0];
  return [cut(node.op, 26), value === undefined ? "" : cut(values[value][1], 30)];
}

export function arrange(side, item = side.root) {
  if (!item.open) {
    const [title, line] = words(side, item);
    const width = Math.max(title.length * LETTER.title, line.length * LETTER.line) + 26;
    return Object.assign(item, { w: Math.max(84, width), h: line ? 42 : 28 });
  }
  item.kids.forEach((kid) => arrange(side, kid));
  const isInner = item.parent !== null;
  const port = () => ({ w: 1, h: 0 });
  const cells = isInner ? [port(), ...item.kids, port()] : item.kids;
  const number = new Map(cells.map((cell, index) => [cell, index]));
  const edges = [], ends = [];
  const edge = (from, to, a, b) => {
    edges.push([number.get(from), number.get(to)]);
    ends.push([a, b]);
  };
  for (const kid of item.kids) for (const to of kid.next.keys()) edge(kid, to, kid, to);
  if (isInner) for (const kid of item.ins) edge(cells[0], kid, null, kid);
  if (isInner) for (const kid of item.outs) edge(kid, cells.at(-1), kid, null);
  const options = isInner ? { top: 0, bottom: cells.length - 1 } : {};
  const { w, h, routes } = layered(cells, edges, options);
  const inner = isInner ? { x: PAD.x, y: PAD.top } : { x: 0, y: 0 };
  const title = isInner ? Math.min(item.name.length, 40) * LETTER.title + 60 : 0;
  const width = Math.max(w + 2 * inner.x, title);
  inner.x = (width - w) / 2;
  item.inner = inner;
  item.routes = routes.map((points, index) => ({ points, ends: ends[index] }));
  return Object.assign(item, { w: width, h: h + inner.y + (isInner ? PAD.bottom : 0) });
}

// The middle of an item in the coordinates of its side.
export function placeOf(item) {
  let [x, y] = [item.x ?? 0, item.y ?? 0];
  for (let up = item.parent; up; up = up.parent) {
    x += up.inner.x + (up.parent ? up.x - up.w / 2 : 0);
    y += up.inner.y + (up.parent ? up.y - up.h / 2 : 0);
  }
  return { x, y };
}
