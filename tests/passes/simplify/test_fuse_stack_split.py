"""A Concat whose parts are taken apart again is dropped."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.simplify.fuse_stack_split import fuse_stack_split

TWO = "float[N,3] a, float[N,3] b"
OUT = "(float[N,3] y, float[N,3] z)"
BACK = f"g ({TWO}) => {OUT} {{ y = Neg(a) z = Abs(b) }}"
ENDS = "y = Neg(u) z = Abs(v)"


def stacked(
    axis: int, split: str = "c, d = Split<axis={}, num_outputs=2>(s)", rest: str = ENDS
) -> str:
    return (
        f"k = Constant<value_ints=[{axis}]>() ones = Constant<value_ints=[1,1]>() "
        f"p = Unsqueeze(a, k) q = Unsqueeze(b, k) s = Concat<axis={axis}>(p, q) "
        f"{split.format(axis)} u = Squeeze(c, k) v = Squeeze(d, k) {rest}"
    )


BOTH = {
    "along a new axis": stacked(1),
    "along the last axis": stacked(-1),
    "by sizes": stacked(0, "c, d = Split<axis={}>(s, ones)"),
    "without an axis of their own": f"s = Concat<axis=1>(a, b) u, v = Split<axis=-1, num_outputs=2>(s) {ENDS}",
    "along an axis that is not known": f"s = Concat<axis=0>(a, b) u, v = Split<axis=0, num_outputs=2>(s) {ENDS}",
    "by numbers": "k = Constant<value_ints=[1]>() p = Unsqueeze(a, k) q = Unsqueeze(b, k) "
    "s = Concat<axis=1>(p, q) i = Constant<value_int=0>() j = Constant<value_int=-1>() "
    f"u = Gather<axis=1>(s, i) v = Gather<axis=-2>(s, j) {ENDS}",
}


@pytest.mark.parametrize("body", BOTH.values(), ids=BOTH.keys())
def test_gives_the_values_back(body: str) -> None:
    check_rewrite(fuse_stack_split, f"g ({TWO}) => {OUT} {{ {body} }}", BACK)


def test_parts_of_different_sizes() -> None:
    check_rewrite(
        fuse_stack_split,
        "g (float[2,N] a, float[3,N] b) => (float[2,N] y, float[3,N] z) { "
        "k = Constant<value_ints=[2,3]>() s = Concat<axis=0>(a, b) u, v = Split(s, k) "
        "y = Neg(u) z = Abs(v) }",
        "g (float[2,N] a, float[3,N] b) => (float[2,N] y, float[3,N] z) { y = Neg(a) z = Abs(b) }",
    )


def test_sizes_as_an_attribute() -> None:
    check_rewrite(
        fuse_stack_split,
        "g (float[2,3] a, float[3,3] b) => (float[2,3] y, float[3,3] z) { "
        "s = Concat<axis=0>(a, b) u, v = Split<split=[2,3]>(s) y = Neg(u) z = Abs(v) }",
        "g (float[2,3] a, float[3,3] b) => (float[2,3] y, float[3,3] z) { y = Neg(a) z = Abs(b) }",
        opset=11,
    )


def test_readers_of_the_stack_keep_it() -> None:
    body = "s = Concat<axis=1>(a, b)"
    outputs = "(float[N,3] y, float[N,3] z, float[N,6] s)"
    check_rewrite(
        fuse_stack_split,
        f"g ({TWO}) => {outputs} {{ {body} u, v = Split<axis=1, num_outputs=2>(s) {ENDS} }}",
        f"g ({TWO}) => {outputs} {{ {body} y = Neg(a) z = Abs(b) }}",
    )


def test_parts_that_are_outputs_or_unread() -> None:
    check_rewrite(
        fuse_stack_split,
        f"g ({TWO}) => (float[N,3] y) {{ s = Concat<axis=1>(a, b) "
        "y, v = Split<axis=1, num_outputs=2>(s) }",
        f"g ({TWO}) => (float[N,3] y) {{ y = Identity(a) }}",
    )


KEPT = {
    "other sizes": f"g ({TWO}) => (float[N,2] y, float[N,4] z) {{ k = Constant<value_ints=[2,4]>() "
    "s = Concat<axis=1>(a, b) y, z = Split<axis=1>(s, k) }",
    "more parts": f"g ({TWO}) => (float[N,2] y, float[N,2] z, float[N,2] w) {{ "
    "s = Concat<axis=1>(a, b) y, z, w = Split<axis=1, num_outputs=3>(s) }",
    "another axis": "g (float[2,3] a, float[2,3] b) => (float[1,6] y, float[1,6] z) { "
    "s = Concat<axis=1>(a, b) y, z = Split<axis=0, num_outputs=2>(s) }",
    "sizes that only the caller knows": "g (float[2,N] a, float[2,N] b, int64[2] k) => "
    "(float[P,N] y, float[Q,N] z) { s = Concat<axis=0>(a, b) y, z = Split<axis=0>(s, k) }",
    "dims that are not known to be equal": "g (float[N] a, float[M] b) => (float[P] y, float[Q] z) "
    "{ s = Concat<axis=0>(a, b) y, z = Split<axis=0, num_outputs=2>(s) }",
    "an index that only the caller knows": f"g ({TWO}, int64 i) => (float[N,3] y) "
    "{ k = Constant<value_ints=[1]>() p = Unsqueeze(a, k) q = Unsqueeze(b, k) "
    "s = Concat<axis=1>(p, q) y = Gather<axis=1>(s, i) }",
    "a row of what is no stack": f"g ({TWO}) => (float[N] y) {{ i = Constant<value_int=1>() "
    "s = Concat<axis=1>(a, b) y = Gather<axis=1>(s, i) }",
    "another axis of a stack": f"g ({TWO}) => (float[N,2] y) {{ i = Constant<value_int=1>() "
    "k = Constant<value_ints=[1]>() p = Unsqueeze(a, k) q = Unsqueeze(b, k) "
    "s = Concat<axis=1>(p, q) y = Gather<axis=2>(s, i) }",
    "a list of one index": f"g ({TWO}) => (float[N,1,3] y) {{ i = Constant<value_ints=[1]>() "
    "k = Constant<value_ints=[1]>() p = Unsqueeze(a, k) q = Unsqueeze(b, k) "
    "s = Concat<axis=1>(p, q) y = Gather<axis=1>(s, i) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_stack_split, graph)
