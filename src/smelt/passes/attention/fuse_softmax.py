"""Fuse the arithmetic of a softmax into one ``Softmax`` or ``LogSoftmax``.

    before   x ─┬─> ReduceMax ─> m ─┐
                └───────────────────┴─> Sub ─> Exp ─> e ─> Div(e, ReduceSum(e)) ─> y
    after    x ─> Softmax(axis) ─> y

    before   d = x - m; Sub(d, Log(ReduceSum(Exp(d)))) ─> y
    after    x ─> LogSoftmax(axis) ─> y

    before   Softmax(x - ReduceMax(x)), or LogSoftmax
    after    Softmax(x)

The operator subtracts the maximum itself, so a subtraction before it is redundant.

JAX writes Max(maximum, -inf), squeezes and restores the reduced dim, and sums float16 in float32.
It propagates NaN by ``Where(IsNaN(s), s, m)`` with a sum of squares ``s``; that guard is redundant,
because NaN reaches the sum of exponentials anyway.

Needs    (1) one axis, the same for the maximum and the sums.
Keeps    (1) inner results with other readers; (2) sums over another axis; (3) integers.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.pattern import const, one_of, op, optional, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_dim
from smelt.passes.base import rounding, rule_pass

_x = var("x")
_MOVES = ["Unsqueeze", "Reshape", "Expand"]
_max = op("ReduceMax", _x, optional(var("max_axes")), name="max")
_squares = op("ReduceSumSquare", _x, optional(var("squares_axes")), name="squares")
_numbers = one_of(_max, op("Where", op("IsNaN", _squares), _squares, _max))
_bounded = one_of(_numbers, op("Max", _numbers, const(-math.inf), commutative=True))
_restored_max = one_of(_bounded, op(_MOVES, _bounded, name="max_moved", rest=True))
_shifted = op("Sub", _x, _restored_max)
_exp = op("Exp", _shifted, name="exp")
_terms = one_of(_exp, op("Cast", _exp))
_sum = op("ReduceSum", _terms, optional(var("sum_axes")), name="sum")
_narrow_sum = one_of(_sum, op("Cast", _sum))
_moved_sum = op(_MOVES, _narrow_sum, name="sum_moved", rest=True)
_restored_sum = one_of(_narrow_sum, _moved_sum, op("Cast", _moved_sum))
_log_sum = one_of(
    op("Log", _restored_sum),
    op(_MOVES, op("Log", _narrow_sum), name="sum_moved", rest=True),
)


@rule(op("Div", _exp, _restored_sum))  # keeps 1
def softmax(m: Match, b: Builder) -> Replacement:
    """Replace ``exp(x - max) / sum(exp(x - max))`` by Softmax."""
    return _fused(m, b, "Softmax")


@rule(op("Sub", _shifted, _log_sum))
def log_softmax(m: Match, b: Builder) -> Replacement:
    """Replace ``(x - max) - log(sum(exp(x - max)))`` by LogSoftmax."""
    if m["x"].dtype == ir.DataType.DOUBLE:
        return Miss("x is float64, and runtimes ignore NaN in LogSoftmax of float64")
    return _fused(m, b, "LogSoftmax")


@rule(op(("Softmax", "LogSoftmax"), _shifted))  # keeps 1
def shifted(m: Match, b: Builder) -> Replacement:
    """Drop the subtraction of the maximum before a Softmax or LogSoftmax."""
    x, node = m["x"], m.root
    if x.shape is None:
        return None
    axis = int(opset.attribute(node, "axis", m.opset)) % len(x.shape)
    reductions = [m.node(name) for name in ("max", "squares") if m.get(name) is not None]
    if any(axis != _axis(reduction, m.constants) for reduction in reductions):  # needs 1
        return Miss("the maximum or the sum of squares is not over the axis of the softmax alone")
    if not _is_kept(m.get("max_moved") or m["max"], x, axis):
        return Miss("the result of the maximum does not broadcast along its reduced axis")
    return b.like(node, x)


def _fused(m: Match, b: Builder, op_type: str) -> Replacement:
    """Return ``op_type`` of x if the maximum and the sums reduce the same axis, else a Miss.

    Returns None if x is no float tensor or has no known shape.
    """
    x = m["x"]
    if x.shape is None or x.dtype is None or not x.dtype.is_floating_point():  # keeps 3
        return None
    axis = _axis(m.node("max"), m.constants)
    sums = [m.node(name) for name in ("sum", "squares") if m.get(name) is not None]
    if axis is None or any(axis != _axis(node, m.constants) for node in sums):  # needs 1, keeps 2
        return Miss("the maximum and the sums are not over the same single axis")
    sum_dtype = m["sum"].dtype
    if sum_dtype is None or not sum_dtype.is_floating_point():
        return Miss("the sum is not known to be floating-point")
    if sum_dtype.bitwidth < x.dtype.bitwidth:
        return Miss("the sum is in a narrower type than x")
    for name in ("max", "sum"):
        value = m.get(f"{name}_moved") or m[name]
        if not _is_kept(value, x, axis):
            return Miss(f"the result of the {name} does not broadcast along its reduced axis")
    return b.op(op_type, x, axis=axis)


def _axis(node: ir.Node, constants: Constants) -> int | None:
    """Return the only axis of a reduction; None if it has several or an unknown one."""
    axes = opset.reduction_axes(node, constants)
    return axes[0] if axes is not None and len(axes) == 1 else None


def _is_kept(value: ir.Value, x: ir.Value, axis: int) -> bool:
    """True if ``value``, a reduction of x over ``axis``, broadcasts to x along that axis.

    Its dim ``axis`` is then 1 or expanded to the size of x; for axis 0, it may also be absent.
    """
    if value.shape is None or x.shape is None:
        return False
    dropped_dim = [1] if axis == 0 and len(value.shape) == len(x.shape) - 1 else []
    dims = [*dropped_dim, *value.shape.dims]
    if len(dims) != len(x.shape):
        return False
    dims_by_axis = enumerate(zip(dims, x.shape.dims, strict=True))
    return all(
        same_dim(value_dim, x_dim) or (position == axis and value_dim == 1)
        for position, (value_dim, x_dim) in dims_by_axis
    )


fuse_softmax = rule_pass(
    "fuse_softmax",
    __doc__,
    [softmax, log_softmax, shifted],
    exactness=rounding(16, "runtimes sum in another order"),
)
