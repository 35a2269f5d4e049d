"""Two consecutive Transposes become one, or none."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.layout.merge_consecutive_transposes import merge_consecutive_transposes

G = "g (float[B,3,4] x) => (float[a,b,c] y)"
MERGED = {
    "into one": (
        "t = Transpose<perm=[1,2,0]>(x) y = Transpose<perm=[0,2,1]>(t)",
        "y = Transpose<perm=[1,0,2]>(x)",
    ),
    "the order of composition matters": (
        "t = Transpose<perm=[2,0,1]>(x) y = Transpose<perm=[1,0,2]>(t)",
        "y = Transpose<perm=[0,2,1]>(x)",
    ),
    "without perm": (
        "t = Transpose(x) y = Transpose<perm=[0,2,1]>(t)",
        "y = Transpose<perm=[2,0,1]>(x)",
    ),
    "three of them": (
        "t = Transpose<perm=[1,2,0]>(x) u = Transpose<perm=[1,2,0]>(t) v = Transpose<perm=[1,2,0]>(u) y = Neg(v)",
        "y = Neg(x)",
    ),
    "none is left": (
        "t = Transpose<perm=[1,2,0]>(x) u = Transpose<perm=[2,0,1]>(t) y = Neg(u)",
        "y = Neg(x)",
    ),
}


@pytest.mark.parametrize(("before", "after"), MERGED.values(), ids=MERGED.keys())
def test_merges(before: str, after: str) -> None:
    check_rewrite(merge_consecutive_transposes, f"{G} {{ {before} }}", f"{G} {{ {after} }}")


def test_a_transpose_read_elsewhere_stays() -> None:
    check_rewrite(
        merge_consecutive_transposes,
        "g (float[2,3] x) => (float[2,3] y, float[3,2] t) { t = Transpose(x) u = Transpose(t) y = Neg(u) }",
        "g (float[2,3] x) => (float[2,3] y, float[3,2] t) { t = Transpose(x) y = Neg(x) }",
    )


KEPT = {
    "one": f"{G} {{ y = Transpose<perm=[1,2,0]>(x) }}",
    "something between": f"{G} {{ t = Transpose<perm=[1,2,0]>(x) s = Softmax(t) y = Transpose<perm=[2,0,1]>(s) }}",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(merge_consecutive_transposes, graph)
