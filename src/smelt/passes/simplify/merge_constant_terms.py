"""Merge two constants that are added to a value one after the other.

    before   x ─> Add(·, c) ─> Sub(·, d) ─> y              after   x ─> Add(·, c - d) ─> y

This merges an added bias with the bias of the layer before, also behind products of rank 3.

Needs    (1) constants of one type, integers or floats; floats are added in float64, rounded once,
         and the sum is finite; (2) a sum with no more elements than the larger constant.
Keeps    (1) ``c - x``; (2) constants that cancel by more than a half, because ``x + c - c`` rounds
         x, and some models rely on that; (3) constants that broadcast each other to a larger
         shape; (4) a first sum with other readers; (5) before a Softmax, a constant such as -1e6:
         the softmax of a row that it shifts shows how each sum was rounded.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.floats import is_float
from smelt.ir.pattern import const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import rounding, rule_pass
from smelt.passes.convolution.rounded_product import round_to

SOFTMAX = ("Softmax", "LogSoftmax")
_PASSED_ON = (
    *("Add", "Sub", "Mul", "Div", "Where", "Max", "Min", "Clip", "Cast"),
    *("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Concat", "Slice"),
)
"""Operators behind which a Softmax still shows how its operand was rounded."""

SMALL, LOW = 100, -1e30
"""Numbers up to ``SMALL`` leave scores about as exact as they are; ``LOW`` leaves none of them."""

DEEP = 4

_c, _d = const(name="c", limit=None), const(name="d", limit=None)
_first = one_of(
    op("Add", var("x"), _c, name="first", commutative=True), op("Sub", var("x"), _c, name="first")
)


@rule(one_of(op("Add", _first, _d, commutative=True), op("Sub", _first, _d)))  # keeps 1, 4
def sum_of_sums(m: Match, b: Builder) -> Replacement:
    """Replace two sums with constants by one."""
    first_constant, second_constant = m.array("c", limit=None), m.array("d", limit=None)
    if (
        first_constant is None
        or second_constant is None
        or first_constant.dtype != second_constant.dtype
        or m.array("x", limit=None) is not None
    ):
        return None
    try:
        size = np.broadcast(first_constant, second_constant).size
    except ValueError:
        return Miss("the constants do not broadcast to each other")
    if size > max(first_constant.size, second_constant.size):  # needs 2, keeps 3
        return Miss("the merged constant would have more elements than each of the two")
    signs = [1 if node.op_type == "Add" else -1 for node in (m.node("first"), m.root)]
    if is_float(first_constant.dtype) and _cancel(
        first_constant, second_constant, signs[0] * signs[1]
    ):  # keeps 2
        return Miss("the constants cancel, but the two separate sums round x")
    if _shifts(first_constant, second_constant) and _is_weighed(m.root.outputs[0]):  # keeps 5
        return Miss("a Softmax shows with so large a constant how sums are rounded")
    total = _total(first_constant, second_constant, signs)
    if total is None:  # needs 1
        return Miss(f"{first_constant.dtype} cannot hold the sum of the constants")
    return b.op("Add", m["x"], b.constant(total))


def _cancel(c: np.ndarray, d: np.ndarray, sign: int) -> bool:
    """True if an element of ``c + sign * d`` is less than half of the larger of its two terms."""
    first, second = c.astype(np.float64), sign * d.astype(np.float64)
    larger = np.maximum(np.abs(first), np.abs(second))
    return bool((2 * np.abs(first + second) < larger).any())


def _shifts(c: np.ndarray, d: np.ndarray) -> bool:
    """True if a number rounds scores that it is added to, without hiding them."""
    sizes = [np.abs(array.astype(np.float64)) for array in (c, d) if is_float(array.dtype)]
    return any(((size > SMALL) & (size < -LOW)).any() for size in sizes)


def _is_weighed(value: ir.Value, depth: int = 0) -> bool:
    """True if ``value`` is read by a Softmax, also moved, masked or scaled, up to ``DEEP``."""
    return any(
        reader.op_type in SOFTMAX
        or (
            (reader.op_type in _PASSED_ON and depth < DEEP)
            and any(_is_weighed(output, depth + 1) for output in reader.outputs)
        )
        for reader in scope.consumers(value)
    )


def _total(c: np.ndarray, d: np.ndarray, signs: list[int]) -> np.ndarray | None:
    """Return the signed sum in the type of both; None if it is not finite or not numeric."""
    if is_float(c.dtype):
        return round_to(signs[0] * c.astype(np.float64) + signs[1] * d.astype(np.float64), c.dtype)
    if c.dtype.kind not in "iu":
        return None
    # NumPy's integers wrap around as in the operators.
    first = c if signs[0] > 0 else np.subtract(np.zeros((), c.dtype), c)
    return np.asarray(first + d if signs[1] > 0 else first - d)


merge_constant_terms = rule_pass(
    "merge_constant_terms", __doc__, [sum_of_sums], exactness=rounding(2)
)
