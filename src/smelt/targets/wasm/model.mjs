// Runs the module. MODEL and spawn are above, and what loads it.

const ARRAYS = {
  Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, BigInt64Array,
  Uint8Array, Uint16Array, Uint32Array, BigUint64Array,
};
const ERRORS = {
  3: ["the values of this run lead to sizes for which the model was not compiled",
    "memory is planned for the sizes that the model declares",
    "give inputs that lead to declared sizes, or compile with larger bounds"],
  4: ["a matrix is singular", "the model checks that the matrix can be inverted",
    "give inputs for which the matrix can be inverted"],
};

/** Load the model: from the files beside this one, or from `source`. */
export async function load(source, options = {}) {
  return new Model(await instantiated(source, options));
}

/** Load the model in a Web Worker, so that runs do not block the page. */
export async function loadInWorker(source, options = {}) {
  const worker = spawn();
  const waiting = new Map();
  let last = 0, ended;
  const failed = (error) => {
    ended = error;
    worker.terminate();
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };
  worker.onmessage = ({ data: { id, result, error } }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error) reject(error.why ? new ModelError(error.what, error.why, error.fix) : new Error(error.message));
    else resolve(result);
  };
  worker.onerror = (event) => failed(new ModelError("the worker of the model failed",
    event.message || "its script cannot be loaded", "serve the .mjs files beside each other"));
  const ask = (message) => new Promise((resolve, reject) => {
    if (ended) throw ended;
    waiting.set(++last, { resolve, reject });
    try {
      worker.postMessage({ id: last, ...message });
    } catch (error) {
      waiting.delete(last);
      reject(error);
    }
  });
  const plain = source instanceof URL ? source.href : source;
  try {
    await ask({ load: [plain, options] });
  } catch (error) {
    worker.terminate();
    throw error;
  }
  return {
    inputs: MODEL.inputs.map(described), outputs: MODEL.outputs.map(described),
    run: async (inputs, runOptions) => shaped(await ask({ run: [inputs, runOptions] })),
    close: () => failed(new ModelError("the model was closed", "close() ended its worker", "load it again")),
  };
}

/** The results of a worker as arrays with shapes. */
function shaped(results) {
  return Object.fromEntries(Object.entries(results).map(
    ([name, { data, shape }]) => [name, withShape(data, shape)]));
}

const described = ({ name, type, array, shape }) => ({ name, type, array, shape });

class Model {
  #exports; #ports; #dims; #sizes;

  constructor(exports) {
    this.#exports = exports;
    this.inputs = MODEL.inputs.map(described);
    this.outputs = MODEL.outputs.map(described);
    const buffer = exports.memory.buffer;
    const at = (name, port) => new ARRAYS[port.array](buffer, exports[name].value, port.length);
    this.#ports = {
      inputs: MODEL.inputs.map((port, i) => at(`input${i}`, port)),
      outputs: MODEL.outputs.map((port, i) => at(`output${i}`, port)),
    };
    if (exports.dims) {
      const ranks = [...MODEL.inputs, ...MODEL.outputs].map((port) => port.shape.length);
      const all = ranks.reduce((sum, rank) => sum + rank, 0);
      this.#dims = new Int32Array(buffer, exports.dims.value, all);
      this.#sizes = new Int32Array(buffer, exports.sizes.value, MODEL.sizes.length);
    }
  }

  /** Run once: copies inputs in and results out. */
  async run(inputs, options) {
    return this.runSync(inputs, options);
  }

  runSync(inputs, { sizes = {} } = {}) {
    const values = valuesOf(inputs);
    const shapes = this.#dims ? this.#openShapes(values, sizes) : MODEL.inputs.map((port) => port.shape);
    MODEL.inputs.forEach((port, i) => {
      const value = values[i];
      check(port, value, shapes[i]);
      if (!value.channels) {
        // Bits of the program are 0 and 1; those of a mask may be 255.
      this.#ports.inputs[i].set(port.type === "bool" ? value.data.map((bit) => bit && 1) : value.data);
        return;
      }
      const { buffer } = this.#exports.memory;
      new Uint8Array(buffer, this.#exports[`pixels${i}`].value, value.data.length).set(value.data);
      this.#exports[`image${i}`](value.channels, value.data.length / value.channels);
    });
    const status = this.#exports.run();
    if (status) {
      throw Object.assign(new ModelError(...(ERRORS[status] ?? [`the model returned the error ${status}`,
        "this is a fault of smelt", "report it with the model"])), { status });
    }
    const results = [];
    let at = MODEL.inputs.reduce((sum, port) => sum + port.shape.length, 0);
    MODEL.outputs.forEach((port, i) => {
      const shape = this.#dims ? [...this.#dims.subarray(at, at + port.shape.length)] : port.shape;
      at += port.shape.length;
      results.push([port.name, withShape(this.#ports.outputs[i].slice(0, lengthOf(port, shape)), [...shape])]);
    });
    return Object.fromEntries(results); // also a name that objects inherit, such as __proto__
  }

  /** The shapes of all inputs in a run with these values, after the sizes were found and checked. */
  #openShapes(values, given) {
    const found = sizesOf(values, given);
    MODEL.sizes.forEach(({ name, low, high }, i) => {
      const size = found[name];
      if (size === undefined) {
        throw new ModelError(`the size ${name} is not known`,
          "the lengths of the inputs do not determine it",
          `give shapes, as in { ids: { data, shape: [1, 8] } }, or run(inputs, { sizes: { ${name}: 8 } })`);
      }
      if (!Number.isInteger(size) || size < low || size > high) {
        throw new ModelError(`the size ${name}=${size} is not a whole number from ${low} to ${high}`,
          "memory is planned for the sizes that the model was compiled for",
          `give other inputs, or compile with --dim ${name}=LOW..HIGH`);
      }
      this.#sizes[i] = size;
    });
    this.#exports.shapes();
    let at = 0;
    return MODEL.inputs.map((port) => {
      const shape = [...this.#dims.subarray(at, at + port.shape.length)];
      at += port.shape.length;
      return shape;
    });
  }
}

/** The size of each symbol that the values determine, and of those that are given. */
function sizesOf(values, given) {
  const found = Object.assign(Object.create(null), given);
  for (const name of Object.keys(given)) {
    if (!MODEL.sizes.some((size) => size.name === name)) {
      const known = MODEL.sizes.map((size) => size.name).join(", ") || "none";
      throw new ModelError(`the model has no size ${name}`, `its sizes are ${known}`, "give sizes by these names");
    }
  }
  const note = ({ name, factor, offset }, dim) => { found[name] ??= (dim - offset) / factor; };
  for (const at of MODEL.sizes.flatMap((size) => size.at)) {
    const { shape } = values[at.input];
    if (shape && at.axis < shape.length) note(at, shape[at.axis]);
  }
  for (let before = -1; before < Object.keys(found).length;) {
    before = Object.keys(found).length;
    MODEL.inputs.forEach((port, input) => {
      const { data, shape } = values[input];
      if (shape || port.bits % 8) return;
      const dims = port.shape.map((dim, axis) => {
        if (typeof dim === "number") return dim;
        const at = solvable(input, axis);
        return at && found[at.name] !== undefined ? at.factor * found[at.name] + at.offset : undefined;
      });
      const open = dims.flatMap((dim, axis) => (dim === undefined ? [axis] : []));
      const at = open.length === 1 ? solvable(input, open[0]) : undefined;
      const rest = dims.reduce((product, dim) => product * (dim ?? 1), 1);
      if (!at || rest === 0) return;
      if (data.length % rest) {
        throw new ModelError(`input ${JSON.stringify(port.name)} has ${data.length} elements, which is no multiple of ${rest}`,
          `the model declares the shape [${port.shape.join(", ")}]`, `give a multiple of ${rest} elements`);
      }
      note(at, data.length / rest);
    });
  }
  return found;
}

/** The size that the dim determines, with factor and offset. */
const solvable = (input, axis) => MODEL.sizes.flatMap((size) => size.at)
  .find((at) => at.input === input && at.axis === axis);

/** Each input as { data, shape }, in order; shape is undefined if it is not given. */
function valuesOf(inputs) {
  const names = MODEL.inputs.map((port) => port.name);
  if (inputs === null || typeof inputs !== "object") {
    throw new ModelError("run takes an object with one array per input",
      `it got ${kindOf(inputs)}`, `call run({ ${names.join(", ")} })`);
  }
  for (const name of Object.keys(inputs)) {
    if (!names.includes(name)) {
      throw new ModelError(`the model has no input ${JSON.stringify(name)}`,
        `its inputs are ${names.map((each) => JSON.stringify(each)).join(", ")}`,
        "use one of these names");
    }
  }
  return MODEL.inputs.map((port) => {
    const value = port.name in Object.prototype && !Object.hasOwn(inputs, port.name) ? undefined : inputs[port.name];
    if (value === undefined || value === null) {
      if (port.default === undefined) {
        throw new ModelError(`there is no value for input ${JSON.stringify(port.name)}`,
          "the input has no default value", `give ${expected(port, port.shape)}`);
      }
      port.decoded ??= new ARRAYS[port.array](Uint8Array.from(atob(port.default), (c) => c.charCodeAt(0)).buffer);
      return { data: port.decoded, shape: port.shape };
    }
    const tensor = ArrayBuffer.isView(value) || value.data === undefined
      ? { data: value, shape: value.shape } : value;
    return port.image && isBytes(tensor.data) ? pixelsOf(port, tensor) : ofType(port, tensor);
  });
}

const isBytes = (data) => data instanceof Uint8Array || data instanceof Uint8ClampedArray;

/** Bytes of images with their channels, and the shape that they have in the model. */
function pixelsOf(port, value) {
  const { pixels, channels: own, shape } = port.image;
  const of = typeof ImageData !== "undefined" && value instanceof ImageData ? 4 : value.channels ?? own;
  const images = value.data.length / (pixels * of);
  if (![1, 3, 4].includes(of) || !Number.isInteger(images)) {
    throw new ModelError(`input ${JSON.stringify(port.name)} has ${value.data.length} bytes with ${of} channels`,
      `an image has ${pixels} pixels of 1, 3 or 4 channels`,
      "give an ImageData of that size, or { data, channels: 4 }");
  }
  return { data: value.data, channels: of, shape: [images, ...shape] };
}

/** The tensor, if its elements have the type of the port. */
function ofType(port, { data, shape }) {
  if (data instanceof ARRAYS[port.array] || (port.array === "Uint8Array" && isBytes(data))) return { data, shape };
  throw new ModelError(`input ${JSON.stringify(port.name)} must be ${expected(port, port.shape)}, not ${kindOf(data)}`,
    `the model declares the element type ${port.type}`,
    `give ${port.array}.from(values), of ${port.array.startsWith("Big") ? "BigInts" : "numbers"}`);
}

const kindOf = (value) => (value === null ? "null" : value?.constructor?.name ?? typeof value);
const expected = (port, shape) => `${port.array} [${shape.join(", ")}]`;

/** The number of elements of the array that holds a tensor of this shape. */
function lengthOf(port, shape) {
  const count = shape.reduce((product, dim) => product * dim, 1);
  return port.bits % 8 ? Math.ceil((count * port.bits) / 8) : count;
}

/** Throw unless the tensor has this shape of the port. */
function check(port, { data, channels, shape: given }, shape) {
  const what = `input ${JSON.stringify(port.name)} must be ${expected(port, shape)}`;
  const length = lengthOf(port, shape);
  if (!channels && data.length !== length) {
    throw new ModelError(`${what}, which is ${length} elements, not ${data.length}`,
      `the model declares the shape [${port.shape.join(", ")}]`, `give ${length} elements in row-major order`);
  }
  if (given && (given.length !== shape.length || shape.some((dim, i) => dim !== given[i]))) {
    throw new ModelError(`${what}, not [${[...given].join(", ")}]`,
      `the model declares the shape [${port.shape.join(", ")}]`, `give the shape [${shape.join(", ")}]`);
  }
}

const withShape = (data, shape) => Object.defineProperty(data, "shape", { value: shape });
