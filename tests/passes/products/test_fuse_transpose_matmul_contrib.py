"""Transposes of operands are folded into batched products, for targets with FusedMatMul."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt import optimize
from smelt.ir import text
from smelt.passes.products.fuse_transpose_matmul_contrib import FUSED, fuse_transpose_matmul_contrib

T = "Transpose<perm=[0,2,1]>"
PRODUCTS = {
    "first": ("float[B,K,N] a, float[B,K,3] b", f"t = {T}(a) y = MatMul(t, b)", "transA=1"),
    "second": ("float[B,N,K] a, float[B,3,K] b", f"t = {T}(b) y = MatMul(a, t)", "transB=1"),
    "both": (
        "float[B,K,N] a, float[B,3,K] b",
        f"t = {T}(a) u = {T}(b) y = MatMul(t, u)",
        "transA=1, transB=1",
    ),
    "a matrix on the left": (
        "float[K,N] a, float[B,K,3] b",
        "t = Transpose(a) y = MatMul(t, b)",
        "transA=1",
    ),
    "a matrix on the right": (
        "float[B,N,K] a, float[3,K] b",
        "t = Transpose(b) y = MatMul(a, t)",
        "transB=1",
    ),
    "batches of 1": (
        "float[B,K,N] a, float[1,3,K] b",
        f"t = {T}(a) u = {T}(b) y = MatMul(t, u)",
        "transA=1, transB=1",
    ),
}


@pytest.mark.parametrize(("inputs", "before", "flags"), PRODUCTS.values(), ids=PRODUCTS.keys())
def test_stacks(inputs: str, before: str, flags: str) -> None:
    g = f"g ({inputs}) => (float[B,N,3] y)"
    check_rewrite(
        fuse_transpose_matmul_contrib,
        f"{g} {{ {before} }}",
        f"{g} {{ y = com.microsoft.FusedMatMul<{flags}>(a, b) }}",
        modes=("normal",),
    )


def test_heads_of_attention() -> None:
    g = "g (float[B,2,N,4] q, float[B,2,M,4] k) => (float[B,2,N,M] y)"
    check_rewrite(
        fuse_transpose_matmul_contrib,
        f"{g} {{ t = Transpose<perm=[0,1,3,2]>(k) y = MatMul(q, t) }}",
        f"{g} {{ y = com.microsoft.FusedMatMul<transB=1>(q, k) }}",
        modes=("normal",),
    )


KEPT = {
    "batches move": "g (float[2,K,N] a, float[K,2,3] b) => (float[K,N,3] y) "
    "{ t = Transpose<perm=[1,2,0]>(a) y = MatMul(t, b) }",
    "matrices": "g (float[K,N] a, float[K,3] b) => (float[N,3] y) "
    "{ t = Transpose(a) y = MatMul(t, b) }",
    "a vector": f"g (float[B,K,N] a, float[K] b) => (float[B,N] y) {{ t = {T}(a) y = MatMul(t, b) }}",
    "all axes reversed": "g (float[3,K,N] a, float[B,K,3] b) => (float[?,?,3] y) "
    "{ t = Transpose(a) y = MatMul(t, b) }",
    "integers": f"g (int32[B,2,2] a, int32[2,2] b) => (int32[B,2,2] y) "
    f"{{ t = {T}(a) y = MatMul(t, b) }}",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_transpose_matmul_contrib, graph)


@pytest.mark.parametrize("operators", [frozenset(), frozenset({FUSED})])
def test_runs_for_targets_that_list_the_operator(operators: frozenset[tuple[str, str]]) -> None:
    model = text.parse(
        f"g (float[B,K,2] a, float[B,K,3] b) => (float[B,2,3] y) {{ t = {T}(a) y = MatMul(t, b) }}"
    )
    done = optimize(model, pipeline="fuse-transpose-matmul-contrib", operators=operators)
    assert len(done.graph) == (1 if operators else 2)
