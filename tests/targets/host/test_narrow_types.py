"""8-bit floats, and 4-bit and 2-bit numbers, give the results of ONNX's reference on both engines."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import smelt
from smelt.targets.registry import find_target

FLOATS = ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ")
EXTREMES = np.array([[1.5, -2, 1e6, np.nan], [np.inf, -np.inf, -0.0, 0.01]], np.float32)


def model(graph: str, **weights: onnx.TensorProto) -> onnx.ModelProto:
    parsed = onnx.parser.parse_graph(graph)
    for name, tensor in weights.items():
        tensor.name = name
        parsed.initializer.append(tensor)
    return helper.make_model(parsed, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


def check(proto: onnx.ModelProto, *inputs: np.ndarray) -> None:
    names = [value.name for value in proto.graph.input]
    with np.errstate(all="ignore"):
        wanted = ReferenceEvaluator(proto).run(None, dict(zip(names, inputs, strict=True)))
    for engine in ("numpy", "native"):
        for got, want in zip(
            smelt.compile(proto, target="host", engine=engine)(*inputs), wanted, strict=True
        ):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("name", FLOATS)
def test_casts_round_and_saturate(name: str, saturate: int) -> None:
    to = getattr(TensorProto, name)
    body = f"t = Cast<to={to},saturate={saturate}>(x) y = Cast<to=1>(t) z = Identity(t)"
    graph = f"g (float[2,4] x) => (float[2,4] y, {name.lower()}[2,4] z) {{ {body} }}"
    check(model(graph), EXTREMES)


@pytest.mark.parametrize("name", FLOATS)
def test_arithmetic_is_that_of_float32_rounded(name: str) -> None:
    to = getattr(TensorProto, name)
    body = f"t = Cast<to={to}>(x) u = Transpose(t) v = Cast<to=1>(u) w = Add(v, v)"
    graph = (
        f"g (float[2,4] x) => (float[4,2] y) {{ {body} s = Cast<to={to}>(w) y = Cast<to=1>(s) }}"
    )
    check(model(graph), EXTREMES)


@pytest.mark.parametrize("name", FLOATS)
def test_quantized_to_floats(name: str) -> None:
    zero = helper.make_tensor("z", getattr(TensorProto, name), [], [0])
    body = "t = QuantizeLinear(x, s, z) y = DequantizeLinear(t, s)"
    graph = f"g (float[2,4] x, float s) => (float[2,4] y) {{ {body} }}"
    check(model(graph, z=zero), np.nan_to_num(EXTREMES), np.float32(0.5))


@pytest.mark.parametrize(("name", "least"), [("INT4", -8), ("UINT4", 0), ("INT2", -2)])
def test_weights_of_few_bits(name: str, least: int) -> None:
    count = -2 * least or 16
    numbers = [least + i % count for i in range(16)]
    weight = helper.make_tensor("q", getattr(TensorProto, name), [4, 4], numbers)
    body = "t = Transpose(q) w = DequantizeLinear<axis=1>(t, s) y = MatMul(x, w)"
    graph = f"g (float[2,4] x, float[4] s) => (float[2,4] y) {{ {body} }}"
    opset = 25 if name == "INT2" else 23
    proto = model(graph, q=weight)
    proto.opset_import[0].version = opset
    check(proto, np.eye(2, 4, dtype=np.float32), np.arange(1, 5, dtype=np.float32))


SMALL = ("INT4", "UINT4", "INT2", "UINT2", "FLOAT4E2M1", "FLOAT8E8M0")
NUMBERS = np.array([[0, 1, 2, 3, 1.3], [-0.0, 0.6, 2.5, 1, 3]], np.float32)


@pytest.mark.parametrize("name", SMALL)
def test_sub_byte_inputs_and_outputs(name: str) -> None:
    """Rows of 5 elements do not fill whole bytes; the compiled program takes and returns packed
    ones.
    """
    to, small = getattr(TensorProto, name), name.lower()
    body = f"t = Cast<to={to}>(x) u = Transpose(t) v = Transpose(p) y = Cast<to=1>(u) "
    body += "z = Reshape(v, s)"
    head = f"g (float[2,5] x, {small}[2,5] p) => ({small}[2,5] t, float[5,2] y, {small}[10] z)"
    proto = model(f"{head} <int64[1] s = {{-1}}> {{ {body} }}")
    proto.opset_import[0].version = 25
    given = np.abs(NUMBERS)[::-1].astype(onnx_ir.DataType[name].numpy())
    results = {
        engine: smelt.compile(proto, target="host", engine=engine)(NUMBERS, given)
        for engine in ("numpy", "native")
    }
    results["c"] = smelt.compile(proto, target="c")(NUMBERS, given)
    moved = given.T.astype(np.float32)
    for t, y, z in results.values():
        assert t.dtype == z.dtype == given.dtype
        np.testing.assert_array_equal(t.T.astype(np.float32), y)
        np.testing.assert_array_equal(y, results["c"][1])
        np.testing.assert_array_equal(z.astype(np.float32), moved.reshape(-1))


def test_powers_of_two_round_up() -> None:
    """The default of ``round_mode``; the sign is dropped, and infinities become NaN."""
    x = np.float32([0, 3, 4, -5, 1e-45, 3.4e38, np.inf, np.nan])
    body = "t = Cast<to=24>(x) y = Cast<to=1>(t) u = Cast<to=24,saturate=0>(x) z = Cast<to=1>(u)"
    proto = model(f"g (float[8] x) => (float[8] y, float[8] z) {{ {body} }}")
    proto.opset_import[0].version = 24
    least, most = 2.0**-127, 2.0**127
    for engine in ("numpy", "native"):
        y, z = smelt.compile(proto, target="host", engine=engine)(x)
        lead = [least, 4, 4, 8, 2 * least]
        np.testing.assert_array_equal(y, np.float32([*lead, most, np.nan, np.nan]))
        np.testing.assert_array_equal(z, np.float32([*lead, np.nan, np.nan, np.nan]))


def test_the_types_of_host_are_those_of_c() -> None:
    assert find_target("host").limits.dtypes == find_target("c").limits.dtypes


def test_bits_of_4_are_not_read_as_bits_of_8() -> None:
    source = (
        "g (float[2] x) => (float[2] y) { u = BitCast<to=21>(q) w = Cast<to=1>(u) y = Add(x, w) }"
    )
    proto = model(source, q=helper.make_tensor("q", TensorProto.INT4, [2], [-1, 3]))
    proto.opset_import[0].version = 26
    for engine in ("numpy", "native"):
        (y,) = smelt.compile(proto, target="host", engine=engine)(np.zeros(2, np.float32))
        np.testing.assert_array_equal(y, np.float32([15, 3]))
