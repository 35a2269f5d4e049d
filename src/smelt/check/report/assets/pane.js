// One side of the graph as SVG: drawn, moved, zoomed, and marked.

import { svg } from "./dom.js";
import { HEAD, LINE, placeOf, words } from "./scene.js";
import { visible } from "./model.js";

export const SCALE = { least: 0.02, most: 3, readable: 0.85 };

export class Pane {
  constructor(side, choose) {
    Object.assign(this, { side, choose, scale: 1, x: 0, y: 0, drawn: new Map(), edges: [] });
    this.world = svg("g", {});
    this.root = svg("svg", { class: "graph", tabindex: 0, role: "img" }, this.world);
    this.root.setAttribute("aria-label", `graph ${side.key}`);
    this.listen();
  }

  // Draws what the side shows now, which is arranged.
  draw() {
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
    const [title, ...lines] = words(item);
    const { w, h } = item;
    const node = item.kind === "node" ? this.side.graph.nodes[item.index] : null;
    const state = node ? node.state : item.changed && "some";
    const name = `item ${item.kind} ${state ? `is-${state}` : ""} ${item.open ? "open" : ""}`;
    const place = { transform: `translate(${item.x - w / 2} ${item.y - h / 2})` };
    const shape = svg("g", { class: name, "data-item": item.id, ...place });
    if (item.kind === "group" && !item.open)
      shape.append(svg("rect", { class: "behind", x: 4, y: 4, width: w, height: h, rx: 7 }));
    shape.append(svg("rect", { class: "box", width: w, height: h, rx: node ? 5 : 9 }));
    if (item.open) {
      const label = svg("text", { class: "title", x: 12, y: 23 }, title);
      const inner = svg("g", { transform: `translate(${item.inner.x} ${item.inner.y})` });
      inner.append(...this.inside(item));
      shape.append(label, inner);
    } else {
      if (node) shape.append(svg("path", { class: `head kind-${node.kind}`, d: head(w, lines.length ? HEAD : h) }));
      const middle = lines.length ? 17 : h / 2 + 5;
      shape.append(svg("text", { class: "title", x: w / 2, y: middle }, title));
      lines.forEach((line, index) => shape.append(svg("text",
        { class: index === lines.length - 1 ? "line type" : "line", x: w / 2, y: HEAD + 13 + index * LINE }, line)));
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

  // Notes where the title of an item stands; the function that it returns moves it there again.
  holding(item) {
    const corner = () => {
      const { x, y } = placeOf(item);
      return [x, y - item.h / 2];
    };
    const [x, y] = corner();
    return () => {
      const [newX, newY] = corner();
      this.x += (x - newX) * this.scale;
      this.y += (y - newY) * this.scale;
      this.move();
    };
  }

  // The other side goes up and down along, so that twins stay beside each other.
  drag(x, y) {
    Object.assign(this, { x: this.x + x, y: this.y + y });
    const { pane } = this.side.other;
    pane.y += (y / this.scale) * pane.scale;
    pane.move();
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
      else this.drag(now[0] - last[0], now[1] - last[1]);
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

// The upper part of a box of this width, with round corners above.
const head = (w, h) => `M0.5 ${h}V5.5Q0.5 0.5 5.5 0.5H${w - 5.5}Q${w - 0.5} 0.5 ${w - 0.5} 5.5V${h}Z`;

function curve(points) {
  const number = (value) => value.toFixed(1);
  return points.map(([x, y], index) => {
    if (!index) return `M${number(x)} ${number(y)}`;
    const [a, b] = points[index - 1], middle = number((b + y) / 2);
    if (Math.abs(a - x) < 0.1) return `V${number(y)}`;
    return `C${number(a)} ${middle} ${number(x)} ${middle} ${number(x)} ${number(y)}`;
  }).join("");
}
