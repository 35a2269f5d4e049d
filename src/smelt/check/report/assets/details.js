// What is known of one node or group: attributes, types, weights, and where it comes from.

import { el, counted, inBytes } from "./dom.js";
import { data, nodesBelow } from "./model.js";

const SHOWN = 40; // rows of a list

const WORDS = {
  before: { undefined: "kept", changed: "rewritten", gone: "removed" },
  after: { undefined: "kept", changed: "attributes changed", new: "made" },
};

const PARTNERS = { before: { changed: "Became" }, after: { new: "Made from" } };

export function details(side, item, go) {
  if (item.kind === "group" && item.index < 0) return ofGroup(side, item);
  if (item.kind !== "node" && item.kind !== "group") return ofEnd(side, item);
  return ofNode(side, side.graph.nodes[item.index], go);
}

const section = (title, rows) =>
  rows.length ? [el("h3", {}, title), el("dl", {}, rows.slice(0, SHOWN)),
    rows.length > SHOWN ? el("p", { class: "faint" }, `and ${rows.length - SHOWN} more`) : null] : [];

const row = (name, ...content) => [el("dt", {}, name), el("dd", {}, ...content)];

function ofNode(side, node, go) {
  const word = WORDS[side.key][node.state];
  const by = node.pass && node.state !== undefined ? ` by ${node.pass}` : "";
  const names = new Set((node.partners ?? []).map((index) => side.other.graph.nodes[index].name));
  const lines = (node.source ?? []).filter((line) => !names.has(line));
  return [
    el("h2", {}, node.op),
    el("p", { class: "name" }, node.name),
    el("span", { class: `badge is-${node.state ?? "kept"}` }, word + by),
    section(PARTNERS[side.key][node.state] ?? "On the other side", partners(side, node, go)),
    section("Source", lines.map((line, index) => row(`${index + 1}`, el("code", {}, line)))),
    section("Inputs", node.in.map((value, index) => value < 0 ? row(`${index}`, "left out") : ofValue(side, value, index, go))),
    section("Outputs", node.out.map((value, index) => ofValue(side, value, index, go))),
    section("Attributes", (node.attributes ?? []).map(([name, text]) => row(name, el("code", {}, text)))),
    section("By the rules", (node.rules ?? []).map((rule, index) => row(`${index + 1}`, rule))),
  ];
}

const partners = (side, node, go) =>
  (node.partners ?? []).map((index) => {
    const other = side.other.graph.nodes[index];
    return row(other.op, el("button", { class: "link", onclick: () => go(side.other, index) }, other.name));
  });

function ofValue(side, value, index, go) {
  const [name, type] = side.graph.values[value], weight = side.graph.weights[value];
  const maker = weight ? -1 : side.graph.nodes.findIndex((node) => node.constant && node.out.includes(value));
  const parts = [el("code", {}, type), " ", el("span", { class: "faint" }, name)];
  if (weight) parts.push(el("div", { class: "faint" }, aboutWeight(weight)));
  else if (maker >= 0) parts.push(el("div", { class: "faint" }, "computed from constants by ",
    el("button", { class: "link", onclick: () => go(side, maker) }, side.graph.nodes[maker].op)));
  return row(`${index}`, ...parts);
}

export function aboutWeight(weight) {
  const range = weight.elements ?? (weight.low === undefined ? "" : `${weight.low} to ${weight.high}`);
  const odd = weight.not_finite ? `, ${counted(weight.not_finite, "element")} not finite` : "";
  return `constant, ${inBytes(weight.bytes)}${range && `, ${range}`}${odd}`;
}

function ofGroup(side, item) {
  const counts = new Map();
  for (const index of nodesBelow(item)) {
    const { op } = side.graph.nodes[index];
    counts.set(op, (counts.get(op) ?? 0) + 1);
  }
  const rows = [...counts].sort((a, b) => b[1] - a[1]).map(([op, count]) => row(op, `${count}`));
  const { twin } = item;
  const other = twin ? `; ${data.sides[side.key === "after" ? 0 : 1].toLowerCase()}: ${counted(twin.size, "node")}` : "";
  return [
    el("h2", {}, item.name),
    el("p", { class: "faint" }, item.what),
    el("p", {}, `${counted(item.size, "node")}, ${item.changed} changed${other}`),
    section("Operators", rows),
  ];
}

const ofEnd = (side, item) => [
  el("h2", {}, item.kind), el("p", { class: "name" }, item.name),
  section("Type", [row("type", el("code", {}, side.graph.values[item.value][1]))]),
];
