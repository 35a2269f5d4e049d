"""Drop a Squeeze and an Unsqueeze of the same axes, in either order.

    before   x: [N,1,S,1] ─> Squeeze(1, 3) ─> Unsqueeze(1, 3) ─> y        after   x ─> y

Needs    (1) the same axes, counted from the same end or with a known rank; dims may be unknown;
         (2) for a Squeeze without axes, a known shape of x.
Keeps    (1) the inner result for its other readers; (2) pairs that move a dim of size 1, which
         ``merge-consecutive-reshapes`` turns into one Reshape.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.pattern import one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_shape, static_shape
from smelt.passes.base import EXACT, rule_pass

_squeeze = op("Squeeze", var("x"), rest=True, name="inner", shared=True)  # keeps 1
_unsqueeze = op("Unsqueeze", var("x"), rest=True, name="inner", shared=True)


@rule(
    one_of(op("Unsqueeze", _squeeze, rest=True), op("Squeeze", _unsqueeze, rest=True)),
    min_opset=1,
    same_shape=True,
)
def squeeze_and_unsqueeze(m: Match, b: Builder) -> Replacement:
    """Drop a Squeeze and an Unsqueeze that cancel."""
    x, inner = m["x"], m.node("inner")
    if same_shape(x.shape, m.root.outputs[0].shape):
        return x
    # Both sets of axes refer to the wider shape.
    narrow, wide = (inner.outputs[0], x) if inner.op_type == "Squeeze" else (x, inner.outputs[0])
    first, second = (axes_in(node, wide, narrow, m.constants) for node in (inner, m.root))
    if first is None or second is None:  # needs 1
        return Miss("the axes of Squeeze or Unsqueeze are not known")
    return x if first == second else Miss("Squeeze and Unsqueeze have different axes")  # keeps 2


def axes_in(
    node: ir.Node, wide: ir.Value, narrow: ir.Value, constants: Constants
) -> frozenset[int] | None:
    """Return the axes of a Squeeze or Unsqueeze, as axes of ``wide``, the value with more dims.

    They count from 0 if a rank is known. Otherwise they are as the node has them; the same axis
    counted from the front and from the back then compares unequal, which is safe.
    """
    axes = opset.axes_of(node, constants)
    if axes is None:
        return None
    if not axes and node.op_type == "Squeeze":
        shape = static_shape(wide)
        if shape is None or "axes" in node.attributes or any(node.inputs[1:]):  # needs 2
            # Runtimes differ on the meaning of an empty list of axes.
            return None
        return frozenset(axis for axis, dim in enumerate(shape) if dim == 1)
    rank = len(wide.shape) if wide.shape is not None else None
    if rank is None and narrow.shape is not None:
        rank = len(narrow.shape) + len(axes)
    return frozenset(axes if rank is None else (axis % rank for axis in axes))


fuse_squeeze_expand_dims = rule_pass(
    "fuse_squeeze_expand_dims",
    __doc__,
    [squeeze_and_unsqueeze],
    exactness=EXACT,
    source="Core ML MIL: common::fuse_squeeze_expand_dims",
)
