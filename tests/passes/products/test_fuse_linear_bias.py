"""Terms added to a Gemm are folded into its bias."""

import numpy as np
import pytest
from rewrites import check_operators, check_rewrite, check_unchanged

from smelt.passes.products.fuse_linear_bias import fuse_linear_bias

G = "g (float[N,2] x) => (float[N,3] y)"
C = "float[2,3] w = {1,2,3,4,5,6}, float[3] k = {1,-2,3}, float[3] c = {4,5,6}"


@pytest.mark.parametrize("term", ["float[3] k", "float[1,3] k", "float k", "float[1,1] k"])
def test_a_term_becomes_the_bias(term: str) -> None:
    g, c = f"g (float[N,2] x, {term}) => (float[N,3] y)", "<float[2,3] w = {1,2,3,4,5,6}>"
    check_rewrite(
        fuse_linear_bias,
        f"{g} {c} {{ m = Gemm<alpha=0.5, beta=3.0>(x, w) y = Add(k, m) }}",
        f"{g} {c} {{ y = Gemm<alpha=0.5>(x, w, k) }}",
        modes=("normal",),
    )


ENDS = ["Add(m, k)", "Add(k, m)", "Sub(m, k)", "Sub(k, m)"]
GEMMS = {
    "plain": "Gemm(x, w)",
    "scaled": "Gemm<alpha=0.5, beta=2.0>(x, w, c)",
    "bias": "Gemm(x, w, c)",
    "transposed": "Gemm<transB=1>(x, v, c)",
}


@pytest.mark.parametrize("gemm", GEMMS.values(), ids=GEMMS.keys())
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_constants_fold(gemm: str, end: str, dtype: str) -> None:
    text = f"{G} <{C}, float[3,2] v = {{1,2,3,4,5,6}}> {{ m = {gemm} y = {end} }}"
    check_operators(fuse_linear_bias, text.replace("float", dtype), ["Gemm"], modes=("normal",))


def test_a_column_for_a_known_number_of_rows() -> None:
    check_operators(
        fuse_linear_bias,
        f"g (float[2,2] x) => (float[2,3] y) <{C}, float[2,1] r = {{5,7}}> "
        "{ m = Gemm(x, w, c) y = Add(m, r) }",
        ["Gemm"],
        modes=("normal",),
    )


M = "m = Gemm(x, w, c)"
KEPT = {
    "raises the rank": f"g (float[N,2] x) => (float[1,N,3] y) <{C}, float[1,1,3] t = {{1,2,3}}> "
    f"{{ {M} y = Add(m, t) }}",
    "widens one row": f"g (float[1,2] x) => (float[2,3] y) <{C}, float[2,3] t = {{1,2,3,4,5,6}}> "
    f"{{ {M} y = Add(m, t) }}",
    "rows of a batch": f"g (float[N,2] x, float[M,3] t) => (float[?,3] y) <{C}> "
    "{ m = Gemm(x, w) y = Add(m, t) }",
    "two biases, one given": f"g (float[N,2] x, float[3] t) => (float[N,3] y) <{C}> "
    f"{{ {M} y = Add(m, t) }}",
    "a given one subtracted": f"g (float[N,2] x, float[3] t) => (float[N,3] y) <{C}> "
    "{ m = Gemm(x, w) y = Sub(m, t) }",
    "integers": "g (int32[N,2] x) => (int32[N,2] y) <int32[2,2] w = {1,2,3,4}, int32[2] t = {1,2}> "
    "{ m = Gemm(x, w) y = Add(m, t) }",
    "an output": f"g (float[N,2] x) => (float[N,3] y, float[N,3] m) <{C}> {{ {M} y = Add(m, k) }}",
    "multiplied": f"{G} <{C}> {{ {M} y = Mul(m, k) }}",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_linear_bias, graph)


def test_the_constant_stays_for_others() -> None:
    text = (
        f"g (float[2,2] x) => (float[2,3] y, float[3] z) <{C}> {{ {M} y = Sub(k, m) z = Neg(k) }}"
    )
    model = check_operators(fuse_linear_bias, text, ["Gemm", "Neg"], modes=("normal",))
    constant = model.graph.initializers["k"].const_value
    assert constant is not None
    np.testing.assert_array_equal(constant.numpy(), [1, -2, 3])


@pytest.mark.parametrize("moved", ["Identity(q)", "Transpose<perm=[1,0]>(q)"])
def test_a_gemm_on_integers_takes_no_float(moved: str) -> None:
    check_unchanged(
        fuse_linear_bias,
        "g (uint8[4,4] q, int8[4,4] w) => (float[4,4] y) <float s = {0.5}, float[4] c = {1,2,3,4}>"
        f"{{ i = {moved}  a = DequantizeLinear(i, s)  b = DequantizeLinear(w, s)"
        "  t = Transpose<perm=[1,0]>(b)  p = Gemm(a, t)  y = Add(p, c) }",
    )
