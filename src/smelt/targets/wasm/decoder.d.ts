export interface Sampling {
  /** 0 takes the most likely token. */
  temperature?: number;
  /** Keep the k most likely tokens; 0 keeps all. */
  topK?: number;
  /** Keep the fewest tokens whose probabilities sum to it. */
  topP?: number;
  /** Drop tokens less likely than this part of the most likely one. */
  minP?: number;
  repetitionPenalty?: number;
  /** Equal seeds draw equal tokens. */
  seed?: number | bigint;
}

export interface GenerateOptions extends Sampling {
  /** The most tokens to generate; 64 by default. */
  maxTokens?: number;
  /** The answer ends after one of these tokens. */
  stop?: Iterable<number>;
}

export interface Decoder {
  /** The most tokens that the caches hold. */
  readonly context: number;
  readonly vocabulary: number;
  /** Yield the new tokens after a prompt; earlier tokens are forgotten. */
  generate(ids: ArrayLike<number>, options?: GenerateOptions): AsyncGenerator<number, void, undefined>;
  reset(): void;
  sample(sampling?: Sampling): void;
  feed(ids: ArrayLike<number>): void;
  next(): number;
}

export type Source = string | URL | ArrayBuffer | ArrayBufferView | Response | WebAssembly.Module;
export interface LoadOptions {
  /** The file of weights, where it is not beside the module. */
  weights?: string | URL | ArrayBuffer | ArrayBufferView | Response | Promise<Response>;
}

export class ModelError extends Error {
  readonly what: string;
  readonly why: string;
  readonly fix: string;
}

/** True if this engine has 128-bit vectors. */
export function hasSimd(): boolean;
/** Load the decoder: from the files beside this module, or from `source`. */
export function load(source?: Source | Promise<Source>, options?: LoadOptions): Promise<Decoder>;
