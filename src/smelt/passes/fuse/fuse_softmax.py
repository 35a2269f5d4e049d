"""Fuse the arithmetic of a softmax into one ``Softmax``.

    before   x ─┬─> ReduceMax ─> m ─┐
                └───────────────────┴─> Sub ─> Exp ─> e ─> Div(e, ReduceSum(e)) ─> y
    after    x ─> Softmax(axis) ─> y

JAX writes a Max with -inf around the maximum, and squeezes and restores the reduced dim.

Needs    one axis, the same for the maximum and the sum.
Keeps    parts that something else reads; sums over another axis; integers.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.match import const, one_of, op, optional, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.shapes import same_dim
from smelt.passes.base import rounding, rule_pass

_x = var("x")
_MOVES = ["Unsqueeze", "Reshape", "Expand"]
_max = op("ReduceMax", _x, optional(var("max_axes")), name="max")
_guarded = one_of(_max, op("Max", _max, const(-math.inf), commutative=True))
_restored_max = one_of(_guarded, op(_MOVES, _guarded, name="max_moved", rest=True))
_exp = op("Exp", op("Sub", _x, _restored_max), name="exp")
_sum = op("ReduceSum", _exp, optional(var("sum_axes")), name="sum")
_restored_sum = one_of(_sum, op(_MOVES, _sum, name="sum_moved", rest=True))


@rule(op("Div", _exp, _restored_sum))
def softmax(m: Match, b: Builder) -> Replacement:
    x = m["x"]
    if x.shape is None or x.dtype is None or not x.dtype.is_floating_point():
        return None
    axis = _axis(m.node("max"), m.constants)
    if axis is None or axis != _axis(m.node("sum"), m.constants):
        return Miss("the maximum and the sum are not over the same single axis")
    for name in ("max", "sum"):
        value = m.get(f"{name}_moved") or m[name]
        if not _is_kept(value, x, axis):
            return Miss(f"the {name} does not stand against the axis that it reduced")
    return b.op("Softmax", x, axis=axis)


def _axis(node: ir.Node, constants: Constants) -> int | None:
    axes = opset.reduction_axes(node, constants)
    return axes[0] if axes is not None and len(axes) == 1 else None


def _is_kept(value: ir.Value, x: ir.Value, axis: int) -> bool:
    """True if ``value`` has the shape of ``x`` with the axis 1, or repeated."""
    if value.shape is None or x.shape is None or len(value.shape) != len(x.shape):
        return False
    pairs = enumerate(zip(value.shape.dims, x.shape.dims, strict=True))
    return all(same_dim(a, b) or (i == axis and a == 1) for i, (a, b) in pairs)


fuse_softmax = rule_pass(
    "fuse_softmax",
    __doc__,
    [softmax],
    exactness=rounding(16, "runtimes sum in another order"),
)
