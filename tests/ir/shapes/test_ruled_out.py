"""Sizes that a branch cannot have abort the runs that take it; no file is written for such a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt.errors import InvalidModel, UsageError
from smelt.ir import text

BRANCHES = """g (float[1,T] x, bool c, float[8,4] w, float[6,4] v) => (float[1,4] y) {
  y = If<then_branch = t () => (p) { p = MatMul(x, w) },
         else_branch = e () => (q) { q = MatMul(x, v) }>(c) }"""
ROUNDS = """g (float[1,T] x, int64 n, float[6,4] v, float[1,4] s) => (float[1,4] y) {
  t = Constant<value=bool {1}>()
  y = Loop(n, t, s) <body = b (int64 i, bool c, float[1,4] a) => (bool d, float[1,4] z) {
    d = Identity(c) z = MatMul(x, v) }> }"""
NOT_IN_A_BRANCH = "g (float[1,T] x, float[6,4] v) => (float[1,4] y) { y = MatMul(x, v) }"
X = np.ones((1, 8), np.float32)
W, V = np.ones((8, 4), np.float32), np.ones((6, 4), np.float32)


def model(graph: str, size: int | str = "T") -> ir.Model:
    return text.parse(graph.replace("T]", f"{size}]"), 23)


@pytest.mark.parametrize(
    "options",
    [
        {"target": "host", "engine": "numpy"},
        {"target": "host", "engine": "native"},
        {"target": "c", "dims": {"T": 8}},
    ],
    ids=["numpy", "native", "c"],
)
def test_a_run_that_takes_the_other_branch_has_its_result(options: dict[str, Any]) -> None:
    artifact = smelt.compile(model(BRANCHES), **options)
    assert artifact.ready(None)
    (result,) = artifact(X, np.array(True), W, V)
    np.testing.assert_array_equal(result, np.full((1, 4), 8, np.float32))
    with pytest.raises(UsageError, match="E670"):
        artifact(X, np.array(False), W, V)


@pytest.mark.parametrize("options", [{"target": "host", "engine": "numpy"}, {"target": "c"}])
def test_sizes_that_the_model_fixes_itself(options: dict[str, Any]) -> None:
    artifact = smelt.compile(model(BRANCHES, 8), **options)
    (result,) = artifact(X, np.array(True), W, V)
    np.testing.assert_array_equal(result, np.full((1, 4), 8, np.float32))


def test_the_error_names_the_node_and_the_fix() -> None:
    optimized = smelt.optimize(model(BRANCHES, 8))
    with pytest.raises(InvalidModel) as caught:
        smelt.to_proto(optimized)
    assert caught.value.code == "E317"
    assert "8 vs 6" in caught.value.why
    assert "v [6, 4]" in caught.value.why
    assert "compile for c or host" in caught.value.fix


def test_a_file_without_such_sizes_is_written() -> None:
    smelt.to_proto(smelt.optimize(model(BRANCHES)))


def test_a_loop_that_may_run_no_iteration() -> None:
    artifact = smelt.compile(model(ROUNDS, 8), target="host", engine="numpy")
    state = np.full((1, 4), 3, np.float32)
    (result,) = artifact(X, np.array(0), V, state)
    np.testing.assert_array_equal(result, state)
    with pytest.raises(UsageError, match="E670"):
        artifact(X, np.array(1), V, state)


@pytest.mark.parametrize(
    "graph",
    [
        NOT_IN_A_BRANCH,
        ROUNDS.replace("int64 n, ", "").replace("t = C", "n = Constant<value=int64 {2}>() t = C"),
    ],
    ids=["no branch", "a loop of two rounds"],
)
def test_impossible_sizes_on_every_path_are_refused(graph: str) -> None:
    with pytest.raises(InvalidModel, match="E317"):
        smelt.optimize(model(graph, 8))


NESTED = """g (float[1,T] x, bool c, float[8,4] w, float[6,4] v) => (float[1,4] y) {
  y = If<then_branch = t () => (p) { p = MatMul(x, w) },
         else_branch = e () => (q) { q0 = If<then_branch = t1 () => (p1) { p1 = MatMul(x, v) },
           else_branch = e1 () => (q1) { u = Neg(x) q1 = MatMul(u, v) }>(c) q = Neg(q0) }>(c) }"""


@pytest.mark.parametrize("options", [{"target": "host", "engine": "numpy"}, {"target": "c"}])
def test_a_branch_whose_inner_branches_both_fail(options: dict[str, Any]) -> None:
    artifact = smelt.compile(model(NESTED, 8), **options)
    (result,) = artifact(X, np.array(True), W, V)
    np.testing.assert_array_equal(result, np.full((1, 4), 8, np.float32))
    with pytest.raises(UsageError, match="E670"):
        artifact(X, np.array(False), W, V)


@pytest.mark.parametrize("taken", [0, 1])
def test_a_branch_that_every_run_takes(taken: int) -> None:
    """No file is written for the model with that branch inlined, either."""
    graph = BRANCHES.replace("bool c, ", "").replace(
        "{\n  y", f"{{ c = Constant<value=bool {{{taken}}}>()\n  y"
    )
    optimized = smelt.optimize(model(graph, 8))
    if taken:
        assert [node.op_type for node in smelt.to_proto(optimized).graph.node] == ["MatMul"]
        return
    with pytest.raises(InvalidModel, match="E317"):
        smelt.to_proto(optimized)


def test_other_sizes_rule_out_other_branches() -> None:
    optimized = smelt.optimize(model(BRANCHES, 8))
    optimized.graph.inputs[0].shape = ir.Shape([1, 6])
    artifact = smelt.compile(optimized, target="c")
    (result,) = artifact(X[:, :6], np.array(False), W, V)
    np.testing.assert_array_equal(result, np.full((1, 4), 6, np.float32))
    with pytest.raises(UsageError, match="E670"):
        artifact(X[:, :6], np.array(True), W, V)
