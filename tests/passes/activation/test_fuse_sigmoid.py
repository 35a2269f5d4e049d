"""1 / (1 + exp(-x)) is Sigmoid."""

from __future__ import annotations

import pytest
from literals import literal
from rewrites import check_rewrite, check_unchanged

from smelt.passes.activation.fuse_sigmoid import fuse_sigmoid

G = "g (float[N,3] x) => (float[N,3] y)"
PLAIN = "n = Neg(x) e = Exp(n) s = Add(e, one) y = Div(one, s)"
SPELLINGS = {
    "plain": PLAIN,
    "swapped": PLAIN.replace("Add(e, one)", "Add(one, e)"),
    "Reciprocal": PLAIN.replace("Div(one, s)", "Reciprocal(s)"),
    "times minus one": PLAIN.replace("Neg(x)", "Mul(minus, x)"),
}
ONE = "<float one = {1}, float minus = {-1}>"


@pytest.mark.parametrize("body", SPELLINGS.values(), ids=SPELLINGS.keys())
@pytest.mark.parametrize("opset", [13, 25])
def test_fuses(body: str, opset: int) -> None:
    check_rewrite(fuse_sigmoid, f"{G} {ONE} {{ {body} }}", f"{G} {{ y = Sigmoid(x) }}", opset=opset)


@pytest.mark.parametrize("dtype", ["float16", "double"])
def test_other_floats(dtype: str) -> None:
    g = f"g ({dtype}[N] x) => ({dtype}[N] y)"
    check_rewrite(
        fuse_sigmoid,
        f"{g} <{dtype} one = {literal(dtype, 1)}> {{ {PLAIN} }}",
        f"{g} {{ y = Sigmoid(x) }}",
        modes=("normal",),
    )


KEPT = {
    "not negated": f"{G} {ONE} {{ {PLAIN.replace('Neg(x)', 'Abs(x)')} }}",
    "another number": f"{G} <float one = {{1.0001}}> {{ {PLAIN} }}",
    "over one": f"{G} {ONE} {{ {PLAIN.replace('Div(one, s)', 'Div(s, one)')} }}",
    "read elsewhere": f"{G[:-1]}, float[N,3] z) {ONE} {{ {PLAIN} z = Neg(s) }}",
    "the inner result is an output": f"{G[:-1]}, float[N,3] e) {ONE} {{ {PLAIN} }}",
    "a constant of higher rank": "g (float[3] x) => (float[1,3] y) <float[1,1] one = {1}> "
    f"{{ {PLAIN} }}",
    "bfloat16": "g (bfloat16[N] x) => (bfloat16[N] y) <bfloat16 one = {16256}> { " + PLAIN + " }",
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT.keys())
def test_keeps(source: str) -> None:
    check_unchanged(fuse_sigmoid, source)
