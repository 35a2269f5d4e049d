"""Transposes of operands are folded into products of matrices."""

from __future__ import annotations

import pytest
from rewrites import check_refused, check_rewrite, check_unchanged

from smelt.passes.products.fuse_transpose_matmul import fuse_transpose_matmul

T = "Transpose<perm=[1,0]>"
PRODUCTS = {
    "first": ("float[K,N] a, float[K,3] b", f"t = {T}(a) y = MatMul(t, b)", "transA=1"),
    "second": ("float[N,K] a, float[3,K] b", f"t = {T}(b) y = MatMul(a, t)", "transB=1"),
    "without perm": ("float[K,N] a, float[K,3] b", "t = Transpose(a) y = MatMul(t, b)", "transA=1"),
    "both": (
        "float[K,N] a, float[3,K] b",
        f"t = {T}(a) u = {T}(b) y = MatMul(t, u)",
        "transA=1, transB=1",
    ),
}


@pytest.mark.parametrize(("inputs", "before", "flags"), PRODUCTS.values(), ids=PRODUCTS.keys())
@pytest.mark.parametrize("dtype", ["float", "double", "float16"])
def test_a_matmul_becomes_a_gemm(inputs: str, before: str, flags: str, dtype: str) -> None:
    g = f"g ({inputs}) => (float[N,3] y)".replace("float", dtype)
    check_rewrite(
        fuse_transpose_matmul,
        f"{g} {{ {before} }}",
        f"{g} {{ y = Gemm<{flags}>(a, b) }}",
        modes=("normal",),
    )


FLIPPED = "p = Transpose<perm=[0,2,1,3]>(k) r = Transpose<perm=[0,2,3,1]>(q) m = MatMul(p, r) "
HEADS = "g (float[B,S,3,8] k, float[B,T,3,8] q) => (float[B,3,T,S] y)"


def test_a_product_that_is_transposed_behind_is_turned_round() -> None:
    check_rewrite(
        fuse_transpose_matmul,
        f"{HEADS} {{ {FLIPPED} y = Transpose<perm=[0,1,3,2]>(m) }}",
        f"{HEADS} {{ p = Transpose<perm=[0,2,1,3]>(q) r = Transpose<perm=[0,2,3,1]>(k) "
        "y = MatMul(p, r) }",
        modes=("normal",),
    )


UNTURNED = {
    "other axes": f"{HEADS} {{ {FLIPPED} y = Transpose<perm=[0,1,2,3]>(m) }}".replace("T,S] y", "S,T] y"),
    "the product is read": f"{HEADS} {{ {FLIPPED} y = Transpose<perm=[0,1,3,2]>(m) z = Neg(m) }}".replace(
        "y) {", "y, float[B,3,S,T] z) {"),
    "an operand that is read": f"{HEADS} {{ {FLIPPED} y = Transpose<perm=[0,1,3,2]>(m) z = Neg(r) }}".replace(
        "y) {", "y, float[B,3,8,T] z) {"),
    "an operand as it is": "g (float[B,3,S,8] k, float[B,T,3,8] q) => (float[B,3,T,S] y) { "
    "r = Transpose<perm=[0,2,3,1]>(q) m = MatMul(k, r) y = Transpose<perm=[0,1,3,2]>(m) }",
}  # fmt: skip


@pytest.mark.parametrize("case", UNTURNED)
def test_products_that_are_not_turned(case: str) -> None:
    check_unchanged(fuse_transpose_matmul, UNTURNED[case])


GEMMS = {
    "first": ("a, b", "t = Transpose(a) y = Gemm(t, b)", "<transA=1>(a, b)"),
    "back again": ("a, b", "t = Transpose(a) y = Gemm<transA=1>(t, b)", "(a, b)"),
    "second, with a bias": (
        "a, b",
        "t = Transpose(b) y = Gemm<alpha=0.5, beta=2.0, transA=1>(a, t, c)",
        "<alpha=0.5, beta=2.0, transA=1, transB=1>(a, b, c)",
    ),
    "both": (
        "a, b",
        "t = Transpose(a) u = Transpose(b) y = Gemm<transA=0, transB=1>(t, u, c)",
        "<transA=1>(a, b, c)",
    ),
}


@pytest.mark.parametrize(("inputs", "before", "after"), GEMMS.values(), ids=GEMMS.keys())
def test_flags_of_a_gemm(inputs: str, before: str, after: str) -> None:
    g = "g (float[3,3] a, float[3,3] b, float[3] c) => (float[3,3] y)"
    check_rewrite(
        fuse_transpose_matmul,
        f"{g} {{ {before} }}",
        f"{g} {{ y = Gemm{after} }}",
        modes=("normal",),
    )


@pytest.mark.parametrize("shapes", [("0,2", "0,3"), ("2,0", "2,3"), ("1,1", "1,3")])
def test_empty_and_tiny_matrices(shapes: tuple[str, str]) -> None:
    rows = shapes[0].split(",")[1]
    g = f"g (float[{shapes[0]}] a, float[{shapes[1]}] b) => (float[{rows},3] y)"
    check_rewrite(
        fuse_transpose_matmul,
        f"{g} {{ t = Transpose(a) y = MatMul(t, b) }}",
        f"{g} {{ y = Gemm<transA=1>(a, b) }}",
    )


def test_the_transpose_stays_for_others() -> None:
    g = "g (float[K,N] a, float[K,3] b) => (float[N,3] y, float[N,K] t)"
    check_rewrite(
        fuse_transpose_matmul,
        f"{g} {{ t = Transpose(a) y = MatMul(t, b) }}",
        f"{g} {{ t = Transpose(a) y = Gemm<transA=1>(a, b) }}",
        modes=("normal",),
    )


WEIGHT = "float[3,2] w = {1,2,3,4,5,6}"


@pytest.mark.parametrize(
    ("inputs", "product"), [("float[B,N,2] x", "MatMul(x, t)"), ("float[B,3,N] x", "MatMul(t, x)")]
)
def test_a_constant_is_transposed_now(inputs: str, product: str) -> None:
    left = "(x" in product
    w, perm = ("float[3,2] w = {1,2,3,4,5,6}", "float[2,3] t = {1,3,5,2,4,6}")
    g = f"g ({inputs}) => (float[B,{'N,3' if left else '2,N'}] y)"
    check_rewrite(
        fuse_transpose_matmul,
        f"{g} <{w}> {{ t = Transpose(w) y = {product} }}",
        f"{g} <{perm}> {{ y = {product} }}",
        modes=("normal",),
    )


def test_a_constant_of_higher_rank() -> None:
    g = "g (float[2,2,2] x) => (float[2,2,1] y)"
    check_rewrite(
        fuse_transpose_matmul,
        f"{g} <float[1,2,2] w = {{1,2,3,4}}> {{ t = Transpose<perm=[1,2,0]>(w) y = MatMul(x, t) }}",
        f"{g} <float[2,2,1] t = {{1,2,3,4}}> {{ y = MatMul(x, t) }}",
        modes=("normal",),
    )


KEPT = {
    "no swap": "g (float[2,3] a, float[3,2] b) => (float[2,2] y) "
    "{ t = Transpose<perm=[0,1]>(a) y = MatMul(t, b) }",
    "batches": "g (float[B,K,N] a, float[B,K,3] b) => (float[B,N,3] y) "
    "{ t = Transpose<perm=[0,2,1]>(a) y = MatMul(t, b) }",
    "a vector": "g (float[K,N] a, float[K] b) => (float[N] y) "
    "{ t = Transpose(a) y = MatMul(t, b) }",
    "one operand of higher rank": "g (float[K,N] a, float[B,K,3] b) => (float[B,N,3] y) "
    "{ t = Transpose(a) y = MatMul(t, b) }",
    "integers": "g (int32[2,2] a, int32[2,2] b) => (int32[2,2] y) "
    "{ t = Transpose(a) y = MatMul(t, b) }",
    "a constant that others read": f"g (float[B,N,2] x) => (float[B,N,3] y, float[3,2] z) "
    f"<{WEIGHT}> {{ t = Transpose(w) y = MatMul(x, t) z = Neg(w) }}",
    "weights of the caller": "g (float[B,N,2] x, float[3,2] w) => (float[B,N,3] y) "
    f"<{WEIGHT}> {{ t = Transpose(w) y = MatMul(x, t) }}",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_transpose_matmul, graph)


@pytest.mark.parametrize("name", ["batches", "a vector", "one operand of higher rank"])
def test_a_product_of_no_two_matrices_is_told(name: str) -> None:
    check_refused(fuse_transpose_matmul, KEPT[name], "an operand is not known to be a matrix")
