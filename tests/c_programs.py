"""C programs without a library around them: models run on given inputs, and say which is wrong.

They print nothing and call nothing of an operating system, so that they run on a bare machine, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from c_library import Library, random_inputs

from smelt.runtime.onnxruntime import OnnxRuntime

CNN = (
    "g (float[1,2,12,12] x, float[4,2,3,3] w, float[4] b, float[4,4,1,1] v, float[64,5] d) => (float[1,5] y) "
    "{ c = Conv<pads = [1,1,1,1]>(x, w, b) r = Relu(c) p = MaxPool<kernel_shape = [3,3], strides = [3,3]>(r) "
    "q = Conv(p, v) f = Flatten(q) m = MatMul(f, d) y = Softmax(m) }"
)
BLOCK = (
    "g (float[7,16] x, float[16,16] q, float[16,16] k, float[16] s) => (float[7,16] y, int64[7,1] n) "
    "{ a = MatMul(x, q) b = MatMul(x, k) t = Transpose(b) c = MatMul(a, t) p = Softmax(c) o = MatMul(p, x) "
    "h = Add(o, x) y = LayerNormalization(h, s) z = Cast<to = 7>(h) i = Constant<value_ints = [1]>() n = ReduceMax(z, i) }"
)
KINDS = {
    "cnn": CNN,
    "block": BLOCK,
    "heads": (
        "g (float[4,32,16] x, float[4,32,16] z) => (float[4,32,32] y) "
        "{ t = Transpose<perm = [0,2,1]>(z) y = MatMul(x, t) }"
    ),
    "depthwise": (
        "g (float[1,6,9,11] x, float[6,1,3,3] w, float[8,6,1,1] v) => (float[1,8,5,6] y) "
        "{ c = Conv<group = 6, strides = [2,2], pads = [1,1,1,1]>(x, w) h = HardSwish(c) y = Conv(h, v) }"
    ),
    "other convolutions": (
        "g (float[1,8,6,6] x, float[8,4,3,3] w, float[8,4,3,2] t, float[1,2,4,5,4] z, float[11,2,3,2,3] u) "
        "=> (float[1,8,6,6] a, float[1,8,A,B] b, float[1,11,2,4,2] d) { a = Conv<group = 2, pads = [2,2,2,2], dilations = [2,2]>(x, w) "
        "b = ConvTranspose<group = 2, strides = [2,3]>(x, t) d = Conv(z, u) }"
    ),
    "quantized": (
        "g (float[1,3,8,8] x, int8[4,3,3,3] w, int8[16,5] m) => (float[1,5] y) { s = Constant<value_float = 0.02>() "
        "z = Constant<value = int8 {3}>() o = Constant<value = int8 {0}>() p = Constant<value_float = 0.3>() q = QuantizeLinear(x, s, z) "
        "d = DequantizeLinear(q, s, z) e = DequantizeLinear(w, s, o) c = Conv<strides = [2,2]>(d, e) r = Relu(c) "
        "f = QuantizeLinear(r, s, z) g = DequantizeLinear(f, s, z) h = AveragePool<kernel_shape = [2,2]>(g) i = Flatten(h) "
        "j = DequantizeLinear(m, p, o) y = MatMul(i, j) }"
    ),
    "a loop": (
        "g (int64 n, bool c, float[3] x) => (float[3] o) { o = Loop(n, c, x) <body = b "
        "(int64 i, bool k, float[3] v) => (bool go, float[3] w) { go = Identity(k) a = Sin(v) w = Add(a, x) }> }"
    ),
    "lstm": (
        "g (float[4,3,2] x, float[1,20,2] w, float[1,20,5] r) => (float[A,B,C,D] y) "
        "{ y = LSTM<hidden_size = 5>(x, w, r) }"
    ),
    "half floats": (
        "g (float16[3,6] x, float16[6,4] w) => (float16[3,4] y) { m = MatMul(x, w) y = Relu(m) }"
    ),
    "doubles": "g (double[9,17] x, double[17,33] w) => (double[9,33] y) { y = MatMul(x, w) }",
    "axes at run time": (
        "g (float[3,2,3] x, int64[1] axes) => (float[3,2] y) "
        "{ a = ReduceSumSquare<keepdims = 0>(x, axes) y = Sqrt(a) }"
    ),
    "indexing": (
        "g (float[4,7,2] x, int64[1,4] i, float[1,4] u, float[4,4] z) => (float[4,4] s, int64[4,1,2] n, float[4,3,2] v, float[4,7,2] c) "
        "{ s = ScatterElements(z, i, u) n = ArgMax<axis = 1>(x) k = Constant<value_ints = [3]>() "
        "v, p = TopK<axis = 1>(x, k) a = Constant<value_int = 1>() c = CumSum(x, a) }"
    ),
    "resize": (
        "g (float[1,2,3,4] x) => (float[A,B,C,D] y) <float[4] s = {1,1,2,1.6}> "
        '{ y = Resize<mode = "linear">(x, , s) }'
    ),
}
"""Small models that together reach most kernels."""
CONSTANT = "w b v d q k s m r t u"
"""Those of their inputs that are weights, where they are floats or small integers."""

GIVEN = {"axes": np.array([2]), "c": np.array(True), "n": np.array(3)}
"""The inputs that decide what is run."""

MAIN = """
static int same(const unsigned char *got, const unsigned char *want, unsigned long bytes, int kind)
{
    for (unsigned long at = 0; at < bytes;) {
        double g = 0, w = 0;
        if (kind == 4) {
            float a, b;
            memcpy(&a, got + at, 4), memcpy(&b, want + at, 4);
            g = (double)a, w = (double)b, at += 4;
        } else if (kind == 8) {
            memcpy(&g, got + at, 8), memcpy(&w, want + at, 8), at += 8;
        } else {
            g = got[at], w = want[at], at += 1;
        }
        const double away = g < w ? w - g : g - w, size = w < 0 ? -w : w;
        if (!(away <= (kind ? 1e-5 + 1e-4 * size : 0)))
            return 0;
    }
    return 1;
}
"""


@dataclass(frozen=True)
class Run:
    """A model by its prefix, and the arrays that it takes and should return."""

    name: str
    inputs: Sequence[np.ndarray]
    outputs: Sequence[np.ndarray]


def runs_of(library: Library, names: Sequence[str]) -> list[Run]:
    """Each model on random inputs, with what ONNX Runtime returns."""
    found = []
    for name in names:
        built = library.models[name]
        inputs = random_inputs(built.source)
        ports = built.source.graph.inputs
        inputs = [GIVEN.get(str(p.name), a) for p, a in zip(ports, inputs, strict=True)]
        wanted = [np.asarray(each) for each in OnnxRuntime(built.source)(*inputs)]
        found.append(Run(built.function.removesuffix("_run"), inputs, wanted))
    return found


def main_of(runs: Sequence[Run], entry: str = "int main(void)") -> bytes:
    """A program that returns 0, or the number of the first of ``runs`` that is wrong, from 1."""
    lines = ["#include <string.h>", *(f'#include "{run.name}.h"' for run in runs), MAIN]
    arena = ", ".join(f"unsigned char {run.name}[{run.name.upper()}_ARENA_BYTES]" for run in runs)
    lines.append(
        f"static union {{ {arena.replace(', ', '; ')}; }} arena __attribute__((aligned(64)));"
    )
    body = []
    for number, run in enumerate(runs):
        inputs = [_bytes(lines, f"in{number}_{i}", a) for i, a in enumerate(run.inputs)]
        wanted = [_bytes(lines, f"want{number}_{i}", a) for i, a in enumerate(run.outputs)]
        results = [f"out{number}_{i}" for i in range(len(wanted))]
        for result, array in zip(results, run.outputs, strict=True):
            size = max(array.nbytes, 1)
            lines.append(f"static unsigned char {result}[{size}] __attribute__((aligned(8)));")
        body += [
            f"    {{\n        const void *in[] = {{{', '.join(inputs)}}};",
            f"        void *out[] = {{{', '.join(results)}}};",
            f"        if ({run.name}_run(in, out, &arena))\n            return {number + 1};\n    }}",
        ]
        for result, want, array in zip(results, wanted, run.outputs, strict=True):
            kind = array.itemsize if array.dtype in (np.float32, np.float64) else 0
            body.append(f"    if (!same({result}, {want}, {array.nbytes}, {kind}))")
            body.append(f"        return {number + 1};")
    lines += [entry, "{", *body, "    return 0;", "}", ""]
    return "\n".join(lines).encode()


def _bytes(lines: list[str], name: str, array: np.ndarray) -> str:
    data = np.ascontiguousarray(array).tobytes() or b"\0"
    text = ",".join(map(str, data))
    lines.append(f"static const unsigned char {name}[] __attribute__((aligned(8))) = {{{text}}};")
    return name


def files_of(library: Library, names: Sequence[str]) -> Mapping[str, bytes]:
    """The files of the models, and no other."""
    return {
        file: data
        for name in names
        for file, data in library.models[name].artifact.files.items()
        if file.endswith((".c", ".h"))
    }
