"""Leading dims of size 1 before operators that broadcast are dropped."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.simplify.drop_leading_ones import drop_leading_ones

A = "<int64[1] a = {0}>"
TABLE = "<int64[1] a = {0}, float[4,2] t = {1, 2, 3, 4, 5, 6, 7, 8}>"
GONE = {
    "an Unsqueeze": (
        f"g (float[2,3] x, float[3] c) => (float[2,3] y) {A} {{ u = Unsqueeze(c, a) y = Sub(u, x) }}",
        "g (float[2,3] x, float[3] c) => (float[2,3] y) { y = Sub(c, x) }",
    ),
    "a Reshape of a symbolic size to three dims": (
        "g (float[B,N,S] x, float[S] c) => (float[B,N,S] y) <int64[3] r = {1, 1, -1}> "
        "{ u = Reshape(c, r) y = Mul(x, u) }",
        "g (float[B,N,S] x, float[S] c) => (float[B,N,S] y) { y = Mul(x, c) }",
    ),
    "one of two, which gives the other its rank": (
        "g (int64[S] p) => (bool[1,1,S,S] y) <int64[4] r = {1, 1, 1, -1}, int64[4] q = {1, 1, -1, 1}>"
        " { u = Reshape(p, r) v = Reshape(p, q) y = LessOrEqual(u, v) }",
        "g (int64[S] p) => (bool[1,1,S,S] y) <int64[4] q = {1, 1, -1, 1}>"
        " { v = Reshape(p, q) y = LessOrEqual(p, v) }",
    ),
    "one that something else reads": (
        f"g (float[2,3] x, float[3] c) => (float[2,3] y, float[1,3] u) {A} "
        "{ u = Unsqueeze(c, a) y = Add(x, u) }",
        f"g (float[2,3] x, float[3] c) => (float[2,3] y, float[1,3] u) {A} "
        "{ u = Unsqueeze(c, a) y = Add(x, c) }",
    ),
    "of positions": (
        f"g (float[B,S,2] x, int64[S] p) => (float[B,S,2] y) {TABLE} "
        "{ u = Unsqueeze(p, a) e = Gather(t, u) y = Add(x, e) }",
        "g (float[B,S,2] x, int64[S] p) => (float[B,S,2] y) <float[4,2] t = {1,2,3,4,5,6,7,8}> "
        "{ e = Gather(t, p) y = Add(x, e) }",
    ),
    "the first of two": (
        f"g (float[3] x, float[3] c) => (float[1,3] y) {A} "
        "{ u = Unsqueeze(c, a) v = Unsqueeze(x, a) y = Sub(v, u) }",
        f"g (float[3] x, float[3] c) => (float[1,3] y) {A} {{ u = Unsqueeze(c, a) y = Sub(x, u) }}",
    ),
    "the second, where the first gives the result its rank": (
        f"g (float[3] x, float[2,3] c) => (float[1,2,3] y) {A} "
        "{ u = Unsqueeze(c, a) v = Unsqueeze(x, a) y = Sub(u, v) }",
        f"g (float[3] x, float[2,3] c) => (float[1,2,3] y) {A} "
        "{ u = Unsqueeze(c, a) y = Sub(u, x) }",
    ),
    "of a scalar": (
        f"g (float[N] x, float c) => (float[N] y) {A} {{ u = Unsqueeze(c, a) y = Div(x, u) }}",
        "g (float[N] x, float c) => (float[N] y) { y = Div(x, c) }",
    ),
}


@pytest.mark.parametrize("name", GONE)
def test_dims_that_broadcasting_adds_are_dropped(name) -> None:
    before, after = GONE[name]
    check_rewrite(drop_leading_ones, before, after)


KEPT = {
    "dims that give the result its rank": (
        f"g (float[3] x, float[3] c) => (float[1,3] y) {A} {{ u = Unsqueeze(c, a) y = Add(x, u) }}"
    ),
    "a dim behind others": (
        "g (float[3,2] x, float[3] c) => (float[3,2] y) <int64[1] a = {1}> "
        "{ u = Unsqueeze(c, a) y = Add(x, u) }"
    ),
    "a Reshape of other dims": (
        "g (float[2,2,2] x, float[4] c) => (float[2,2,2] y) <int64[3] r = {1, 2, 2}> "
        "{ u = Reshape(c, r) y = Add(x, u) }"
    ),
    "rows with other readers": (
        f"g (float[B,S,2] x, int64[S] p) => (float[B,S,2] y, float[1,S,2] e) {TABLE} "
        "{ u = Unsqueeze(p, a) e = Gather(t, u) y = Add(x, e) }"
    ),
    "columns": (
        "g (float[4,1,S] x, int64[S] p) => (float[4,1,S] y) <int64[1] a = {0}, "
        "float[4,2] t = {1, 2, 3, 4, 5, 6, 7, 8}> "
        "{ u = Unsqueeze(p, a) e = Gather<axis=1>(t, u) y = Add(x, e) }"
    ),
    "an operator that does not broadcast": (
        f"g (float[2,3] x, float[3] c) => (float[3,3] y) {A} "
        "{ u = Unsqueeze(c, a) y = Concat<axis=0>(x, u) }"
    ),
    "a size that may differ": (
        "g (float[B,N,S] x, float[T] c, int64[3] r) => (float[B,N,S] y) "
        "{ u = Reshape(c, r) y = Mul(x, u) }"
    ),
    "of another graph": (
        "g (bool k, float[2,3] x, float[3] c) => (float[2,3] y) "
        "<int64[1] a = {0}> { u = Unsqueeze(c, a) y = If<"
        "then_branch = m () => (float[2,3] p) { p = Add(x, u) }, "
        "else_branch = n () => (float[2,3] q) { q = Sub(x, u) }>(k) }"
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_other_dims_stay(name) -> None:
    check_unchanged(drop_leading_ones, KEPT[name])
