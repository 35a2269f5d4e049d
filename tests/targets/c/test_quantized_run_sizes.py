"""Quantized models of open sizes compute in integers, with the bits of models of fixed sizes."""

from __future__ import annotations

import numpy as np
import pytest
from sized_library import Sized, SizedLibrary

import smelt
from smelt.program.quantized import ADD, MEAN, SOFTMAX
from smelt.runtime.onnxruntime import OnnxRuntime

SCALES = "float s = {0.03}, uint8 z = {120}, float ws = {0.01}, int8 wz = {0}"
NETWORK = (
    "g (float[N,3,8,8] x, int8[4,3,3,3] w, int8[4,1,3,3] d, int8[4,24] m) => (float[N,24] y) "
    f"<{SCALES}, float t = {{0.00392}}, uint8 zero = {{0}}> {{ "
    "q0 = QuantizeLinear(x, s, z) x0 = DequantizeLinear(q0, s, z) v0 = DequantizeLinear(w, ws, wz) "
    "c0 = Conv<pads=[1,1,1,1]>(x0, v0) r0 = Relu(c0) "
    "q1 = QuantizeLinear(r0, s, z) x1 = DequantizeLinear(q1, s, z) v1 = DequantizeLinear(d, ws, wz) "
    "c1 = Conv<pads=[1,1,1,1],group=4>(x1, v1) q2 = QuantizeLinear(c1, s, z) "
    "x2 = DequantizeLinear(q2, s, z) a = Add(x1, x2) q3 = QuantizeLinear(a, s, z) "
    "x3 = DequantizeLinear(q3, s, z) p = GlobalAveragePool(x3) q4 = QuantizeLinear(p, s, z) "
    "x4 = DequantizeLinear(q4, s, z) f = Flatten(x4) v2 = DequantizeLinear(m, ws, wz) "
    "h = MatMul(f, v2) q5 = QuantizeLinear(h, s, z) x5 = DequantizeLinear(q5, s, z) "
    "e = Softmax<axis=-1>(x5) q6 = QuantizeLinear(e, t, zero) y = DequantizeLinear(q6, t, zero) }"
)
QLINEAR = (
    "g (uint8[N,S,20] a, int8[20,9] b, int8[9] bz) => (uint8[N,S,9] y, int32[N,S,9] i) "
    f"<{SCALES}, float t = {{0.4}}> {{ y = QLinearMatMul(a, s, z, b, ws, wz, t, z) "
    "i = MatMulInteger(a, b, z) }"
)
DYNAMIC = (
    "g (float[N,S,20] x, uint8[20,9] b, float bs, uint8 bz) => (float[N,S,9] y) { "
    "q, s, z = DynamicQuantizeLinear(x) i = MatMulInteger(q, b, z, bz) f = Cast<to=1>(i) "
    "k = Mul(s, bs) y = Mul(f, k) }"
)
RNG = np.random.default_rng(0)


def small(*shape: int) -> np.ndarray:
    """Return bytes of which no two products exceed 16 bits; without VNNI, ONNX Runtime is exact
    only for those.
    """
    return RNG.integers(-60, 61, shape).astype(np.int8)


OPEN, ROWS = {"N": (1, 16)}, {"N": (1, 5), "S": (1, 7)}
MODELS = {
    "network": Sized(
        NETWORK, OPEN, {"w": small(4, 3, 3, 3), "d": small(4, 1, 3, 3), "m": small(4, 24)}
    ),
    "products": Sized(QLINEAR, ROWS, {"b": small(20, 9), "bz": np.zeros(9, np.int8)}),
    "dynamic": Sized(
        DYNAMIC,
        ROWS,
        {
            "b": small(20, 9).view(np.uint8),
            "bs": np.asarray(0.02, np.float32),
            "bz": np.asarray(128, np.uint8),
        },
    ),
}
MODELS["scales of an open axis"] = Sized(
    "g (float[3,N] x, float[N] s, uint8[N] z) => (uint8[3,N] y, float[3,N] d) "
    "<float c = {3}> { k = Add(s, c) y = QuantizeLinear<axis=1>(x, k, z) d = DequantizeLinear<axis=1>(y, k, z) }",
    {"N": (2, 6)},
)
INTEGERS = {
    "scales of an open axis": {"QuantizeLinear", "DequantizeLinear"},
    "network": {"QLinearConv", "QLinearMatMul", ADD, MEAN, SOFTMAX},
    "products": {"QLinearMatMul", "MatMulInteger"},
    "dynamic": {"DynamicQuantizeLinear", "MatMulInteger"},
}


@pytest.fixture(scope="module")
def library() -> SizedLibrary:
    return SizedLibrary(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_the_bits_are_those_of_fixed_sizes(library: SizedLibrary, name: str) -> None:
    model = MODELS[name].model
    for sizes in MODELS[name].trials(count=1):
        inputs = library.inputs(name, sizes)
        expected = smelt.compile(model, target="c", dims=sizes)(*inputs)
        for mine, theirs in zip(library.run(name, *inputs), expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", ["products", "dynamic", "scales of an open axis"])
def test_the_bits_are_those_of_onnx_runtime(library: SizedLibrary, name: str) -> None:
    reference = OnnxRuntime(MODELS[name].model)
    for sizes in MODELS[name].trials():
        inputs = library.inputs(name, sizes)
        for mine, theirs in zip(library.run(name, *inputs), reference(*inputs), strict=True):
            np.testing.assert_array_equal(mine, np.asarray(theirs))


@pytest.mark.parametrize("name", MODELS)
def test_kernels_are_those_of_integers(library: SizedLibrary, name: str) -> None:
    computed = {step.op for step in library.artifacts[name].plan.steps.instructions}
    assert computed >= INTEGERS[name]
    assert not computed & {"Conv", "DotGeneral", "ReduceMean", "Softmax"}


def test_a_convolution_of_open_images_is_computed_in_floats() -> None:
    """The integer kernel needs the layout of the images before the run."""
    graph = (
        f"g (uint8[N,3,H,8] x, int8[4,3,3,3] w) => (uint8[N,4,H,8] y) <{SCALES}> "
        "{ y = QLinearConv<pads=[1,1,1,1]>(x, s, z, w, ws, wz, s, z) }"
    )
    model = Sized(graph, {"N": (1, 3), "H": (1, 9)}, {"w": small(4, 3, 3, 3)})
    artifact = model.compile()
    x = RNG.integers(0, 256, (2, 3, 5, 8)).astype(np.uint8)
    (expected,) = OnnxRuntime(model.model)(x)
    np.testing.assert_array_equal(artifact(x)[0], np.asarray(expected))
