"""Multiply by the reciprocal of a constant instead of dividing by it.

    before   x ─> Div(·, 8) ─> y                           after   x ─> Mul(·, 0.125) ─> y

The option ``fast`` also allows divisors that are not powers of two; their reciprocal is rounded, so
results move by up to 2 ulp.

Needs    (1) floats, and a divisor whose elements are all powers of two, of either sign; (2) normal
         divisors and reciprocals, which no runtime flushes to zero.
Keeps    (1) integers; (2) a division of a constant; (3) divisors of 0, infinity or NaN, and
         divisors whose reciprocal overflows (below 1.5e-5 in float16).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smelt.ir.build import Builder
from smelt.ir.floats import float_info, is_float
from smelt.ir.pattern import const, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import EXACT, Exactness, rounding, rule_pass


@rule(op("Div", var("x"), const(name="divisor", limit=None)))  # keeps 2
def over_constant(m: Match, b: Builder) -> Replacement:
    """Replace the division by a product with the reciprocal."""
    divisor = m.array("divisor", limit=None)
    if divisor is None or not is_float(divisor.dtype):  # keeps 1
        return None
    if not _are_normal(divisor):  # keeps 3
        return Miss("a divisor is 0, subnormal or not finite")
    if not m.options.fast and not _are_powers_of_two(divisor):  # needs 1
        return Miss(
            "a divisor is not a power of two, so its reciprocal is rounded (allowed by --fast-math)"
        )
    with np.errstate(all="ignore"):
        factor = (1 / divisor.astype(np.float64)).astype(divisor.dtype)
    if not _are_normal(factor):  # needs 2
        return Miss("the reciprocal is not a normal number")
    return b.op("Mul", m["x"], b.constant(factor))


def _are_normal(array: np.ndarray) -> bool:
    """True if all elements are normal numbers: not 0, subnormal, infinite or NaN."""
    magnitude = np.abs(array.astype(np.float64))
    smallest = float(float_info(array.dtype).smallest_normal)
    return bool(np.all(np.isfinite(magnitude) & (magnitude >= smallest)))


def _are_powers_of_two(array: np.ndarray) -> bool:
    """True if all elements are powers of two, of either sign."""
    mantissa, _ = np.frexp(array.astype(np.float64))
    return bool(np.all(np.abs(mantissa) == 0.5))


@dataclass(frozen=True)
class Divisors:
    """``fast``: allow any divisor, although its reciprocal is rounded."""

    fast: bool = False


divide_to_multiply = rule_pass(
    "divide_to_multiply",
    __doc__,
    [over_constant],
    exactness=Exactness("exact", note="with fast, 2 ulp"),
    declares=lambda options, stats: rounding(2) if options.fast else EXACT,
    options_type=Divisors,
    source="Core ML MIL: common::divide_to_multiply",
)
