"""Turn ``min(max(x, lo), hi)`` into one ``Clip``.

    before   x ─> Max(·, lo) ─> Min(·, hi) ─> y            after   x ─> Clip(lo, hi) ─> y

Max of Min, either of them with Relu or Clip, and Max of Max match, too. Every runtime that was
measured returns NaN for NaN in all of these forms. If x and a bound are zeros of different sign,
the sign of the result may change, in which runtimes differ anyway.

Needs    (1) constant bounds, each filled with one number, whose ranges overlap; (2) a result of
         the shape of x.
Keeps    (1) bounds that are NaN or differ between elements; (2) an empty range, where Clip
         returns the upper bound; (3) an inner operator with other readers.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import exact_but_zero_sign, rule_pass
from smelt.passes.simplify.merge_consecutive_relus import (
    Bounds,
    bounds_of,
    clip_to_both,
    limits_of,
)

_MIN_MAX = ["Min", "Max"]
_ACTIVATIONS = ["Relu", "Clip"]

_x = var("x")
_bounded = op(_MIN_MAX, _x, const(name="first"), commutative=True, name="inner")  # keeps 3
_bounded_or_clipped = one_of(_bounded, op(_ACTIVATIONS, _x, rest=True, name="inner"))


@rule(
    one_of(
        op(_MIN_MAX, _bounded_or_clipped, const(name="second"), commutative=True),  # needs 2
        op(_ACTIVATIONS, _bounded, rest=True),
    )
)
def ranges(m: Match, b: Builder) -> Replacement:
    """Replace two bounds by one Clip to the intersection of their ranges."""
    x = m["x"]
    if x.dtype is None:
        return Miss("the element type of x is not known")
    limits = limits_of(x.dtype)
    inner = _range(m, m.node("inner"), "first", limits)
    outer = _range(m, m.root, "second", limits)
    return clip_to_both(b, x, inner, outer)  # needs 1, keeps 2


def _range(m: Match, node: ir.Node, bound: str, limits: Bounds) -> Bounds | None:
    """Return the closed range that ``node`` clips to; None if it is unknown."""
    if node.op_type in _ACTIVATIONS:
        return bounds_of(m, node, limits)
    number = _number(m.array(bound))
    if number is None:
        return None
    integer = m["x"].dtype is not None and m["x"].dtype.is_integer()
    lowest, highest = limits if integer else (-math.inf, math.inf)
    return (number, highest) if node.op_type == "Max" else (lowest, number)


def _number(array: np.ndarray | None) -> float | None:
    """Return the number that all elements of a constant equal; None if they differ or are NaN."""
    if array is None or not array.size or array.dtype.kind not in "iufV":
        return None
    first = array.reshape(-1)[0]
    if not bool(np.all(array == first)):  # keeps 1
        return None
    return int(first) if array.dtype.kind in "iu" else float(first)


clip_of_min_max = rule_pass(
    "clip_of_min_max",
    __doc__,
    [ranges],
    exactness=exact_but_zero_sign(
        "ONNX does not define the sign of a zero result of Max, Min and Clip"
    ),
)
