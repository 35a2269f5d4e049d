/** An array, or an array with the shape that its length does not tell. */
export type Tensor<A> = A | { data: A; shape: readonly number[] };
/** Images as bytes, row by row: of a canvas, or with as many channels as the model's. */
export type Pixels = ImageData | Uint8Array | Uint8ClampedArray
  | { data: Uint8Array | Uint8ClampedArray; channels: 1 | 3 | 4 };
/** An array with its shape. */
export type Result<A> = A & { readonly shape: readonly number[] };

export interface Inputs {
/* inputs */
}

export interface Outputs {
/* outputs */
}

export interface Port {
  readonly name: string;
  readonly type: string;
  /** The typed array that holds its elements. */
  readonly array: string;
  readonly shape: readonly (number | string)[];
}

export interface RunOptions {
  /** Sizes that shapes and lengths of inputs do not determine. */
  sizes?: Record<string, number>;
}

export interface Model {
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  run(inputs: Inputs, options?: RunOptions): Promise<Outputs>;
  runSync(inputs: Inputs, options?: RunOptions): Outputs;
}

export interface WorkerModel {
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  run(inputs: Inputs, options?: RunOptions): Promise<Outputs>;
  close(): void;
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
/** Load the model: from the files beside this module, or from `source`. */
export function load(source?: Source | Promise<Source>, options?: LoadOptions): Promise<Model>;
/** Load the model in a Web Worker, so that runs do not block the page. */
export function loadInWorker(source?: string | URL | ArrayBuffer, options?: LoadOptions): Promise<WorkerModel>;
