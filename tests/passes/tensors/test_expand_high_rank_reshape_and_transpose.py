"""Transposes of high rank are rewritten within a rank limit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rewrites import check_operators, check_rewrite, check_same_numbers, check_unchanged, run_pass

from smelt import optimize
from smelt.errors import UsageError
from smelt.ir import text
from smelt.passes.tensors.expand_high_rank_reshape_and_transpose import (
    expand_high_rank_reshape_and_transpose as expand,
)


def moved(x: str, middle: str, perm: str, end: str, y: str, more: str = "") -> str:
    return (
        f"g (float{x} x) => (float{y} y{more}) {{ m = Constant<value_ints={middle}>() "
        f"e = Constant<value_ints={end}>() a = Reshape(x, m) t = Transpose<perm={perm}>(a) "
        "y = Reshape(t, e) }"
    )


FEWER = {
    "neighbours become one": (
        moved("[24,30]", "[2,3,4,5,3,2]", "[3,4,5,0,1,2]", "[30,24]", "[30,24]"),
        moved("[24,30]", "[24,30]", "[1,0]", "[30,24]", "[30,24]"),
    ),
    "sizes of 1 are dropped": (
        moved("[6,20]", "[2,1,3,4,1,5]", "[1,2,0,4,3,5]", "[6,20]", "[6,20]"),
        moved("[6,20]", "[2,3,20]", "[1,0,2]", "[6,20]", "[6,20]"),
    ),
    "a symbolic batch": (
        moved("[N,8,6]", "[0,2,4,1,2,3]", "[0,1,4,3,2,5]", "[0,4,12]", "[N,4,12]"),
        moved("[N,8,6]", "[-1,4,2,3]", "[0,2,1,3]", "[-1,4,12]", "[N,4,12]"),
    ),
    "windows of an image": (
        moved("[N,8,6,3]", "[0,2,4,3,2,3]", "[0,1,3,2,4,5]", "[-1,8,3]", "[M,8,3]"),
        moved("[N,8,6,3]", "[-1,4,3,6]", "[0,2,1,3]", "[-1,8,3]", "[M,8,3]"),
    ),
    "nothing moves": (
        moved("[4,6]", "[2,1,2,1,2,3]", "[0,3,2,1,4,5]", "[6,4]", "[6,4]"),
        "g (float[4,6] x) => (float[6,4] y) { e = Constant<value_ints=[6,4]>() y = Reshape(x, e) }",
    ),
}


@pytest.mark.parametrize(("before", "after"), FEWER.values(), ids=FEWER.keys())
def test_fewer_axes(before: str, after: str) -> None:
    check_rewrite(expand, before, after)


def gathered(x: str, axis: int, perm: str, end: str, y: str) -> str:
    """Return text that gathers 4 windows of 2 along ``axis``, moves axes and merges them."""
    return (
        f"g (float{x} x) => (float{y} y) <int64[4,2] i = {{0,1,1,2,2,3,3,-1}}> {{ "
        f"e = Constant<value_ints={end}>() a = Gather<axis={axis}>(x, i) "
        f"t = Transpose<perm={perm}>(a) y = Reshape(t, e) }}"
    )


@pytest.mark.parametrize(
    ("graph", "operators"),
    [
        (
            gathered("[N,4,8,3,2]", 2, "[0,2,4,1,3,5]", "[-1,12,16]", "[N,12,16]"),
            ["Gather", "Reshape", "Transpose", "Reshape", "Transpose", "Reshape"],
        ),
        (
            gathered("[2,4,8,3,4]", 4, "[0,1,2,3,5,4]", "[2,32,24]", "[2,32,24]"),
            ["Gather", "Reshape", "Transpose", "Reshape"],
        ),
    ],
)
def test_windows_are_gathered_by_a_vector(graph: str, operators: list[str]) -> None:
    model = check_operators(expand, graph, operators)
    assert all(len(value.shape) <= 5 for node in model.graph for value in node.outputs)


@pytest.mark.parametrize(
    "graph",
    [
        "g (float[2,3,4,5] x, int64[4,2] i) => (y) { y = Gather<axis=1>(x, i) }",
        "g (float[2,3,4,5] x) => (y) <int64[4,2] i = {0,1,1,2,2,0,0,1}> { y = Gather<axis=1>(x, i) }",
        "g (float[2,3,4,5,6] x, int64[2,2] i) => (y) { y = Gather<axis=1>(x, i) }",
        "g (float[2,3,4,5,2,2] x) => (y) <int64[2,2] i = {0,1,1,2}> { y = Gather<axis=1>(x, i) }",
        "g (float[N,M,4,5,6] x) => (y) <int64[2,2] i = {0,1,1,2}> { y = Gather<axis=2>(x, i) }",
    ],
)
def test_gathers_that_stay(graph: str) -> None:
    check_unchanged(expand, graph)


def test_a_reversal_takes_steps_of_rank_4() -> None:
    model = check_operators(
        expand,
        moved("[6,8,N]", "[2,3,2,2,1,2,-1]", "[6,5,4,3,2,1,0]", "[-1,48]", "[N,48]"),
        ["Reshape", "Transpose"] * 5 + ["Reshape"],
    )
    assert all(len(node.outputs[0].shape or ()) <= 4 for node in model.graph)


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(7)), st.lists(st.integers(1, 3), min_size=7, max_size=7))
def test_any_permutation(perm: list[int], sizes: list[int]) -> None:
    count = int(np.prod(sizes))
    graph = moved(f"[{count}]", str(sizes), str(list(perm)), f"[{count}]", f"[{count}]")
    source, model = text.parse(graph), text.parse(graph)
    assert run_pass(expand, model, max_rank=4).rewrites == 1
    assert all(len(node.outputs[0].shape or ()) <= 4 for node in model.graph)
    feeds = {"x": np.arange(count, dtype=np.float32)}
    check_same_numbers(source, model, expand.exactness, feeds)


SIX = moved("[24,30]", "[2,3,4,5,3,2]", "[3,4,5,0,1,2]", "[30,24]", "[30,24]")
KEPT = {
    "rank 5": moved("[24,30]", "[2,3,4,5,6]", "[3,4,0,1,2]", "[30,24]", "[30,24]"),
    "the inner tensor is an output": SIX.replace("y)", "y, float[2,3,4,5,3,2] a)", 1),
    "the result has rank 6": moved(
        "[24,30]", "[2,3,4,5,3,2]", "[3,4,5,0,1,2]", "[5,3,2,2,3,4]", "[5,3,2,2,3,4]"
    ),
    "two unknown dims": moved(
        "[N,4,S,6]", "[0,2,2,-1,2,3]", "[3,4,1,2,0,5]", "[0,-1,24]", "[S,N,24]"
    ),
    "nothing in it": moved("[0,30]", "[0,3,4,5,3,2]", "[0,3,4,5,1,2]", "[0,30]", "[0,30]"),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(expand, graph)


def test_refuses_a_limit_below_4() -> None:
    with pytest.raises(UsageError) as caught:
        run_pass(expand, text.parse(SIX), max_rank=3)
    assert caught.value.code == "E603"


def test_by_a_pipeline() -> None:
    graph = moved("[24,30]", "[2,3,4,5,6]", "[4,3,2,1,0]", "[30,24]", "[30,24]")
    name, source = "expand-high-rank-reshape-and-transpose", text.parse(graph)
    assert len(optimize(source, pipeline=name).graph) == len(source.graph)
    done = optimize(source, pipeline=f"{name}{{max-rank=4}}")
    assert all(len(node.outputs[0].shape or ()) <= 4 for node in done.graph)
    check_same_numbers(source, done, expand.exactness)
