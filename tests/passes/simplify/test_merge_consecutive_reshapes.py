"""Two Reshapes become one, with the pitfalls of -1, 0 and allowzero."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.simplify.merge_consecutive_reshapes import merge_consecutive_reshapes

INIT = "<int64[2] a = {0,12}, int64[3] b = {0,-1,3}, int64[1] two = {2}, int64[1] one = {1}>"
MERGED = {
    "two Reshapes under a symbolic batch": (
        f"g (float[B,3,4] x) => (float[B,4,3] y) {INIT} {{ r = Reshape(x, a) y = Reshape(r, b) }}",
        "g (float[B,3,4] x) => (float[B,4,3] y) <int64[3] s = {0,4,3}> { y = Reshape(x, s) }",
    ),
    "back to where it was": (
        "g (float[B,3,4] x) => (float[B,3,4] y) <int64[2] a = {0,12}, int64[3] b = {0,3,4}> "
        "{ r = Reshape(x, a) q = Reshape(r, b) y = Neg(q) }",
        "g (float[B,3,4] x) => (float[B,3,4] y) { y = Neg(x) }",
    ),
    "Squeeze of Unsqueeze elsewhere": (
        f"g (float[B,1,4] x) => (float[B,4,1] y) {INIT} {{ u = Squeeze(x, one) y = Unsqueeze(u, two) }}",
        "g (float[B,1,4] x) => (float[B,4,1] y) <int64[3] s = {0,4,1}> { y = Reshape(x, s) }",
    ),
    "dims of size 1 among unknown ones": (
        "g (float[S,T] x) => (float[1,S,T] y) <int64[2] a = {0,1}, int64[1] one = {1}> { u = Unsqueeze(x, a) y = Squeeze(u, one) }",
        "g (float[S,T] x) => (float[1,S,T] y) <int64[1] s = {0}> { y = Unsqueeze(x, s) }",
    ),
    "fewer of them among unknown ones": (
        "g (float[1,1,S,T] x) => (float[1,S,T] y) <int64[2] a = {0,1}, int64[1] one = {0}> { u = Squeeze(x, a) y = Unsqueeze(u, one) }",
        "g (float[1,1,S,T] x) => (float[1,S,T] y) <int64[1] s = {1}> { y = Squeeze(x, s) }",
    ),
    "Flatten then Reshape": (
        "g (float[B,3,4] x) => (float[B,6,2] y) <int64[3] b = {-1,6,2}> { r = Flatten(x) y = Reshape(r, b) }",
        "g (float[B,3,4] x) => (float[B,6,2] y) <int64[3] s = {0,6,2}> { y = Reshape(x, s) }",
    ),
    "the first is read elsewhere": (
        "g (float[2,6] x) => (float[4,3] y, float[12] r) <int64[1] a = {12}, int64[2] b = {4,3}> { r = Reshape(x, a) y = Reshape(r, b) }",
        "g (float[2,6] x) => (float[4,3] y, float[12] r) <int64[1] a = {12}, int64[2] b = {4,3}> { r = Reshape(x, a) y = Reshape(x, b) }",
    ),
}


@pytest.mark.parametrize(("before", "after"), MERGED.values(), ids=MERGED.keys())
def test_merges(before: str, after: str) -> None:
    check_rewrite(merge_consecutive_reshapes, before, after)


KEPT = {
    "two unknown dims": (
        "g (float[A,B,6] x, int64[2] s, int64[3] t) => (float[C,D,E] y) { r = Reshape(x, s) y = Reshape(r, t) }"
    ),
    "a size of 0": (
        "g (float[0,4] x) => (float[0,2] y) <int64[1] a = {0}, int64[2] b = {0,2}> { r = Reshape<allowzero=1>(x, a) y = Reshape<allowzero=1>(r, b) }"
    ),
    "a transpose between": (
        "g (float[2,6] x) => (float[2,6] y) <int64[2] a = {3,4}, int64[2] b = {2,6}> "
        "{ r = Reshape(x, a) t = Transpose(r) y = Reshape(t, b) }"
    ),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(merge_consecutive_reshapes, graph)
