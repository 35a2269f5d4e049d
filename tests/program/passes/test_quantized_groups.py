"""Groups between quantized numbers: what becomes one instruction on integers, and what does not."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import Library, compile_c, ops, with_values

from smelt.runtime.onnxruntime import OnnxRuntime

X = "q0 = QuantizeLinear(x, s, z) x0 = DequantizeLinear(q0, s, z) "
Y = "q9 = QuantizeLinear(y0, t, u) y = DequantizeLinear(q9, t, u) "
HEAD = "g (float[1,4,6,6] x, float s, {k} z, float t, {k} u{more}) => (float{shape} y) {{ "
W = ", int8[6,4,3,3] w, float[6] ws, int32[6] b, float[6] bs"
CONV = (
    "w0 = DequantizeLinear<axis=0>(w, ws) b0 = DequantizeLinear<axis=0>(b, bs) "
    "c = Conv<pads=[1,1,1,1]>(x0, w0, b0) "
)
M = ", int8[5,144] m, float ms, float[5] v"
GEMM = "f = Flatten(x0) m0 = DequantizeLinear(m, ms) y0 = Gemm<transB=1>(f, m0, v) "
R = ", int8[6,6] r"
BOTH = "q1 = QuantizeLinear(x, t, u) x1 = DequantizeLinear(q1, t, u) "

GROUPS = {
    "Conv": (W, "[1,6,6,6]", CONV + "y0 = Identity(c) ", "QLinearConv"),
    "Conv, Relu": (W, "[1,6,6,6]", CONV + "y0 = Relu(c) ", "QLinearConv Clip"),
    "Conv, Clip": (
        W,
        "[1,6,6,6]",
        CONV + "l = Constant<value_float=-0.7>() h = Constant<value_float=0.9>() "
        "y0 = Clip(c, l, h) ",
        "QLinearConv Clip",
    ),
    "Gemm": (M, "[1,5]", GEMM, "Reshape QLinearMatMul"),
    "Gemm, an integer bias of one scale": (
        M.replace("float[5] v", "int32[5] vi, float vs"),
        "[1,5]",
        "v = DequantizeLinear(vi, vs) " + GEMM,
        "Reshape QLinearMatMul",
    ),
    "Add": ("", "[1,4,6,6]", BOTH + "y0 = Add(x0, x1) ", "QuantizeLinear smelt::QuantizedAdd"),
    "Mul": ("", "[1,4,6,6]", BOTH + "y0 = Mul(x0, x1) ", "QuantizeLinear smelt::QuantizedMul"),
    "Concat": (
        "",
        "[1,8,6,6]",
        BOTH + "y0 = Concat<axis=1>(x0, x1) ",
        "QuantizeLinear smelt::Lookup Concat",
    ),
    "MaxPool": ("", "[1,4,3,3]", "y0 = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x0) ", "*"),
    "mean": ("", "[1,4,1,1]", "y0 = GlobalAveragePool(x0) ", "smelt::QuantizedMean"),
    "whole pool": (
        "",
        "[1,4,1,1]",
        "y0 = AveragePool<kernel_shape=[6,6]>(x0) ",
        "smelt::QuantizedMean",
    ),
    "Sigmoid": ("", "[1,4,6,6]", "y0 = Sigmoid(x0) ", "smelt::Lookup"),
    "a chain": (
        "",
        "[1,4,6,6]",
        "e = LeakyRelu<alpha=0.1>(x0) y0 = HardSwish(e) ",
        "smelt::Lookup",
    ),
    "constants": (
        "",
        "[1,4,6,6]",
        "h = Constant<value_float=-0.3>() t0 = Constant<value_float=1.7>() a = Add(h, x0) "
        "d = Div(a, t0) e = Erf(d) y0 = Sub(t0, e) ",
        "smelt::Lookup",
    ),
    "Softmax": ("", "[1,4,6,6]", "y0 = Softmax(x0) ", "smelt::QuantizedSoftmax"),
    "repeated": (
        R,
        "[1,4,6,6]",
        "r0 = DequantizeLinear(r, t) y0 = Add(x0, r0) ",
        "smelt::QuantizedAdd",
    ),
    "another scale": ("", "[1,4,6,6]", "y0 = Identity(x0) ", "smelt::Lookup"),
}
STEP = np.float32(0.02171)
"""Of results; no simple ratio to the other scale, which would put many on ties."""

KINDS = {"uint8": (120, 90), "int8": (-8, 5)}


def graph_of(name: str, kind: str) -> str:
    more, shape, body, _ = GROUPS[name]
    return HEAD.format(k=kind, more=more, shape=shape) + X + body + Y + "}"


def values_of(name: str, kind: str) -> dict[str, np.ndarray]:
    rng, (zero, other) = np.random.default_rng(0), KINDS[kind]
    steps = {"s": np.float32(0.02531), "z": np.asarray(zero, kind)}
    # Weights of seven bits: without VNNI, ONNX Runtime adds pairs of products in 16 bits.
    scales = rng.uniform(0.002, 0.004, 6).astype(np.float32)
    held = steps | {"t": STEP, "u": np.asarray(other, kind)}
    if "w" in GROUPS[name][0]:
        held |= {"w": rng.integers(-64, 65, (6, 4, 3, 3)).astype(np.int8), "ws": scales}
        held |= {"b": rng.integers(-3000, 3000, 6).astype(np.int32), "bs": scales * steps["s"]}
    if name == "repeated":
        held |= {"r": rng.integers(-100, 101, (6, 6)).astype(np.int8)}
    if "float ms" in GROUPS[name][0]:
        held |= {"m": rng.integers(-64, 65, (5, 144)).astype(np.int8), "ms": np.float32(0.002)}
        held |= {"v": rng.standard_normal(5).astype(np.float32)}
        held |= {"vi": rng.integers(-3000, 3000, 5).astype(np.int32)}
        held |= {"vs": held["ms"] * steps["s"]}
    return held


@pytest.fixture(scope="module", params=["integers", "fixed"])
def library(request: pytest.FixtureRequest) -> Library:
    keys = [(name, kind) for name in GROUPS for kind in KINDS]
    graphs = {f"{name} {kind}": graph_of(name, kind) for name, kind in keys}
    values = {f"{name} {kind}": values_of(name, kind) for name, kind in keys}
    return Library(graphs, values=values, quantized=request.param)


def image() -> np.ndarray:
    return np.random.default_rng(4).standard_normal((1, 4, 6, 6)).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", GROUPS)
def test_a_group_is_one_instruction_within_a_step(library: Library, name: str, kind: str) -> None:
    key = f"{name} {kind}"
    (got,) = library.run(key, [image()])
    (want,) = OnnxRuntime(library.models[key].source)(image())
    steps = np.abs(np.rint((got - want) / STEP))
    assert steps.max() <= 1
    assert steps.mean() < 0.02
    assert len(np.unique(want)) > 3
    wanted = GROUPS[name][3]
    if wanted != "*":
        inner = ops(library.models[key].artifact)[1:-1]
        assert inner == wanted.split()


def instructions(body: str, more: str = W, kind: str = "uint8", drop: str = "") -> list[str]:
    """What a graph becomes whose constants, but for those in ``drop``, are those of Conv."""
    shape = "[1,6,6,6]"
    graph = HEAD.format(k=kind, more=more, shape=shape) + X + body + "}"
    values = {n: a for n, a in values_of("Conv", "uint8").items() if n not in drop.split()}
    return ops(compile_c(with_values(graph, 23, values)))


def test_a_relu_that_the_type_implies_is_dropped() -> None:
    body = "n = Constant<value=uint8 {0}>() r = Relu(c) q9 = QuantizeLinear(r, t, n) "
    found = instructions(CONV + body + "y = DequantizeLinear(q9, t, n) ")
    assert found == ["QuantizeLinear", "QLinearConv", "DequantizeLinear"]


@pytest.mark.parametrize(
    ("body", "drop"),
    [
        (CONV + "y0 = Identity(c) " + Y.replace("y =", "d =") + "y = Add(c, d) ", ""),
        (CONV.replace("x0", "x") + "y0 = Identity(c) " + Y, ""),
        (CONV + "y0 = Identity(c) " + Y, "t"),
        (CONV + "y0 = Identity(c) " + Y, "w"),
        (CONV + "y0 = Identity(c) " + Y, "b"),
        (CONV + "y0 = Tanh(c) " + Y, ""),
    ],
    ids=["a sum that is read", "a float", "a scale", "weights", "a bias", "no bound"],
)
def test_other_convolutions_stay_in_floats(body: str, drop: str) -> None:
    """Sums that something else reads, operands not quantized, parameters that are computed."""
    found = instructions(body, drop=drop)
    assert "QLinearConv" not in found
    assert "Conv" in found


def test_a_number_that_is_none_becomes_the_lowest_byte(library: Library) -> None:
    x = image()
    x[0, 0, 0, 0] = np.nan
    (got,) = library.run("another scale uint8", [x])
    assert got[0, 0, 0, 0] == STEP * -90


def test_floats_stay_where_they_are_asked_for() -> None:
    graph = graph_of("another scale", "uint8").replace("Identity", "Tanh")
    model = with_values(graph, 23, values_of("another scale", "uint8"))
    artifact = compile_c(model, quantized="floats")
    assert "Tanh" in ops(artifact)
    codes = np.clip(np.rint(image() / np.float32(0.02531)) + 120, 0, 255) - 120
    real = np.tanh(codes.astype(np.float32) * np.float32(0.02531))
    want = (np.clip(np.rint(real / STEP) + 90, 0, 255) - 90).astype(np.float32) * STEP
    np.testing.assert_allclose(artifact(image())[0], want, atol=1e-6)
