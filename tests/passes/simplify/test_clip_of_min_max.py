"""Min and Max with constant bounds become Clip."""

from __future__ import annotations

import math

import numpy as np
import pytest
from literals import literal
from rewrites import check_rewrite, check_same_numbers, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.simplify.clip_of_min_max import clip_of_min_max

INF = math.inf
FORMS = {
    "min of max": "t = Max(x, lo) y = Min(t, hi)",
    "max of min": "t = Min(x, hi) y = Max(t, lo)",
    "swapped": "t = Max(lo, x) y = Min(hi, t)",
    "swapped within": "t = Min(hi, x) y = Max(t, lo)",
    "max of clip": "t = Clip(x, less, hi) y = Max(t, lo)",
    "clip of max": "t = Max(x, lo) y = Clip(t, less, hi)",
}


def bounds(dtype: str, **numbers: float) -> str:
    return ", ".join(f"{dtype} {name} = {literal(dtype, n)}" for name, n in numbers.items())


@pytest.mark.parametrize("body", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("dtype", ["float", "float16", "double", "int32", "int64"])
@pytest.mark.parametrize("opset", [13, 23])
def test_becomes_a_clip(body: str, dtype: str, opset: int) -> None:
    g = f"g ({dtype}[N,4] x) => ({dtype}[N,4] y) <{bounds(dtype, less=-3, lo=-1, hi=1)}>"
    check_rewrite(
        clip_of_min_max, f"{g} {{ {body} }}", f"{g} {{ y = Clip(x, lo, hi) }}", opset=opset
    )


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("t = Relu(x) y = Min(t, hi)", "y = Clip(x, z, hi)"),
        ("t = Min(x, hi) y = Relu(t)", "y = Clip(x, z, hi)"),
        ("t = Relu(x) y = Max(t, hi)", "y = Clip(x, hi, i)"),
        ("t = Max(x, z) y = Max(t, hi)", "y = Clip(x, hi, i)"),
        ("t = Min(x, z) y = Min(t, hi)", "y = Clip(x, n, z)"),
        ("t = Max(x, z) u = Min(t, hi) y = Max(u, z)", "y = Clip(x, z, hi)"),
    ],
)
def test_with_relu_and_on_one_side(body: str, after: str) -> None:
    g = f"g (float[N,4] x) => (float[N,4] y) <{bounds('float', z=0, hi=6, i=INF, n=-INF)}>"
    check_rewrite(clip_of_min_max, f"{g} {{ {body} }}", f"{g} {{ {after} }}")


@pytest.mark.parametrize("low", ["float[4] lo = {0,0,0,0}", "float[1] lo = {0}"])
def test_constants_of_one_number(low: str) -> None:
    g = "g (float[N,4] x) => (float[N,4] y)"
    check_rewrite(
        clip_of_min_max,
        f"{g} <{low}, float[1,1] hi = {{6}}> {{ t = Max(x, lo) y = Min(t, hi) }}",
        f"{g} <float lo = {{0}}, float hi = {{6}}> {{ y = Clip(x, lo, hi) }}",
    )


def test_large_integers_stay_exact() -> None:
    low, high = 2**62 + 1, 2**62 + 3
    graph = (
        f"g (int64[3] x) => (int64[3] y) <int64 lo = {{{low}}}, int64 hi = {{{high}}}> "
        "{ t = Max(x, lo) y = Min(t, hi) }"
    )
    source, model = text.parse(graph), text.parse(graph)
    run_pass(clip_of_min_max, model)
    assert [node.op_type for node in model.graph] == ["Clip"]
    check_same_numbers(
        source, model, clip_of_min_max.exactness, {"x": np.array([low - 1, low + 1, high + 1])}
    )


@pytest.mark.parametrize(("dtype", "number"), [("float", np.float32), ("double", np.float64)])
@pytest.mark.parametrize("body", FORMS.values(), ids=FORMS.keys())
def test_nan_and_infinity(body: str, dtype: str, number: type[np.floating]) -> None:
    graph = (
        f"g ({dtype}[N] x) => ({dtype}[N] y) <{bounds(dtype, less=-3, lo=-1, hi=1)}> {{ {body} }}"
    )
    source, model = text.parse(graph), text.parse(graph)
    run_pass(clip_of_min_max, model)
    special = np.array([np.nan, -np.inf, np.inf, -0.0, 0.0, 5, -5], dtype=number)
    check_same_numbers(source, model, clip_of_min_max.exactness, {"x": np.tile(special, 33)})


C = f"<{bounds('float', lo=-1, hi=1, nan=math.nan)}, float[4] many = {{-1,0,0,0}}>"
KEPT = {
    "an empty range": f"g (float[4] x) => (float[4] y) {C} {{ t = Max(x, hi) y = Min(t, lo) }}",
    "ranges that do not meet": f"g (float[4] x) => (float[4] y) {C} "
    "{ t = Min(x, lo) y = Max(t, hi) }",
    "NaN": f"g (float[4] x) => (float[4] y) {C} {{ t = Max(x, nan) y = Min(t, hi) }}",
    "bounds that differ": f"g (float[4] x) => (float[4] y) {C} {{ t = Max(x, many) y = Min(t, hi) }}",
    "a bound of the caller": f"g (float[4] x, float b) => (float[4] y) {C} "
    "{ t = Max(x, b) y = Min(t, hi) }",
    "one alone": f"g (float[4] x) => (float[4] y) {C} {{ y = Max(x, lo) }}",
    "three operands": f"g (float[4] x, float[4] w) => (float[4] y) {C} "
    "{ t = Max(x, w, lo) y = Min(t, hi) }",
    "a bound that widens x": "g (float[4] x) => (float[2,4] y) "
    "<float[2,1] lo = {0,0}, float hi = {1}> { t = Max(x, lo) y = Min(t, hi) }",
    "a bound that raises the rank": "g (float[4] x) => (float[1,4] y) "
    "<float lo = {0}, float[1,1] hi = {1}> { t = Max(x, lo) y = Min(t, hi) }",
    "the first is an output": f"g (float[4] x) => (float[4] y, float[4] t) {C} "
    "{ t = Max(x, lo) y = Min(t, hi) }",
    "two activations": f"g (float[4] x) => (float[4] y) {C} {{ t = Clip(x, lo, hi) y = Relu(t) }}",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(clip_of_min_max, graph)
