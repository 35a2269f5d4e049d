// The page: what happened in a line of figures, and a tab for each part of the data.

import { el, short, counted, inBytes, inTime, share } from "./dom.js";
import { data } from "./model.js";
import { graphsTab } from "./graphs.js";
import { modelTab, passesTab, total } from "./tables.js";
import { memoryTab, timeTab } from "./charts.js";
import { batchFigures, batchTab } from "./batch.js";
import { faultTab, numbersTab } from "./numbers.js";

// A figure that has a tab of its own is a button that opens it.
const figure = (title, value, note, tab) =>
  el(tab ? "button" : "div", { class: "figure", "data-tab": tab },
    el("span", {}, title), el("b", {}, value), el("small", {}, note ?? ""));

const arrow = (a, b) => (a === b ? `${a}` : `${a} → ${b}`);

function figures() {
  const { before, after, passes, numbers, memory } = data, found = [];
  if (before) {
    const [a, b] = [before.nodes.length, after.nodes.length];
    found.push(figure("Nodes", arrow(a.toLocaleString("en"), b.toLocaleString("en")), share(a, b), "Model"));
    found.push(figure("Weights", inBytes(total(after)), share(total(before), total(after)), "Model"));
    found.push(figure("Opset", arrow(before.opsets["ai.onnx"] ?? "–", after.opsets["ai.onnx"] ?? "–"), "", "Model"));
  }
  const changed = passes.filter((run) => run.rewrites).length;
  if (passes.length)
    found.push(figure("Passes", `${changed}`, `of ${passes.length} runs changed it, ${inTime(
      passes.reduce((sum, run) => sum + run.seconds, 0))}`, "Passes"));
  if (memory) found.push(figure("Arena", inBytes(memory.arena_bytes), `bound ${inBytes(memory.bound_bytes)}`, "Memory"));
  if (numbers) {
    const error = numbers.worst.error ? `${short(numbers.worst.ulp)} ulp` : "equal bits";
    found.push(figure("Verified", numbers.ok ? error : "DIFFERENT", counted(numbers.rows.length, "comparison"), "Numbers"));
  }
  if (data.batch) found.push(...batchFigures(figure));
  return el("div", { class: "figures" }, found);
}

function failure() {
  if (!data.error) return null;
  const { code, what, at = [], why, fix } = data.error;
  const lines = [].concat(at, why ? `why: ${why}` : [], fix ? `fix: ${fix}` : []);
  return el("div", { class: "failure" }, el("b", {}, `${code} ${what}`), el("ul", {}, lines.map((line) => el("li", {}, line))));
}

function start() {
  const page = document.getElementById("page");
  const graphs = data.before ? graphsTab() : null;
  const links = {
    toNode: (key, number) => { show("Graph"); graphs?.go(key, number); },
    toOperator: (op) => { show("Graph"); graphs?.find(op); },
  };
  const tabs = {
    ...(data.batch ? { Models: batchTab() } : {}),
    ...(graphs ? { Graph: graphs.content } : {}),
    ...(data.culprit ? { Fault: faultTab() } : {}),
    ...(data.passes.length ? { Passes: passesTab(links) } : {}),
    ...(data.numbers ? { Numbers: numbersTab() } : {}),
    ...(data.spans ? { Time: timeTab() } : {}),
    ...(data.memory ? { Memory: memoryTab() } : {}),
    ...(data.before ? { Model: modelTab(links) } : {}),
  };
  const bodies = Object.entries(tabs).map(([name, content]) =>
    el("main", { id: `tab-${name}`, class: name === "Graph" ? "wide" : "text", hidden: "" }, ...content.flat(2).filter(Boolean)));
  const buttons = Object.keys(tabs).map((name) => el("button", { role: "tab", onclick: () => show(name) }, name));
  function show(name) {
    const chosen = name in tabs ? name : Object.keys(tabs)[0] ?? "";
    bodies.forEach((body) => { body.hidden = body.id !== `tab-${chosen}`; });
    buttons.forEach((button) => button.setAttribute("aria-selected", button.textContent === chosen));
    if (location.protocol !== "about:") history.replaceState(null, "", `#${chosen}`); // a frame has no place
  }
  if (data.title) document.title = `${data.title} · smelt report`;
  page.append(
    el("header", { class: "top" },
      el("h1", {}, el("span", { class: "brand" }, "smelt"), " ", data.title), figures(), failure(),
      el("nav", { role: "tablist" }, buttons)),
    ...bodies);
  page.querySelectorAll(".figure[data-tab]").forEach((each) =>
    each.addEventListener("click", () => show(each.dataset.tab)));
  show(decodeURIComponent(location.hash.slice(1)));
  document.body.dataset.ready = "yes";
}

start();
