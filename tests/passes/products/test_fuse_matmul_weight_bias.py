"""A product of matrices and an added term become one Gemm."""

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.products.fuse_matmul_weight_bias import fuse_matmul_weight_bias

G = "g (float[N,2] x) => (float[N,3] y)"
C = "<float[2,3] w = {1,2,3,4,5,6}, float[3] k = {1,-2,3}>"
FUSED = {
    "sum": ("Add(m, k)", "Gemm(x, w, k)", C),
    "swapped": ("Add(k, m)", "Gemm(x, w, k)", C),
    "difference": (
        "Sub(m, k)",
        "Gemm(x, w, n)",
        C.replace("{1,-2,3}", "{-1,2,-3}").replace(" k", " n"),
    ),
    "product taken away": ("Sub(k, m)", "Gemm<alpha=-1.0>(x, w, k)", C),
}


@pytest.mark.parametrize("dtype", ["float", "double"])
@pytest.mark.parametrize(("end", "gemm", "constants"), FUSED.values(), ids=FUSED.keys())
def test_fuses(end: str, gemm: str, constants: str, dtype: str) -> None:
    before = f"{G} {C} {{ m = MatMul(x, w) y = {end} }}"
    after = f"{G} {constants} {{ y = {gemm} }}"
    check_rewrite(
        fuse_matmul_weight_bias,
        before.replace("float", dtype),
        after.replace("float", dtype),
        modes=("normal",),
    )


@pytest.mark.parametrize(
    "bias", ["float", "float[1]", "float[3]", "float[1,3]", "float[N,3]", "float[N,1]"]
)
def test_given_operands_of_every_shape(bias: str) -> None:
    g = f"g (float[N,2] x, float[2,3] w, {bias} k) => (float[N,3] y)"
    check_rewrite(
        fuse_matmul_weight_bias,
        f"{g} {{ m = MatMul(x, w) y = Add(m, k) }}",
        f"{g} {{ y = Gemm(x, w, k) }}",
        modes=("normal",),
    )


def test_a_weight_on_the_left() -> None:
    g = "g (float[3,3] x) => (float[3,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}, float[3] k = {1,2,3}>"
    check_rewrite(
        fuse_matmul_weight_bias,
        f"{g} {{ m = MatMul(w, x) y = Add(m, k) }}",
        f"{g} {{ y = Gemm(w, x, k) }}",
        modes=("normal",),
    )


KEPT = {
    "higher rank": f"g (float[N,4,2] x) => (float[N,4,3] y) {C} {{ m = MatMul(x, w) y = Add(m, k) }}",
    "a vector": f"g (float[2] x) => (float[3] y) {C} {{ m = MatMul(x, w) y = Add(m, k) }}",
    "bias raises the rank": "g (float[N,2] x, float[1,1,3] t) => (float[1,N,3] y) "
    f"{C} {{ m = MatMul(x, w) y = Add(m, t) }}",
    "bias widens one row": "g (float[1,8] x, float[8,4] w, float[3,4] t) => (float[3,4] y) "
    "{ m = MatMul(x, w) y = Add(m, t) }",
    "a batch of unknown rows": "g (float[N,2] x, float[M,3] t) => (float[?,3] y) "
    f"{C} {{ m = MatMul(x, w) y = Add(m, t) }}",
    "a given bias subtracted": "g (float[N,2] x, float[3] t) => (float[N,3] y) "
    f"{C} {{ m = MatMul(x, w) y = Sub(m, t) }}",
    "the product taken from itself": f"g (float[N,2] x) => (float[N,3] y) {C} "
    "{ m = MatMul(x, w) y = Sub(m, m) }",
    "integers": "g (int32[N,2] x) => (int32[N,2] y) <int32[2,2] w = {1,2,3,4}, int32[2] t = {1,2}> "
    "{ m = MatMul(x, w) y = Add(m, t) }",
    "an output": f"g (float[N,2] x) => (float[N,3] y, float[N,3] m) {C} "
    "{ m = MatMul(x, w) y = Add(m, k) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_matmul_weight_bias, graph)
