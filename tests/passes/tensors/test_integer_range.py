"""Bounds of integers are proved from their computation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from smelt.ir import text
from smelt.passes.base import PassContext
from smelt.passes.tensors.integer_range import Bounds, integer_range

INPUTS = "int64[N] i, int32[N] n, uint8[N] u, bool[N] p, float[N,7] x"
CONSTANTS = (
    "<int64 five = {5}, int64 minus = {-5}, int64 zero = {0}, int64[3] some = {-2,9,4}, "
    "int64[0] none = {}, int64 far = {9223372036854775807}>"
)
BOUNDS: dict[str, tuple[str, Bounds | None]] = {
    "a type": ("y = Identity(u)", (0, 255)),
    "a wider type": ("y = Cast<to=7>(u)", (0, 255)),
    "a narrower type wraps": ("y = Cast<to=3>(u)", (-128, 127)),
    "booleans": ("y = Cast<to=7>(p)", (0, 1)),
    "a constant": ("y = Identity(some)", (-2, 9)),
    "an empty constant": ("y = Identity(none)", (0, 0)),
    "floats": ("y = Neg(x)", None),
    "integers that were floats": ("y = Cast<to=6>(x)", (-(2**31), 2**31 - 1)),
    "ArgMax": ("y = ArgMax<axis=1>(x)", (0, 6)),
    "ArgMin of an unknown size": ("y = ArgMin(x)", (0, 2**63 - 1)),
    "places of TopK": ("k = Constant<value_ints=[2]>() v, y = TopK(x, k)", (0, 6)),
    "Shape": ("y = Shape(x)", (0, 2**63 - 1)),
    "NonZero": ("y = NonZero(x)", (0, 2**63 - 1)),
    "Clip": ("y = Clip(i, zero, five)", (0, 5)),
    "Clip below": ("y = Clip(i, , five)", (-(2**63), 5)),
    "Clip to an empty range gives its upper bound": ("y = Clip(i, five, minus)", (-5, -5)),
    "Clip to a bound of one's own": ("y = Clip(zero, i, five)", (0, 5)),
    "Max and Min": ("a = Max(i, zero) y = Min(a, five)", (0, 5)),
    "Mod": ("y = Mod(i, five)", (0, 4)),
    "Mod by a negative number": ("y = Mod(i, minus)", (-4, 0)),
    "fmod": ("y = Mod<fmod=1>(i, five)", (-4, 4)),
    "fmod of what is not negative": ("a = Cast<to=7>(u) y = Mod<fmod=1>(a, five)", (0, 4)),
    "Mod by what may be 0": ("a = Clip(i, zero, five) y = Mod(i, a)", (-(2**63), 2**63 - 1)),
    "a sum": ("a = Clip(i, zero, five) y = Add(a, some)", (-2, 14)),
    "a difference": ("a = Clip(i, zero, five) y = Sub(a, some)", (-9, 7)),
    "a product": ("a = Clip(i, minus, five) y = Mul(a, some)", (-45, 45)),
    "a sum that wraps": ("a = Clip(i, zero, five) y = Add(a, far)", (-(2**63), 2**63 - 1)),
    "Abs": ("a = Clip(i, minus, zero) y = Abs(a)", (0, 5)),
    "Abs of the least number wraps": ("y = Abs(n)", (-(2**31), 2**31 - 1)),
    "Concat": ("a = Mod(i, five) y = Concat<axis=0>(a, some)", (-2, 9)),
    "Where": ("a = Mod(i, five) y = Where(p, a, minus)", (-5, 4)),
    "Range": ("a = Constant<value_int=2>() y = Range(zero, five, a)", (0, 4)),
    "Range backwards": (
        "a = Constant<value_int=-1>() y = Range(five, zero, a)",
        (-(2**63), 2**63 - 1),
    ),
    "what only moves": (
        "a = Mod(i, five) b = Transpose(a) c = Unsqueeze(b, some_axis) y = Expand(c, wide)",
        (0, 4),
    ),
    "what pads with another number": (
        "a = Constant<value_ints=[1,1]>() b = Clip(i, five, far) y = Pad(b, a)",
        (-(2**63), 2**63 - 1),
    ),
    "a product of two negative numbers": ("y = Mul(minus, minus)", (25, 25)),
}


@pytest.mark.parametrize(("body", "expected"), BOUNDS.values(), ids=BOUNDS.keys())
def test_bounds(body: str, expected: Bounds | None) -> None:
    axis = "some_axis = Constant<value_ints=[0]>() wide = Constant<value_ints=[4,1]>()"
    model = text.parse(f"g ({INPUTS}) => (y) {CONSTANTS} {{ {axis} {body} }}")
    cx = PassContext.of(model)
    assert integer_range(model.graph.outputs[0], cx.constants) == expected


ENDS = ((-4, -2), (-3, 2), (0, 3), (2, 5))
OF_TWO: dict[str, np.ufunc] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mod": np.remainder,
    "Mod<fmod=1>": np.fmod,
}


@pytest.mark.parametrize("op", OF_TWO)
def test_bounds_are_the_least_and_the_largest_result(op: str) -> None:
    for first, second in product((*ENDS, (-9, 9)), ENDS):
        if op.startswith("Mod") and (second[0] <= 0 <= second[1] or first != (-9, 9)):
            continue
        a, b = (np.arange(low, high + 1) for low, high in (first, second))
        model = text.parse(
            f"g () => (y) <int64[{a.size}] a = {{{','.join(map(str, a))}}}, "
            f"int64[{b.size}] b = {{{','.join(map(str, b))}}}> {{ y = {op}(a, b) }}"
        )
        results = OF_TWO[op].outer(a, b)
        expected = int(results.min()), int(results.max())
        found = integer_range(model.graph.outputs[0], PassContext.of(model).constants)
        assert found == expected, (first, second)


def test_a_bound_that_callers_may_change_is_none() -> None:
    model = text.parse(
        "g (int64[N] i, int64 top = {5}) => (y) { z = Constant<value_int=0>() y = Clip(i, z, top) }"
    )
    cx = PassContext.of(model)
    bounds = integer_range(model.graph.outputs[0], cx.constants)
    assert bounds is not None
    assert bounds[1] > 5
