// One side of the graph as SVG: drawn, moved, zoomed, and marked.

import { svg } from "./dom.js";
import { arrange, placeOf, words } from "./scene.js";
import { visible } from "./model.js";

export const SCALE = { least: 0.02, most: 3, readable: 0.62 };

export class Pane {
  constructor(side, choose) {
    Object.assign(this, { side, choose, scale: 1, x: 0, y: 0, drawn: new Map() });
    this.world = svg("g", {});
    this.root = svg("svg", { class: "graph", tabindex: 0, role: "img" }, this.world);
    this.root.setAttribute("aria-label", `graph ${side.key}`);
    this.listen();
    this.draw();
  }

  draw() {
    arrange(this.side);
    this.drawn.clear();
    this.edges = [];
    this.world.replaceChildren(...this.inside(this.side.root));
  }

  inside(group) {
    const parts = group.routes.map(({ points, ends }) => {
      const path = svg("path", { class: "edge", d: curve(points) });
      this.edges.push({ path, ends });
      return path;
    });
    return [...parts, ...group.kids.map((kid) => this.shape(kid))];
  }

  shape(item) {
    const [title, line] = words(this.side, item);
    const { w, h } = item;
    const state = item.kind === "node" ? this.side.graph.nodes[item.index].state : item.changed && "some";
    const name = `item ${item.kind} ${state ? `is-${state}` : ""} ${item.open ? "open" : ""}`;
    const place = { transform: `translate(${item.x - w / 2} ${item.y - h / 2})` };
    const shape = svg("g", { class: name, "data-item": item.id, ...place });
    if (item.kind === "group" && !item.open)
      shape.append(svg("rect", { class: "behind", x: 4, y: 4, width: w, height: h, rx: 7 }));
    shape.append(svg("rect", { class: "box", width: w, height: h, rx: item.kind === "node" ? 6 : 9 }));
    if (item.open) {
      const label = svg("text", { class: "title", x: 12, y: 21 }, title);
      const inner = svg("g", { transform: `translate(${item.inner.x} ${item.inner.y})` });
      inner.append(...this.inside(item));
      shape.append(label, inner);
    } else {
      shape.append(svg("text", { class: "title", x: w / 2, y: line ? 18 : 19 }, title));
      if (line) shape.append(svg("text", { class: "line", x: w / 2, y: 33 }, line));
    }
    this.drawn.set(item, shape);
    return shape;
  }

  mark(className, items) {
    this.root.querySelectorAll(`.${className}`).forEach((each) => each.classList.remove(className));
    for (const item of items) this.drawn.get(visible(item))?.classList.add(className);
    if (className !== "selected") return;
    const chosen = new Set(items);
    for (const { path, ends } of this.edges)
      path.classList.toggle("near", ends.some((end) => chosen.has(end)));
  }

  move() {
    this.world.setAttribute("transform", `translate(${this.x} ${this.y}) scale(${this.scale})`);
  }

  fitting(least = SCALE.least) {
    const { clientWidth: width, clientHeight: height } = this.root, { w, h } = this.side.root;
    return Math.min(1, Math.max(Math.min((width - 24) / w, (height - 24) / h), least));
  }

  fit(scale = this.fitting()) {
    const { clientWidth: width } = this.root, { w, kids } = this.side.root;
    const middle = w * scale <= width ? w / 2 : kids[0].x; // what is too wide begins at its first input
    Object.assign(this, { scale, x: width / 2 - middle * scale, y: 12 });
    this.move();
  }

  center(item, y = this.root.clientHeight / 2) {
    const shown = visible(item), place = placeOf(shown);
    const top = shown.open ? place.y - shown.h / 2 + 20 : place.y;
    this.x = this.root.clientWidth / 2 - place.x * this.scale;
    this.y = y - top * this.scale;
    this.move();
  }

  zoom(factor, x = this.root.clientWidth / 2, y = this.root.clientHeight / 2) {
    const scale = Math.min(SCALE.most, Math.max(SCALE.least, this.scale * factor));
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.move();
  }

  toggle(item) {
    const before = placeOf(item), top = before.y - item.h / 2;
    item.open = !item.open;
    this.draw();
    const after = placeOf(item);
    this.x += (before.x - after.x) * this.scale;
    this.y += (top - (after.y - item.h / 2)) * this.scale;
    this.move();
  }

  listen() {
    const fingers = new Map();
    let moved = 0;
    const at = (event) => {
      const box = this.root.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    this.root.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), ...at(event));
    }, { passive: false });
    this.root.addEventListener("pointerdown", (event) => {
      moved = 0;
      fingers.set(event.pointerId, at(event));
    });
    this.root.addEventListener("pointermove", (event) => {
      const last = fingers.get(event.pointerId);
      if (!last) return;
      const now = at(event), other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
      moved += Math.abs(now[0] - last[0]) + Math.abs(now[1] - last[1]);
      if (moved > 4) this.root.setPointerCapture(event.pointerId);
      if (other) this.zoom(Math.hypot(now[0] - other[0], now[1] - other[1]) /
        Math.max(1, Math.hypot(last[0] - other[0], last[1] - other[1])), ...other);
      else Object.assign(this, { x: this.x + now[0] - last[0], y: this.y + now[1] - last[1] });
      fingers.set(event.pointerId, now);
      this.move();
    });
    for (const end of ["pointerup", "pointercancel", "pointerleave"])
      this.root.addEventListener(end, (event) => fingers.delete(event.pointerId));
    this.root.addEventListener("click", (event) => {
      const shape = event.target.closest("[data-item]");
      if (moved <= 4) this.choose(shape ? this.side.items[shape.dataset.item] : null);
    });
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "+") this.zoom(1.25);
      else if (event.key === "-") this.zoom(0.8);
      else if (event.key === "0") this.fit();
    });
  }
}

function curve(points) {
  const number = (value) => value.toFixed(1);
  return points.map(([x, y], index) => {
    if (!index) return `M${number(x)} ${number(y)}`;
    const [a, b] = points[index - 1], middle = number((b + y) / 2);
    if (Math.abs(a - x) < 0.1) return `V${number(y)}`;
    return `C${number(a)} ${middle} ${number(x)} ${middle} ${number(x)} ${number(y)}`;
  }).join("");
}
