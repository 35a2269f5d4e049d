"""Queries, keys and values are split before rows are split into heads."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.simplify.split_before_reshape import split_before_reshape

APART = "int64[5] apart = {0,0,3,2,4}, int64[3] one = {1,1,1}, int64[1] a = {2}, int64[3] rows = {0,0,8}"
ENDS = (
    "p = Reshape(d, rows) q = Squeeze(e, a) r = Reshape(f, rows) y = Relu(p) z = Abs(q) w = Neg(r)"
)
OUT = "(float[B,S,8] y, float[B,S,2,4] z, float[B,S,8] w)"
SOURCE = (
    f"g (float[B,S,24] x) => {OUT} <{APART}> "
    f"{{ t = Reshape(x, apart) d, e, f = Split<axis=2>(t, one) {ENDS} }}"
)
AFTER = (
    f"g (float[B,S,24] x) => {OUT} <int64[3] n = {{8,8,8}}, int64[5] part = {{0,0,1,2,4}}, {APART}> "
    "{ d0, e0, f0 = Split<axis=2>(x, n) d = Reshape(d0, part) e = Reshape(e0, part) "
    f"f = Reshape(f0, part) {ENDS} }}"
)


@pytest.mark.parametrize(
    "split",
    ["Split<axis=2>(t, one)", "Split<axis=-3>(t, one)", "Split<axis=2, num_outputs=3>(t)"],
)
def test_cuts_rows(split: str) -> None:
    check_rewrite(split_before_reshape, SOURCE.replace("Split<axis=2>(t, one)", split), AFTER)


def test_parts_of_several_sizes_along_the_first_axis() -> None:
    check_rewrite(
        split_before_reshape,
        "g (float[10,N] x) => (float[1,2,N] y, float[8,N] z) <int64[3] apart = {5,2,-1}, "
        "int64[2] n = {1,4}, int64[2] four = {8,-1}, int64[3] same = {0,0,0}> "
        "{ t = Reshape(x, apart) p, q = Split(t, n) y = Reshape(p, same) z = Reshape(q, four) }",
        "g (float[10,N] x) => (float[1,2,N] y, float[8,N] z) <int64[3] apart = {5,2,-1}, "
        "int64[2] n = {2,8}, int64[2] four = {8,-1}, int64[3] same = {0,0,0}, "
        "int64[3] d = {1,2,-1}, int64[3] e = {4,2,-1}> { p0, q0 = Split<axis=0>(x, n) "
        "p = Reshape(p0, d) q = Reshape(q0, e) y = Reshape(p, same) z = Reshape(q, four) }",
    )


KEPT = {
    "a later dim is cut": SOURCE.replace("Split<axis=2>(t, one)", "Split<axis=3>(t, two)")
    .replace("d, e, f =", "d, e =")
    .replace("= Reshape(f, rows)", "= Reshape(d, rows)")
    .replace("int64[3] one = {1,1,1}", "int64[2] two = {1,1}")
    .replace("{0,0,8}", "{0,0,-1}")
    .replace("q = Squeeze(e, a)", "q = Reshape(e, halves)")
    .replace("int64[1] a = {2}", "int64[1] a = {2}, int64[4] halves = {0,0,3,4}")
    .replace(OUT, "(float[B,S,12] y, float[B,S,3,4] z, float[B,S,12] w)"),
    "another dim is cut": (
        "g (float[4,6] x) => (float[6] y, float[6] z) <int64[3] apart = {4,3,2}, "
        "int64[1] all = {-1}, int64[2] n = {2,2}> { t = Reshape(x, apart) p, q = Split(t, n) "
        "p1 = Reshape(p, all) q1 = Reshape(q, all) y = Relu(p1) z = Relu(q1) }"
    ).replace("float[6]", "float[12]"),
    "dims that are merged": (
        "g (float[B,4,6] x) => (float[M] y, float[N] z) <int64[2] flat = {-1,6}, "
        "int64[1] all = {-1}, int64[2] n = {2,4}> { t = Reshape(x, flat) p, q = Split<axis=1>(t, n) "
        "y = Reshape(p, all) z = Reshape(q, all) }"
    ),
    "a part that something else reads": SOURCE.replace(
        "z = Abs(q)", "z = Abs(q) u = Neg(e)"
    ).replace(OUT, f"{OUT[:-1]}, float[B,S,1,2,4] u)"),
    "a part that is returned": SOURCE.replace(OUT, f"{OUT[:-1]}, float[B,S,1,2,4] e)"),
    "a Reshape that something else reads": SOURCE.replace(
        "z = Abs(q)", "z = Abs(q) u = Neg(t)"
    ).replace(OUT, f"{OUT[:-1]}, float[B,S,3,2,4] u)"),
    "heads of a size that is not known": (
        "g (float[B,S,D] x) => (float[B,S,H] y, float[B,S,H] z) <int64[4] apart = {0,0,2,-1}, "
        "int64[1] a = {2}> { t = Reshape(x, apart) p, q = Split<axis=2, num_outputs=2>(t) "
        "y = Squeeze(p, a) z = Squeeze(q, a) }"
    ),
    "a part that gives a shape": (
        "g (float[B,6] x, float[N] v) => (float[K] y, float[B,3] z) <int64[3] apart = {0,2,3}, "
        "int64[1] a = {1}> { t = Reshape(x, apart) p, q = Split<axis=1, num_outputs=2>(t) "
        "i = Cast<to=7>(p) j = Squeeze(q, a) y = Relu(v) z = Relu(j) s = Cast<to=1>(i) }"
    ).replace("float[B,3] z", "float[B,3] z, float[B,1,3] s"),
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT.keys())
def test_keeps(source: str) -> None:
    check_unchanged(split_before_reshape, source)
