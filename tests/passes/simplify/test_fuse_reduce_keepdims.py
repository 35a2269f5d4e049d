"""Reductions keep or drop their dims themselves."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.ir import opset as facts
from smelt.passes.simplify.fuse_reduce_keepdims import fuse_reduce_keepdims

ADAPTED = 18
"""The opset from which all reductions take their axes as an input."""


def reduction(kind: str, opset: int, axes: str, keepdims: int, to: str = "r") -> str:
    if kind == "ReduceSum" or opset >= ADAPTED:
        return (
            f"{to}a = Constant<value_ints=[{axes}]>() {to} = {kind}<keepdims={keepdims}>(x, {to}a)"
        )
    return f"{to} = {kind}<axes=[{axes}], keepdims={keepdims}>(x)"


@pytest.mark.parametrize("kind", sorted(facts.REDUCTIONS))
@pytest.mark.parametrize("opset", [13, 17, 18, 25])
def test_keeps_them(kind: str, opset: int) -> None:
    u = "u = Constant<value_ints=[1,-1]>() y = Unsqueeze(r, u)"
    check_rewrite(
        fuse_reduce_keepdims,
        f"g (float[N,3,4] x) => (float[N,1,1] y) {{ {reduction(kind, opset, '-2,2', 0)} {u} }}",
        f"g (float[N,3,4] x) => (float[N,1,1] y) {{ {reduction(kind, opset, '-2,2', 1, 'y')} }}",
        opset=opset,
        modes=("normal",),
    )


@pytest.mark.parametrize("kind", ["ReduceMax", "ReduceSum"])
@pytest.mark.parametrize("opset", [13, 18])
def test_drops_them(kind: str, opset: int) -> None:
    u = "u = Constant<value_ints=[1]>() y = Squeeze(r, u)"
    check_rewrite(
        fuse_reduce_keepdims,
        f"g (float[N,3,4] x) => (float[N,4] y) {{ {reduction(kind, opset, '1', 1)} {u} }}",
        f"g (float[N,3,4] x) => (float[N,4] y) {{ {reduction(kind, opset, '1', 0, 'y')} }}",
        opset=opset,
    )


@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
def test_positions(kind: str) -> None:
    check_rewrite(
        fuse_reduce_keepdims,
        f"g (float[N,3,4] x) => (int64[N,3,1] y) {{ r = {kind}<axis=-1, keepdims=0>(x) "
        "u = Constant<value_ints=[2]>() y = Unsqueeze(r, u) }",
        f"g (float[N,3,4] x) => (int64[N,3,1] y) {{ y = {kind}<axis=-1, keepdims=1>(x) }}",
    )


def test_a_reshape_counts_as_what_it_does() -> None:
    check_rewrite(
        fuse_reduce_keepdims,
        "g (float[N,3] x) => (float[N,1] y) { a = Constant<value_ints=[1]>() "
        "r = ReduceSum<keepdims=0>(x, a) s = Constant<value_ints=[-1,1]>() y = Reshape(r, s) }",
        "g (float[N,3] x) => (float[N,1] y) "
        "{ a = Constant<value_ints=[1]>() y = ReduceSum<keepdims=1>(x, a) }",
    )


def test_all_axes_where_none_are_given() -> None:
    check_rewrite(
        fuse_reduce_keepdims,
        "g (float[N,3] x) => (float y) { r = ReduceMax(x) y = Squeeze(r) }",
        "g (float[N,3] x) => (float y) { y = ReduceMax<keepdims=0>(x) }",
        opset=17,
    )


SUM = "a = Constant<value_ints=[1]>() r = ReduceSum<keepdims=0>(x, a)"
KEPT = {
    "another place": f"{SUM} u = Constant<value_ints=[2]>() y = Unsqueeze(r, u)",
    "another place of equal size": f"{SUM} u = Constant<value_ints=[0]>() y = Unsqueeze(r, u)",
    "more dims": f"{SUM} u = Constant<value_ints=[1,2]>() y = Unsqueeze(r, u)",
    "read elsewhere": f"{SUM} u = Constant<value_ints=[1]>() t = Unsqueeze(r, u) y = Add(t, r)",
    "nothing is reduced": "e = Constant<value_ints=[1]>() "
    "r = ReduceSum<keepdims=0, noop_with_empty_axes=1>(x) y = Unsqueeze(r, e)",
    "read by a branch": f"{SUM} u = Constant<value_ints=[1]>() t = Unsqueeze(r, u) y = If(c) "
    "<then_branch = g1 () => (float[A,B,C] p) { p = Identity(r) }, "
    "else_branch = g2 () => (float[A,B,C] q) { q = Identity(t) }>",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_keeps(body: str) -> None:
    rank = "A,B,C,D" if "more" in body or "[1,2]" in body or "noop" in body else "A,B,C"
    check_unchanged(
        fuse_reduce_keepdims, f"g (float[N,3,4] x, bool c) => (float[{rank}] y) {{ {body} }}"
    )
