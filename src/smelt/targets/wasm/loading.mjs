// Loads the module and its weights. MODEL and FILES are above.

/** An error that says what happened, why, and how to fix it. */
export class ModelError extends Error {
  constructor(what, why, fix) {
    super(`${what}: ${why}. To fix: ${fix}.`);
    Object.assign(this, { name: "ModelError", what, why, fix });
  }
}

/** The smallest modules that use an instruction of 128-bit vectors. */
const SIMD = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];
export const hasSimd = () => WebAssembly.validate(new Uint8Array(SIMD));

/** The exports of the module, with its weights in memory. */
async function instantiated(source, options) {
  const [module, weights] = await Promise.all([
    moduleOf(source),
    MODEL.weights ? weightsOf(source, options.weights) : undefined,
  ]);
  const { exports } = await WebAssembly.instantiate(module, {});
  if (MODEL.weights) await fill(exports, weights);
  return exports;
}

/** The compiled module: a source as given, or the file of this engine. */
async function moduleOf(source) {
  if (source instanceof WebAssembly.Module) return source;
  const given = await source;
  if (given instanceof ArrayBuffer || ArrayBuffer.isView(given)) return WebAssembly.compile(given);
  const response = isResponse(given) ? given : await opened(fileOf(given));
  if (!isResponse(response)) return WebAssembly.compile(response);
  await ensureFound(response);
  const type = response.headers.get("content-type") ?? "";
  return type.startsWith("application/wasm") && WebAssembly.compileStreaming
    ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer());
}

// Naming the class Response makes Node load its whole HTTP client, which takes 50 ms.
const isResponse = (value) => typeof value?.arrayBuffer === "function" && typeof value.status === "number";

/** The URL of the module for this engine; `given` is the URL of the file or of its folder. */
function fileOf(given) {
  const plain = FILES.plain && !hasSimd();
  if (given === undefined || given === null) return plain ? FILES.plain() : FILES.simd();
  const url = absolute(given);
  const last = url.pathname.slice(url.pathname.lastIndexOf("/") + 1);
  if (last === "") return new URL(plain ? MODEL.files.plain : MODEL.files.simd, url);
  return plain && last === MODEL.files.simd ? new URL(MODEL.files.plain + url.search, url) : url;
}

/** A URL from text; relative to the page, or to this file where there is none. */
const absolute = (given) => new URL(given, globalThis.document?.baseURI ?? import.meta.url);

/** The weights: a source as given, or the file beside the module. */
async function weightsOf(source, weights) {
  const given = await weights;
  if (given instanceof ArrayBuffer || ArrayBuffer.isView(given) || isResponse(given)) return given;
  if (given !== undefined) return opened(absolute(given));
  const url = await source;
  return opened(typeof url === "string" || url instanceof URL
    ? new URL(MODEL.files.weights, absolute(url)) : FILES.weights());
}

/** A Response, or the bytes of a file where fetch reads none. */
async function opened(url) {
  if (url.protocol === "file:" && globalThis.process?.versions?.node) {
    const { readFile } = globalThis.process.getBuiltinModule?.("node:fs/promises")
      ?? await import(/* webpackIgnore: true */ /* @vite-ignore */ ["node", "fs/promises"].join(":"));
    return readFile(url);
  }
  return fetch(url);
}

async function ensureFound(response) {
  if (!response.ok) {
    throw new ModelError(`${response.url} cannot be loaded`, `the server answers ${response.status}`,
      "serve the files of the folder beside each other, or pass the URL to load(url)");
  }
}

/** Copy the weights into the memory of the module, piece by piece as they arrive. */
async function fill(exports, weights) {
  const { bytes } = MODEL.weights;
  const memory = new Uint8Array(exports.memory.buffer, exports.weights.value, bytes);
  let at = 0;
  const take = (piece) => {
    if (at + piece.length <= bytes) memory.set(piece, at);
    at += piece.length;
  };
  if (!isResponse(weights)) {
    take(ArrayBuffer.isView(weights)
      ? new Uint8Array(weights.buffer, weights.byteOffset, weights.byteLength) : new Uint8Array(weights));
  } else {
    await ensureFound(weights);
    const reader = weights.body.getReader();
    for (let next = await reader.read(); !next.done; next = await reader.read()) take(next.value);
  }
  if (at !== bytes) {
    throw new ModelError(`the weights have ${at} bytes, not ${bytes}`,
      "they are of another model, or cut off", `give the file ${MODEL.files.weights} of this folder`);
  }
}

