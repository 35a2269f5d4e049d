// The tabs that are pictures: where time went, and what lies where in the arena of a target.

import { el, svg, table, counted, inBytes, inTime } from "./dom.js";
import { data } from "./model.js";

const ROW = 24; // pixels of a span

export function timeTab() {
  const { seconds, spans, totals } = data.spans;
  const depths = 1 + Math.max(...spans.map(([, , , depth]) => depth));
  const chart = el("div", { class: "flame", role: "img", "aria-label": "time by phase and pass" });
  const axis = el("div", { class: "axis" });
  chart.style.height = `${depths * ROW}px`;
  function draw(from, to) {
    const width = to - from, shown = ([, start, took]) => start < to && start + took > from;
    chart.replaceChildren(...spans.filter(shown).map((span) => {
      const [name, start, took, depth, category] = span;
      const [left, right] = [Math.max(start, from), Math.min(start + took, to)];
      const box = el("button", { class: `span ${category}`, title: `${name}: ${inTime(took)}`,
        onclick: () => (start <= from && start + took >= to ? draw(0, seconds) : draw(start, start + took)) },
        (right - left) / width > 0.02 ? `${name} ${inTime(took)}` : "");
      Object.assign(box.style, { left: `${(100 * (left - from)) / width}%`, top: `${depth * ROW}px`,
        width: `${(100 * (right - left)) / width}%` });
      return box;
    }));
    axis.replaceChildren(el("span", {}, inTime(from)), el("span", {}, inTime((from + to) / 2)), el("span", {}, inTime(to)));
  }
  draw(0, seconds);
  const rows = totals.map(([name, runs, wall, cpu]) =>
    [el("b", {}, name), runs, inTime(wall), inTime(cpu), meter(wall / seconds)]);
  return [
    el("h2", {}, "Where time went", el("small", {}, `${inTime(seconds)}; click a span to look closer, again to come back`)),
    el("div", { class: "card" }, chart, axis),
    el("h2", {}, "By phase and pass", el("small", {}, "runs of one name added up; a phase holds what runs within it")),
    table(["Name", "Runs", "Time", "CPU time", "Share"], rows, "shares"),
  ];
}

function meter(part) {
  const line = el("span", { class: "bar is-after" });
  line.style.width = `${Math.min(100, 100 * part)}%`;
  return el("span", { class: "bars" }, line);
}

const TALL = 340, WIDE = 1000; // units of the picture of an arena

export function memoryTab() {
  const { memory } = data, steps = Math.max(memory.live.length, 1);
  const top = Math.max(memory.arena_bytes, 1);
  const x = (step) => (WIDE * Math.min(Math.max(step, 0), steps)) / steps;
  const y = (offset) => (TALL * offset) / top;
  const says = el("p", { class: "says faint" }, "Point at a buffer to see what it holds.");
  const at = (step) => {
    const [op, origin] = memory.steps[Math.min(Math.max(step, 0), memory.steps.length - 1)] ?? ["", ""];
    return `${step} (${op}${origin && ` ${origin}`})`;
  };
  const boxes = memory.buffers.map(([name, offset, size, first, last], index) => {
    const words = `${name}: ${inBytes(size)} at ${offset.toLocaleString("en")}, from step ${at(first)} to ${at(last)}`;
    const tint = name.startsWith("scratch of") ? "scratch" : `tint-${index % 6}`;
    return svg("rect", { class: `buffer ${tint}`, x: x(first), y: TALL - y(offset + size), height: y(size),
      width: Math.max(x(last + 1) - x(first), 1), onpointerenter: () => says.replaceChildren(words) },
      svg("title", {}, words));
  });
  const peak = Math.max(0, ...memory.live), line = (name, bytes) =>
    svg("line", { class: name, x1: 0, x2: WIDE, y1: TALL - y(bytes), y2: TALL - y(bytes) });
  const live = memory.live.map((bytes, step) => `${step ? "L" : "M"}${x(step)} ${TALL - y(bytes)}H${x(step + 1)}`).join("");
  const picture = svg("svg", { class: "arena", viewBox: `0 -4 ${WIDE} ${TALL + 8}`, preserveAspectRatio: "none",
    role: "img", "aria-label": "buffers in the arena over time" },
    boxes, svg("path", { class: "live", d: live }), line("peak", peak));
  const rows = memory.buffers.slice(0, 50).map(([name, offset, size, first, last]) =>
    [name, inBytes(size), offset, first, last]);
  return [
    el("h2", {}, `The arena of target ${memory.target}`, el("small", {},
      `${counted(memory.arena_bytes, "byte")}; no plan for this order needs fewer than ${memory.bound_bytes.toLocaleString("en")}`)),
    el("div", { class: "card" },
      el("div", { class: "plot" }, el("span", { class: "high" }, inBytes(memory.arena_bytes)), picture),
      el("div", { class: "axis" }, el("span", {}, "step 0"), el("span", {}, "time, one step an instruction"),
        el("span", {}, `step ${steps - 1}`)), says,
      el("p", { class: "keys" }, el("span", { class: "dash peak" }), `peak of live bytes ${inBytes(peak)}`,
        el("span", { class: "dash live" }), "live bytes", el("span", { class: "dash scratch" }), "scratch of one step")),
    memory.left_out ? el("p", { class: "faint" }, `${counted(memory.left_out, "smaller buffer")} not drawn`) : null,
    el("h2", {}, "The largest buffers"),
    table(["Holds", "Size", "Offset", "First step", "Last step"], rows),
  ];
}
