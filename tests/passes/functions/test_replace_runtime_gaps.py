"""Written models hold only standard operators; operators of the source stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from rewrites import check_operators, run_pass

import smelt
from smelt.ir import scope, text
from smelt.operators.onnxruntime.runtime_gaps import unreplaced_defects
from smelt.passes.functions.replace_runtime_gaps import replace_runtime_gaps
from smelt.runtime.onnxruntime import OnnxRuntime

MODELS = sorted((Path(__file__).parents[2] / "models").glob("*.onnx"))
WIDE = "g (int64[4] x, int64[4] z) => (int64[4] y) { y = Max(x, z) }"
RANGES = """g (float[B,S] x) => (int64[M,N] m)
<int64 zero = {0}, int64 one = {1}, int64[1] a0 = {0}, int64[1] a1 = {1}> {
    n = Shape<start=0,end=1>(x) q = Squeeze(n) r = Range(zero, q, one)
    i = Unsqueeze(r, a1) k = Unsqueeze(r, a0) m = Max(i, k)
}"""
NEW = {
    "large integers": (WIDE, "Greater Where"),
    "a choice of booleans": (
        "g (bool[4] c, bool[4] x, bool[4] z) => (bool[4] y) { y = Where(c, x, z) }",
        "And Not And Or",
    ),
    "places in ranges are small": (RANGES, "Shape Squeeze Range Unsqueeze Unsqueeze Max"),
    "clamped places": (
        "g (int64[4] x) => (int64[4] y) <int64 a = {0}, int64 b = {9}> "
        "{ c = Clip(x, a, b) y = Max(c, a) }",
        "Clip Max",
    ),
}


@pytest.mark.parametrize("name", NEW)
def test_the_pass_leaves_the_expected_operators(name: str) -> None:
    graph, operators = NEW[name]
    check_operators(replace_runtime_gaps, graph, operators.split())


DECLARED = """<ir_version: 10, opset_import: ["" : 18, "smelt" : 1]>
g (float[4,4] a, float[4,1] b, bool c) => (float[4,1] x, float[4,1] y) {
    y = If (c) <then_branch = t () => (float[4,1] t) { t = smelt.TriangularSolve<lower=1>(a, b) },
                else_branch = e () => (float[4,1] e) { e = smelt.Digamma(b) }>
    x = smelt.Digamma(y)
}"""


def test_declared_operators_become_their_bodies_in_all_graphs() -> None:
    """Their results are those of functions with the same bodies."""
    replaced = text.parse(DECLARED)
    run_pass(replace_runtime_gaps, replaced)
    assert {node.domain for node in scope.nodes(replaced)} == {""}
    assert not replaced.functions
    a, b = np.tril(np.ones((4, 4), np.float32)), np.linspace(1, 2, 4, dtype=np.float32)[:, None]
    expected, actual = OnnxRuntime(text.parse(DECLARED)), OnnxRuntime(replaced)
    for c in (np.array(True), np.array(False)):
        for want, got in zip(expected(a, b, c), actual(a, b, c), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)


def test_declared_operators_stay_for_functions_and_for_targets_with_kernels() -> None:
    functions = text.parse(DECLARED)
    assert not run_pass(replace_runtime_gaps, functions, functions=True).rewrites
    digamma = text.parse(DECLARED)
    run_pass(replace_runtime_gaps, digamma, frozenset({("smelt", "Digamma")}))
    assert [node.op_type for node in scope.nodes(digamma) if node.domain] == ["Digamma"] * 2


NOT_REPLACED = {
    "of unknown type": "g (float[2] x) => (y) { a = mine.Op(x) y = smelt.Digamma(a) }",
    "without a body": "g (float[3,3] x) => (y) { y = smelt.ValidateNonsingular(x) }",
    "that a runtime has": "g (float[2] x) => (y) { y = com.microsoft.QuickGelu(x) }",
    "with a function": """<ir_version: 10, opset_import: ["" : 18, "smelt" : 1]>
        g (float[2] x) => (float[2] y) { y = smelt.Digamma(x) }
        <domain: "smelt", opset_import: ["" : 18]> Digamma (a) => (b) { b = Neg(a) }""",
}


@pytest.mark.parametrize("graph", NOT_REPLACED.values(), ids=NOT_REPLACED)
def test_operators_that_stay(graph: str) -> None:
    model = text.parse(graph, 18)
    assert not run_pass(replace_runtime_gaps, model).rewrites


def test_values_of_functions_have_no_types() -> None:
    """The function stays, because it uses an attribute of its calls."""

    def model() -> ir.Model:
        return ir.from_onnx_text(
            """<ir_version: 10, opset_import: ["" : 20, "f" : 1]>
            g (float[2,3] x, int64 n) => (int64 y) { y = f.Longest <first = 0> (x) }
            <domain: "f", opset_import: ["" : 20]> Longest <first> (x) => (y) {
                s = Shape<start: int = @first>(x) y = ReduceMax<keepdims = 0>(s) }"""
        )

    replaced = model()
    run_pass(replace_runtime_gaps, replaced)
    (function,) = replaced.functions.values()
    assert any(node.op_type == "Mod" for node in function)
    x, n = np.ones((2, 3), np.float32), np.int64(1)
    assert OnnxRuntime(replaced)(x, n) == OnnxRuntime(model())(x, n) == (3,)


def as_source(graph: str) -> onnx.ModelProto:
    """Return ``graph`` as another tool would write it: with its operators, without functions."""
    return ir.to_proto(text.parse(graph, 18))


def test_defective_operators_of_the_source_are_reported_and_stay() -> None:
    proto = as_source(WIDE)
    model = smelt.optimize(smelt.load(proto))
    assert [node.op_type for node in model.graph] == ["Max"]
    assert [node.op_type for node in unreplaced_defects(model)] == ["Max"]
    assert only_standard(smelt.to_proto(model))
    x, z = np.array([2**40, -(2**40), 5, 2**33]), np.array([1, 2**40, 2**62, -1])
    np.testing.assert_array_equal(OnnxRuntime(model)(x, z)[0], np.maximum(x, z))
    (node,) = smelt.compile(proto, target="ort").model.graph
    assert node.domain == "smelt"


def test_small_integers_of_the_source_are_not_told() -> None:
    assert not unreplaced_defects(smelt.load(as_source(RANGES)))


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_exports_get_no_function_and_no_domain(path: Path) -> None:
    source = onnx.load(path)
    done = smelt.optimize(source)
    assert only_standard(done, source)
    files = smelt.compile(source, target="onnx").files
    (name,) = (name for name in files if name.endswith(".onnx"))
    assert only_standard(onnx.load_from_string(files[name]), source)


def only_standard(model: onnx.ModelProto, source: onnx.ModelProto | None = None) -> bool:
    """True if ``model`` has no domains and functions beyond ONNX and those of ``source``."""
    known = {"", "ai.onnx.ml"} | {i.domain for i in (source.opset_import if source else ())}
    functions = {(f.domain, f.name) for f in (source.functions if source else ())}
    domains = {item.domain for item in model.opset_import}
    return domains <= known and {(f.domain, f.name) for f in model.functions} <= functions
