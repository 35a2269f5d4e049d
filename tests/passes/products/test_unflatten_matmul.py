"""Linear layers lose the Reshapes around them; other flat values stay."""

from __future__ import annotations

import pytest
from rewrites import check_operators, check_unchanged

from smelt.passes.products.unflatten_matmul import unflatten_matmul

C = (
    "<float[4,2] w = {1,2,3,4,5,6,7,8}, float[2,4] wt = {1,2,3,4,5,6,7,8}, float[2] b = {1,-1}, "
    "float[1,2] b2 = {1,-1}, float[2,2] v = {1,2,3,4}, int64[2] flat = {-1,4}, "
    "int64[3] back = {-1,3,2}, int64[4] apart = {-1,3,2,1}, int64[3] other = {3,-1,2}, float s = {2}>"
)
HEAD = "g (float[B,3,4] x) => (float[B,3,2] y)"
UNFLATTENED = {
    "a MatMul": ("r = Reshape(x, flat) p = MatMul(r, w) y = Reshape(p, back)", ["MatMul"]),
    "a Gemm with a bias": (
        "r = Reshape(x, flat) p = Gemm(r, w, b) y = Reshape(p, back)",
        ["MatMul", "Add"],
    ),
    "a transposed weight": (
        "r = Reshape(x, flat) p = Gemm<transB=1>(r, wt, b2) y = Reshape(p, back)",
        ["MatMul", "Add"],
    ),
    "two layers and what is between": (
        "r = Reshape(x, flat) p = Gemm(r, w, b) q = Tanh(p) t = MatMul(q, v) "
        "u = Sub(b2, t) y = Reshape(u, back)",
        ["MatMul", "Add", "Tanh", "MatMul", "Sub"],
    ),
}


@pytest.mark.parametrize(("body", "operators"), UNFLATTENED.values(), ids=UNFLATTENED.keys())
def test_rows_keep_their_dims(body: str, operators: list[str]) -> None:
    check_operators(unflatten_matmul, f"{HEAD} {C} {{ {body} }}", operators)


def test_heads_that_are_merged_with_the_rows() -> None:
    check_operators(
        unflatten_matmul,
        "g (float[2,3,2,2] x) => (float[2,3,2] y) <float[4,2] w = {1,2,3,4,5,6,7,8}, "
        "float[2] b = {1,-1}, int64[2] flat = {6,4}, int64[3] back = {2,3,2}> "
        "{ r = Reshape(x, flat) p = Gemm(r, w, b) y = Reshape(p, back) }",
        ["Reshape", "MatMul", "Add"],
    )


def test_rows_that_are_cut_elsewhere() -> None:
    check_unchanged(
        unflatten_matmul,
        "g (float[2,3,2,2] x) => (float[2,6,2] y) <float[2,2] w = {1,2,3,4}, float[2] b = {1,-1}, "
        "int64[2] flat = {12,2}, int64[3] back = {2,6,2}> "
        "{ r = Reshape(x, flat) p = Gemm(r, w, b) y = Reshape(p, back) }",
    )


def test_two_symbols() -> None:
    check_operators(
        unflatten_matmul,
        "g (float[B,S,4] x) => (float[B,S,2] y) <float[4,2] w = {1,2,3,4,5,6,7,8}, "
        "int64[2] flat = {-1,4}, int64[1] two = {2}> { r = Reshape(x, flat) p = MatMul(r, w) "
        "d = Shape<start=0,end=2>(x) s = Concat<axis=0>(d, two) y = Reshape(p, s) }",
        ["MatMul"],
    )


def test_the_last_dim_may_be_parted() -> None:
    check_operators(
        unflatten_matmul,
        f"g (float[B,3,4] x) => (float[B,3,2,1] y) {C} "
        "{ r = Reshape(x, flat) p = MatMul(r, w) y = Reshape(p, apart) }",
        ["MatMul", "Reshape"],
    )


FLAT = {
    "other rows": (
        f"g (float[B,3,4] x) => (float[3,B,2] y) {C} "
        "{ r = Reshape(x, flat) p = MatMul(r, w) y = Reshape(p, other) }"
    ),
    "the product is read": (
        f"g (float[B,3,4] x) => (float[B,3,2] y, float[N,2] p) {C} "
        "{ r = Reshape(x, flat) p = MatMul(r, w) y = Reshape(p, back) }"
    ),
    "a scaled Gemm": f"{HEAD} {C} {{ r = Reshape(x, flat) p = Gemm<alpha=2.0>(r, w) y = Reshape(p, back) }}",
    "a Softmax over columns": (
        f"{HEAD} {C} {{ r = Reshape(x, flat) p = MatMul(r, w) q = Softmax<axis=0>(p) y = Reshape(q, back) }}"
    ),
    "a weight from outside": (
        "g (float[B,3,4] x, float[4,2] w) => (float[B,3,2] y) <int64[2] flat = {-1,4}, "
        "int64[3] back = {-1,3,2}> { r = Reshape(x, flat) p = MatMul(r, w) y = Reshape(p, back) }"
    ),
    "no product": "g (float[B,3,4] x) => (float[B,3,4] y) <int64[2] flat = {-1,4}, int64[3] back = {-1,3,4}> "
    "{ r = Reshape(x, flat) p = Tanh(r) y = Reshape(p, back) }",
}


@pytest.mark.parametrize("graph", FLAT.values(), ids=FLAT.keys())
def test_stays_flat(graph: str) -> None:
    check_unchanged(unflatten_matmul, graph)
