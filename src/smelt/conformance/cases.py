"""The models of the suite, one for each situation that a target may meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import onnx_ir as ir

from smelt.compiler import load
from smelt.ir import text

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Case:
    """A model as ONNX text, as a file or as a ModelProto, and the sizes or bounds of its dims.

    ``undefined`` marks a model with an operator that has no definition, which no target can run.
    ``steps``: by how many steps a quantized output may differ, because a target rounds ties
    otherwise than the source.
    """

    name: str
    graph: str | Path | onnx.ModelProto
    dims: Mapping[str, int | tuple[int, int]] = field(default_factory=dict)
    undefined: bool = False
    steps: int = 0

    def model(self) -> ir.Model:
        """Return a new copy of the model."""
        return text.parse(self.graph) if isinstance(self.graph, str) else load(self.graph)


def _graph(interface: str, body: str) -> str:
    """Return the ONNX text of a graph."""
    return f"g {interface} {{ {body} }}"


_W = "w = Constant<value = float[4,3] {1,2,3,-4,5,6,7,-8,9,1,0.5,-2}>()"
_SMALL = ",".join(str(7 * n % 11 - 5) for n in range(54))

CASES = (
    Case("identity", _graph("(float[2,3] x) => (float[2,3] y)", "y = Identity(x)")),
    Case("elementwise", _graph("(float[2,3] x) => (float[2,3] y)", "a = Exp(x) y = Tanh(a)")),
    Case(
        "broadcasting",
        _graph("(float[2,3] x, float[3] b) => (float[2,3] y)", "a = Add(x, b) y = Relu(a)"),
    ),
    Case(
        "a dense layer",
        _graph(
            "(float[5,4] x) => (float[5,3] y)",
            f"{_W} b = Constant<value = float[3] {{1,-1,0}}>() m = MatMul(x, w) y = Add(m, b)",
        ),
    ),
    Case(
        "a symbolic batch",
        _graph("(float[B,4] x) => (float[B,3] y)", f"{_W} m = MatMul(x, w) y = Relu(m)"),
    ),
    Case(
        "a bound batch",
        _graph("(float[B,4] x) => (float[B,3] y)", f"{_W} m = MatMul(x, w) y = Relu(m)"),
        {"B": 2},
    ),
    Case(
        "a batch within bounds",
        _graph("(float[B,4] x) => (float[B,3] y)", f"{_W} m = MatMul(x, w) y = Relu(m)"),
        {"B": (1, 5)},
    ),
    Case(
        "a convolution",
        _graph(
            "(float[1,1,5,5] x) => (float[1,2,3,3] y)",
            "w = Constant<value = float[2,1,3,3] "
            "{1,2,3,4,5,6,7,8,9,-1,-2,-3,-4,-5,-6,-7,-8,-9}>() c = Conv(x, w) y = Relu(c)",
        ),
    ),
    Case(
        "a value read twice and returned",
        _graph("(float[4] x) => (float[4] y, float[4] z)", "y = Neg(x) a = Abs(y) z = Mul(a, y)"),
    ),
    Case("an empty tensor", _graph("(float[0,3] x) => (float[0,3] y)", "y = Neg(x)")),
    Case("rank 0", _graph("(float x) => (float y)", "y = Neg(x)")),
    Case(
        "int8",
        _graph(
            "(float[1,2,6,6] x) => (float[1,3,4,4] y)",
            "s = Constant<value_float = 0.25>() z = Constant<value = int8 {-3}>() "
            "v = Constant<value_float = 0.5>() o = Constant<value = int8 {0}>() "
            f"w = Constant<value = int8[3,2,3,3] {{{_SMALL}}}>() q = QuantizeLinear(x, s, z) "
            "d = DequantizeLinear(q, s, z) e = DequantizeLinear(w, v, o) c = Conv(d, e) "
            "r = Relu(c) p = QuantizeLinear(r, v, z) y = DequantizeLinear(p, v, z)",
        ),
    ),
    Case(
        "an int8 dense layer",
        _graph(
            "(float[3,6] x) => (float[3,9] y)",
            "s = Constant<value_float = 0.25>() z = Constant<value = int8 {-3}>() "
            "v = Constant<value_float = 0.5>() o = Constant<value = int8 {0}>() "
            f"w = Constant<value = int8[6,9] {{{_SMALL}}}>() q = QuantizeLinear(x, s, z) "
            "d = DequantizeLinear(q, s, z) e = DequantizeLinear(w, v, o) m = MatMul(d, e) "
            "p = QuantizeLinear(m, v, z) y = DequantizeLinear(p, v, z)",
        ),
    ),
    Case(
        "fp16",
        _graph(
            "(float16[3,4] x, float16[4,5] w) => (float16[3,5] y)", "m = MatMul(x, w) y = Relu(m)"
        ),
    ),
    Case(
        "more than a scratchpad holds",
        _graph(
            "(float[1,8,64,64] x, float[8,8,3,3] w) => (float[1,8,64,64] y)",
            "a = Conv<pads = [1,1,1,1]>(x, w) r = Relu(a) b = Conv<pads = [1,1,1,1]>(r, w) "
            "y = Add(b, x)",
        ),
    ),
    Case(
        "a network with every category",
        _graph(
            "(float[1,2,8,8] x, float[4,2,3,3] w, float[4] g, float[32,5] d, int64[2] i) => "
            "(float[1,5] y, float[1,2] z, int64[1,1] n)",
            "h = Sigmoid(g) c = Conv<pads = [1,1,1,1]>(x, w, g) "
            "b = BatchNormalization(c, h, g, g, h) r = Relu(b) p = MaxPool<kernel_shape = [2,2], "
            "strides = [2,2]>(r) u = AveragePool<kernel_shape = [2,2], strides = [2,2]>(r) "
            "v = Add(p, u) t = Transpose<perm = [0,2,3,1]>(v) k = Concat<axis = 1>(t, t) "
            "s0 = Constant<value_ints = [0]>() s1 = Constant<value_ints = [2]>() "
            "e0 = Constant<value_ints = [1]>() l = Slice(k, s0, s1, e0) f = Flatten(l) "
            "m = MatMul(f, d) y = Softmax(m) z = Gather<axis = 1>(y, i) n = ArgMax<axis = 1>(y)",
        ),
    ),
    Case(
        "an operator nobody has",
        _graph("(float[4] x) => (float[4] y)", "y = nobody.Nothing(x)"),
        undefined=True,
    ),
)
