// Sizes and places of everything that both sides show, group by group from the inside out.

import { counted, cut } from "./dom.js";
import { layered } from "./layout.js";

const LETTER = { title: 7.6, line: 6.7 };
const PAD = { x: 14, top: 36, bottom: 14 };
export const HEAD = 24, LINE = 16; // pixels of a title and of a line below it

const UNNAMED = /^((block|part) \d+ of )?\d+$/; // names that do not say what a group is

// What stands on an item: its title, then its lines, the last of which is faint.
export function words(item) {
  const { nodes, values } = item.side.graph;
  if (item.kind === "group") {
    const title = UNNAMED.test(item.name) && item.what ? `${item.what}, ${item.name}` : item.name;
    const inside = item.size ? counted(item.size, "node") + (item.changed ? `, ${item.changed} changed` : "") : "";
    return [`${item.open ? "−" : "+"} ${cut(title, 44)}`, ...[title === item.name ? cut(item.what, 40) : "", inside].filter(Boolean)];
  }
  if (item.kind !== "node") return [cut(item.name, 28), cut(values[item.value][1], 34)];
  const node = nodes[item.index];
  const type = node.out.length ? values[node.out[0]][1] : "";
  return [cut(node.op, 30), ...node.lines, ...(type ? [cut(type, 34)] : [])];
}

// Lays out both sides; groups that are twins stand at the same height.
export function arrange(before, after) {
  arrangeTwins(before.root, after.root);
}

function arrangeTwins(first, second) {
  const twins = first.kids.filter((kid) => kid.twin?.parent === second);
  for (const kid of twins) if (kid.open) arrangeTwins(kid, kid.twin);
  const isDone = new Set(twins.filter((kid) => kid.open).flatMap((kid) => [kid, kid.twin]));
  for (const group of [first, second])
    group.kids.filter((kid) => !isDone.has(kid)).forEach(arrangeAlone);
  const plans = [plan(first), plan(second)];
  align(twins, plans);
  plans.forEach(finish);
}

function arrangeAlone(item) {
  if (!item.open) return measure(item);
  item.kids.forEach(arrangeAlone);
  return finish(plan(item));
}

function measure(item) {
  const [title, ...lines] = words(item);
  const width = Math.max(title.length * LETTER.title, ...lines.map((line) => line.length * LETTER.line)) + 26;
  Object.assign(item, { w: Math.max(84, width), h: HEAD + (lines.length ? lines.length * LINE + 6 : 4) });
}

// The layout of an open group, whose kids have their sizes.
function plan(item) {
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
  const { rows, place } = layered(cells, edges, isInner ? { top: 0, bottom: cells.length - 1 } : {});
  place();
  return { item, isInner, ends, extra: [], place, rowOf: (kid) => rows[number.get(kid)] };
}

// Moves rows down until the tops of twins agree; twins that stand in another order stay apart.
function align(twins, [first, second]) {
  const pairs = twins.map((kid) => [kid, kid.twin]).sort(([a], [b]) => first.rowOf(a) - first.rowOf(b));
  let last = [-1, -1];
  for (const [a, b] of pairs) {
    const rows = [first.rowOf(a), second.rowOf(b)], missing = upperEdge(b) - upperEdge(a);
    const behind = missing > 0 ? 0 : 1; // the side whose twin stands higher
    if (rows[0] < last[0] || rows[1] < last[1] || rows[behind] === last[behind]) continue;
    const { extra, place } = behind ? second : first;
    extra[rows[behind]] = (extra[rows[behind]] ?? 0) + Math.abs(missing);
    place(extra);
    last = rows;
  }
}

const upperEdge = (item) => item.y - item.h / 2;

function finish({ item, isInner, ends, extra, place }) {
  const { w, h, routes } = place(extra);
  const inner = isInner ? { x: PAD.x, y: PAD.top } : { x: 0, y: 0 };
  const title = isInner ? words(item)[0].length * LETTER.title + 56 : 0;
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
