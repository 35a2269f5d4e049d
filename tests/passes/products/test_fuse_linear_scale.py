"""Scales behind MatMul and Gemm are folded into their weights."""

from __future__ import annotations

import pytest
from literals import literal
from rewrites import check_rewrite, check_unchanged

from smelt.passes.products.fuse_linear_scale import fuse_linear_scale

W = "float[3,2] w = {1,2,3,4,5,6}"
S = "float[2] s = {10,-2}"
SCALED = "float[3,2] w = {10,-4,30,-8,50,-12}"
G = "g (float[N,4,3] x) => (float[N,4,2] y)"
G2 = "g (float[N,3] x) => (float[N,2] y)"

SCALES = {
    "a column": ("p = MatMul(x, w) y = Mul(p, s)", S, SCALED),
    "a column, swapped": ("p = MatMul(x, w) y = Mul(s, p)", S, SCALED),
    "a row of rank 3": (
        "p = MatMul(x, w) y = Mul(p, s)",
        "float[1,1,2] s = {10,-2}",
        SCALED,
    ),
    "a number": (
        "p = MatMul(x, w) y = Mul(p, s)",
        "float s = {2}",
        "float[3,2] w = {2,4,6,8,10,12}",
    ),
    "divided": (
        "p = MatMul(x, w) y = Div(p, s)",
        "float[1] s = {0.5}",
        "float[3,2] w = {2,4,6,8,10,12}",
    ),
}


@pytest.mark.parametrize(("body", "scale", "scaled"), SCALES.values(), ids=SCALES.keys())
@pytest.mark.parametrize("opset", [13, 25])
def test_matmul(body: str, scale: str, scaled: str, opset: int) -> None:
    check_rewrite(
        fuse_linear_scale,
        f"{G} <{W}, {scale}> {{ {body} }}",
        f"{G} <{scaled}> {{ y = MatMul(x, w) }}",
        opset=opset,
    )


def test_a_bias_between() -> None:
    check_rewrite(
        fuse_linear_scale,
        f"{G} <{W}, {S}, float[2] b = {{1,2}}> {{ p = MatMul(x, w) q = Add(b, p) y = Mul(q, s) }}",
        f"{G} <{SCALED}, float[2] b = {{10,-4}}> {{ p = MatMul(x, w) y = Add(p, b) }}",
    )


def test_a_stack_of_weights() -> None:
    check_rewrite(
        fuse_linear_scale,
        "g (float[2,4,1] x) => (float[2,4,2] y) <float[2,1,2] w = {1,2,3,4}, float[2] s = {10,-2}> "
        "{ p = MatMul(x, w) y = Mul(p, s) }",
        "g (float[2,4,1] x) => (float[2,4,2] y) <float[2,1,2] w = {10,-4,30,-8}> "
        "{ y = MatMul(x, w) }",
    )


GEMMS = {
    "without a bias": ("Gemm(x, w)", "", "Gemm(x, w)", SCALED, ""),
    "with a bias": (
        "Gemm<alpha=0.5, beta=2.0>(x, w, b)",
        ", float[2] b = {1,2}",
        "Gemm<alpha=0.5, beta=2.0>(x, w, b)",
        SCALED,
        ", float[2] b = {10,-4}",
    ),
    "with a number for a bias": (
        "Gemm(x, w, b)",
        ", float b = {1}",
        "Gemm(x, w, b)",
        SCALED,
        ", float[2] b = {10,-2}",
    ),
}


@pytest.mark.parametrize(
    ("gemm", "bias", "then", "scaled", "new"), GEMMS.values(), ids=GEMMS.keys()
)
def test_gemm(gemm: str, bias: str, then: str, scaled: str, new: str) -> None:
    check_rewrite(
        fuse_linear_scale,
        f"{G2} <{W}, {S}{bias}> {{ p = {gemm} y = Mul(p, s) }}",
        f"{G2} <{scaled}{new}> {{ y = {then} }}",
    )


def test_gemm_with_a_transposed_weight() -> None:
    check_rewrite(
        fuse_linear_scale,
        f"{G2} <float[2,3] w = {{1,2,3,4,5,6}}, {S}> {{ p = Gemm<transB=1>(x, w) y = Mul(p, s) }}",
        f"{G2} <float[2,3] w = {{10,20,30,-8,-10,-12}}> {{ y = Gemm<transB=1>(x, w) }}",
    )


@pytest.mark.parametrize("dtype", ["float16", "double"])
def test_other_floats(dtype: str) -> None:
    g = f"g ({dtype}[N,1] x) => ({dtype}[N,1] y)"
    two, three, six = (literal(dtype, n) for n in (2, 3, 6))
    check_rewrite(
        fuse_linear_scale,
        f"{g} <{dtype}[1,1] w = {two}, {dtype} s = {three}> {{ p = MatMul(x, w) y = Mul(p, s) }}",
        f"{g} <{dtype}[1,1] w = {six}> {{ y = MatMul(x, w) }}",
        modes=("normal",),
    )


BODY = "p = MatMul(x, w) y = Mul(p, s)"
KEPT = {
    "a weight that something else reads": f"{G[:-1]}, float[3,2] z) <{W}, {S}> {{ {BODY} z = Neg(w) }}",
    "a weight of the caller": f"g (float[N,3] x, float[3,2] w) => (float[N,2] y) <{S}> {{ {BODY} }}",
    "a scale of the caller": f"g (float[N,3] x, float[2] s) => (float[N,2] y) <{W}> {{ {BODY} }}",
    "a weight on the left": "g (float[3,N] x) => (float[2,N] y) <float[2,3] w = {1,2,3,4,5,6}, "
    "float s = {2}> { p = MatMul(w, x) y = Mul(p, s) }",
    "a scale for each row": f"{G} <{W}, float[4,1] s = {{1,2,3,4}}> {{ {BODY} }}",
    "a scale that widens": f"g (float[1,3] x) => (float[5,2] y) <{W}, float[5,1] s = {{1,2,3,4,5}}> "
    f"{{ {BODY} }}",
    "a scale that raises the rank": f"g (float[N,3] x) => (float[1,N,2] y) <{W}, "
    f"float[1,1,2] s = {{1,2}}> {{ {BODY} }}",
    "a column that widens": "g (float[N,3] x) => (float[N,2] y) <float[3,1] w = {1,2,3}, "
    f"{S}> {{ {BODY} }}",
    "a scale over the product": f"{G} <{W}, {S}> {{ p = MatMul(x, w) y = Div(s, p) }}",
    "divided by 0": f"{G} <{W}, float[2] s = {{1,0}}> {{ p = MatMul(x, w) y = Div(p, s) }}",
    "an overflow": f"{G} <{W}, float s = {{3e38}}> {{ {BODY} }}",
    "an underflow": f"{G} <float[3,2] w = {{1e-20,2,3,4,5,6}}, float s = {{1e-24}}> {{ {BODY} }}",
    "the product is an output": f"{G[:-1]}, float[N,4,2] p) <{W}, {S}> {{ {BODY} }}",
    "integers": f"g (int32[N,3] x) => (int32[N,2] y) <int32[3,2] w = {{1,2,3,4,5,6}}, "
    f"int32 s = {{2}}> {{ {BODY} }}",
    "a dequantized weight": "g (float[N,3] x) => (float[N,2] y) <int8[3,2] q = {1,2,3,4,5,6}, "
    f"float r = {{0.5}}, {S}> {{ w = DequantizeLinear(q, r) {BODY} }}",
    "a bias of the caller": f"g (float[N,3] x, float[2] b) => (float[N,2] y) <{W}, {S}> "
    "{ p = Gemm(x, w, b) y = Mul(p, s) }",
    "a bias that would grow": f"g (float[3,3] x) => (float[3,2] y) <{W}, {S}, "
    "float[3,1] b = {1,2,3}> { p = Gemm(x, w, b) y = Mul(p, s) }",
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT.keys())
def test_keeps(source: str) -> None:
    check_unchanged(fuse_linear_scale, source)
