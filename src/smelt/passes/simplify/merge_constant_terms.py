"""Add constants to each other first, where one after the other is added to a value.

    before   x ─> Add(·, c) ─> Sub(·, d) ─> y              after   x ─> Add(·, c - d) ─> y

So a bias meets the one that a layer brings with it, also behind products of three dims.

Needs    (1) constants of one type, integers or floats, whose sum is computed in float64, rounded
         once and finite; (2) a sum that is not larger than the larger of the two.
Keeps    (1) ``c - x``; (2) constants that cancel by more than a half, since ``x + c - c`` rounds
         x, which is what some models want of it; (3) constants that only together take the shape
         of the result; (4) a first sum that something else reads.
"""

from __future__ import annotations

import numpy as np

from smelt.ir.build import Builder
from smelt.ir.floats import is_float
from smelt.ir.pattern import const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import rounding, rule_pass
from smelt.passes.convolution.rounded_product import round_to

_c, _d = const(name="c", limit=None), const(name="d", limit=None)
_first = one_of(
    op("Add", var("x"), _c, name="first", commutative=True), op("Sub", var("x"), _c, name="first")
)


@rule(one_of(op("Add", _first, _d, commutative=True), op("Sub", _first, _d)))  # keeps 1, 4
def sum_of_sums(m: Match, b: Builder) -> Replacement:
    c, d = m.array("c", limit=None), m.array("d", limit=None)
    if c is None or d is None or c.dtype != d.dtype or m.array("x", limit=None) is not None:
        return None
    try:
        size = np.broadcast(c, d).size
    except ValueError:
        return Miss("the constants do not fit each other")
    if size > max(c.size, d.size):  # needs 2, keeps 3
        return Miss("the sum would be larger than the constants")
    signs = [1 if node.op_type == "Add" else -1 for node in (m.node("first"), m.root)]
    if is_float(c.dtype) and _cancel(c, d, signs[0] * signs[1]):  # keeps 2
        return Miss("the constants cancel: the first sum rounds what the second leaves")
    total = _total(c, d, signs)
    if total is None:  # needs 1
        return Miss(f"the sum does not fit {c.dtype}")
    return b.op("Add", m["x"], b.constant(total))


def _cancel(c: np.ndarray, d: np.ndarray, sign: int) -> bool:
    """True if ``c + sign * d`` is somewhere less than half of the larger of the two."""
    wide, other = c.astype(np.float64), sign * d.astype(np.float64)
    larger = np.maximum(np.abs(wide), np.abs(other))
    return bool((2 * np.abs(wide + other) < larger).any())


def _total(c: np.ndarray, d: np.ndarray, signs: list[int]) -> np.ndarray | None:
    """The sum with these signs in the type of both; None if it is not finite or no number."""
    if is_float(c.dtype):
        return round_to(signs[0] * c.astype(np.float64) + signs[1] * d.astype(np.float64), c.dtype)
    if c.dtype.kind not in "iu":
        return None
    # Integers wrap around as those of the operators do.
    first = c if signs[0] > 0 else np.subtract(np.zeros((), c.dtype), c)
    return np.asarray(first + d if signs[1] > 0 else first - d)


merge_constant_terms = rule_pass(
    "merge_constant_terms", __doc__, [sum_of_sums], exactness=rounding(2)
)
