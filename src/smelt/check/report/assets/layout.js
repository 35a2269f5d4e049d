// Layered layout: layers by the longest path, order by barycenters, positions by least squares.
// Linear in nodes and edges, but for the sort of each layer.

const SPACE = { x: 22, y: 34, bend: 9 };
const WIDEST = 7; // of one layer; more stand in rows below each other
const SWEEPS = 8;
const LONGEST = 60; // layers that an edge is led through; longer ones are drawn straight

// sizes: [{w, h}] in topological order as far as there is one; edges: [[from, to]] by index.
// Returns the row of each, and place(extra): it sets x and y, the middle of each, with extra[row] pixels
// above a row, and returns the size of all and a list of points an edge.
export function layered(sizes, edges, { top = -1, bottom = -1 } = {}) {
  const layer = layersOf(sizes.length, edges, top, bottom);
  const cells = sizes.map((size, index) => ({ ...size, layer: layer[index], up: [], down: [] }));
  const routes = edges.map(([from, to]) => lead(cells, Math.min(from, to), Math.max(from, to)));
  const rows = [];
  cells.forEach((cell) => (rows[cell.layer] ??= []).push(cell));
  const full = Array.from(rows, (row) => row ?? []);
  orderRows(full);
  placeRows(full);
  const place = (extra = []) => {
    const extent = stack(full, extra);
    sizes.forEach((size, index) => Object.assign(size, { x: cells[index].x, y: cells[index].y }));
    return { ...extent, routes: routes.map((route) => points(route, full)) };
  };
  return { rows: layer, place };
}

function layersOf(count, edges, top, bottom) {
  const layer = new Array(count).fill(0), readers = Array.from(layer, () => []);
  const isRead = new Array(count).fill(false);
  edges.forEach(([a, b]) => readers[Math.min(a, b)].push(Math.max(a, b)));
  for (let a = 0; a < count; a++)
    for (const b of readers[a]) {
      layer[b] = Math.max(layer[b], layer[a] + 1);
      isRead[b] = true;
    }
  for (let a = count - 1; a >= 0; a--) // what reads nothing stands right above its reader
    if (!isRead[a] && a !== top && readers[a].length)
      layer[a] = Math.max(0, readers[a].reduce((least, b) => Math.min(least, layer[b]), Infinity) - 1);
  wrap(layer, edges);
  if (bottom >= 0)
    layer[bottom] = layer.reduce((most, at, a) => (a === bottom ? most : Math.max(most, at)), 0) + 1;
  return layer;
}

// Moves down what is too much for its layer, and what reads it.
function wrap(layer, edges) {
  const reads = layer.map(() => []), filled = [];
  edges.forEach(([a, b]) => reads[Math.max(a, b)].push(Math.min(a, b)));
  const inOrder = layer.map((_, index) => index).sort((a, b) => layer[a] - layer[b] || a - b);
  for (const index of inOrder) {
    let at = reads[index].reduce((most, read) => Math.max(most, layer[read] + 1), layer[index]);
    while (filled[at] >= WIDEST) at++;
    layer[index] = at;
    filled[at] = (filled[at] ?? 0) + 1;
  }
}

const gap = (left, right) => (left.isBend || right.isBend ? SPACE.bend : SPACE.x);

function lead(cells, from, to) {
  const ends = [cells[from], cells[to]], route = [ends[0]];
  const span = ends[1].layer - ends[0].layer;
  for (let at = ends[0].layer + 1; at < ends[1].layer && span <= LONGEST; at++) {
    const bend = { w: 6, h: 0, layer: at, up: [], down: [], isBend: true };
    cells.push(bend);
    route.push(bend);
  }
  route.push(ends[1]);
  for (let i = 1; i < route.length; i++) {
    route[i - 1].down.push(route[i]);
    route[i].up.push(route[i - 1]);
  }
  return route;
}

const mean = (cells, key) => cells.reduce((sum, cell) => sum + cell[key], 0) / cells.length;

function orderRows(rows) {
  const number = (row) => row.forEach((cell, index) => (cell.order = index - row.length / 2));
  rows.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const towards = sweep % 2 ? "down" : "up";
    for (const row of sweep % 2 ? rows.toReversed() : rows) {
      row.forEach((cell) => (cell.key = cell[towards].length ? mean(cell[towards], "order") : cell.order));
      row.sort((a, b) => a.key - b.key);
      number(row);
    }
  }
}

function placeRows(rows) {
  for (const row of rows) {
    let x = 0;
    for (const cell of row) {
      cell.x = x + cell.w / 2;
      x += cell.w + SPACE.x;
    }
    row.forEach((cell) => (cell.x -= x / 2));
  }
  for (let sweep = 0; sweep <= SWEEPS; sweep++) { // the last goes down, so that chains are straight
    const towards = sweep % 2 ? "down" : "up";
    for (const row of sweep % 2 ? rows.toReversed() : rows) {
      row.forEach((cell) => (cell.want = cell[towards].length ? mean(cell[towards], "x") : cell.x));
      settle(row);
    }
  }
}

// The places nearest to those wanted that keep the order and the distances: neighbours that
// would overlap move as one block (pool adjacent violators).
function settle(row) {
  const blocks = [];
  let offset = 0;
  row.forEach((cell, index) => {
    if (index) offset += (row[index - 1].w + cell.w) / 2 + gap(row[index - 1], cell);
    cell.offset = offset;
    const weight = cell.isBend ? 2 : 1;
    let block = { sum: (cell.want - offset) * weight, weight, cells: [cell] };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).weight > block.sum / block.weight) {
      const left = blocks.pop();
      left.cells.push(...block.cells);
      block = { sum: left.sum + block.sum, weight: left.weight + block.weight, cells: left.cells };
    }
    blocks.push(block);
  });
  for (const { sum, weight, cells } of blocks)
    for (const cell of cells) cell.x = sum / weight + cell.offset;
}

function stack(rows, extra) {
  const cells = rows.flat();
  const left = cells.reduce((least, cell) => Math.min(least, cell.x - cell.w / 2), Infinity);
  let y = 0;
  for (const [index, row] of rows.entries()) {
    y += extra[index] ?? 0;
    row.height = row.reduce((most, cell) => Math.max(most, cell.h), 0);
    row.middle = y + row.height / 2;
    row.forEach((cell) => Object.assign(cell, { x: cell.x - left, y: row.middle }));
    y += row.height + SPACE.y;
  }
  const w = cells.reduce((most, cell) => Math.max(most, cell.x + cell.w / 2), 0);
  return { w, h: Math.max(0, y - SPACE.y) };
}

function points(route, rows) {
  const last = route.length - 1;
  return route.flatMap((cell, index) => {
    const half = cell.isBend ? rows[cell.layer].height / 2 : cell.h / 2;
    const ends = [[cell.x, cell.y - half], [cell.x, cell.y + half]];
    return index === 0 ? [ends[1]] : index === last ? [ends[0]] : ends;
  });
}
