"""What has to hold of the sizes of a run is a condition, unless it follows from their bounds."""

from __future__ import annotations

import re

import pytest

import smelt
from smelt.errors import ErrorList, SmeltError
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
    "in a branch that may not run": (
        "g (float[N] x, bool c) => (float[4] y) { y = If (c) <then_branch = a () => (float[4] t) "
        "{ s = Constant<value_ints=[4]>() t = Reshape(x, s) }, else_branch = b () => (float[4] e) "
        "{ e = Constant<value_floats=[0.0,0.0,0.0,0.0]>() }> }",
        [],
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
    names = {str(each.size): each.name for each in program.given}
    found = [re.sub(r"dim\d", lambda m: names[m[0]], each.broken) for each in program.conditions]
    assert found == ([expected] if isinstance(expected, str) else expected)


def test_what_holds_in_no_run_is_refused() -> None:
    graph = "g (float[N,2] x) => (float[3] y) { s = Constant<value_ints=[3]>() y = Reshape(x, s) }"
    with pytest.raises((SmeltError, ErrorList), match="E201 the operands of Reshape do not fit"):
        smelt.compile(text.parse(graph, 21), target="c", dims={"N": (2, 9)})


def test_a_shape_that_loses_elements_is_refused() -> None:
    """A 0 keeps the first size: six elements of a tensor without any."""
    graph = (
        "g (bool[6,6,1,0] x) => (bool[6] y) { s = Constant<value_ints=[0]>() y = Reshape(x, s) }"
    )
    with pytest.raises((SmeltError, ErrorList), match="0 is never equal to 6"):
        smelt.compile(text.parse(graph, 21), target="c")
