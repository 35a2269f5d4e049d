"""A factor of queries or keys moves into the scale of the attention, also from before a Reshape."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.attention.fuse_attention import fuse_attention

FINITE = ("normal", "sparse")
"""A score that overflows after it is scaled may not before."""
HEADS = "q_num_heads=2, kv_num_heads=2"
SOURCE = (
    "g (float[N,5,2,4] q, float[N,7,2,4] k, float[N,7,8] v) => (float[N,5,8] y) "
    "<float c = {{0.5}}, int64[3] rows = {{0,0,8}}> {{ {} y = Attention<scale={}, "
    + HEADS
    + ">(a, b, v) }}"
)
PLAIN = "a = Reshape(q, rows) b = Reshape(k, rows)"
FACTORED = {
    "queries": "s = Mul(q, c) a = Reshape(s, rows) b = Reshape(k, rows)",
    "keys": "s = Mul(c, k) a = Reshape(q, rows) b = Reshape(s, rows)",
}


@pytest.mark.parametrize("body", FACTORED.values(), ids=FACTORED.keys())
def test_a_factor_before_heads_are_merged(body: str) -> None:
    check_rewrite(
        fuse_attention, SOURCE.format(body, 0.5), SOURCE.format(PLAIN, 0.25), modes=FINITE
    )


def test_a_divisor_before_the_sequence_goes_first() -> None:
    before = (
        "g (float[5,N,8] q, float[N,7,8] k) => (float[N,5,8] y) <float c = {0.5}> "
        "{ s = Div(q, c) a = Transpose<perm=[1,0,2]>(s) "
        f"y = Attention<scale=0.5, {HEADS}>(a, k, k) }}"
    )
    after = (
        "g (float[5,N,8] q, float[N,7,8] k) => (float[N,5,8] y) "
        "{ a = Transpose<perm=[1,0,2]>(q) "
        f"y = Attention<scale=1.0, {HEADS}>(a, k, k) }}"
    )
    check_rewrite(fuse_attention, before, after, modes=FINITE)


KEPT = {
    "a factor that is negative": SOURCE.format(FACTORED["queries"], 0.5).replace("{0.5}", "{-0.5}"),
    "a factor of each row": SOURCE.format(FACTORED["queries"], 0.5)
    .replace("float c = {0.5}", "float[2,1] c = {0.5,1}"),
    "a scale that is not said": SOURCE.format(FACTORED["queries"], 0.5).replace("scale=0.5, ", ""),
    "queries that something else reads": SOURCE.format(FACTORED["queries"] + " z = Neg(a)", 0.5)
    .replace("(float[N,5,8] y)", "(float[N,5,8] y, float[N,5,8] z)"),
    "queries that are returned": SOURCE.format(FACTORED["queries"], 0.5)
    .replace("(float[N,5,8] y)", "(float[N,5,8] y, float[N,5,2,4] s)"),
}  # fmt: skip


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT.keys())
def test_keeps(source: str) -> None:
    check_unchanged(fuse_attention, source)
