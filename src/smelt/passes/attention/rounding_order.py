"""Decide if masks and biases may be added to each other before they are added to the scores.

    source    ((scores + table) * t) + mask
    fused     (scores * t) + (table * t + mask)

Both orders agree, except in a row whose keys are all hidden: a mask of -1e6 rounds what it is added
to, so that each order rounds other numbers, and the softmax of such a row shows them.

A "level" addend has only numbers that are small, or so low that nothing is left of scores and
other addends. Rounding a sum with such an addend is the same in any order. A "score-like" addend is
a product of matrices.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from smelt.ir.rule import Match
from smelt.ir.walk import producer_of
from smelt.passes.attention.causal_mask import LOW
from smelt.passes.attention.mask_relative_to_row_max import LOWEST
from smelt.passes.attention.raise_bias_to_floor import CHOSEN, DEEP, PRODUCTS, bounds_of

SMALL = 100
"""Scores keep their precision when a mask of at most this size is added to them."""

_SUMS = ("Add", "Sub")
"""Operators whose result is level or score-like if both operands are."""


def rounds_alike(last: ir.Value | None, m: Match) -> bool:
    """True if scores, ``bias``, ``more`` and ``last`` sum up to the same in any order.

    Names in the match: see ``attention_bias``. Level addends that hide keys may stand in any order
    with one other addend. Several others must be level or score-like. So must an addend that a late
    scale multiplies, unless the scale is a power of two, which does not round.
    """
    scaled = [value for name in ("bias", "more") if (value := m.get(name)) is not None]
    addends = scaled if last is None else [*scaled, last]
    not_hiding = [value for value in addends if not _hides(value, m)]
    if len(not_hiding) > 1 and not all(_may_be_reordered(value, m) for value in not_hiding):
        return False
    late_scale = m.get("late_factor") or m.get("late_divisor")
    if late_scale is None or _is_power_of_two(m.scalar(late_scale)):
        return True
    return all(_may_be_reordered(value, m) for value in not_hiding if value is not last)


def _hides(value: ir.Value, m: Match) -> bool:
    """True for a level addend with a number that hides keys."""
    bounds = bounds_of(value, m)
    return bounds is not None and bool(bounds[0] <= _hiding_number(value)) and _is_level(value, m)


def _may_be_reordered(value: ir.Value, m: Match) -> bool:
    """True for a level or a score-like addend; see the module docstring for both terms."""
    return _is_level(value, m) or _is_score_like(value, m)


def _hiding_number(value: ir.Value) -> float:
    """Return the number from which on a mask of the dtype of ``value`` hides a score."""
    return LOWEST if value.dtype == ir.DataType.FLOAT16 else LOW


def _is_level(value: ir.Value | None, m: Match, depth: int = 0) -> bool:
    """True if each number of ``value`` is small, or at most ``_hiding_number``."""
    bounds = None if value is None else bounds_of(value, m)
    if value is None or bounds is None or depth == DEEP or not bounds[1] <= SMALL:
        return False
    if bounds[0] >= -SMALL:
        return True
    array = m.array(value, limit=None)
    if array is not None:
        return bool(((array >= -SMALL) | (array <= _hiding_number(value))).all())
    node = producer_of(value, "Where", "Add", *CHOSEN)
    if node is None:
        return bool(bounds[0] <= _hiding_number(value))
    operands = {"Where": node.inputs[1:], "Add": node.inputs}.get(node.op_type, node.inputs[:1])
    return all(_is_level(operand, m, depth + 1) for operand in operands)


def _is_score_like(value: ir.Value | None, m: Match, depth: int = 0) -> bool:
    """True if ``value`` is a product of matrices that was moved, scaled or added to another."""
    node = producer_of(value, *PRODUCTS, *CHOSEN, *_SUMS, "Mul", "Div")
    if node is None or depth == DEEP:
        return False
    if node.op_type in PRODUCTS:
        return True
    if node.op_type in _SUMS:
        return all(
            _is_score_like(operand, m, depth + 1) or _is_level(operand, m)
            for operand in node.inputs
        )
    if node.op_type in CHOSEN or m.scalar(node.inputs[1]) is not None:
        return _is_score_like(node.inputs[0], m, depth + 1)
    is_scaled = node.op_type == "Mul" and m.scalar(node.inputs[0]) is not None
    return is_scaled and _is_score_like(node.inputs[1], m, depth + 1)


def _is_power_of_two(number: object) -> bool:
    """True if a product with ``number`` is not rounded."""
    return isinstance(number, (int, float)) and abs(math.frexp(number)[0]) == 0.5
