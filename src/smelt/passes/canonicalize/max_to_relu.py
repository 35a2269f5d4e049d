"""Turn ``max(x, 0)`` into ``Relu``.

    before   x ─> Max(·, 0) ─> y                          after   x ─> Relu ─> y

Needs    (1) a floating-point x of the shape of the result, and a constant of zeros.
Keeps    (1) a zero that broadcasts x to a larger shape; (2) a constant of -0, because Max then
         gives -0 for negative numbers; (3) a Max of more than two inputs.
"""

from __future__ import annotations

import numpy as np

from smelt.ir.build import Builder
from smelt.ir.pattern import const, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import exact_but_zero_sign, rule_pass


@rule(op("Max", var("x"), const(name="zero"), commutative=True))  # keeps 1, 3
def max_with_zero(m: Match, b: Builder) -> Replacement:
    """Replace Max with a constant of zeros by Relu."""
    if not m.constants.is_filled(m["zero"], 0):
        return None
    if m["x"].dtype is None or not m["x"].dtype.is_floating_point():  # needs 1
        return Miss("x is not known to be floating-point")
    zeros = m.array("zero")
    if zeros is None or np.signbit(zeros).any():  # keeps 2
        return Miss("Max with -0 gives -0 for negative numbers, Relu gives 0")
    return b.op("Relu", m["x"])


max_to_relu = rule_pass(
    "max_to_relu",
    __doc__,
    [max_with_zero],
    exactness=exact_but_zero_sign("ONNX does not define the sign of a zero result of Max"),
)
