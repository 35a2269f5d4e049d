"""Arithmetic on scalars becomes arithmetic on vectors of one element."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.tensors.rank0_expand_dims_swap import rank0_expand_dims_swap

C = "float c = {2}, int64[1] a = {0}"
V = "float[1] c = {2}, int64[1] a = {0}"


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min"])
@pytest.mark.parametrize("operands", ["x, c", "c, x"])
@pytest.mark.parametrize("axis", [0, -1])
def test_the_unsqueeze_goes_first(operator: str, operands: str, axis: int) -> None:
    g = "g (float x) => (float[1] y)"
    check_rewrite(
        rank0_expand_dims_swap,
        f"{g} <{C}, int64[1] e = {{{axis}}}> {{ s = {operator}({operands}) y = Unsqueeze(s, e) }}",
        f"{g} <{V}> {{ v = Unsqueeze(x, a) y = {operator}({operands.replace('x', 'v')}) }}",
    )


def test_attributes_stay() -> None:
    g = "g (float x) => (float[1] y)"
    check_rewrite(
        rank0_expand_dims_swap,
        f"{g} <{C}> {{ s = Mod<fmod=1>(x, c) y = Unsqueeze(s, a) }}",
        f"{g} <{V}> {{ v = Unsqueeze(x, a) y = Mod<fmod=1>(v, c) }}",
    )


def test_integers_and_constant_nodes() -> None:
    g = "g (int64 x) => (int64[1] y)"
    check_rewrite(
        rank0_expand_dims_swap,
        f"{g} {{ c = Constant<value_int=3>() a = Constant<value_ints=[0]>() "
        "s = Mul(x, c) y = Unsqueeze(s, a) }",
        f"{g} <int64[1] c = {{3}}, int64[1] a = {{0}}> {{ v = Unsqueeze(x, a) y = Mul(v, c) }}",
    )


def test_a_chain() -> None:
    g = "g (float x) => (float[1] y)"
    check_rewrite(
        rank0_expand_dims_swap,
        f"{g} <{C}> {{ s = Add(x, c) t = Mul(c, s) y = Unsqueeze(t, a) }}",
        f"{g} <{V}> {{ v = Unsqueeze(x, a) w = Add(v, c) y = Mul(c, w) }}",
    )


@pytest.mark.parametrize("rest", [", float z", ", float s"])
def test_other_readers_get_a_squeeze(rest: str) -> None:
    g = f"g (float x) => (float[1] y{rest})"
    before, after = ("z = Neg(s)", "t = Squeeze(y, a) z = Neg(t)")
    if rest == ", float s":
        before, after = "", "s = Squeeze(y, a)"
    check_rewrite(
        rank0_expand_dims_swap,
        f"{g} <{C}> {{ s = Add(x, c) y = Unsqueeze(s, a) {before} }}",
        f"{g} <{V}> {{ v = Unsqueeze(x, a) y = Add(v, c) {after} }}",
    )


KEPT = {
    "nothing expands it": f"g (float x) => (float y) <{C}> {{ s = Add(x, c) y = Neg(s) }}",
    "two axes": f"g (float x) => (float[1,1] y) <{C}, int64[2] e = {{0,1}}> "
    "{ s = Add(x, c) y = Unsqueeze(s, e) }",
    "a vector": f"g (float[1] x) => (float[1,1] y) <{C}> {{ s = Add(x, c) y = Unsqueeze(s, a) }}",
    "a constant vector": f"g (float x) => (float[1,1] y) <{V}> "
    "{ s = Add(x, c) y = Unsqueeze(s, a) }",
    "no constant": f"g (float x, float z) => (float[1] y) <{C}> "
    "{ s = Add(x, z) y = Unsqueeze(s, a) }",
    "a constant of the caller": "g (float x, float c) => (float[1] y) <float c = {2}, "
    "int64[1] a = {0}> { s = Add(x, c) y = Unsqueeze(s, a) }",
    "axes of the caller": f"g (float x, int64[1] e) => (float[1] y) <{C}> "
    "{ s = Add(x, c) y = Unsqueeze(s, e) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(rank0_expand_dims_swap, graph)
