// The data of the page, and each side of it as a tree of items: nodes, groups, inputs, outputs.

export const data = JSON.parse(document.getElementById("data").textContent);

const OPEN_AT_FIRST = 110; // items that a side shows before anybody opens a group
const MOST_ENDS = 40; // inputs or outputs that stand alone

export function makeSide(key, graph) {
  const side = { key, graph, items: [], itemOf: [], producer: [], root: null };
  side.root = grow(side, { name: graph.name, kids: graph.tree }, null);
  const inputs = addEnds(side, "input"), outputs = addEnds(side, "output");
  inputs.forEach((item) => (side.producer[item.value] = item));
  graph.nodes.forEach((node, index) =>
    node.out.forEach((value) => (side.producer[value] = side.itemOf[index])));
  graph.nodes.forEach((node, index) =>
    node.in.forEach((value) => connect(side.producer[value], side.itemOf[index])));
  outputs.forEach((item) => connect(side.producer[item.value], item));
  openSome(side.root);
  return side;
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
  const item = { kind, index, parent, depth: parent ? parent.depth + 1 : 0, id: side.items.length,
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
  Object.assign(item, { name: tree.name, open: !parent, ins: new Set(), outs: new Set() });
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

function openSome(root) {
  let shown = root.kids.length;
  const waiting = root.kids.filter((kid) => kid.kids);
  while (waiting.length) {
    const group = waiting.shift();
    const isHeap = group.kids.length > 4 && !group.kids.some((kid) => kid.next.size);
    if (isHeap || shown + group.kids.length > OPEN_AT_FIRST) continue;
    group.open = true;
    shown += group.kids.length;
    waiting.push(...group.kids.filter((kid) => kid.kids));
  }
}

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

export function reveal(item) {
  for (let up = item.parent; up; up = up.parent) up.open = true;
}
