"""What hangs on one byte, by way of others, becomes one table."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import Library, ops

from smelt.runtime.onnxruntime import OnnxRuntime

HEAD = "g (float[3,40] x, float s, uint8 z, float t, int8 u) => (float[3,40] y) { "
X = "q0 = QuantizeLinear(x, s, z) x0 = DequantizeLinear(q0, s, z) "
Y = "q9 = QuantizeLinear(y0, t, u) y = DequantizeLinear(q9, t, u) }"
E = "e = Erf(x0) qe = QuantizeLinear(e, t, u) e0 = DequantizeLinear(qe, t, u) "
A = "o = Constant<value_float=1.0>() a = Add(e0, o) qa = QuantizeLinear(a, t, u) " + (
    "a0 = DequantizeLinear(qa, t, u) "
)
GRAPHS = {
    "a table of a table": (E + "y0 = Tanh(e0) ", ["smelt::Lookup"]),
    "a product of tables": (E + A + "y0 = Mul(x0, a0) ", ["smelt::Lookup"]),
    "a sum of tables": (E + A + "y0 = Add(e0, a0) ", ["smelt::Lookup"]),
    "a sum of tables of two scales": (
        E
        + A.replace("(a, t, u)", "(a, s, z)").replace("(qa, t, u)", "(qa, s, z)")
        + "y0 = Add(a0, e0) ",
        ["smelt::Lookup"],
    ),
    "another sum of tables of two scales": (
        E
        + A.replace("(a, t, u)", "(a, s, z)").replace("(qa, t, u)", "(qa, s, z)")
        + "y0 = Add(e0, a0) ",
        ["smelt::Lookup"],
    ),
    "exponentials of a table": (E + "y0 = Softmax(e0) ", ["smelt::QuantizedSoftmax"]),
    "a table read twice": (
        E + "m = Softmax(e0) qm = QuantizeLinear(m, t, u) m0 = DequantizeLinear(qm, t, u) "
        "y0 = Add(e0, m0) ",
        ["smelt::QuantizedSoftmax", "smelt::Lookup", "smelt::QuantizedAdd"],
    ),
}
SCALES = {"narrow": np.float32(0.02531), "wide": np.float32(0.7)}
STEP = np.float32(0.01171)


@pytest.fixture(scope="module")
def library() -> Library:
    keys = [(name, scale) for name in GRAPHS for scale in SCALES]
    held = {"z": np.uint8(117), "t": STEP, "u": np.int8(3)}
    return Library(
        {f"{name} {scale}": HEAD + X + GRAPHS[name][0] + Y for name, scale in keys},
        values={f"{name} {scale}": {"s": SCALES[scale], **held} for name, scale in keys},
    )


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", GRAPHS)
def test_the_numbers_are_those_of_the_floats_within_a_step(
    library: Library, name: str, scale: str
) -> None:
    key = f"{name} {scale}"
    x = np.random.default_rng(0).normal(0, min(50 * SCALES[scale], 2), (3, 40)).astype(np.float32)
    (got,) = library.run(key, [x])
    (want,) = OnnxRuntime(library.models[key].source)(x)
    assert np.abs(np.rint((got - want) / STEP)).max() <= 1
    assert len(np.unique(want)) > 3
    assert ops(library.models[key].artifact)[1:-1] == GRAPHS[name][1]


def test_a_softmax_of_a_wide_range_starts_from_the_largest_byte() -> None:
    """Exponentials of the whole range of bytes would be no normal floats."""
    body = HEAD + X + "y0 = Softmax(x0) " + Y
    held = {"s": np.float32(0.9), "z": np.uint8(0), "t": np.float32(1 / 256), "u": np.int8(-128)}
    library = Library({"wide": body}, values={"wide": held})
    x = np.random.default_rng(0).uniform(0, 9, (3, 40)).astype(np.float32)
    (got,) = library.run("wide", [x])
    (want,) = OnnxRuntime(library.models["wide"].source)(x)
    assert np.abs(got - want).max() <= 1 / 256
    assert want.max() > 0.2
