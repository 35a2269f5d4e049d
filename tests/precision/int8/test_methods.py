"""Scaled activations and compensated rounding: the same floats, and a smaller error in integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest

import smelt
from smelt.errors import UsageError
from smelt.ir import scope, text
from smelt.operators.onnxruntime.four_bits import INT4, NORMAL_FLOAT4, Grid
from smelt.precision.int8.absorb import divide_activation
from smelt.precision.int8.gptq import compensated_blocks
from smelt.precision.int8.linear import Codes, numbers_of, weight_blocks
from smelt.precision.int8.scaling import best_scale
from smelt.precision.int8.writer import Format
from smelt.runtime.runner import run

LARGE = np.where(np.arange(32) == 5, 60, 1).astype(np.float32)
"""The magnitude of each channel: one is far larger than the others."""


def graph(body: str, outputs: str = "float[N,8] y", **constants: Any) -> ir.Model:
    """A model of ``x: [N,32]`` with constants, given as arrays or as shapes of drawn ones."""
    rng = np.random.default_rng(3)
    arrays = {
        name: np.asarray(rng.normal(size=given) if isinstance(given, tuple) else given, np.float32)
        for name, given in constants.items()
    }
    inputs = [f"float[{','.join(map(str, a.shape))}] {n}" for n, a in arrays.items()]
    model = text.parse(f"g (float[N,32] x, {', '.join(inputs)}) => ({outputs}) {{ {body} }}", 23)
    for name, array in arrays.items():
        (value,) = (each for each in model.graph.inputs if each.name == name)
        model.graph.inputs.remove(value)
        value.const_value = ir.tensor(array, name=name)
        model.graph.register_initializer(value)
    return model


NORM = "h = LayerNormalization(x, s, b)"
V, W = (32, 32), (32, 8)
DIVIDED: dict[str, tuple[ir.Model, bool]] = {
    "a norm": (graph(f"{NORM} y = MatMul(h, w)", s=(32,), b=(32,), w=W), True),
    "two products behind a norm": (
        graph(f"{NORM} p = MatMul(h, w) q = MatMul(h, u) y = Add(p, q)", s=(32,), b=(32,), w=W, u=W),
        True,
    ),
    "a norm that a sum reads, too": (
        graph(f"{NORM} p = MatMul(h, w) q = MatMul(x, u) y = Add(p, q) z = Add(h, x)",
              "float[N,8] y, float[N,32] z", s=(32,), b=(32,), w=W, u=W), False,
    ),
    "a norm that is an output": (
        graph(f"{NORM} y = MatMul(h, w)", "float[N,8] y, float[N,32] h", s=(32,), b=(32,), w=W),
        False,
    ),
    "a norm over two axes": (
        graph("h = LayerNormalization<axis=0>(x, s) y = MatMul(h, w)", s=(1, 32), w=W), False,
    ),
    "an RMS norm": (graph("h = RMSNormalization(x, s) y = MatMul(h, w)", s=(32,), w=W), True),
    "a Relu of a product": (
        graph("a = MatMul(x, v) b = Add(a, c) h = Relu(b) y = MatMul(h, w)", v=V, c=(32,), w=W),
        True,
    ),
    "a Gemm": (graph("h = Gemm<transB=1>(x, v, c) y = Gemm<transB=1>(h, w)", v=V, c=(32,), w=(8, 32)), True),
    "a Gemm with one bias for all": (
        graph("h = Gemm(x, v, c) y = MatMul(h, w)", v=V, c=(1,), w=W), False,
    ),
    "a gate times a product": (
        graph("g = Sigmoid(x) u = MatMul(x, v) h = Mul(g, u) y = MatMul(h, w)", v=V, w=W), True,
    ),
    "a square of a product": (
        graph("u = MatMul(x, v) h = Mul(u, u) y = MatMul(h, w)", v=V, w=W), False,
    ),
    "a weight that is read twice": (
        graph("u = MatMul(x, v) h = MatMul(u, v) y = MatMul(h, w)", v=V, w=W), False,
    ),
    "a function that is not linear": (graph("h = Tanh(x) y = MatMul(h, w)", w=W), False),
    "an input": (graph("y = MatMul(x, w)", w=W), False),
}  # fmt: skip


@pytest.mark.parametrize("name", DIVIDED)
def test_a_divided_activation_leaves_the_results(name: str) -> None:
    model, is_absorbed = DIVIDED[name]
    x = np.random.default_rng(4).normal(size=(3, 32)).astype(np.float32)
    before = run(model, [x])
    nodes = len(model.graph)
    last = [n for n in model.graph if n.op_type in ("MatMul", "Gemm") and n.inputs[1].name in "wu"]
    source = last[0].inputs[0]
    products = [node for node in last if node.inputs[0] is source]
    divide_activation(model, products, LARGE)
    assert len(model.graph) == nodes + (not is_absorbed)
    for first, second in zip(before, run(model, [x]), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("format_", [Format(), Format(block=16)], ids=["int8", "int4"])
def test_a_large_channel_gets_a_large_divisor(format_: Format) -> None:
    rng = np.random.default_rng(5)
    rows = (rng.normal(size=(500, 32)) * LARGE).astype(np.float32)
    scale = best_scale(rows, [rng.normal(size=(32, 8)).astype(np.float32)], format_)
    assert scale is not None
    assert scale.argmax() == 5
    assert best_scale(0 * rows, [np.ones((32, 8), np.float32)], format_) is None


@pytest.mark.parametrize("grid", [INT4, NORMAL_FLOAT4], ids=["int4", "nf4"])
def test_compensated_codes_err_less_on_correlated_rows(grid: Grid) -> None:
    rng = np.random.default_rng(6)
    rows = (rng.normal(size=(400, 6)) @ rng.normal(size=(6, 80))).astype(np.float32)
    weight = rng.normal(size=(80, 24)).astype(np.float32)

    def error(codes: Codes) -> float:
        back = numbers_of(codes)
        return float(np.square(rows @ ((back if codes.axis == 0 else back.T) - weight)).sum())

    nearest = error(weight_blocks(weight, 0, 32, grid))
    assert error(compensated_blocks(weight, 0, 32, rows, grid)) < 0.2 * nearest
    assert error(compensated_blocks(weight.T, 1, 32, rows, grid)) < 0.2 * nearest
    assert np.isfinite(error(compensated_blocks(weight, 0, 32, 0 * rows, grid)))


def outlier_model() -> ir.Model:
    body = (
        f"{NORM} a = MatMul(h, v) t = Tanh(a) k = RMSNormalization(t, r) p = MatMul(k, w)"
        " y = Add(p, c)"
    )
    return graph(body, s=LARGE, b=0 * LARGE, r=LARGE[::-1], v=V, w=W, c=(8,))


def outlier_data() -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(8)
    few = rng.normal(size=(6, 32))  # rows of six dims, so that errors of rows can make up
    return [{"x": (rng.normal(size=(16, 6)) @ few).astype(np.float32)} for _ in range(8)]


@pytest.mark.parametrize(
    ("options", "method", "part"),
    [
        ({"activations": "static"}, "scaled", 0.7),
        ({"activations": "dynamic"}, "scaled", 0.8),
        ({"weights": "int4", "block": 16}, "gptq", 0.8),
        ({"weights": "nf4", "block": 16}, "gptq", 0.8),
    ],
)
def test_methods_lower_the_error_and_auto_takes_the_best(
    options: Any, method: str, part: float
) -> None:
    errors = {}
    for each in ("nearest", method, "auto"):
        result = smelt.quantize(outlier_model(), outlier_data(), within=9.0, method=each, **options)
        errors[each] = result.error
    assert errors[method] < part * errors["nearest"]
    assert errors["auto"] == pytest.approx(min(errors.values()), rel=0.05)


@pytest.mark.parametrize(("block", "stored"), [(16, "UINT8"), (64, "INT8")])
def test_rows_of_a_table_have_4_bits_where_blocks_fill_them(block: int, stored: str) -> None:
    rng = np.random.default_rng(9)
    model = text.parse("g (float[50,48] m, int64[N,M] i) => (float[N,M,48] y) { y = Gather(m, i) }")
    value = model.graph.inputs.pop(0)
    value.const_value = ir.tensor(rng.normal(size=(50, 48)).astype(np.float32), name="m")
    model.graph.register_initializer(value)
    data = [{"i": rng.integers(-50, 50, (2, 3))} for _ in range(4)]
    result = smelt.quantize(model, data, within=0.2, weights="int4", block=block)
    codes = max(
        (v for v in result.model.graph.initializers.values()), key=lambda v: v.const_value.nbytes
    )
    assert codes.dtype.name == stored
    assert codes.const_value.nbytes == 50 * 48 // (2 if stored == "UINT8" else 1)
    assert not any(node.domain for node in scope.nodes(result.model))
    saved = max(point.bytes_saved for point in result.curve)
    assert saved == 50 * 48 * 3 + (stored == "UINT8") * (50 * 48 // 2 - 50 * 48 * 4 // block)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", [(), (8,), (1, 8), None])
def test_a_gemm_in_int4_is_a_matmul_of_blocks(
    shape: tuple[int, ...] | None, transposed: bool, tmp_path: Path
) -> None:
    terms = {"w": (8, 32) if transposed else (32, 8), **({} if shape is None else {"c": shape})}
    model = graph(f"y = Gemm<transB={int(transposed)}>(x, {', '.join(terms)})", **terms)
    rng = np.random.default_rng(4)
    data = [{"x": rng.normal(size=(3, 32)).astype(np.float32)} for _ in range(4)]
    result = smelt.quantize(model, data, within=0.3, weights="int4", block=16, method="nearest")
    operators = [node.op_type for node in result.model.graph]
    assert operators[-1] == ("MatMul" if shape is None else "Add")
    assert "Gemm" not in operators
    blocks = [node for node in result.model.graph if node.op_type == "DequantizeLinear"]
    assert [node.attributes.get_int("axis") for node in blocks] == [0]
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    ort.InferenceSession(smelt.to_proto(result.model).SerializeToString(), options)
    fused = onnx.load(options.optimized_model_filepath)
    assert "MatMulNBits" in [node.op_type for node in fused.graph.node]


@pytest.mark.parametrize("product", ["MatMul(x, w)", "Gemm(x, w, c)"])
@pytest.mark.parametrize("block", [16, 64])
def test_nf4_is_a_lookup_of_standard_operators_in_every_target(product: str, block: int) -> None:
    model = graph(f"y = {product}", w=(32, 8), **({"c": (8,)} if "Gemm" in product else {}))
    rng = np.random.default_rng(4)
    data = [{"x": rng.normal(size=(3, 32)).astype(np.float32)} for _ in range(4)]
    result = smelt.quantize(model, data, within=0.3, weights="nf4", block=block, method="nearest")
    assert not any(node.domain for node in scope.nodes(result.model))
    operators = [node.op_type for node in result.model.graph]
    assert operators[:2] == ["Cast", "Gather"]
    assert ("Slice" in operators) == (block == 64)
    (x,) = data[0].values()
    (expected,) = run(model, [x])
    (plain,) = run(result.model, [x])
    error = np.linalg.norm(plain - expected) / np.linalg.norm(expected)
    assert 0.01 < error < 0.2
    for target in ("ort", "host", "c"):
        (made,) = smelt.compile(result.model, target=target, dims={"N": 3})(x)
        np.testing.assert_allclose(made, plain, rtol=1e-5, atol=1e-5)


def test_products_share_the_numbers_of_nf4() -> None:
    model = graph("a = MatMul(x, w) t = Tanh(a) y = MatMul(t, w)", "float[N,32] y", w=(32, 32))
    result = smelt.quantize(model, within=3.0, weights="nf4", activations="float")
    assert [len(each.nodes) for each in result.chosen] == [2]  # they share the weight
    assert [node.op_type for node in result.model.graph].count("Cast") == 1


@pytest.mark.parametrize("attribute", ["alpha=0.5", "beta=0.5"])
def test_a_gemm_with_factors_stays(attribute: str) -> None:
    model = graph(f"y = Gemm<{attribute}>(x, w, c)", w=(32, 8), c=(8,))
    data = [{"x": np.full((3, 32), number, np.float32)} for number in range(1, 5)]
    result = smelt.quantize(model, data, within=0.5, weights="int4", block=16, method="nearest")
    assert [node.op_type for node in result.model.graph][-1] == "Gemm"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"method": "awq"}, "E679"),
        ({"method": "gptq"}, "E679"),
        ({"method": "scaled", "calibrate": None}, "E683"),
    ],
)
def test_wrong_methods(options: Any, code: str) -> None:
    with pytest.raises(UsageError) as raised:
        smelt.quantize(outlier_model(), **{"calibrate": outlier_data(), **options})
    assert raised.value.code == code
