// The tab of a batch: what became of each of many models.

import { el, short, table, counted, inBytes, inTime, share } from "./dom.js";
import { data } from "./model.js";

const change = (pair, say) =>
  pair ? el("span", { class: "together" }, `${say(pair[0])} → ${say(pair[1])} `,
    el("small", {}, share(...pair))) : "";

function shownOf(evidence) {
  if (!evidence?.sizes) return "";
  const error = evidence.worst.error ? `${short(evidence.worst.ulp)} ulp` : "equal bits";
  return `${error} at ${counted(evidence.sizes.length, "size")}`;
}

export function batchFigures(figure) {
  const { counts, models } = data.batch;
  const took = models.reduce((sum, model) => sum + model.seconds, 0);
  return [figure("Done", `${counts.done}`, `of ${counts.done + counts.failed + counts.missing} models`),
    figure("Failed", `${counts.failed}`), figure("Time", inTime(took), "added up")];
}

export function batchTab() {
  const { models, action, options } = data.batch, codes = new Map();
  for (const { error } of models) if (error) codes.set(error.code, [...(codes.get(error.code) ?? []), error.what]);
  const rows = models.map((model) => [
    el("b", {}, model.name), change(model.nodes, (count) => count.toLocaleString("en")), change(model.bytes, inBytes),
    inTime(model.seconds), shownOf(model.evidence),
    model.error ? el("span", { class: "bad" }, `${model.error.code} ${model.error.what}`)
      : el("span", { class: "good" }, model.cached ? "done earlier" : "done"),
  ]);
  const errors = [...codes].sort((a, b) => b[1].length - a[1].length)
    .map(([code, whats]) => [code, whats.length, whats[0]]);
  return [
    el("h2", {}, `smelt ${action} ${options.join(" ")}`),
    table(["Model", "Nodes", "Bytes", "Time", "Evidence", "Result"], rows),
    errors.length ? [el("h2", {}, "What failed"), table(["Code", "Models", "For instance"], errors)] : null,
  ];
}
