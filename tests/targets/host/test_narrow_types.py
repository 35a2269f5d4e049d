"""Floats of 8 bits, and weights of 4 and 2: what ONNX's reference computes, on both engines."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import smelt
from smelt.errors import ErrorList
from smelt.ir.shapes import ShapeInference
from smelt.program.lower import lower
from smelt.targets.host.unpack_constants import unpack_constants

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


def test_numbers_of_4_bits_that_a_run_computes_are_refused() -> None:
    graph = "g (float[4] x) => (float[4] y) { t = Cast<to=22>(x) y = Cast<to=1>(t) }"
    with pytest.raises(ErrorList, match="int4"):
        smelt.compile(model(graph), target="host")


def test_bits_of_4_are_not_read_as_bits_of_8() -> None:
    source = (
        "g (float[2] x) => (float[2] y) { u = BitCast<to=21>(q) w = Cast<to=1>(u) y = Add(x, w) }"
    )
    proto = model(source, q=helper.make_tensor("q", TensorProto.INT4, [2], [-1, 3]))
    proto.opset_import[0].version = 26
    read = onnx_ir.from_proto(proto)
    ShapeInference(read).infer_model()
    program = lower(read)
    before = [slot.dtype for slot in program.slots]
    unpack_constants(program)
    assert [slot.dtype for slot in program.slots] == before
