"""What has to hold of the sizes of a run is a condition, unless it follows from their bounds."""

from __future__ import annotations

import re

import numpy as np
import pytest

import smelt
from smelt.errors import ErrorList, SmeltError, UsageError
from smelt.ir import text

CASES = {
    "elements": (
        "g (float[N] x) => (float[4] y) { s = Constant<value_ints=[4]>() y = Reshape(x, s) }",
        ["N != 4"],
    ),
    "rest": (
        "g (float[N] x) => (float[2,K] y) { s = Constant<value_ints=[2,-1]>() y = Reshape(x, s) }",
        ["N != ((N / 2) * 2)"],
    ),
    "rows": (
        "g (float[N] x) => (float[2,4] y) { s = Constant<value_ints=[2,-1]>() z = Reshape(x, s) "
        "e = Constant<value_ints=[2,4]>() y = Reshape(z, e) }",
        ["N != 8"],
    ),
    "shared dim": (
        "g (float[3,N] x, float[M,2] z) => (float[3,2] y) { y = MatMul(x, z) }",
        "N != M",
    ),
    "joined": (
        "g (float[3,N] x, float[M,2] z) => (float[3,K] y) { y = Concat<axis=1>(x, z) }",
        ["M != 3"],
    ),
    "scale": (
        "g (float[3,N] x, float[M] z) => (float[3,N] y) { y = LayerNormalization(x, z) }",
        ["M != N"],
    ),
    "updates": (
        "g (float[9,3] x, int64[N,1] i, float[M,3] u) => (float[9,3] y) { y = ScatterND(x, i, u) }",
        ["M != N"],
    ),
    "places": (
        "g (float[N,3] x, int64[M,2] i) => (float[M,2] y) { y = GatherElements<axis=1>(x, i) }",
        ["M > N"],
    ),
    "best": (
        "g (float[N] x) => (float[4] y, int64[4] i) { k = Constant<value_ints=[4]>() y, i = TopK(x, k) }",
        ["4 > N"],
    ),
    "too small for a window": (
        "g (float[1,1,3,N] x, float[1,1,3,4] w) => (float[1,1,1,K] y) { y = Conv(x, w) }",
        ["0 > (N - 3)"],
    ),
    "more than the parts": (
        "g (float[N] x) => (float[2] y, float[3] z) { s = Constant<value_ints=[2,3]>() "
        "y, z = Split(x, s) }",
        ["3 != (N - 2)"],
    ),
    "none": (
        "g (float[N,4] x, float[4,2] w) => (float[K] y) { z = MatMul(x, w) "
        "s = Constant<value_ints=[-1]>() y = Reshape(z, s) }",
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_conditions(name: str) -> None:
    graph, expected = CASES[name]
    dims = {dim: (2, 9) for dim in "NM" if f"[{dim}" in graph or f",{dim}]" in graph}
    program = smelt.compile(text.parse(graph, 21), target="c", dims=dims).plan.steps
    names = {str(each.size): each.name for each in program.input_sizes}
    found = [re.sub(r"dim\d", lambda m: names[m[0]], each.violation) for each in program.conditions]
    assert found == ([expected] if isinstance(expected, str) else expected)


BRANCHES = """g (float[N] x, bool c) => (float[4] y) { y = If (c) <then_branch = a () => (float[4] t)
    { s = Constant<value_ints=[4]>() t = Reshape(x, s) }, else_branch = b () => (float[4] e)
    { u = Constant<value_floats=[1.0,2.0,3.0,4.0]>() m = ReduceSum<keepdims=0>(x) e = Add(u, m) }> }"""
ROUNDS = """g (int64 n, float[N] x, float[4] z) => (float[4] y) { t = Constant<value=bool {1}>()
    y = Loop(n, t, z) <body = b (int64 i, bool c, float[4] v) => (bool d, float[4] w)
    { d = Identity(c) s = Constant<value_ints=[4]>() r = Reshape(x, s) w = Add(v, r) }> }"""
X, Z = np.arange(6, dtype=np.float32), np.float32([1, 2, 3, 4])


@pytest.mark.parametrize("size", ["N", "6"], ids=["open", "of no run"])
def test_a_branch_sets_a_condition_where_it_runs(size: str) -> None:
    """A branch may be there for other sizes than those of this run, or of this model."""
    dims = {"N": (1, 9)} if size == "N" else None
    run = smelt.compile(text.parse(BRANCHES.replace("N", size), 21), target="c", dims=dims).load()
    (y,) = run(X, np.array(False))
    assert y.tolist() == [16, 17, 18, 19]
    with pytest.raises(UsageError, match="E670"):
        run(X, np.array(True))


def test_a_body_sets_a_condition_where_it_runs() -> None:
    run = smelt.compile(text.parse(ROUNDS, 21), target="c", dims={"N": (1, 9)}).load()
    assert run(np.array(2), X[:4], Z)[0].tolist() == [1, 4, 7, 10]
    assert run(np.array(0), X, Z)[0].tolist() == Z.tolist()
    with pytest.raises(UsageError, match="E670"):
        run(np.array(1), X, Z)


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_programs_of_this_process_check_the_sizes_of_a_call(engine: str) -> None:
    graph = "g (float[3,N] x, float[M,2] z) => (float[3,2] y) { y = MatMul(x, z) }"
    run = smelt.compile(text.parse(graph, 21), target="host", engine=engine)
    assert run(Z.reshape(2, 2)[[0, 0, 0]], np.eye(2, dtype=np.float32))[0].tolist() == [[1, 2]] * 3
    with pytest.raises(UsageError, match="E670 the sizes of the inputs do not fit together"):
        run(np.ones((3, 40), np.float32), np.ones((3, 2), np.float32))


def test_operands_that_fit_in_no_run_are_refused() -> None:
    graph = "g (float[N,2] x) => (float[3] y) { s = Constant<value_ints=[3]>() y = Reshape(x, s) }"
    with pytest.raises((SmeltError, ErrorList), match="E201 the operands of Reshape do not fit"):
        smelt.compile(text.parse(graph, 21), target="c", dims={"N": (2, 9)})


def test_a_result_that_is_declared_with_too_few_dims_hides_no_mismatch() -> None:
    graph = "g (float[65] x, float[7] w) => (float y) { y = Add(x, w) }"
    with pytest.raises((SmeltError, ErrorList), match=r"E317 .*\n.*\n.*the operands broadcast"):
        smelt.compile(text.parse(graph, 21), target="c")


def test_a_shape_that_loses_elements_is_refused() -> None:
    """A 0 keeps the first size: six elements of a tensor without any."""
    graph = (
        "g (bool[6,6,1,0] x) => (bool[6] y) { s = Constant<value_ints=[0]>() y = Reshape(x, s) }"
    )
    with pytest.raises(
        (SmeltError, ErrorList), match=r"E317 .*\n.*\n.*the result has the elements of the input"
    ):
        smelt.compile(text.parse(graph, 21), target="c")
