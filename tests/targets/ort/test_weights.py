"""``weights=int4`` and ``int8``: which products read packed weights, and what stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

import smelt
from smelt.check.compare import Tolerance
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.ir.approximation import approximation_of
from smelt.runtime.inputs import random_inputs
from smelt.targets.ort.options import Options

RNG = np.random.default_rng(0)
LIMITS = {"int4": 0.15, "int8": 0.02, "nf4": 0.15}
"""The mean error of one product as a part of the mean magnitude: 0.08 and 0.008 are expected."""

PRODUCT = {"int4": "MatMulNBits", "int8": "MatMulNBits", "nf4": "MatMulBnb4"}


def _model(graph: str, **weights: np.ndarray) -> ir.Model:
    """A graph of which some inputs become constants."""
    model = text.parse(graph)
    for name, array in weights.items():
        (value,) = (each for each in model.graph.inputs if each.name == name)
        model.graph.inputs.remove(value)
        value.const_value = ir.tensor(array, name=name)
        model.graph.register_initializer(value)
    return model


def _weight(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return (RNG.standard_normal(shape) / np.sqrt(shape[0])).astype(dtype)


def _error(result: Any, expected: Any) -> float:
    """The mean error as a part of the mean magnitude."""
    wide, right = np.asarray(result, np.float64), np.asarray(expected, np.float64)
    return float(np.abs(wide - right).mean() / np.abs(right).mean())


def _names(model: ir.Model) -> list[str]:
    return [node.op_type for node in ir.traversal.RecursiveGraphIterator(model.graph)]


MATMUL = "g (float[B,5,300] x, float[300,256] w) => (float[B,5,256] y) { y = MatMul(x, w) }"
GEMM = (
    "g (float[5,300] x, float[256,300] w, float{c}) => (float[5,256] y)"
    " {{ y = Gemm<transB=1, alpha=0.5, beta=2.0>(x, w, c) }}"
)
TAKEN = {
    "a product": (MATMUL, {"w": _weight(300, 256)}),
    "a sum after it": (
        "g (float[B,300] x, float[300,256] w, float[256] b) => (float[B,256] y)"
        " { h = MatMul(x, w) y = Add(b, h) }",
        {"w": _weight(300, 256), "b": _weight(256)},
    ),
    "Gemm with a row": (
        GEMM.format(c="[256] c"),
        {"w": _weight(256, 300), "c": _weight(256)},
    ),
    "Gemm with a matrix": (GEMM.format(c="[5,256] c"), {"w": _weight(256, 300)}),
    "Gemm of rows as they are": (
        "g (float[5,300] x, float[300,256] w) => (float[5,256] y) { y = Gemm(x, w) }",
        {"w": _weight(300, 256)},
    ),
    "a weight that is transposed": (
        "g (float[B,300] x, float[256,300] w, int64[2] i) => (float[B,256] y, float[2,300] e)"
        " { t = Transpose<perm=[1,0]>(w) y = MatMul(x, t) e = Gather(w, i) }",
        {"w": _weight(256, 300)},
    ),
    "a weight of float16": (
        "g (float16[B,300] x, float16[300,256] w) => (float16[B,256] y) { y = MatMul(x, w) }",
        {"w": _weight(300, 256, dtype=np.float16)},
    ),
    "a weight of bfloat16": (
        "g (bfloat16[B,300] x, bfloat16[300,256] w) => (bfloat16[B,256] y) { y = MatMul(x, w) }",
        {"w": _weight(300, 256, dtype=ml_dtypes.bfloat16)},
    ),
}


@pytest.mark.parametrize("kind", LIMITS)
@pytest.mark.parametrize(("graph", "weights"), TAKEN.values(), ids=TAKEN.keys())
def test_a_product_reads_packed_weights(
    graph: str, weights: dict[str, np.ndarray], kind: str
) -> None:
    source = _model(graph, **weights)
    artifact = smelt.compile(source, target="ort", weights=kind)
    assert PRODUCT[kind] in _names(artifact.model)
    assert not {"MatMul", "Gemm", "FusedMatMul", "Transpose"} & set(_names(artifact.model))
    assert approximation_of(artifact.model) == f"weights of {kind}, 32 to a scale"
    given = random_inputs(source, {"B": 2})
    plain = smelt.compile(source, target="ort")
    for result, expected in zip(artifact(*given), plain(*given), strict=True):
        assert _error(result, expected) < LIMITS[kind]


def test_a_bias_is_an_operand_and_the_weight_is_gone() -> None:
    graph, weights = TAKEN["a sum after it"]
    source = _model(graph, **weights)
    artifact = smelt.compile(source, target="ort", weights="int4", symmetric=False)
    (node,) = artifact.model.graph
    assert [value.name if value else None for value in node.inputs] == [
        *("x", "w_codes", "w_scales", "w_zeros", None, "b")
    ]
    assert set(artifact.model.graph.initializers) == {"w_codes", "w_scales", "w_zeros", "b"}


@pytest.mark.parametrize("kind", LIMITS)
def test_the_file_is_right_without_graph_optimizations(kind: str) -> None:
    """ONNX Runtime 1.32 takes scales that a node computes, such as a Cast, for 0 there."""
    graph, weights = TAKEN["a sum after it"]
    source = _model(graph, **weights)
    artifact = smelt.compile(source, target="ort", weights=kind)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    proto = smelt.to_proto(artifact.model).SerializeToString()
    session = onnxruntime.InferenceSession(proto, options)
    given = random_inputs(source, {"B": 2})
    feeds = dict(zip((port.name for port in session.get_inputs()), given, strict=True))
    (result,) = session.run(None, feeds)
    (expected,) = artifact(*given)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


LEFT = {
    "a small weight": (
        "g (float[4,128] x, float[128,128] w) => (float[4,128] y) { y = MatMul(x, w) }",
        {"w": _weight(128, 128)},
        "the weight is small: the product would be no faster",
    ),
    "one column": (
        "g (float[4,9000] x, float[9000,1] w) => (float[4,1] y) { y = MatMul(x, w) }",
        {"w": _weight(9000, 1)},
        "the weight is small: the product would be no faster",
    ),
    "few rows": (
        "g (float[4,32] x, float[32,4096] w) => (float[4,4096] y) { y = MatMul(x, w) }",
        {"w": _weight(32, 4096)},
        "the weight is small: the product would be no faster",
    ),
    "a vector": (
        "g (float[300] x, float[300,256] w) => (float[256] y) { y = MatMul(x, w) }",
        {"w": _weight(300, 256)},
        "the other operand is a vector or a scalar",
    ),
    "double": (
        "g (double[4,300] x, double[300,256] w) => (double[4,256] y) { y = MatMul(x, w) }",
        {"w": _weight(300, 256, dtype=np.float64)},
        "the other operand is not float32",
    ),
    "NaN": (
        MATMUL,
        {"w": np.full((300, 256), np.nan, np.float32)},
        "the weight has infinities or NaN",
    ),
    "Gemm with transA": (
        "g (float[300,4] x, float[300,256] w) => (float[4,256] y) { y = Gemm<transA=1>(x, w) }",
        {"w": _weight(300, 256)},
        "transA of the Gemm is 1",
    ),
    "a weight from the caller": (MATMUL, {}, None),
    "a weight on the left": (
        "g (float[300,4] x, float[256,300] w) => (float[256,4] y) { y = MatMul(w, x) }",
        {"w": _weight(256, 300)},
        None,
    ),
    "rows of a small table": (
        "g (float[99,64] w, int64[N] i) => (float[N,64] y) { y = Gather(w, i) }",
        {"w": _weight(99, 64)},
        "the table is small, or blocks do not fill its rows",
    ),
    "rows that blocks do not fill": (
        "g (float[999,80] w, int64[N] i) => (float[N,80] y) { y = Gather(w, i) }",
        {"w": _weight(999, 80)},
        "the table is small, or blocks do not fill its rows",
    ),
    "columns of a table": (
        "g (float[999,96] w, int64[N] i) => (float[999,N] y) { y = Gather<axis=1>(w, i) }",
        {"w": _weight(999, 96)},
        "the Gather does not read rows",
    ),
    "a stack of weights": (
        "g (float[2,4,300] x, float[2,300,256] w) => (float[2,4,256] y) { y = MatMul(x, w) }",
        {"w": _weight(2, 300, 256)},
        None,
    ),
}


@pytest.mark.parametrize("kind", ["int4", "nf4"])
@pytest.mark.parametrize(("graph", "weights", "why"), LEFT.values(), ids=LEFT.keys())
def test_unsupported_weights_stay_unquantized(
    graph: str, weights: dict[str, np.ndarray], why: str | None, kind: str
) -> None:
    artifact = smelt.compile(_model(graph, **weights), target="ort", weights=kind)
    assert not {"MatMulNBits", "MatMulBnb4", "GatherBlockQuantized"} & set(_names(artifact.model))
    assert not approximation_of(artifact.model)
    misses = {miss["reason"] for miss in artifact.report["select"]["near_misses"]}
    assert why is None or why in misses


def test_a_default_of_an_input_stays_for_callers_to_override() -> None:
    model = _model(MATMUL, w=_weight(300, 256))
    model.ir_version = 4
    model.graph.inputs.append(model.graph.initializers["w"])
    artifact = smelt.compile(smelt.to_proto(model), target="ort", weights="int4")
    assert _names(artifact.model) == ["MatMul"]


def test_a_weight_that_is_returned_is_returned_as_it_was() -> None:
    graph = "g (float[5,300] x, float[300,256] w) => (float[5,256] y) { y = MatMul(x, w) }"
    weight = _weight(300, 256)
    model = _model(graph, w=weight)
    model.graph.outputs.append(model.graph.initializers["w"])
    artifact = smelt.compile(model, target="ort", weights="int4")
    assert "MatMulNBits" in _names(artifact.model)
    (given,) = random_inputs(model, {})
    np.testing.assert_array_equal(artifact(given)[1], weight)


def test_products_that_share_a_weight_share_the_packed_one() -> None:
    graph = """g (float[5,300] x, float[7,300] z, bool c, float[300,256] w)
        => (float[5,256] y, float[7,256] t, float[1,256] f) {
        axes = Constant<value_ints=[0]>() to = Constant<value_ints=[1,300]>()
        y = MatMul(x, w) t = MatMul(z, w)
        f = If(c) <then_branch = a () => (float[1,256] p) {
            s = ReduceSum<keepdims=1>(x, axes) e = Expand(s, to) p = MatMul(e, w)
        }, else_branch = b () => (float[1,256] q) {
            m = ReduceMax<keepdims=1>(z, axes) n = Expand(m, to) q = MatMul(n, w)
        }>
    }"""
    model = _model(graph, w=_weight(300, 256))
    artifact = smelt.compile(model, target="ort", weights="int4")
    assert _names(artifact.model).count("MatMulNBits") == 4
    codes = [
        name for each in artifact.model.graphs() for name in each.initializers if "codes" in name
    ]
    assert codes == ["w_codes"]
    given = random_inputs(model, {})
    for result, expected in zip(artifact(*given), smelt.compile(model)(*given), strict=True):
        assert _error(result, expected) < LIMITS["int4"]


@pytest.mark.parametrize("kind", LIMITS)
def test_no_rows_at_all(kind: str) -> None:
    model = _model(MATMUL, w=_weight(300, 256))
    artifact = smelt.compile(model, target="ort", weights=kind)
    assert artifact(np.zeros((0, 5, 300), np.float32))[0].shape == (0, 5, 256)


@pytest.mark.parametrize("kind", ["int4", "nf4"])
def test_other_targets_understand_it(kind: str) -> None:
    artifact = smelt.compile(_model(MATMUL, w=_weight(300, 256)), target="ort", weights=kind)
    given = random_inputs(artifact.model, {"B": 2})
    (expected,) = artifact(*given)
    for target in ("onnx", "host"):
        (result,) = smelt.compile(artifact.model, target=target)(*given)
        np.testing.assert_allclose(result, expected, atol=0.02 * np.abs(expected).max())


def test_verification_reports_how_far_apart_they_are(tmp_path: Path) -> None:
    model = _model(MATMUL, w=_weight(300, 256))
    artifact = smelt.compile(model, target="ort", weights="int8")
    artifact.save(tmp_path)
    for side in (artifact, tmp_path):
        report = smelt.verify(model, side)
        assert report.ok
        assert 0.001 < report.mean_rel < LIMITS["int8"]
        assert report.approximation == "weights of int8, 32 to a scale"
        assert "of the mean magnitude" in report.summary()
    assert not smelt.verify(model, artifact, tolerance=Tolerance(rtol=1e-6)).ok


@pytest.mark.parametrize("block", [16, 32, 64, 128, 256])
def test_blocks_that_the_kernel_has(block: int) -> None:
    assert Options(weights="int4", block=block).block == block


WRONG = [
    {"weights": "int5"},
    {"block": 48},
    {"weights": "int4", "block": 512},
    {"weights": "nf4", "symmetric": False},
]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_options_that_the_kernel_does_not_support_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SmeltError) as caught:
        Options(**options)
    assert caught.value.code == "E660"


@pytest.mark.parametrize(
    ("kind", "symmetric"),
    [("int4", True), ("int4", False), ("int8", True), ("int8", False), ("nf4", True)],
)
def test_rows_of_a_table_share_the_codes_of_a_tied_product(kind: str, symmetric: bool) -> None:
    source = _model(
        "g (float[999,96] w, int64[N,M] i) => (float[N,M,999] y, float[N,M,96] e)"
        " { e = Gather(w, i) t = Transpose<perm=[1,0]>(w) y = MatMul(e, t) }",
        w=_weight(999, 96),
    )
    artifact = smelt.compile(source, target="ort", weights=kind, symmetric=symmetric)
    rows = "Gather" if kind == "nf4" else "GatherBlockQuantized"
    assert {rows, PRODUCT[kind]} <= set(_names(artifact.model))
    weights = artifact.model.graph.initializers.values()
    stored = sum(v.const_value.nbytes for v in weights if v.const_value is not None)
    bits = 8 if kind == "int8" else 4
    assert stored < 999 * (96 * bits // 8 + 96 // 32 * 5) + 500
    given = [np.array([[0, 998, -1], [-999, 5, 7]])]
    plain = smelt.compile(source, target="ort")
    for result, expected in zip(artifact(*given), plain(*given), strict=True):
        assert _error(result, expected) < 2 * LIMITS[kind]
