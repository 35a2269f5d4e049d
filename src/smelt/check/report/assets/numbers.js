// The tabs of what was computed: a verification output by output, and the rewrite at fault.

import { el, short, table } from "./dom.js";
import { data } from "./model.js";

export function numbersTab() {
  const { numbers } = data;
  const rows = numbers.rows.map((row) => [
    el("b", {}, row.output), row.type, row.sizes, row.inputs, row.elements,
    short(row.error), short(row.ulp), short(row.allowed), row.unstable || "",
    el("span", { class: row.ok ? "good" : "bad" }, row.ok ? row.problem || "same" : row.problem),
  ]);
  const head = ["Output", "Type", "Sizes", "Inputs", "Elements", "Error", "ulp", "Allowed",
    "Undetermined", "Result"];
  return [
    el("h2", {}, numbers.title),
    el("ul", {}, numbers.facts.map((fact) => el("li", {}, fact))),
    rows.length ? table(head, rows) : el("p", {}, "No pass changed anything, so nothing was run."),
  ];
}

export function faultTab() {
  const { culprit } = data;
  const lines = [
    ...culprit.removed.map((text) => el("span", { class: "minus" }, `- ${text}\n`)),
    ...culprit.added.map((text) => el("span", { class: "plus" }, `+ ${text}\n`)),
  ];
  return [
    el("h2", {}, `Pass ${culprit.pass}`, el("small", {}, `rewrite ${culprit.rewrite} of ${culprit.rewrites} in the pipeline`)),
    el("p", {}, "Rules: ", culprit.rules.join(", ") || "none"),
    el("pre", { class: "card diff" }, lines),
    el("h2", {}, "What it computes otherwise"),
    el("ul", {}, culprit.problems.map((problem) => el("li", {}, problem))),
  ];
}
