"""Merge two Reshapes (or Flatten, Squeeze, Unsqueeze) into one, or remove both.

    before   x ─> Reshape ─> Squeeze ─> y                 after   x ─> Reshape(shape of y) ─> y

Needs    (1) a shape of y that a constant target can state: -1 for one unknown dim, and 0 for dims
         that x has at the same position; (2) or a shape that differs from that of x only by dims
         of size 1.
Keeps    (1) the first Reshape for its other readers; (2) shapes with size 0, where -1 is ambiguous
         and 0 copies a dim.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.opset import RESHAPES
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_dim, same_shape
from smelt.passes.base import EXACT, rule_pass


@rule(
    # keeps 1
    op(RESHAPES, op(RESHAPES, var("x"), name="inner", shared=True, rest=True), rest=True),
    same_shape=True,
)
def reshape_of_reshape(m: Match, b: Builder) -> Replacement:
    """Replace two Reshapes by x, one Reshape, an Unsqueeze or a Squeeze."""
    x, y = m["x"], m.root.outputs[0]
    if same_shape(x.shape, y.shape):
        return x
    target = constant_shape(x.shape, y.shape)
    if target is not None:  # needs 1
        return b.op("Reshape", x, b.const_i64(target))
    for op_type, fewer, more in (("Unsqueeze", x, y), ("Squeeze", y, x)):  # needs 2
        axes = inserted(fewer.shape, more.shape)
        if axes:
            return b.op(op_type, x, b.const_i64(axes))
    return Miss("the result has a dim of size 0, or several dims that are unknown")


def inserted(source: ir.Shape | None, result: ir.Shape | None) -> tuple[int, ...] | None:
    """Return the axes of ``result`` at which it has dims of size 1 that ``source`` lacks.

    None if the shapes differ in other dims.
    """
    if source is None or result is None or len(result) <= len(source):
        return None
    axes, place = [], 0
    for axis, dim in enumerate(result.dims):
        if place < len(source) and same_dim(source[place], dim):
            place += 1
        elif dim == 1:
            axes.append(axis)
        else:
            return None
    return tuple(axes) if place == len(source) else None


def constant_shape(source: ir.Shape | None, result: ir.Shape | None) -> list[int] | None:
    """Return the constant target of a Reshape from ``source`` to ``result``; None if there is none.

    Sizes of 0 are refused: with them -1 is ambiguous, and a target of 0 copies a dim.
    """
    if source is None or result is None or 0 in result.dims or 0 in source.dims:  # keeps 2
        return None
    target = []
    unknown = 0
    for index, dim in enumerate(result.dims):
        if isinstance(dim, int):
            target.append(dim)
        elif index < len(source) and same_dim(source[index], dim):
            target.append(0)
        else:
            target.append(-1)
            unknown += 1
    return target if unknown <= 1 else None


merge_consecutive_reshapes = rule_pass(
    "merge_consecutive_reshapes",
    __doc__,
    [reshape_of_reshape],
    exactness=EXACT,
    source="Core ML MIL: common::merge_consecutive_reshapes",
)
