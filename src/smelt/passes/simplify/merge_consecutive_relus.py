"""Merge activations that repeat or contain each other.

    before   x ─> Relu ─> Relu ─> y                       after   x ─> Relu ─> y
    before   x ─> Clip(a, b) ─> Clip(c, d) ─> y           after   x ─> Clip(max(a,c), min(b,d)) ─> y
    before   x ─> Floor ─> Round ─> y                     after   x ─> Floor ─> y

Also: Abs of Abs, Sign of Sign, Relu of Abs, Abs of Relu, and any of Ceil, Floor and Round after any
of these.

Needs    (1) constant bounds whose ranges overlap: a Clip with an empty range returns its upper
         bound.
Keeps    (1) the inner operator for its other readers.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.floats import float_info
from smelt.ir.pattern import one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import exact_but_zero_sign, rule_pass

_x = var("x")


_INTEGERS = ("Ceil", "Floor", "Round")

UNCHANGED_AFTER = {
    "Relu": ("Relu", "Abs"),
    "Abs": ("Abs", "Relu"),
    "Sign": ("Sign",),
    **dict.fromkeys(_INTEGERS, _INTEGERS),
}
"""Operator to the operators whose results it returns unchanged: a Relu of an Abs is the Abs."""


@rule(
    one_of(
        *(
            op(outer, op(inner, _x, name="inner", shared=True))
            for outer, inner in UNCHANGED_AFTER.items()
        )
    )
)
def repeated_activation(m: Match, b: Builder) -> Replacement:
    """Drop an operator that returns its operand unchanged."""
    return m["inner"]


_ACTIVATIONS = ["Relu", "Clip"]


@rule(
    op(
        _ACTIVATIONS,
        op(_ACTIVATIONS, _x, name="inner", shared=True, rest=True),  # keeps 1
        name="outer",
        rest=True,
    )
)
def clip_of_clip(m: Match, b: Builder) -> Replacement:
    """Replace two of Relu and Clip by one Clip."""
    inner, outer, x = m.node("inner"), m.root, m["x"]
    if x.dtype is None or (inner.op_type == "Relu" and outer.op_type == "Relu"):
        return None
    limits = limits_of(x.dtype)
    return clip_to_both(b, x, bounds_of(m, inner, limits), bounds_of(m, outer, limits))


Bounds = tuple[float, float]
"""The smallest and the largest possible result."""


def clip_to_both(
    b: Builder, x: ir.Value, first: Bounds | None, second: Bounds | None
) -> ir.Value | Miss:
    """Return a Clip of ``x`` to the intersection of two ranges; a Miss if it is empty or unknown.

    A bound that the type has anyway is omitted.
    """
    assert x.dtype is not None
    if first is None or second is None:
        return Miss("the bounds of one range are not constant")
    low, high = max(first[0], second[0]), min(first[1], second[1])
    overlap = first[0] <= first[1] and second[0] <= second[1] and low <= high
    if not overlap:  # needs 1
        return Miss("the ranges do not overlap")
    bounds = [
        None if number == limit else _constant(b, number, x)
        for number, limit in zip((low, high), limits_of(x.dtype), strict=True)
    ]
    return b.op("Clip", x, *bounds)


def limits_of(dtype: ir.DataType) -> Bounds:
    """Return the default bounds of a Clip: the lowest and the largest finite number of
    ``dtype``."""
    if dtype.is_integer():
        return int(np.iinfo(dtype.numpy()).min), int(np.iinfo(dtype.numpy()).max)
    largest = float(float_info(dtype.numpy()).max)
    return -largest, largest


def bounds_of(m: Match, node: ir.Node, limits: Bounds) -> Bounds | None:
    """Return the closed range of a Relu or Clip; None if it is unknown or NaN."""
    if node.op_type == "Relu":
        return 0.0, math.inf
    bounds = []
    for index, limit in enumerate(limits, start=1):
        value = node.inputs[index] if len(node.inputs) > index else None
        number = limit if value is None else m.scalar(value)
        if number is None or math.isnan(number):
            return None
        bounds.append(number)
    return bounds[0], bounds[1]


def _constant(b: Builder, number: float, like: ir.Value) -> ir.Value:
    """Return ``number`` as a constant scalar with the dtype of ``like``."""
    assert like.dtype is not None
    return b.constant(np.asarray(number, dtype=like.dtype.numpy()))


merge_consecutive_relus = rule_pass(
    "merge_consecutive_relus",
    __doc__,
    [repeated_activation, clip_of_clip],
    exactness=exact_but_zero_sign(
        "ONNX does not define the sign of a zero result of Max, Min and Clip"
    ),
    source="Core ML MIL: common::merge_consecutive_relus",
)
