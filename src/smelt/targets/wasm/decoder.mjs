const ERRORS = {
  802: ["an option of generate has a wrong value",
    "temperature and topK are 0 or more, topP and minP probabilities, repetitionPenalty above 0",
    "generate(ids, { temperature: 0.8, topK: 40, seed: 0 })"],
  803: ["the prompt is empty or has a number that is no token",
    `tokens are whole numbers from 0 to ${MODEL.vocabulary - 1}`, "give one token or more"],
  806: [`the decoder has room for ${MODEL.context} tokens`,
    "prompt and new tokens, but for the last one, are kept in its caches",
    "ask for fewer tokens, or compile with a larger --context"],
};

function ensure(status) {
  if (status) {
    throw Object.assign(new ModelError(...(ERRORS[status] ?? [`the decoder returned the error ${status}`,
      "this is a fault of smelt", "report it with the model"])), { status });
  }
}

/** Load the decoder: from the files beside this one, or from `source`. */
export async function load(source, options = {}) {
  return new Decoder(await instantiated(source, options));
}

class Decoder {
  #exports; #turn = 0;

  constructor(exports) {
    this.#exports = exports;
    this.context = MODEL.context;
    this.vocabulary = MODEL.vocabulary;
    ensure(exports.start());
  }

  /** Forget all tokens. */
  reset() {
    ensure(this.#exports.reset());
  }

  /** Read tokens: a prompt, or a further part of a conversation. */
  feed(ids) {
    const tokens = Array.from(ids, Number);
    if (tokens.length > MODEL.context) ensure(806);
    if (!tokens.every((id) => Number.isInteger(id) && id >= 0 && id < MODEL.vocabulary)) ensure(803);
    new Int32Array(this.#exports.memory.buffer, this.#exports.prompt.value, MODEL.context).set(tokens);
    ensure(this.#exports.feed(tokens.length));
  }

  /** Choose the next token. */
  next() {
    const token = this.#exports.next();
    if (token < 0) ensure(-token);
    return token;
  }

  /** Set how tokens are chosen. */
  sample({ temperature = 0, topK = 0, topP = 1, minP = 0, repetitionPenalty = 1, seed = 0 } = {}) {
    const bits = BigInt.asUintN(64, BigInt(seed));
    ensure(this.#exports.sample(temperature, topK, topP, minP, repetitionPenalty,
      Number(bits & 0xffffffffn), Number(bits >> 32n)));
  }

  /** Yield the new tokens after the prompt, each as soon as it is known. */
  async *generate(ids, { maxTokens = 64, stop = [], ...sampling } = {}) {
    const turn = ++this.#turn, ended = new Set(stop);
    if (ids.length + maxTokens - 1 > MODEL.context) ensure(806);
    this.reset();
    this.sample(sampling);
    this.feed(ids);
    for (let count = 0; count < maxTokens; ++count) {
      if (turn !== this.#turn) {
        throw new ModelError("another call of generate began", "a decoder keeps one sequence",
          "end the first loop before, or load a second decoder");
      }
      const token = this.next();
      yield token;
      if (ended.has(token)) return;
      await new Promise((resolve) => setTimeout(resolve)); // lets a page draw the token
    }
  }
}
