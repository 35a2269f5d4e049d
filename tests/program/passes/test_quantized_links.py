"""What one byte makes by any elementwise operator of one number is a table of 256."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from c_library import Library, ops

from smelt.program.passes.quantized_links import UNARY
from smelt.runtime.onnxruntime import OnnxRuntime

HEAD = "g (float[3,40] x, float s, uint8 z, float t, int8 u) => (float[3,40] y) { "
X = "q0 = QuantizeLinear(x, s, z) x0 = DequantizeLinear(q0, s, z) "
Y = "q9 = QuantizeLinear(y0, t, u) y = DequantizeLinear(q9, t, u) }"
STEP = np.float32(0.03171)
ATTRIBUTES = {
    "Gelu": '<approximate="tanh">',
    "LeakyRelu": "<alpha=0.3>",
    "Shrink": "<lambd=0.4, bias=0.1>",
    "Swish": "<alpha=1.5>",
    "ThresholdedRelu": "<alpha=0.6>",
}
WITHIN = {
    **dict.fromkeys(("Acos", "Asin", "Atanh"), (-0.97, 0.97)),
    **dict.fromkeys(("Log", "Reciprocal", "Sqrt"), (0.3, 3.0)),
    "Acosh": (1.1, 3.0),
    "Tan": (-1.4, 1.4),
}
"""Numbers for which an operator has a result."""
OF_FLOATS = sorted(UNARY - {"BitwiseNot"})
CALLS = {name: f"y0 = {name}{ATTRIBUTES.get(name, '')}(x0) " for name in OF_FLOATS} | {
    "Clip from -1": "a = Constant<value_float=-1.0>() y0 = Clip(x0, a) ",
    "Clip to 2": "b = Constant<value_float=2.0>() y0 = Clip(x0, , b) ",
    "Clip from -1 to 2": "a = Constant<value_float=-1.0>() b = Constant<value_float=2.0>() "
    "y0 = Clip(x0, a, b) ",
}


@pytest.fixture(scope="module")
def library() -> Library:
    # A step of 1/85 stands for numbers of 3 at most; 85 of them are 1.
    held = {"s": np.float32(1 / 42), "z": np.uint8(117), "t": STEP, "u": np.int8(3)}
    newest = onnx.defs.onnx_opset_version()
    return Library(
        {name: HEAD + X + call + Y for name, call in CALLS.items()},
        values=dict.fromkeys(CALLS, held),
        opset=min(newest, 24),
    )


@pytest.mark.parametrize("name", CALLS)
def test_it_is_one_table_whose_numbers_are_those_of_the_floats_within_a_step(
    library: Library, name: str
) -> None:
    low, high = WITHIN.get(name, (-2.7, 2.7))
    x = np.random.default_rng(0).uniform(low, high, (3, 40)).astype(np.float32)
    (got,) = library.run(name, [x])
    (want,) = OnnxRuntime(library.models[name].source)(x)
    assert np.abs(np.rint((got - want) / STEP)).max() <= 1
    assert ops(library.models[name].artifact)[1:-1] == ["smelt::Lookup"]
