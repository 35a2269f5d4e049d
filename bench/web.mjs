// Latency, size and time to ready of models beside onnxruntime-web, in Node, one thread each.
//
//     node bench/web.mjs FOLDER ONNXRUNTIME_WEB [SECONDS]
//
// FOLDER has NAME.onnx and the folder NAME for each model, as bench/web.py writes them;
// ONNXRUNTIME_WEB is the package's folder in a node_modules. Both run by turns in one process; the
// ratios are those of the minima and of the medians. The time to ready is that from the import to a
// loaded model, in a process of its own, the least of five.
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath, pathToFileURL } from "node:url";

const [folder, ortFolder, seconds = "2"] = process.argv.slice(2);
const MOST_CALLS = 2000;
const READY_RUNS = 5;

async function smelt(name) {
  const { load } = await import(pathToFileURL(resolve(folder, name, "model.mjs")));
  return load();
}

async function onnxruntime(name) {
  const { main, exports } = JSON.parse(readFileSync(join(ortFolder, "package.json")));
  const entry = exports?.["./wasm"]?.import ?? main;
  const path = typeof entry === "string" ? entry : entry.default ?? entry.node;
  const ort = await import(pathToFileURL(resolve(ortFolder, path)));
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  const session = await ort.InferenceSession.create(readFileSync(join(folder, `${name}.onnx`)));
  return { session, Tensor: ort.Tensor };
}

const LOADERS = { smelt, onnxruntime };

if (process.argv[5] === "ready") {
  const begin = performance.now();
  await LOADERS[process.argv[6]](process.argv[7]);
  console.log(performance.now() - begin);
  process.exit(0);
}

/** The least milliseconds from the import to a loaded model, each in a new process. */
function ready(kind, name) {
  const times = Array.from({ length: READY_RUNS }, () => Number(execFileSync(process.execPath, [
    fileURLToPath(import.meta.url), folder, ortFolder, seconds, "ready", kind, name,
  ], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim().split("\n").at(-1)));
  return Math.min(...times);
}

/** Numbers that look random, the same in each run. */
function numbers(length) {
  let state = 1;
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  });
}

const median = (times) => times.toSorted((a, b) => a - b)[times.length >> 1];

async function measure(name) {
  const model = await smelt(name);
  const { session, Tensor } = await onnxruntime(name);
  const [port] = model.inputs;
  const data = numbers(port.shape.reduce((product, dim) => product * dim, 1));
  const feeds = { [port.name]: new Tensor("float32", data, port.shape) };
  const runs = {
    smelt: async () => Object.values(await model.run({ [port.name]: data }))[0],
    ort: async () => Object.values(await session.run(feeds))[0].data,
  };
  const got = await runs.smelt();
  const expected = await runs.ort();
  const scale = expected.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
  const difference = got.reduce((most, x, i) => Math.max(most, Math.abs(x - expected[i])), 0) / scale;
  const times = { smelt: [], ort: [] };
  const end = performance.now() + 1000 * Number(seconds) * 3;
  for (const run of Object.values(runs)) {
    for (const stop = performance.now() + 500 * Number(seconds); performance.now() < stop;) await run();
  }
  while (performance.now() < end && times.ort.length < MOST_CALLS) {
    for (const [kind, run] of Object.entries(runs)) {
      await run();
      const begin = performance.now();
      await run();
      times[kind].push(performance.now() - begin);
    }
  }
  const least = { smelt: Math.min(...times.smelt), ort: Math.min(...times.ort) };
  const files = join(folder, name);
  const size = (file) => statSync(join(files, file)).size;
  const weights = JSON.parse(readFileSync(join(folder, `${name}.json`))).weights_bytes;
  const beside = readdirSync(files).includes("model.weights");
  return {
    model: name,
    min: least.smelt / least.ort,
    median: median(times.smelt) / median(times.ort),
    "smelt ms": least.smelt,
    "ort ms": least.ort,
    "code KB": (size("model.wasm") - (beside ? 0 : weights)) / 1000,
    "weights KB": weights / 1000,
    "ready ms": ready("smelt", name),
    "ort ready ms": ready("onnxruntime", name),
    difference,
  };
}

const names = readdirSync(folder).filter((file) => file.endsWith(".onnx")).map((file) => file.slice(0, -5));
const rows = [];
for (const name of names) {
  rows.push(await measure(name));
  console.table(rows.slice(-1).map((row) => Object.fromEntries(Object.entries(row).map(
    ([key, value]) => [key, typeof value === "number" ? Number(value.toPrecision(3)) : value]))));
}
const geomean = (key) => Math.exp(rows.reduce((sum, row) => sum + Math.log(row[key]), 0) / rows.length);
console.log(JSON.stringify(rows));
console.log(`geometric mean: ${geomean("min").toFixed(3)} (minima), ${geomean("median").toFixed(3)} (medians)`);
process.exit(0);
