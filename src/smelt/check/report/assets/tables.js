// The tabs that are tables: passes and near misses, the interface and operators, the weights.

import { el, table, counted, inBytes, inTime } from "./dom.js";
import { data } from "./model.js";

const heading = (text, note) => el("h2", {}, text, note ? el("small", {}, note) : null);

const linkTo = (text, onclick) => el("button", { class: "link", onclick }, text);

// The first node that each pass made, else the first that it removed, by the name of the pass.
function nodesOfPasses() {
  const found = new Map();
  for (const side of ["after", "before"])
    data[side]?.nodes.forEach((node, number) => {
      if (node.pass && !found.has(node.pass)) found.set(node.pass, [side, number]);
    });
  return found;
}

export function passesTab(links) {
  const changed = data.passes.filter((run) => run.rewrites);
  const idle = data.passes.filter((run) => !run.rewrites);
  const places = nodesOfPasses();
  const named = ({ pass }) => (places.has(pass) ? linkTo(pass, () => links.toNode(...places.get(pass))) : pass);
  const rows = (runs) => runs.map((run) => [
    el("span", { title: run.summary }, el("b", {}, named(run)), el("div", { class: "faint" }, run.summary)),
    run.rewrites,
    el("span", { class: "together" }, `${run.nodes[0]} → ${run.nodes[1]}`),
    fired(run.rules),
    run.exactness,
    inTime(run.seconds),
  ]);
  const head = ["Pass", "Rewrites", "Nodes", "Rules", "Exactness", "CPU time"];
  return [
    heading("What changed the model", counted(changed.length, "pass run")),
    changed.length ? table(head, rows(changed)) : el("p", {}, "No pass changed anything."),
    idle.length ? el("details", {}, el("summary", {}, `${counted(idle.length, "pass run")} found nothing to do`),
      table(head, rows(idle))) : null,
    nearMisses(links),
  ];
}

function fired(rules) {
  const most = Object.entries(rules).sort((a, b) => b[1] - a[1]);
  const texts = most.slice(0, 6).map(([rule, count]) => `${rule} ×${count}`);
  return [...texts, ...(most.length > 6 ? [`${most.length - 6} others`] : [])].join(", ");
}

function nearMisses(links) {
  if (!data.near_misses.length) return [];
  const numbers = new Map(data.after?.nodes.map((node, index) => [node.name, index]));
  const rows = data.near_misses.map((miss) => [
    el("b", {}, miss.pass), miss.rule, miss.why, miss.count,
    numbers.has(miss.node)
      ? linkTo(miss.node, () => links.toNode("after", numbers.get(miss.node)))
      : miss.node,
  ]);
  return [
    heading("Near misses", "operators stood as a rule wants them, and one condition did not hold"),
    table(["Pass", "Rule", "Why not", "Times", "For instance at"], rows),
  ];
}

export function modelTab(links) {
  const { before, after } = data;
  const domains = [...new Set([...Object.keys(before.opsets), ...Object.keys(after.opsets)])];
  const opsets = domains.map((domain) => [domain, before.opsets[domain] ?? "–", after.opsets[domain] ?? "–"]);
  const most = Math.max(1, ...data.operators.map(([, a, b]) => Math.max(a, b)));
  return [
    heading("Interface"), interfaceTable(), notes(),
    heading("Opsets"), table(["Domain", "Before", "After"], opsets),
    heading("Operators"),
    table(["Operator", "Before", "After", ""], data.operators.map(([op, a, b]) => [linkTo(op, () => links.toOperator(op)), a, b, bars(a, b, most)]), "operators"),
    heading("Weights", `${inBytes(total(before))} before, ${inBytes(total(after))} after; the largest of the result`),
    weightsTable(after, links),
  ];
}

const notes = () => {
  const facts = data.passes.flatMap((run) => run.interface.map((text) => el("li", {}, text)));
  return facts.length ? el("ul", {}, facts) : null;
};

function interfaceTable() {
  const rows = data.interface.map(([port, name, before, after]) =>
    [port, el("b", {}, name), before, after === before ? "the same" : after]);
  return table(["", "Name", "Before", "After"], rows);
}

function bars(before, after, most) {
  const bar = (className, count) => {
    const line = el("span", { class: `bar ${className}` });
    line.style.width = `${(100 * count) / most}%`;
    return line;
  };
  return el("span", { class: "bars" }, bar("is-before", before), bar("is-after", after));
}

export const total = (graph) => Object.values(graph.weights).reduce((sum, weight) => sum + weight.bytes, 0);

function weightsTable(graph, links) {
  const weights = Object.entries(graph.weights).sort(([, a], [, b]) => b.bytes - a.bytes);
  const reader = (value) => graph.nodes.findIndex((node) => node.in.includes(Number(value)));
  const rows = weights.slice(0, 100).map(([value, weight]) => [
    reader(value) < 0 ? weight.name : linkTo(weight.name, () => links.toNode("after", reader(value))), `${weight.dtype}[${weight.shape}]`, inBytes(weight.bytes), weight.elements ?? weight.low ?? "",
    weight.elements ? "" : weight.high ?? "",
  ]);
  return [table(["Weight", "Type", "Size", "Least", "Greatest"], rows),
    weights.length > 100 ? el("p", { class: "faint" }, `and ${weights.length - 100} smaller ones`) : null];
}
