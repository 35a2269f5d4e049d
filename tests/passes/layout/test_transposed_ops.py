"""Products stay below a Transpose that moves the last axis."""

from __future__ import annotations

import pytest
from rewrites import check_unchanged

from smelt.passes.layout.reduce_transposes import reduce_transposes

KEPT = {
    "columns that become rows": (
        "g (float[2,3,4] x, float[3,5] w) => (float[5,4,2] y) "
        "{ t = Transpose<perm=[0,2,1]>(x) m = MatMul(t, w) y = Transpose<perm=[2,1,0]>(m) }"
    ),
    "a matrix for each row of a batch": (
        "g (float[2,3,4] x, float[3,4,5] w) => (float[2,3,5] y) "
        "{ t = Transpose<perm=[1,0,2]>(x) m = MatMul(t, w) y = Transpose<perm=[1,0,2]>(m) }"
    ),
    "a vector": (
        "g (float[2,3,4] x, float[4] w) => (float[2,3] y) "
        "{ t = Transpose<perm=[1,0,2]>(x) m = MatMul(t, w) y = Transpose<perm=[1,0]>(m) }"
    ),
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_keeps(source: str) -> None:
    check_unchanged(reduce_transposes, source)
