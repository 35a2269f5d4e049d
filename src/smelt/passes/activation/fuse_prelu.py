"""Fuse ``relu(x) + a * relu(-x)`` or ``where(x > 0, x, a * x)`` into one ``PRelu``.

    before   x ─┬─> Relu ───────────────────────────┐        after   x ─> PRelu(slope = -a) ─> y
                └─> Neg ─> Relu ─> Mul(·, a) ─> Add ─> y

``relu(x) + a * min(x, 0)`` and ``where(x > 0, x, a * x)`` have the slope a.

Needs    (1) a finite constant a that broadcasts to the shape of x: (C,1,1) where channels come
         first, (C,) where they come last. With a Sub instead of the Add, the slope is a.
Keeps    (1) a computed slope, because it may be infinite; (2) float64 and integers.
"""

from __future__ import annotations

import numpy as np

from smelt.ir.build import Builder
from smelt.ir.pattern import Op, Pattern, const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_dim
from smelt.passes.activation.fuse_leaky_relu import KERNELS, compared
from smelt.passes.base import rounding, rule_pass

_x = var("x")
_minus_x = one_of(op("Neg", _x), op("Mul", _x, const(-1.0, ulp=0), commutative=True))
_negative_part = op("Mul", op("Relu", _minus_x), const(name="a", limit=None), commutative=True)
_positive_part: Pattern = op("Relu", _x)
_sum: Op = op("Add", _positive_part, _negative_part, commutative=True)
_a = const(name="a", limit=None)
_scaled_minimum = op(
    "Mul", op("Min", _x, const(0.0, ulp=0), commutative=True), _a, commutative=True
)
_scaled = op("Mul", _x, _a, commutative=True)


@rule(one_of(_sum, op("Sub", _positive_part, _negative_part)))
def prelu(m: Match, b: Builder) -> Replacement:
    """Replace ``relu(x) + a * relu(-x)``, or the same with Sub, by PRelu."""
    return _prelu(m, b, negated=m.root.op_type == "Add")


@rule(
    one_of(
        op("Add", _positive_part, _scaled_minimum, commutative=True),
        op("Where", compared("Greater", "Less"), _x, _scaled),
        op("Where", compared("Less", "Greater"), _scaled, _x),
    )
)
def chosen_by_sign(m: Match, b: Builder) -> Replacement:
    """Replace ``relu(x) + a * min(x, 0)`` or ``where(x > 0, x, a * x)`` by PRelu."""
    return _prelu(m, b, negated=False)


def _prelu(m: Match, b: Builder, *, negated: bool) -> Replacement:
    """Return a PRelu with the slope ``a``, or ``-a`` if ``negated``.

    Returns a Miss if the dtype has no kernel, or if the slope is not finite or does not broadcast
    to x.
    """
    x, a, array = m["x"], m["a"], m.array("a", limit=None)
    if x.dtype not in KERNELS or (m.opset < 16 and x.dtype == KERNELS[2]):  # keeps 2
        return Miss(f"PRelu of {x.dtype} has no kernel")
    if array is None:
        return Miss("the slope is not constant")
    if not bool(np.all(np.isfinite(array))):  # keeps 1
        return Miss("the slope is not finite")
    if x.shape is None:  # needs 1
        return Miss("the rank of x is unknown")
    if array.ndim > len(x.shape):  # needs 1
        return Miss("the slope has a higher rank than x")
    dims = x.shape.dims[len(x.shape) - array.ndim :]
    if not all(
        size == 1 or same_dim(size, dim) for size, dim in zip(array.shape, dims, strict=True)
    ):
        return Miss("a dim of the slope is neither 1 nor proved equal to the dim of x")
    return b.op("PRelu", x, b.constant(-array) if negated else a)


fuse_prelu = rule_pass(
    "fuse_prelu",
    __doc__,
    [prelu, chosen_by_sign],
    exactness=rounding(1, "a zero may have the other sign", relative=1),
    source="Core ML MIL: common::fuse_prelu",
)
