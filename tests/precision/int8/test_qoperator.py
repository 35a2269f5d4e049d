"""The integer form computes what the form of QuantizeLinear and DequantizeLinear computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import smelt
from smelt.errors import UsageError
from smelt.ir import scope
from smelt.runtime.onnxruntime import OnnxRuntime

CONV = "float[B,3,8,8] x"
MODELS: dict[str, tuple[str, str, str, dict[str, tuple[int, ...]], list[str]]] = {
    "convolutions": (
        CONV,
        "float[B,8,4,4] y",
        """c = Conv<pads=[1,1,1,1]>(x, w, b) r = Relu(c) p = MaxPool<kernel_shape=[2,2],strides=[2,2]>(r)
           y = Conv<pads=[1,1,1,1]>(p, v)""",
        {"w": (8, 3, 3, 3), "b": (8,), "v": (8, 8, 3, 3)},
        ["QuantizeLinear", "QLinearConv", "MaxPool", "QLinearConv", "DequantizeLinear"],
    ),
    "groups, strides and a clip": (
        CONV,
        "float[B,6,4,4] y",
        "c = Conv<group=3,strides=[2,2],pads=[1,1,1,1]>(x, w) y = Clip(c, low, high)",
        {"w": (6, 1, 4, 4), "low": (), "high": ()},
        ["QuantizeLinear", "QLinearConv", "DequantizeLinear"],
    ),
    "a sum of branches": (
        CONV,
        "float[B,8,8,8] y",
        "a = Conv<pads=[1,1,1,1]>(x, w) d = Conv(a, v) s = Add(a, d) y = Conv(s, u)",
        {"w": (8, 3, 3, 3), "v": (8, 8, 1, 1), "u": (8, 8, 1, 1)},
        ["QLinearConv", "QLinearConv", "Add", "QLinearConv"],
    ),
    "a result that is read and returned": (
        CONV,
        "float[B,8,8,8] c, float[B,8,8,8] y",
        "c = Conv<pads=[1,1,1,1]>(x, w) y = Exp(c)",
        {"w": (8, 3, 3, 3)},
        ["QuantizeLinear", "QLinearConv", "DequantizeLinear", "Exp"],
    ),
    "a product": (
        "float[B,4,16] x",
        "float[B,4,32] y",
        "y = MatMul(x, w)",
        {"w": (16, 32)},
        ["QuantizeLinear", "MatMulInteger", "Cast", "Mul"],
    ),
    "a transposed Gemm with a bias": (
        "float[B,16] x",
        "float[B,32] y",
        "y = Gemm<transB=1>(x, w, b)",
        {"w": (32, 16), "b": (32,)},
        ["QuantizeLinear", "MatMulInteger", "Add", "Cast", "Mul"],
    ),
    "a weight that two products share": (
        "float[B,32] x",
        "float[B,32] y",
        "a = Gemm<transB=1>(x, w, b) t = Tanh(a) y = MatMul(t, w)",
        {"w": (32, 32), "b": (32,)},
        ["MatMulInteger", "Tanh", "MatMulInteger"],
    ),
}


def model(name: str) -> Any:
    inputs, outputs, body, weights, _ = MODELS[name]
    proto = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> f ({inputs}) => ({outputs}) {{ {body} }}'
    )
    rng = np.random.default_rng(1)
    for weight, shape in weights.items():
        array = rng.normal(0, 0.3, shape)
        array = {"low": np.asarray(-0.4), "high": np.asarray(0.6)}.get(weight, array)
        tensor = onnx.numpy_helper.from_array(array.astype(np.float32), weight)
        proto.graph.initializer.append(tensor)
    return smelt.load(proto)


def data(name: str) -> list[np.ndarray]:
    dims = MODELS[name][0].partition("[")[2].partition("]")[0].split(",")
    rng = np.random.default_rng(2)
    return [rng.normal(size=[2, *map(int, dims[1:])]).astype(np.float32) for _ in range(8)]


def quantized(name: str, **options: Any) -> Any:
    samples = [{"x": each} for each in data(name)]
    return smelt.quantize(
        model(name), samples, within="40%", activations="static", gain="bytes", **options
    )


def outputs(source: Any, x: np.ndarray, *, optimized: bool) -> list[np.ndarray]:
    return [np.asarray(each) for each in OnnxRuntime(source, optimized=optimized)(x)]


SIGNED = {"signed": True, "per_tensor": True}
CASES: list[tuple[str, Any]] = [(name, {}) for name in MODELS] + [
    ("convolutions", SIGNED),
    ("a product", SIGNED),
]
COMPILED = {"convolutions", "a transposed Gemm with a bias"}
"""Models that the C compiler gets: it takes most of the time."""


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_integer_operators_are_within_a_step_of_the_float_ones(name: str, options: Any) -> None:
    plain, made = (quantized(name, quant_format=each, **options) for each in ("qdq", "qoperator"))
    assert not any(node.domain for node in scope.nodes(made.model))
    onnx.checker.check_model(smelt.to_proto(made.model), full_check=True)
    left = iter(node.op_type for node in made.model.graph)
    assert all(operator in left for operator in MODELS[name][4])  # in this order
    assert {"static"} == set(made.chosen.values())
    for x in data(name)[:2]:
        expected = outputs(plain.model, x, optimized=False)
        step = max(each.high - each.low for each in plain.ranges.values()) / 255
        for optimized in (False, True):
            for result, right in zip(
                outputs(made.model, x, optimized=optimized), expected, strict=True
            ):
                assert np.abs(result - right).max() <= 1.01 * max(step, 0.02 * np.ptp(right))
    for target in ("host", "c") if name in COMPILED else ("host",):
        found = smelt.compile(made.model, target=target, dims={"B": 2})(x)
        for other, right in zip(found, expected, strict=True):
            assert np.abs(np.asarray(other) - right).max() <= 1.01 * max(step, 0.02 * np.ptp(right))


def test_with_cycles_a_product_stores_codes() -> None:
    result = smelt.quantize(
        model("a product"),
        [{"x": each} for each in data("a product")],
        within="40%",
        activations="static",
        gain="cycles",
        cpu="cortex-m4",
        quant_format="qoperator",
    )
    operators = [node.op_type for node in result.model.graph]
    assert operators == ["QuantizeLinear", "QLinearMatMul", "DequantizeLinear"]


@pytest.mark.parametrize(
    ("name", "signed"),
    [("convolutions", True), ("a sum of branches", False), ("a product", False)],
)
def test_activations_of_16_bits_are_right_in_each_target(name: str, signed: bool) -> None:
    coarse = quantized(name)
    result = quantized(name, activation_bits=16, signed=signed)
    assert result.error < coarse.error
    proto = smelt.to_proto(result.model)
    onnx.checker.check_model(proto, full_check=True)
    types = {tensor.data_type for tensor in proto.graph.initializer}
    assert (onnx.TensorProto.INT16 if signed else onnx.TensorProto.UINT16) in types
    x = data(name)[0]
    (source,) = outputs(model(name), x, optimized=True)
    (plain,) = outputs(result.model, x, optimized=False)
    assert np.linalg.norm(plain - source) < 0.03 * np.linalg.norm(source)
    step = 1.01 * max(each.high - each.low for each in result.ranges.values()) / 65535 + 1e-5
    (fused,) = outputs(result.model, x, optimized=True)
    # ONNX Runtime 1.32 fuses the product with its weight to MatMulNBits, which rounds to 8 bits.
    assert np.abs(fused - plain).max() <= (0.02 if name == "a product" else step)
    for target in ("host",) if name == "a sum of branches" else ("host", "c"):
        (found,) = smelt.compile(result.model, target=target, dims={"B": 2})(x)
        assert np.abs(np.asarray(found) - plain).max() <= step


@pytest.mark.parametrize(
    "options",
    [
        {"activations": "dynamic"},
        {"activations": "float"},
        {"weights": "int4"},
        {"ranges": "mse"},
        {"gain": "cycles", "cpu": "cortex-m4"},
        {"quant_format": "qoperator"},
        {"activation_bits": 12},
        {"activation_bits": 8, "quant_format": "QOperator"},
    ],
    ids=str,
)
def test_options_that_16_bits_rule_out(options: Any) -> None:
    samples = [{"x": each} for each in data("a product")]
    with pytest.raises(UsageError) as caught:
        smelt.quantize(model("a product"), samples, **{"activation_bits": 16, **options})
    assert caught.value.code == "E679"
