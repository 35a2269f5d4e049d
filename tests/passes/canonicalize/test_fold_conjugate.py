"""Conjugates of operands become flags of complex products."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.canonicalize.fold_conjugate import fold_conjugate

DIMS = "lhs_contracting=[1], rhs_contracting=[0]"
HEAD = """<ir_version: 10, opset_import: ["" : 23, "smelt" : 1]>
g (float[B,3,2] x, float[3,4,2] y) => (float[B,4,2] z)
<float[2] conj = {1.0, -1.0}, float[1,1,2] deep = {1.0, -1.0}, float[1,1,1,2] deeper = {1.0, -1.0},
 float[2] other = {-1.0, 1.0}, float[2] ones = {1.0, 1.0}, float[1] one = {-1.0},
 float[4,1] rows = {1.0, -1.0, 1.0, -1.0}> """


def product(operands: str, flags: str = "") -> str:
    every = ", ".join(filter(None, (DIMS, "pairs=1", flags)))
    return f"z = smelt.DotGeneral<{every}>({operands})"


FOLDED = {
    "left": (f"t = Mul(x, conj) {product('t, y')}", product("x, y", "lhs_conj=1")),
    "right": (f"t = Mul(conj, y) {product('x, t')}", product("x, y", "rhs_conj=1")),
    "both": (
        f"s = Mul(x, conj) t = Mul(y, deep) {product('s, t')}",
        product("x, y", "lhs_conj=1, rhs_conj=1"),
    ),
    "twice": (f"s = Mul(x, conj) t = Mul(s, conj) {product('t, y')}", product("x, y")),
    "of a conjugate": (f"t = Mul(y, conj) {product('x, t', 'rhs_conj=1')}", product("x, y")),
    "beside a factor": (
        f"s = Mul(x, ones) t = Mul(y, conj) {product('s, t')}",
        f"s = Mul(x, ones) {product('s, y', 'rhs_conj=1')}",
    ),
}


@pytest.mark.parametrize(("before", "after"), FOLDED.values(), ids=FOLDED)
def test_folds(before: str, after: str) -> None:
    check_rewrite(fold_conjugate, f"{HEAD} {{ {before} }}", f"{HEAD} {{ {after} }}")


KEPT = {
    "the negated conjugate": f"t = Mul(x, other) {product('t, y')}",
    "no conjugate": f"t = Mul(x, ones) {product('t, y')}",
    "a number": f"t = Mul(x, one) {product('t, y')}",
    "rows": f"t = Mul(y, rows) {product('x, t')}",
    "a sum": f"t = Add(x, conj) {product('t, y')}",
    "another reader": f"t = Mul(y, conj) u = {product('x, t')[4:]} v = ReduceSum(t) z = Add(u, v)",
    "both operands are it": f"s = Squeeze(y) t = Mul(y, conj) u = smelt.DotGeneral<lhs_contracting=[0,1], rhs_contracting=[0,1], pairs=1>(t, t) v = {product('x, s')[4:]} z = Add(u, v)",
    "real operands": f"t = Mul(y, conj) z = smelt.DotGeneral<{DIMS}, lhs_batch=[2], rhs_batch=[2]>(x, t)",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_keeps(body: str) -> None:
    head = HEAD.replace("float[B,4,2] z", "z")
    check_unchanged(fold_conjugate, f"{head} {{ {body} }}")


def test_a_conjugate_that_is_returned_stays() -> None:
    head = HEAD.replace("=> (", "=> (float[3,4,2] t, ")
    check_unchanged(fold_conjugate, f"{head} {{ t = Mul(y, conj) {product('x, t')} }}")


def test_an_operand_that_the_factors_broadcast_stays() -> None:
    head = HEAD.replace("float[3,4,2] y", "float[3,4,1] y")
    check_unchanged(fold_conjugate, f"{head} {{ t = Mul(y, conj) {product('x, t')} }}")


def test_factors_of_higher_rank_stay() -> None:
    t = "t = Mul(y, deeper) z = smelt.DotGeneral<lhs_contracting=[1], rhs_contracting=[1], pairs=1>(x, t)"
    head = HEAD.replace("float[B,4,2] z", "float[B,1,4,2] z")
    check_unchanged(fold_conjugate, f"{head} {{ {t} }}")
