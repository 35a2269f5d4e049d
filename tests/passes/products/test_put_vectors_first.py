"""Products of a matrix and a vector are computed with the vector first, or as a column."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.products.put_vectors_first import put_vectors_first

W = "<float[3,2] w = {1, 2, 3, 4, 5, 6}>"
T = "<float[2,3] w = {1, 3, 5, 2, 4, 6}>"
V = "float[2] x) => (float[3] y"


def scan(product: str) -> str:
    """Return a loop that multiplies its state by an outer matrix."""
    return (
        "z = Constant<value_floats = [1.0, 2.0, 3.0]>() "
        "e, y = Scan<num_scan_inputs = 1, body = b (float[3] h, float[2] x) "
        f"=> (float[3] o, float[3] q) {{ n = {product} o = Add(h, n) q = Identity(n) }}>(z, xs)"
    )


LOOP = "g (float[4,2] xs) => (float[3] e, float[4,3] y)"
REWRITTEN = {
    "constant": (
        f"g ({V}) {W} {{ y = MatMul(w, x) }}",
        f"g ({V}) {T} {{ y = MatMul(x, w) }}",
    ),
    "doubles": (
        f"g ({V}) {W} {{ y = MatMul(w, x) }}".replace("float", "double"),
        f"g ({V}) {T} {{ y = MatMul(x, w) }}".replace("float", "double"),
    ),
    "constant of a batch": (
        "g (float[2] x) => (float[2,1] y) <float[2,1,2] w = {1, 2, 3, 4}> { y = MatMul(w, x) }",
        "g (float[2] x) => (float[2,1] y) <float[2,2,1] w = {1, 2, 3, 4}> { y = MatMul(x, w) }",
    ),
    "two vectors": (
        f"g (float[2] x, float[2] z) => (float[3] y, float[3] v) {W} "
        "{ y = MatMul(w, x) v = MatMul(w, z) }",
        "g (float[2] x, float[2] z) => (float[3] y, float[3] v) "
        "<float[2,3] w = {1, 3, 5, 2, 4, 6}, float[2,3] u = {1, 3, 5, 2, 4, 6}> "
        "{ y = MatMul(x, w) v = MatMul(z, u) }",
    ),
    "around a loop": (
        f"{LOOP} {W} {{ {scan('MatMul(w, x)')} }}",
        f"{LOOP} {T} {{ {scan('MatMul(x, w)')} }}",
    ),
    "transposed": (
        "g (float[K,M] a, float[K] x) => (float[M] y, float[M,K] t) "
        "{ t = Transpose(a) y = MatMul(t, x) }",
        "g (float[K,M] a, float[K] x) => (float[M] y, float[M,K] t) "
        "{ t = Transpose(a) y = MatMul(x, a) }",
    ),
    "matrix of a run": (
        "g (float[32,8] a, float[8] x) => (float[32] y) { y = MatMul(a, x) }",
        "g (float[32,8] a, float[8] x) => (float[32] y) { i = Constant<value_ints = [1]>() "
        "l = Constant<value_ints = [-1]>() c = Unsqueeze(x, i) m = MatMul(a, c) y = Squeeze(m, l) }",
    ),
    "matrices of unknown sizes": (
        "g (float[B,M,K] a, float[K] x) => (float[B,M] y) { y = MatMul(a, x) }",
        "g (float[B,M,K] a, float[K] x) => (float[B,M] y) { i = Constant<value_ints = [1]>() "
        "l = Constant<value_ints = [-1]>() c = Unsqueeze(x, i) m = MatMul(a, c) y = Squeeze(m, l) }",
    ),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_the_matrix_is_read_by_rows(case: str) -> None:
    check_rewrite(put_vectors_first, *REWRITTEN[case], modes=("normal",))


KEPT = {
    "vector in front": f"g ({V}) {T} {{ y = MatMul(x, w) }}",
    "two vectors": "g (float[K] a, float[K] x) => (float y) { y = MatMul(a, x) }",
    "matrices": "g (float[M,K] a, float[K,N] x) => (float[M,N] y) { y = MatMul(a, x) }",
    "integers": "g (int32[32,8] a, int32[8] x) => (int32[32] y) { y = MatMul(a, x) }",
    "a small matrix": "g (float[31,8] a, float[8] x) => (float[31] y) { y = MatMul(a, x) }",
    "dequantized": "g (float[8] x) => (float[2] y) <uint8[2,8] q = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}, "
    "float s = {0.5}> { w = DequantizeLinear(q, s) y = MatMul(w, x) }",
    "a small constant that is read otherwise": f"g ({V}, float[3,2] z) {W} "
    "{ y = MatMul(w, x) z = Neg(w) }",
    "a transpose of other axes": "g (float[2,3,4] a, float[4] x) => (float[3,2] y) "
    "{ t = Transpose<perm = [1,0,2]>(a) y = MatMul(t, x) }",
}  # fmt: skip


@pytest.mark.parametrize("case", KEPT)
def test_other_products_stay(case: str) -> None:
    check_unchanged(put_vectors_first, KEPT[case])
