"""Bounds of integers hold for whatever the operands are, and wrap with their type."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from smelt.ir import text
from smelt.ir.value_facts.integer_bounds import IntegerBounds
from smelt.ir.value_facts.integer_formulas import (
    LARGEST_CONSTANT,
    LONGEST,
    hull,
    of_constant,
    type_limits,
    within,
)
from smelt.runtime.reference import Reference

TABLE = "float[3,5] x, int64[4] n, bool[4] m, int8[4] k, float[B,S] o"
CASES: dict[str, tuple[str, tuple[int, int]]] = {
    "a shape": ("y = Shape(x)", (3, 5)),
    "one size": ("y = Shape<start=1>(x)", (5, 5)),
    "open sizes": ("y = Shape(o)", (0, LONGEST)),
    "a range": (
        "s = Shape<start=1>(x) l = Squeeze(s) r = Range(zero, l, one) y = Unsqueeze(r, ax)",
        (0, 5),
    ),
    "a narrow cast": ("y = Cast<to=7>(k)", (-128, 127)),
    "a mask": ("y = Cast<to=7>(m)", (0, 1)),
    "a mask by arithmetic": ("c = Cast<to=7>(m) d = Sub(one, c) y = Mul(d, seven)", (0, 7)),
    "a comparison": ("g = Greater(n, one) y = Cast<to=7>(g)", (0, 1)),
    "a running sum": ("c = Cast<to=7>(m) y = CumSum(c, zero)", (0, LONGEST)),
    "a choice": ("y = Where(m, seven, ax)", (0, 7)),
    "a clip": ("y = Clip(n, zero, seven)", (0, 7)),
    "min and max": ("a = Max(n, zero) y = Min(a, seven)", (0, 7)),
    "a remainder": ("y = Mod(n, seven)", (0, 6)),
    "a remainder of C": ("y = Mod<fmod=1>(n, seven)", (-6, 6)),
    "bits of numbers without a sign": ("a = Mod(n, seven) y = BitwiseXor(a, seven)", (0, 7)),
    "bits of a constant and any number": (
        "c = Cast<to=7>(k) y = BitwiseAnd(c, seven)",
        (-(2**63), 2**63 - 1),
    ),
    "a quotient": ("c = Cast<to=7>(k) y = Div(c, seven)", (-18, 18)),
    "signs": ("y = Sign(n)", (-1, 1)),
    "places": ("y = ArgMax<axis=1>(x)", (0, LONGEST - 1)),
    "picked": ("s = Shape(x) y = Gather(s, ax)", (3, 5)),
    "joined": ("c = Cast<to=7>(k) a = Abs(c) y = Concat<axis=0>(a, ax)", (0, 128)),
    "a branch": (
        "c = Squeeze(b) y = If(c) <then_branch = t () => (int64[1] p) { p = Identity(ax) }, "
        "else_branch = f () => (int64[1] q) { q = Neg(sevens) }>",
        (-7, 0),
    ),
    "an unknown": ("y = Add(n, one)", (-(2**63), 2**63 - 1)),
    "a sum that may wrap": ("a = Clip(n, zero, large) y = Add(a, a)", (-(2**63), 2**63 - 1)),
    "the least of a type": ("a = Abs(k) y = Cast<to=7>(a)", (-128, 127)),
}
CONSTANTS = (
    "int64 zero = {0}, int64 one = {1}, int64 seven = {7}, int64[1] ax = {0}, int64[1] sevens = {7}, "
    "bool[1] b = {1}, int64 large = {9000000000000000000}"
)


@pytest.mark.parametrize("name", CASES)
def test_bounds_hold(name: str) -> None:
    body, expected = CASES[name]
    rank = {"a range": "N,1", "places": "3,1", "one size": "1", "open sizes": "2", "a shape": "2"}
    model = text.parse(
        f"g ({TABLE}) => (int64[{rank.get(name, 'M')}] y) <{CONSTANTS}> {{ {body} }}", 18
    )
    if name == "a range":
        model.graph.outputs[0].shape = None
    assert IntegerBounds().of(model.graph.outputs[0]) == expected
    rng = np.random.default_rng(0)
    for spread in (3, 2**62):
        given = [
            rng.standard_normal((3, 5)).astype(np.float32),
            rng.integers(-spread, spread, 4),
            rng.integers(0, 2, 4).astype(bool),
            np.array([-128, 127, -1, 3], np.int8),
            np.zeros((2, 4), np.float32),
        ]
        (y,) = Reference(model)(*given)
        assert y.size == 0 or expected[0] <= y.min() <= y.max() <= expected[1]


def test_floats_have_none() -> None:
    model = text.parse("g (float[4] x) => (float[4] y) { a = Abs(x) y = Neg(a) }", 18)
    assert IntegerBounds().of(model.graph.outputs[0]) is None


ARRAYS = {
    "integers": (np.array([3, -7, 5]), (-7, 5)),
    "one": (np.array(4, np.uint8), (4, 4)),
    "booleans": (np.array([True, False]), (0, 1)),
    "true": (np.array([True, True]), (1, 1)),
    "no integers": (np.zeros(0, np.int32), (0, 0)),
    "no floats": (np.zeros(0, np.float32), (0, 0)),
    "floats": (np.ones(2, np.float32), None),
    "more than are read": (np.ones(LARGEST_CONSTANT + 1, np.int8), (-128, 127)),
    "as many as are read": (np.ones(LARGEST_CONSTANT, np.int8), (1, 1)),
}


@pytest.mark.parametrize(("array", "bounds"), ARRAYS.values(), ids=ARRAYS)
def test_bounds_of_a_constant(array: np.ndarray, bounds: tuple[int, int] | None) -> None:
    assert of_constant(ir.Tensor(array)) == bounds


def test_limits_of_types() -> None:
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
        info = np.iinfo(dtype)
        assert type_limits(ir.DataType.from_numpy(np.dtype(dtype))) == (info.min, info.max)
    small = [type_limits(ir.DataType[name]) for name in ("INT4", "UINT4", "BOOL", "FLOAT")]
    assert small == [(-8, 7), (0, 15), (0, 1), None]


def test_a_result_beyond_its_type_has_the_bounds_of_the_type() -> None:
    limits = (-128, 127)
    assert within(None, limits) == within((-129, 0), limits) == within((0, 128), limits) == limits
    assert within((-128, 127), limits) == limits
    assert within((-3, 5), limits) == (-3, 5)


def test_a_hull_holds_all_parts() -> None:
    assert hull((1, 2), (-5, 0), (0, 9)) == (-5, 9)
    assert hull((1, 2), None) is None
    assert hull() is None
