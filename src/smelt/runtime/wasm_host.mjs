// Run a model for Python: requests on standard input, answers on standard output, each a length in
// four bytes, JSON, and the bytes of the arrays.
import { readSync, writeSync } from "node:fs";
import { pathToFileURL } from "node:url";

function read(count) {
  const bytes = Buffer.alloc(count);
  for (let at = 0; at < count;) {
    let got;
    try {
      got = readSync(0, bytes, at, count - at);
    } catch (error) {
      if (error.code === "EAGAIN") continue;
      if (error.code === "EOF") process.exit(0);
      throw error;
    }
    if (got === 0) process.exit(0);
    at += got;
  }
  return bytes;
}

function write(bytes) {
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(1, bytes, at);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}

function answer(message, ...arrays) {
  const text = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(4);
  head.writeUInt32LE(text.length);
  write(head);
  write(text);
  for (const array of arrays) write(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
}

let model;
try {
  const { load } = await import(pathToFileURL(process.argv[2]));
  model = await load();
  answer({ ready: true });
} catch (error) {
  answer({ error: String(error) });
  process.exit(1);
}
for (;;) {
  const asked = JSON.parse(read(read(4).readUInt32LE()));
  const inputs = Object.create(null); // one named __proto__ is an input, too
  asked.inputs.forEach(({ name, bytes, shape }, i) => {
    const { buffer } = new Uint8Array(read(bytes));
    inputs[name] = { data: new globalThis[model.inputs[i].array](buffer), shape };
  });
  try {
    const byName = await model.run(inputs, { sizes: asked.sizes });
    const results = model.outputs.map(({ name }) => byName[name]); // an object has numbers first
    answer({ outputs: results.map((array) => ({ bytes: array.byteLength, shape: array.shape })) }, ...results);
  } catch (error) {
    answer(error.status ? { status: error.status } : { error: String(error.stack) });
  }
}
