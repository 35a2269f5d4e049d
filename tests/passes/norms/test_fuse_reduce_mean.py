"""A sum divided by the number of its elements becomes a mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from literals import literal
from rewrites import check_rewrite, check_unchanged

from smelt.passes.norms.fuse_reduce_mean import fuse_reduce_mean

AXES = {
    "one axis": ("float[N,1,5]", "s = ReduceSum(x, a)", "int64[1] a = {1}", 3, "1"),
    "two axes": ("float[N,1,1]", "s = ReduceSum(x, a)", "int64[2] a = {2,1}", 15, "1,2"),
    "negative": ("float[N,3,1]", "s = ReduceSum<keepdims=1>(x, a)", "int64[1] a = {-1}", 5, "2"),
    "dropped": ("float[N,5]", "s = ReduceSum<keepdims=0>(x, a)", "int64[1] a = {1}", 3, "1"),
}
ENDS = {
    "divided": lambda n: (n, "Div(s, c)"),
    "times": lambda n: (np.float32(1 / n), "Mul(s, c)"),
    "times, swapped": lambda n: (np.float32(1 / n), "Mul(c, s)"),
}


@pytest.mark.parametrize(("shape", "body", "axes", "n", "sorted_"), AXES.values(), ids=AXES.keys())
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
@pytest.mark.parametrize("opset", [13, 17, 18, 23])
def test_fuses(
    shape: str,
    body: str,
    axes: str,
    n: int,
    sorted_: str,
    end: Callable[[int], tuple[float, str]],
    opset: int,
) -> None:
    number, root = end(n)
    keepdims = int("keepdims=0" not in body)
    g = f"g (float[N,3,5] x) => ({shape} y)"
    given, listed = (
        (f"<keepdims={keepdims}, axes=[{sorted_}]>(x)", "")
        if opset < 18
        else (
            f"<keepdims={keepdims}>(x, a)",
            f"<int64[{sorted_.count(',') + 1}] a = {{{sorted_}}}>",
        )
    )
    check_rewrite(
        fuse_reduce_mean,
        f"{g} <{axes}, float c = {literal('float', number)}> {{ {body} y = {root} }}",
        f"{g} {listed} {{ y = ReduceMean{given} }}",
        opset=opset,
        modes=("normal",),
    )


def test_all_axes_where_none_are_given() -> None:
    check_rewrite(
        fuse_reduce_mean,
        "g (float[2,3] x) => (float[1,1] y) <float c = {6}> { s = ReduceSum(x) y = Div(s, c) }",
        "g (float[2,3] x) => (float[1,1] y) <int64[2] a = {0,1}> "
        "{ y = ReduceMean<keepdims=1>(x, a) }",
    )


def test_down_to_a_scalar() -> None:
    check_rewrite(
        fuse_reduce_mean,
        "g (float[4] x) => (float y) <float c = {4}> { s = ReduceSum<keepdims=0>(x) y = Div(s, c) }",
        "g (float[4] x) => (float y) <int64[1] a = {0}> { y = ReduceMean<keepdims=0>(x, a) }",
    )


@pytest.mark.parametrize("dtype", ["float16", "double"])
@pytest.mark.parametrize("by", ["Div", "Mul"])
def test_other_floats(dtype: str, by: str) -> None:
    c = literal(dtype, 5 if by == "Div" else 0.2)
    g = f"g ({dtype}[N,5] x) => ({dtype}[N,1] y) <int64[1] a = {{1}}"
    check_rewrite(
        fuse_reduce_mean,
        f"{g}, {dtype}[1,1] c = {c}> {{ s = ReduceSum(x, a) y = {by}(s, c) }}",
        f"{g}> {{ y = ReduceMean<keepdims=1>(x, a) }}",
        modes=("normal",),
    )


def graph(end: str, c: float, *, x: str = "N,5", y: str = "N,1", dtype: str = "float") -> str:
    return (
        f"g ({dtype}[{x}] x) => ({dtype}[{y}] y) <int64[1] a = {{1}}, {dtype} c = "
        f"{literal(dtype, c)}> {{ s = ReduceSum(x, a) y = {end} }}"
    )


KEPT = {
    "another number": graph("Div(s, c)", 4),
    "n off by 0.3 %": graph("Div(s, c)", 5.015),
    "1/n off by 0.3 %": graph("Mul(s, c)", 0.2 * 1.003),
    "1/n off by one bit": graph("Mul(s, c)", float(np.nextafter(np.float32(0.2), np.float32(1)))),
    "1/n off by one bit of bfloat16": graph("Mul(s, c)", 0.2 + 2**-10, dtype="bfloat16"),
    "n for 1/n": graph("Mul(s, c)", 5),
    "n that float16 has not": graph("Div(s, c)", 2048, x="N,2049", dtype="float16"),
    "swapped": graph("Div(c, s)", 5),
    "a sum of unknown length": graph("Div(s, c)", 5, x="5,N", y="5,1"),
    "a sum of nothing": graph("Div(s, c)", 0, x="5,0", y="5,1"),
    "integers": graph("Div(s, c)", 5, dtype="int32"),
    "no axes to reduce": "g (float[5] x) => (float[5] y) <float c = {5}> "
    "{ s = ReduceSum<noop_with_empty_axes=1>(x) y = Div(s, c) }",
    "axes of the caller": "g (float[5,5] x, int64[1] a) => (float[?,?] y) <float c = {5}> "
    "{ s = ReduceSum(x, a) y = Div(s, c) }",
    "the sum is an output": "g (float[N,5] x) => (float[N,1] y, float[N,1] s) <int64[1] a = {1}, "
    "float c = {5}> { s = ReduceSum(x, a) y = Div(s, c) }",
    "the constant raises the rank": "g (float[N,5] x) => (float[1,1,N] y) <int64[1] a = {1}, "
    "float[1,1,1] c = {5}> { s = ReduceSum<keepdims=0>(x, a) y = Div(s, c) }",
    "the constant broadcasts": "g (float[2,5] x) => (float[2,5] y) <int64[1] a = {1}, "
    "float[5] c = {5,5,5,5,5}> { s = ReduceSum(x, a) y = Div(s, c) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_reduce_mean, graph)


N = "n = Shape<start=0, end=1>(x) "
K = "k = Shape<start=1, end=2>(x) "
COUNTS = {
    "of one axis": (f"{N} i = Squeeze(n, zero) c = Cast<to=1>(i)", "0", "[1,K,3]", "Div(s, c)"),
    "by way of int32 and float64": (
        f"{N} h = Cast<to=6>(n) i = Cast<to=11>(h) j = Cast<to=1>(i) c = Squeeze(j)",
        "0",
        "[1,K,3]",
        "Div(s, c)",
    ),
    "of two axes": (f"{N} {K} p = Mul(n, k) c = Cast<to=1>(p)", "0,1", "[1,1,3]", "Div(s, c)"),
    "of two axes and a known one": (
        f"{K} {N} q = Mul(k, three) p = Mul(q, n) c = Cast<to=1>(p)",
        "0,1,2",
        "[1,1,1]",
        "Div(s, c)",
    ),
    "one over it": (
        f"{N} i = Cast<to=1>(n) c = Reciprocal(i)",
        "0",
        "[1,K,3]",
        "Mul(c, s)",
    ),
    "1 / it": (f"{N} i = Cast<to=1>(n) c = Div(one, i)", "0", "[1,K,3]", "Mul(s, c)"),
}
HEAD = "<int64[1] zero = {0}, int64[1] three = {3}, float one = {1}>"


def counted(body: str, axes: str, y: str, root: str, x: str = "float[N,K,3]") -> str:
    return (
        f"g ({x} x) => (float{y} y) {HEAD} {{ {body} a = Constant<value_ints=[{axes}]>() "
        f"s = ReduceSum(x, a) y = {root} }}"
    )


@pytest.mark.parametrize(("body", "axes", "y", "root"), COUNTS.values(), ids=COUNTS.keys())
@pytest.mark.parametrize("opset", [17, 18, 25])
def test_a_count_of_symbols(body: str, axes: str, y: str, root: str, opset: int) -> None:
    given = f"<keepdims=1, axes=[{axes}]>(x)" if opset < 18 else "<keepdims=1>(x, a)"
    check_rewrite(
        fuse_reduce_mean,
        counted(body, axes, y, root),
        f"g (float[N,K,3] x) => (float{y} y) {{ a = Constant<value_ints=[{axes}]>() "
        f"y = ReduceMean{given} }}",
        opset=opset,
        modes=("normal",),
    )


ONE = "i = Squeeze(n, zero) c = Cast<to=1>(i)"
OTHER_COUNTS = {
    "of another axis": (f"{K} c = Cast<to=1>(k)", "0", "[1,K,3]", "Div(s, c)"),
    "of another tensor": (
        "z = Pad(x, pads) n = Shape<start=0, end=1>(z) c = Cast<to=1>(n)",
        "0",
        "[1,K,3]",
        "Div(s, c)",
    ),
    "less one": (
        f"{N} o = Constant<value_int=1>() p = Sub(n, o) c = Cast<to=1>(p)",
        "0",
        "[1,K,3]",
        "Div(s, c)",
    ),
    "in a type that it may leave": (
        f"{N} h = Cast<to=3>(n) c = Cast<to=1>(h)",
        "0",
        "[1,K,3]",
        "Div(s, c)",
    ),
    "by way of float16": (
        f"{N} h = Cast<to=10>(n) c = Cast<to=1>(h)",
        "0",
        "[1,K,3]",
        "Div(s, c)",
    ),
    "swapped": (f"{N} {ONE}", "0", "[1,K,3]", "Div(c, s)"),
}


@pytest.mark.parametrize(
    ("body", "axes", "y", "root"), OTHER_COUNTS.values(), ids=OTHER_COUNTS.keys()
)
def test_keeps_other_counts(body: str, axes: str, y: str, root: str) -> None:
    source = counted(body, axes, y, root).replace(
        "one = {1}", "one = {1}, int64[6] pads = {1,0,0,0,0,0}"
    )
    check_unchanged(fuse_reduce_mean, source)


def test_keeps_a_sum_of_what_may_be_nothing() -> None:
    check_unchanged(
        fuse_reduce_mean,
        "g (float[M] w) => (float[?] y) <int64[1] a = {1}> { i = NonZero(w) x = Cast<to=1>(i) "
        "n = Shape<start=1, end=2>(x) c = Cast<to=1>(n) s = ReduceSum<keepdims=0>(x, a) y = Div(s, c) }",
    )
