"""Dead code is removed; interfaces stay."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from rewrites import check_rewrite, check_same_numbers, check_unchanged, run_pass

import smelt
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


_NORM = (
    "g (float[2,3] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3] y) "
    "{{ y, {others} = BatchNormalization{attributes}(x, s, b, m, v) }}"
)
_HEADS = "float[1,2,3,4]"
SIGNS = {
    "all five outputs train, before opset 14": (
        13,
        _NORM.format(others="mean, var, saved_mean, saved_var", attributes=""),
    ),
    "an attribute and three outputs train": (
        15,
        _NORM.format(others="mean, var", attributes="<training_mode=1>"),
    ),
    "past keys ask for present ones": (
        23,
        f"g ({_HEADS} q, {_HEADS} k, {_HEADS} v, float[1,2,5,4] pk, float[1,2,5,4] pv) => ({_HEADS} y) "
        "{ y, keys, values = Attention(q, k, v, , pk, pv) }",
    ),
}


@pytest.mark.parametrize(("opset", "graph"), SIGNS.values(), ids=SIGNS.keys())
def test_outputs_whose_presence_means_something_stay(opset: int, graph: str) -> None:
    check_unchanged(dead_code_elimination, graph, opset=opset)
    source = text.parse(graph, opset)
    check_same_numbers(source, smelt.optimize(source), dead_code_elimination.exactness)


def test_scores_that_nobody_reads_go_while_present_keys_stay() -> None:
    check_rewrite(
        dead_code_elimination,
        f"g ({_HEADS} q, {_HEADS} k, {_HEADS} v, float[1,2,5,4] pk, float[1,2,5,4] pv) => ({_HEADS} y) "
        "{ y, keys, values, scores = Attention(q, k, v, , pk, pv) }",
        f"g ({_HEADS} q, {_HEADS} k, {_HEADS} v, float[1,2,5,4] pk, float[1,2,5,4] pv) => ({_HEADS} y) "
        "{ y, keys, values = Attention(q, k, v, , pk, pv) }",
    )


def test_outputs_that_nobody_reads_go_one_by_one() -> None:
    check_rewrite(
        dead_code_elimination,
        "g (float[5,1,3] x, float[1,8,3] w, float[1,8,2] r) => (float[1,1,2] h) "
        "{ y, h, c = LSTM<hidden_size=2>(x, w, r) }",
        "g (float[5,1,3] x, float[1,8,3] w, float[1,8,2] r) => (float[1,1,2] h) "
        "{ y, h = LSTM<hidden_size=2>(x, w, r) }",
        modes=("normal",),
    )


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
