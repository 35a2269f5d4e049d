"""A Gemm with computed parameters becomes MatMul and Add."""

from __future__ import annotations

import pytest
from literals import literal
from rewrites import check_operators, check_rewrite, check_unchanged

from smelt.passes.products.expand_dynamic_linear import expand_dynamic_linear

G = "g (float[N,2] x, float[2,3] w, float[3] b) => (float[N,3] y)"
T = "Transpose<perm=[1,0]>"
EXPANDED = {
    "plain": ("Gemm(x, w)", "y = MatMul(x, w)"),
    "a bias": ("Gemm(x, w, b)", "m = MatMul(x, w) y = Add(m, b)"),
    "factors": (
        "Gemm<alpha=0.5, beta=3.0>(x, w, b)",
        "m = MatMul(x, w) p = Mul(m, h) q = Mul(b, t) y = Add(p, q)",
    ),
    "no bias, a factor for it": ("Gemm<beta=3.0>(x, w)", "y = MatMul(x, w)"),
    "the bias times 0": ("Gemm<beta=0.0>(x, w, b)", "y = MatMul(x, w)"),
    "a bias of zeros": ("Gemm<beta=3.0>(x, w, n)", "y = MatMul(x, w)"),
    "a constant bias": ("Gemm<beta=3.0>(x, w, c)", "m = MatMul(x, w) q = Mul(c, t) y = Add(m, q)"),
}


@pytest.mark.parametrize(("before", "after"), EXPANDED.values(), ids=EXPANDED.keys())
def test_expands(before: str, after: str) -> None:
    constants = "float[3] n = {0,0,0}, float[3] c = {1,2,3}, float h = {0.5}, float t = {3}"
    g = f"{G} <{constants}>"
    check_rewrite(
        expand_dynamic_linear, f"{g} {{ y = {before} }}", f"{g} {{ {after} }}", modes=("normal",)
    )


@pytest.mark.parametrize("a", [0, 1])
@pytest.mark.parametrize("b", [0, 1])
def test_flags_become_transposes(a: int, b: int) -> None:
    x, w = ("float[2,N]" if a else "float[N,2]"), ("float[3,2]" if b else "float[2,3]")
    body = (f"u = {T}(x) " if a else "") + (f"v = {T}(w) " if b else "")
    g = f"g ({x} x, {w} w) => (float[N,3] y)"
    check_rewrite(
        expand_dynamic_linear,
        f"{g} {{ y = Gemm<transA={a}, transB={b}>(x, w) }}",
        f"{g} {{ {body} y = MatMul({'u' if a else 'x'}, {'v' if b else 'w'}) }}",
        modes=("normal",),
    )


@pytest.mark.parametrize("bias", ["", "[1]", "[3]", "[1,3]", "[N,1]", "[1,1]", "[N,3]"])
def test_a_bias_broadcasts_as_before(bias: str) -> None:
    operators = ["MatMul", "Mul", "Add"]
    check_operators(
        expand_dynamic_linear,
        f"g (float[N,2] x, float{bias} b) => (float[N,3] y) <float[2,3] w = {{1,2,3,4,5,6}}> "
        "{ y = Gemm<beta=2.0>(x, w, b) }",
        operators,
        modes=("normal",),
    )


@pytest.mark.parametrize("dtype", ["float16", "double"])
def test_other_floats(dtype: str) -> None:
    g = G.replace("float", dtype)
    check_rewrite(
        expand_dynamic_linear,
        f"{g} {{ y = Gemm<alpha=2.0>(x, w, b) }}",
        f"{g} <{dtype} q = {literal(dtype, 2)}> {{ m = MatMul(x, w) p = Mul(m, q) y = Add(p, b) }}",
        modes=("normal",),
    )


@pytest.mark.parametrize("shapes", [("2,0", "0,3"), ("0,2", "2,3")])
def test_empty_matrices(shapes: tuple[str, str]) -> None:
    rows = shapes[0].split(",")[0]
    check_operators(
        expand_dynamic_linear,
        f"g (float[{shapes[0]}] x, float[{shapes[1]}] w, float[3] b) => (float[{rows},3] y) "
        "{ y = Gemm(x, w, b) }",
        ["MatMul", "Add"],
    )


W = "<float[2,3] w = {1,2,3,4,5,6}, float[3] b = {1,2,3}>"
KEPT = {
    "a constant weight": f"g (float[N,2] x) => (float[N,3] y) {W} {{ y = Gemm(x, w) }}",
    "both constant": f"g (float[N,2] x) => (float[N,3] y) {W} {{ y = Gemm(x, w, b) }}",
    "alpha of 0": f"{G} {{ y = Gemm<alpha=0.0>(x, w, b) }}",
    "float16 that alpha makes small": f"{G} {{ y = Gemm<alpha=0.125>(x, w) }}".replace(
        "float[", "float16["
    ),
    "integers": "g (int32[N,2] x, int32[2,3] w) => (int32[N,3] y) { y = Gemm<alpha=0.5>(x, w) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(expand_dynamic_linear, graph)


def test_a_weight_with_a_default_is_no_constant() -> None:
    check_operators(
        expand_dynamic_linear,
        f"g (float[N,2] x, float[2,3] w) => (float[N,3] y) {W} {{ y = Gemm(x, w, b) }}",
        ["MatMul", "Add"],
        modes=("normal",),
    )
