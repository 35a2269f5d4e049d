"""Max with zero becomes Relu."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.canonicalize.max_to_relu import max_to_relu

ZEROS = ["float z = {0}", "float[4] z = {0,0,0,0}"]


@pytest.mark.parametrize("zero", ZEROS)
@pytest.mark.parametrize("body", ["Max(x, z)", "Max(z, x)"])
def test_becomes_relu(zero: str, body: str) -> None:
    g = "g (float[N,4] x) => (float[N,4] y)"
    check_rewrite(
        max_to_relu, f"{g} <{zero}> {{ y = {body} }}", f"{g} {{ y = Relu(x) }}", modes=("normal",)
    )


KEPT = {
    "a zero that broadcasts": "g (float[4] x) => (float[2,4] y) <float[2,1] z = {0,0}> { y = Max(x, z) }",
    "nearly zero": "g (float[4] x) => (float[4] y) <float z = {1e-12}> { y = Max(x, z) }",
    "minus zero": "g (float[4] x) => (float[4] y) <float z = {-0.0}> { y = Max(x, z) }",
    "minus zeros among zeros": "g (float[2] x) => (float[2] y) <float[2] z = {0,-0.0}> { y = Max(x, z) }",
    "integers": "g (int32[4] x) => (int32[4] y) <int32 z = {0}> { y = Max(x, z) }",
    "three operands": "g (float[4] x, float[4] w) => (float[4] y) <float z = {0}> { y = Max(x, z, w) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(max_to_relu, graph)
