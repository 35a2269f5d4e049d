"""Nested Relu, Clip and similar activations become one."""

from __future__ import annotations

import math

import pytest
from literals import literal
from rewrites import check_rewrite, check_unchanged

from smelt.passes.simplify.merge_consecutive_relus import merge_consecutive_relus

G = "g (float[N,4] x) => (float[N,4] y) <float a = {-1}, float b = {1}, float c = {0.5}, float d = {2}, float z = {0}, float six = {6}, float inf = {inf}>"
MERGED = {
    "Relu of Relu": ("r = Relu(x) y = Relu(r)", "y = Relu(x)"),
    "three": ("r = Relu(x) s = Relu(r) y = Relu(s)", "y = Relu(x)"),
    "Clip of Clip": ("r = Clip(x, a, b) y = Clip(r, z, d)", "y = Clip(x, z, b)"),
    "Relu of Clip": ("r = Clip(x, a, six) y = Relu(r)", "y = Clip(x, z, six)"),
    "Clip of Relu": ("r = Relu(x) y = Clip(r, a, six)", "y = Clip(x, z, six)"),
    "infinity is let through": ("r = Relu(x) y = Clip(r, a, inf)", "y = Clip(x, z, inf)"),
    "an absent bound lets none through": ("r = Relu(x) y = Clip(r, a)", "y = Clip(x, z)"),
    "one bound each": ("r = Clip(x, a) e = Neg(r) f = Neg(e) s = Clip(r, , b) y = Sub(s, f)", None),
}


@pytest.mark.parametrize(("before", "after"), MERGED.values(), ids=MERGED.keys())
def test_merges(before: str, after: str | None) -> None:
    expected = after or "r = Clip(x, a) e = Neg(r) f = Neg(e) s = Clip(x, a, b) y = Sub(s, f)"
    check_rewrite(merge_consecutive_relus, f"{G} {{ {before} }}", f"{G} {{ {expected} }}")


@pytest.mark.parametrize("outer", ["Ceil", "Floor", "Round"])
@pytest.mark.parametrize("inner", ["Ceil", "Floor", "Round"])
def test_rounds_once(outer: str, inner: str) -> None:
    check_rewrite(
        merge_consecutive_relus,
        f"{G} {{ r = {inner}(x) y = {outer}(r) }}",
        f"{G} {{ y = {inner}(x) }}",
    )


@pytest.mark.parametrize(
    ("outer", "inner"), [("Abs", "Abs"), ("Sign", "Sign"), ("Abs", "Relu"), ("Relu", "Abs")]
)
@pytest.mark.parametrize("dtype", ["float", "float16", "double", "int32"])
def test_outer_operators_without_effect_are_dropped(outer: str, inner: str, dtype: str) -> None:
    g = f"g ({dtype}[N,4] x) => ({dtype}[N,4] y)"
    check_rewrite(
        merge_consecutive_relus,
        f"{g} {{ r = {inner}(x) y = {outer}(r) }}",
        f"{g} {{ y = {inner}(x) }}",
    )


def test_the_first_stays_for_others() -> None:
    g = "g (float[N,4] x) => (float[N,4] y, float[N,4] z)"
    check_rewrite(
        merge_consecutive_relus,
        f"{g} {{ r = Floor(x) s = Round(r) y = Neg(s) z = Exp(r) }}",
        f"{g} {{ r = Floor(x) y = Neg(r) z = Exp(r) }}",
    )


KEPT = {
    "ranges that do not meet": f"{G} {{ r = Clip(x, a, c) y = Clip(r, b, d) }}",
    "an empty range": f"{G} {{ r = Clip(x, b, a) y = Clip(r, a, d) }}",
    "bounds that are inputs": "g (float[4] x, float a, float b) => (float[4] y) { r = Clip(x, a, b) y = Relu(r) }",
    "Sign of Abs": f"{G} {{ r = Abs(x) y = Sign(r) }}",
    "Abs of Sign": f"{G} {{ r = Sign(x) y = Abs(r) }}",
    "Floor of Abs": f"{G} {{ r = Abs(x) y = Floor(r) }}",
    "no number but infinity": "g (float[N,4] x) => (float[N,4] y) "
    f"<float i = {literal('float', math.inf)}> {{ r = Clip(x, i) y = Relu(r) }}",
    "LeakyRelu": f"{G} {{ r = LeakyRelu(x) y = Relu(r) }}",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(merge_consecutive_relus, graph)
