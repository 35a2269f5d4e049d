"""Quantized operators: the bits of ONNX Runtime, in C and on the host."""

import numpy as np
import onnx_ir as ir
import pytest
from c_library import Library

import smelt
from smelt.ir import text
from smelt.runtime.onnxruntime import OnnxRuntime

Q = "g (float[4,6] x, {s} s, {t} z) => ({u}[4,6] y) {{ y = QuantizeLinear<{a}>(x, s, z) }}"
CONV = (
    "g (uint8[1,{c},7,7] x, {w}[6,{k},3,3] w, float[6] ws, {w}[6] wz, int32[6] b) => "
    "(uint8[1,6,7,7] y) {{ xs = Constant<value_float=0.03>() "
    "xz = Constant<value=uint8 {{120}}>() ys = Constant<value_float={ys}>() "
    "yz = Constant<value=uint8 {{90}}>() "
    "y = QLinearConv<pads=[1,1,1,1], group={g}>(x, xs, xz, w, ws, wz, ys, yz, b) }}"
)
GRAPHS = {
    "a tensor": Q.format(s="float", t="uint8", u="uint8", a="axis=1"),
    "an axis": Q.format(s="float[6]", t="int8[6]", u="int8", a="axis=-1"),
    "blocks": Q.format(s="float[4,2]", t="int8[4,2]", u="int8", a="axis=1, block_size=3"),
    "blocks back": (
        "g (int8[4,6] x, float[4,2] s, int8[4,2] z) => (float[4,6] y) "
        "{ y = DequantizeLinear<axis=1, block_size=3>(x, s, z) }"
    ),
    "16 bits": Q.format(s="float", t="uint16", u="uint16", a="axis=0"),
    "back": (
        "g (uint8[4,6] x, float[4] s, uint8[4] z) => (float[4,6] y) "
        "{ y = DequantizeLinear<axis=0>(x, s, z) }"
    ),
    "dynamic": (
        "g (float[4,6] x) => (uint8[4,6] y, float s, uint8 z) "
        "{ y, s, z = DynamicQuantizeLinear(x) }"
    ),
    "conv": CONV.format(c=2, k=2, w="int8", g=1, ys=0.9),
    "depthwise": CONV.format(c=6, k=1, w="int8", g=6, ys=0.2),
    "a long sum": CONV.format(c=60, k=60, w="uint8", g=1, ys=9.0),
    "matmul": (
        "g (uint8[5,40] a, int8[40,6] b, float[6] bs, int8[6] bz) => (uint8[5,6] y) "
        "{ s = Constant<value_float=0.02>() z = Constant<value=uint8 {110}>() "
        "t = Constant<value_float=0.4>() y = QLinearMatMul(a, s, z, b, bs, bz, t, z) }"
    ),
    "conv integer": (
        "g (uint8[1,3,6,6] x, uint8[4,3,3,3] w, uint8 z) => (int32[1,4,4,4] y) "
        "{ y = ConvInteger(x, w, z) }"
    ),
}
"""Models of which each is one operator; ``dynamic`` is a function body of others."""

PLAIN = sorted(GRAPHS.keys() - {"dynamic"})


def inputs_of(name: str) -> list[np.ndarray]:
    """Signed weights have seven bits: without VNNI, ONNX Runtime adds pairs of products of uint8
    and int8 in 16 bits, which larger ones overflow."""
    rng, found = np.random.default_rng(0), []
    for value in text.parse(GRAPHS[name], 23).graph.inputs:
        dtype, shape = np.dtype(value.dtype.numpy()), tuple(value.shape.numpy())
        if value.name in ("s", "ws", "bs"):
            array = rng.uniform(0.01, 0.05, shape)
        elif value.name == "wz" and dtype == np.int8:
            array = np.zeros(shape)
        elif value.name in ("z", "bz", "wz"):
            # ONNX Runtime wants one zero point of weights for all channels.
            array = np.broadcast_to(rng.integers(1, 60, (*shape[:-1], 1)[: len(shape)]), shape)
        elif dtype.kind == "f":
            array = rng.standard_normal(shape) * 2
        elif dtype == np.int8:
            array = rng.integers(-64, 64, shape)
        else:
            array = rng.integers(0, min(np.iinfo(dtype).max, 5000) + 1, shape)
        found.append(np.asarray(array, dtype))
    return found


def wanted(name: str, given: list[np.ndarray]) -> list[np.ndarray]:
    return [np.asarray(v) for v in OnnxRuntime(text.parse(GRAPHS[name], 23))(*given)]


@pytest.fixture(scope="module")
def library() -> Library:
    return Library({name: GRAPHS[name] for name in PLAIN})


@pytest.mark.parametrize("name", PLAIN)
def test_c_gives_the_bits(library: Library, name: str) -> None:
    given = inputs_of(name)
    for got, want in zip(library.run(name, given), wanted(name, given), strict=True):
        np.testing.assert_array_equal(got, want)
        assert len(np.unique(want)) > 6


@pytest.mark.parametrize("name", GRAPHS)
def test_the_host_gives_the_bits(name: str) -> None:
    given = inputs_of(name)
    got = smelt.compile(text.parse(GRAPHS[name], 23), target="host")(*given)
    for result, want in zip(got, wanted(name, given), strict=True):
        np.testing.assert_array_equal(result, want)


def test_ties_round_to_even_and_overflow_is_clamped(library: Library) -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e30, -1e30, np.inf, -np.inf, 300, 254.5, 255.5])
    x = np.resize(x, (4, 6)).astype(np.float32)
    given = [x, np.float32(1), np.uint8(0)]
    (got,) = library.run("a tensor", [np.asarray(a) for a in given])
    np.testing.assert_array_equal(got, np.clip(np.rint(x), 0, 255).astype(np.uint8))


NETWORK = (
    "g (float[1,3,8,8] x, int8[4,3,3,3] w, float[4] ws, int8[4,1,3,3] d, float[4] ds, "
    "int8[4,5] m, float ms) => (float[1,5] y) {{ "
    "s = Constant<value_float=0.03>() z = Constant<value={t} {{{z}}}>() "
    "q0 = QuantizeLinear(x, s, z) x0 = DequantizeLinear(q0, s, z) "
    "w0 = DequantizeLinear<axis=0>(w, ws) c0 = Conv<pads=[1,1,1,1]>(x0, w0) r0 = Relu(c0) "
    "q1 = QuantizeLinear(r0, s, z) x1 = DequantizeLinear(q1, s, z) "
    "d0 = DequantizeLinear<axis=0>(d, ds) c1 = Conv<pads=[1,1,1,1], group=4>(x1, d0) "
    "q2 = QuantizeLinear(c1, s, z) x2 = DequantizeLinear(q2, s, z) p = GlobalAveragePool(x2) "
    "f = Flatten(p) m0 = DequantizeLinear(m, ms) y = MatMul(f, m0) }}"
)


@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize(("dtype", "zero"), [("uint8", 100), ("int8", -10)])
def test_a_network_between_quantizers(target: str, dtype: str, zero: int) -> None:
    """Weights of one scale a channel; within a step of the last quantizer."""
    model = text.parse(NETWORK.format(t=dtype, z=zero), 23)
    rng = np.random.default_rng(2)
    given = []
    for value in list(model.graph.inputs):
        shape, kind = value.shape.numpy(), value.dtype.numpy()
        scale = value.name != "x" and kind == np.float32
        array = rng.uniform(0.005, 0.01, shape) if scale else rng.standard_normal(shape)
        array = rng.integers(-127, 128, shape) if kind == np.int8 else array
        if value.name == "x":
            given = [array.astype(kind)]
            continue
        model.graph.inputs.remove(value)
        value.const_value = ir.Tensor(np.asarray(array, kind), name=value.name)
        model.graph.register_initializer(value)
    (want,) = (np.asarray(v) for v in OnnxRuntime(model.clone())(*given))
    (got,) = smelt.compile(model, target=target)(*given)
    np.testing.assert_allclose(got, want, atol=0.03 * 127 * 0.01 * 4 / 64)
    assert np.abs(want).max() > 0.01
