"""Constants in float16: which numbers are replaced because float16 cannot hold them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from smelt.targets.coreml.masks import only_masks_scores

LARGEST_HALF, LEAST_HALF = 65504.0, 2.0**-24
BEYOND_HALF, MASK_NUMBER, HUGE_NUMBER = 65520.0, 1e9, 3e38
"""Finite constants of at least this size stand for infinity, and become the largest float16 or
``MASK``.

``BEYOND_HALF``, the least number that float16 rounds to infinity, is the limit for masks of scores,
``MASK_NUMBER`` for constants of ``MASKING`` operators, ``HUGE_NUMBER`` for all others."""
MASK = -(2.0**14)
"""A number below 0 that stands for infinity, except for a bound. Scores and two further masks that
are added to it stay finite, so that a row without a place that counts does not become NaN."""
BOUNDS = frozenset({"Clip", "Max", "Min"})
"""Operators whose numbers are bounds."""
MASKING = frozenset({"Add", "Clip", "Max", "Min", "Where"})
"""Operators by which models mask scores with a large number."""
WITH_EPSILON = MASKING | {"Sub", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}
"""Operators by which models add or compare with an epsilon.

If float16 rounds an epsilon to 0, it becomes the least float16 instead."""


class Rule(NamedTuple):
    """How the constants of a node become float16.

    Finite numbers of at least ``limit`` become ``low`` or ``high``. With ``has_epsilon``, a number
    that float16 rounds to 0 becomes the least float16.
    """

    limit: float
    low: float
    high: float
    has_epsilon: bool


def replacement_rule(node: ir.Node) -> Rule:
    """Return the rule for the constants of ``node``."""
    has_epsilon = node.op_type in WITH_EPSILON
    if node.op_type in BOUNDS:
        return Rule(MASK_NUMBER, -LARGEST_HALF, LARGEST_HALF, has_epsilon)
    if only_masks_scores(node):
        return Rule(BEYOND_HALF, MASK, -MASK, has_epsilon)
    limit = MASK_NUMBER if node.op_type in MASKING else HUGE_NUMBER
    return Rule(limit, MASK, LARGEST_HALF, has_epsilon)


def as_float16(array: np.ndarray, node: ir.Node) -> tuple[np.ndarray, bool]:
    """Return a constant of ``node`` in float16, and True if numbers were replaced by the rule of
    the node; other numbers beyond float16 become infinite.
    """
    wide = np.asarray(array, np.float32)
    is_changed = False
    if depends_on_operator(array):
        rule = replacement_rule(node)
        is_huge = np.isfinite(wide) & (np.abs(wide) >= rule.limit)
        is_changed = bool(is_huge.any())
        stand_ins = np.where(wide < 0, rule.low, rule.high).astype(np.float32)
        wide = np.where(is_huge, stand_ins, wide)
        if rule.has_epsilon and wide.size == 1 and 0 < abs(wide.item()) < LEAST_HALF:
            is_changed, wide = True, np.copysign(np.float32(LEAST_HALF), wide)
    with np.errstate(over="ignore"):
        return wide.astype(np.float16), is_changed


def depends_on_operator(array: np.ndarray) -> bool:
    """True if operators get different numbers of float16 for a constant: one beyond float16, or
    one that float16 rounds to 0.
    """
    if array.dtype == np.float16 or array.dtype.kind == "b" or array.size == 0:
        return False
    with np.errstate(over="ignore"):  # of float64
        wide = array.astype(np.float32)
    is_tiny = array.size == 1 and 0 < abs(wide.item()) < LEAST_HALF
    return is_tiny or is_beyond_half(wide)


def is_beyond_half(array: np.ndarray) -> bool:
    """True if ``array`` has a finite number that float16 rounds to infinity."""
    return bool((np.isfinite(array) & (np.abs(array) >= BEYOND_HALF)).any())
