// The data of the page, and each side of it as a tree of items: nodes, groups, inputs, outputs.
// Nodes that depend on constants only have no item; they are listed among the inputs of their readers.

export const data = JSON.parse(document.getElementById("data").textContent);

const OPEN_AT_FIRST = 70; // items that a side shows before anybody opens a group
const MOST_ENDS = 40; // inputs or outputs that stand alone

export function makeSide(key, graph) {
  const side = { key, graph, items: [], itemOf: [], producer: [], readers: [], root: null };
  side.root = grow(side, { name: graph.name, kids: graph.tree }, null);
  const inputs = addEnds(side, "input"), outputs = addEnds(side, "output");
  inputs.forEach((item) => (side.producer[item.value] = item));
  graph.nodes.forEach((node, index) =>
    node.out.forEach((value) => (side.producer[value] = side.itemOf[index])));
  graph.nodes.forEach((node, index) => node.in.forEach((value) => {
    connect(side.producer[value], side.itemOf[index]);
    (side.readers[value] ??= []).push(index);
  }));
  outputs.forEach((item) => connect(side.producer[item.value], item));
  return side;
}

// Groups with the same place among the groups of their side are twins: they open and close together.
export function pair(before, after) {
  const byKey = new Map();
  keyed(before.root, "", (item, key) => byKey.set(key, item));
  keyed(after.root, "", (item, key) => {
    const twin = byKey.get(key);
    if (twin) [item.twin, twin.twin] = [twin, item];
  });
  openSome([before, after]);
}

function keyed(group, key, visit) {
  visit(group, key);
  for (const kid of group.kids.filter((each) => each.kids))
    keyed(kid, `${key}\n${kid.index < 0 ? kid.name : `#${sourceOf(kid)}`}`, visit);
}

// The number of a node on the side before, or a text that no node there has.
function sourceOf({ side, index }) {
  if (side.key === "before") return index;
  const { from = [], state } = side.graph.nodes[index];
  return from.length === 1 && state !== "new" ? from[0] : `after ${index}`;
}

// Inputs above and outputs below all nodes; many of them make a group.
function addEnds(side, kind) {
  const values = side.graph[`${kind}s`], { root } = side;
  let home = root;
  if (values.length > MOST_ENDS) {
    home = grow(side, { name: `${values.length} ${kind}s`, kids: [] }, root);
    home.size = 0;
    root.kids = kind === "input" ? [home, ...root.kids] : [...root.kids, home];
  }
  const ends = values.map((value) =>
    Object.assign(leaf(side, home, kind, -1), { value, name: side.graph.values[value][0], size: 0 }));
  home.kids = kind === "input" ? [...ends, ...home.kids] : [...home.kids, ...ends];
  return ends;
}

function leaf(side, parent, kind, index) {
  const item = { side, kind, index, parent, depth: parent ? parent.depth + 1 : 0, id: side.items.length,
    next: new Map(), size: 1, changed: 0 };
  side.items.push(item);
  return item;
}

function grow(side, tree, parent) {
  const isLeaf = typeof tree === "number";
  const index = isLeaf ? tree : tree.node ?? -1;
  const item = leaf(side, parent, isLeaf ? "node" : "group", index);
  if (index >= 0) side.itemOf[index] = item;
  if (isLeaf) {
    item.changed = side.graph.nodes[index].state ? 1 : 0;
    return item;
  }
  Object.assign(item, { name: tree.name, what: tree.what ?? "", open: !parent, ins: new Set(), outs: new Set() });
  item.kids = tree.kids.map((kid) => grow(side, kid, item));
  item.size = item.kids.reduce((sum, kid) => sum + kid.size, 0);
  item.changed = item.kids.reduce((sum, kid) => sum + kid.changed, 0);
  return item;
}

// An edge is drawn where the two ends meet; on the way up it leaves or enters each group.
function connect(from, to) {
  while (from && to && from !== to && from.parent !== to.parent) {
    if (from.depth >= to.depth) {
      from.parent.outs.add(from);
      from = from.parent;
    } else {
      to.parent.ins.add(to);
      to = to.parent;
    }
  }
  if (from && to && from !== to) from.next.set(to, (from.next.get(to) ?? 0) + 1);
}

// Opens groups from the outside in, on both sides alike, while both have room for what is in them.
// Groups of one name but for its number, such as layers, open all or not at all; small ones come first.
function openSome(sides) {
  const room = new Map(sides.map((side) => [side, OPEN_AT_FIRST - side.root.kids.length]));
  const waiting = [[sides[0].root, sides[1].root]];
  while (waiting.length) {
    const alike = new Map();
    for (const group of groupsIn(waiting.shift())) {
      const name = group.name.replace(/\d+/g, "#");
      alike.set(name, [...(alike.get(name) ?? []), group]);
    }
    const count = (groups) => groups.reduce((sum, { kids }) => sum + kids.length, 0);
    for (const groups of [...alike.values()].sort((a, b) => count(a) - count(b))) {
      const both = groups.flatMap((group) => (group.twin ? [group, group.twin] : [group]));
      const needed = (side) => both.reduce((sum, { side: of, kids }) => sum + (of === side ? kids.length : 0), 0);
      if (both.some(isHeap) || sides.some((side) => needed(side) > room.get(side))) continue;
      sides.forEach((side) => room.set(side, room.get(side) - needed(side)));
      both.forEach((group) => (group.open = true));
      waiting.push(...groups.map((group) => (group.twin ? [group, group.twin] : [group])));
    }
  }
}

// The groups in a pair of twins, one of each pair of twins among them.
const groupsIn = ([first, second]) => [
  ...first.kids.filter((kid) => kid.kids),
  ...(second?.kids ?? []).filter((kid) => kid.kids && !kid.twin),
];

const isHeap = (group) => group.kids.length > 4 && !group.kids.some((kid) => kid.next.size);

export function nodesBelow(item, found = []) {
  if (item.index >= 0) found.push(item.index);
  (item.kids ?? []).forEach((kid) => nodesBelow(kid, found));
  return found;
}

export function visible(item) {
  let shown = item;
  for (let up = item?.parent; up; up = up.parent) if (!up.open) shown = up;
  return shown;
}

export function setOpen(group, isOpen) {
  group.open = isOpen;
  if (group.twin) group.twin.open = isOpen;
}

export function reveal(item) {
  for (let up = item.parent; up; up = up.parent) setOpen(up, true);
}

// The item of a node; for a node that is folded away, that of the first node that uses its results.
export function itemFor(side, number, seen = new Set()) {
  if (side.itemOf[number] || seen.has(number)) return side.itemOf[number] ?? null;
  seen.add(number);
  for (const value of side.graph.nodes[number].out)
    for (const reader of side.readers[value] ?? []) {
      const found = itemFor(side, reader, seen);
      if (found) return found;
    }
  return null;
}
