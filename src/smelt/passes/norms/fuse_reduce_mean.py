"""Fuse a ReduceSum and a division by the number of summed elements into one ``ReduceMean``.

    before   x ─> ReduceSum(axes) ─> Div(·, n) ─> y        after   x ─> ReduceMean(axes) ─> y

``Mul(·, 1/n)`` also matches. Where a size is a symbol, n is computed from ``Shape(x)``.

Needs    (1) floats, static sizes along the axes, and a constant that is exactly n, or 1/n rounded
         to its type. With symbolic sizes, a float32 or float64 n that is proved to be the product
         of the sizes, none of which may be 0.
Keeps    (1) other constants, however close; (2) ``n / sum``; (3) integers, whose mean is
         truncated; (4) a sum with other readers; (5) a constant that raises the rank.
"""

from __future__ import annotations

from math import prod

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.floats import is_float
from smelt.ir.pattern import const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import is_positive, same_dim
from smelt.ir.symbolic_dims.element_counts import COUNTED, dim_product, size_of
from smelt.passes.base import rounding, rule_pass

_sum = op("ReduceSum", var("x"), rest=True, name="sum")
_constant = const(name="constant")


# keeps 2, 4, 5
@rule(one_of(op("Div", _sum, _constant), op("Mul", _sum, _constant, commutative=True)))
def sum_over_count(m: Match, b: Builder) -> Replacement:
    """Replace a sum over a constant count by ReduceMean."""
    axes = opset.reduction_axes(m.node("sum"), m.constants)
    count = _count(m["x"], axes)
    if axes is None or count is None:  # needs 1
        return Miss("the number of summed elements is not a constant above 0")
    if not _is_float(m.array("constant")):  # keeps 3
        return Miss("the constant is not one floating-point number")
    if not _divides_by_count(m.array("constant"), count, m.root.op_type):  # keeps 1
        return Miss("the constant is not the number of summed elements")
    return _mean(m, b, axes)


def _mean(m: Match, b: Builder, axes: tuple[int, ...]) -> ir.Value:
    """Return the mean of x over ``axes``, with the ``keepdims`` of the matched sum."""
    return b.mean(m["x"], axes, keepdims=int(opset.keeps_dims(m.node("sum"))))


_one_over = one_of(
    op("Reciprocal", var("count"), shared=True), op("Div", const(1.0), var("count"), shared=True)
)


@rule(one_of(op("Div", _sum, var("count")), op("Mul", _sum, _one_over, commutative=True)))
def sum_over_computed_count(m: Match, b: Builder) -> Replacement:
    """Replace a sum over a count that is computed from symbolic sizes by ReduceMean."""
    axes = opset.reduction_axes(m.node("sum"), m.constants)
    if not axes or m["x"].shape is None or m.array("count") is not None:
        return None
    sizes = [m["x"].shape[axis] for axis in axes]
    count = size_of(m["count"], b.shapes)
    if count is None:
        return Miss("the divisor is not computed from sizes")
    if m["x"].dtype not in COUNTED:
        return Miss("x is not float32 or float64")
    if not same_dim(count, dim_product(sizes)):
        return Miss("the divisor is not the number of summed elements")
    if not all(map(is_positive, sizes)):
        return Miss("the sum may be empty")
    return _mean(m, b, axes)


def _count(x: ir.Value, axes: tuple[int, ...] | None) -> int | None:
    """Return the number of elements in each sum; None if unknown or 0."""
    if not axes or x.shape is None:
        return None
    dims = [x.shape[axis] for axis in axes]
    return prod(dim if isinstance(dim, int) else 0 for dim in dims) or None


def _is_float(constant: np.ndarray | None) -> bool:
    """True for one floating-point number."""
    return constant is not None and constant.size == 1 and is_float(constant.dtype)


def _divides_by_count(constant: np.ndarray | None, count: int, by: str) -> bool:
    """True if a Div by ``constant`` divides by ``count``, or a Mul multiplies by its rounded
    inverse."""
    if constant is None or not _is_float(constant):
        return False
    expected = np.float64(count) if by == "Div" else np.float64(1 / count).astype(constant.dtype)
    return float(constant.reshape(())) == float(expected)


fuse_reduce_mean = rule_pass(
    "fuse_reduce_mean",
    __doc__,
    [sum_over_count, sum_over_computed_count],
    exactness=rounding(4),
    before=("fuse_layernorm_or_instancenorm",),
    source="Core ML MIL: common::fuse_reduce_mean",
)
