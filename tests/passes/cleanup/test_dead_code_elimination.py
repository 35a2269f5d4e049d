"""Dead code: what nobody reads goes, interfaces stay."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from rewrites import check_rewrite, check_unchanged, run_pass

from smelt.frontends.onnx import load
from smelt.ir import text
from smelt.passes.cleanup.dead_code_elimination import dead_code_elimination

REMOVED = {
    "a chain": (
        "g (float[4] x) => (float[4] y) { a = Exp(x) b = Neg(a) c = Abs(b) y = Relu(x) }",
        "g (float[4] x) => (float[4] y) { y = Relu(x) }",
    ),
    "a branch node with all that only it captures": (
        "g (float[4] x, bool c) => (float[4] y) { r = Exp(x) d = If(c) <"
        "then_branch = t () => (float[4] t) { t = Neg(r) },"
        "else_branch = e () => (float[4] e) { e = Abs(r) }> y = Relu(x) }",
        "g (float[4] x, bool c) => (float[4] y) { y = Relu(x) }",
    ),
    "inside a branch": (
        "g (float[4] x, bool c) => (float[4] y) { y = If(c) <"
        "then_branch = t () => (float[4] t) { a = Exp(x) t = Neg(x) },"
        "else_branch = e () => (float[4] e) { e = Abs(x) }> }",
        "g (float[4] x, bool c) => (float[4] y) { y = If(c) <"
        "then_branch = t () => (float[4] t) { t = Neg(x) },"
        "else_branch = e () => (float[4] e) { e = Abs(x) }> }",
    ),
}


@pytest.mark.parametrize(("before", "after"), REMOVED.values(), ids=REMOVED.keys())
def test_removes(before: str, after: str) -> None:
    check_rewrite(dead_code_elimination, before, after)


KEPT = {
    "an unused input": "g (float[4] x, float[4] unused) => (float[4] y) { y = Relu(x) }",
    "what a branch captures": (
        "g (float[4] x, bool c) => (float[4] y) { r = Exp(x) y = If(c) <"
        "then_branch = t () => (float[4] t) { t = Neg(r) },"
        "else_branch = e () => (float[4] e) { e = Abs(x) }> }"
    ),
    "the other half of a Split": "g (float[4] x) => (float[2] y) { y, z = Split<num_outputs=2>(x) }",
    "the first of two results": (
        "g (float[4] x) => (int64[2] i) <int64[1] k = {2}> { v, i = TopK(x, k) }"
    ),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(dead_code_elimination, graph)


def test_optional_outputs_constants_and_functions() -> None:
    model = load(
        text.parse(
            "g (float[4] x) => (float[4] y) <float[2] unused = {1,2}> { y, mask = Dropout(x) }"
        )
    )
    model.functions[("f", "F", "")] = ir.Function(
        "f", "F", graph=ir.Graph([], [], nodes=[], opset_imports={"": 20}), attributes=[]
    )
    stats = run_pass(dead_code_elimination, model)
    assert stats.fired == {"unused output": 1, "unused constant": 1, "unused function": 1}
    model.opset_imports["nobody"] = 1
    assert run_pass(dead_code_elimination, model).fired == {"unused import": 1}
    assert list(model.opset_imports) == [""]
    assert len(model.graph[0].outputs) == 1
    assert not model.graph.initializers
    assert not model.functions
