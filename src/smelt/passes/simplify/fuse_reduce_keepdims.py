"""Fold a Reshape that adds or drops the reduced dims into ``keepdims`` of the reduction.

    before   x: [N,C,S] ─> ReduceSum(2, keepdims = 0) ─> Unsqueeze(2) ─> y: [N,C,1]
    after    x: [N,C,S] ─> ReduceSum(2, keepdims = 1) ─> y: [N,C,1]

Also the other way round: dims that are kept and then squeezed are dropped by the reduction. ArgMax
and ArgMin are handled alike; a Reshape or Flatten counts as the Squeeze or Unsqueeze that it does.

Needs    (1) a result shape that is proved to be that of the reduction with the other ``keepdims``.
Keeps    (1) a reduction that is an output or has other readers.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.opset import RESHAPES
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.tensors.stack import dims_of, same_dims

_POSITIONS = ("ArgMax", "ArgMin")
"""Reductions of one axis, which return the index of an element."""

_reduced = op([*sorted(opset.REDUCTIONS), *_POSITIONS], var("x"), rest=True, name="reduced")


@rule(op(sorted(RESHAPES), _reduced, rest=True), same_shape=True)  # keeps 1
def reshape_of_reduction(m: Match, b: Builder) -> Replacement:
    """Replace the reduction and its Reshape by a reduction with the other ``keepdims``."""
    node, dims, result = m.node("reduced"), dims_of(m["x"]), dims_of(m.root.outputs[0])
    axes = _axes(node, m)
    if dims is None or result is None or not axes:
        return None
    keeps = not opset.keeps_dims(node)
    if keeps:
        reduced_dims = tuple(1 if axis in axes else dim for axis, dim in enumerate(dims))
    else:
        reduced_dims = tuple(dim for axis, dim in enumerate(dims) if axis not in axes)
    if not same_dims(reduced_dims, result):  # needs 1
        return Miss(
            f"{node.op_type} with keepdims={int(keeps)} does not return the shape that the "
            f"{m.root.op_type} returns"
        )
    attributes = [attr for name, attr in node.attributes.items() if name != "keepdims"]
    attributes.append(ir.AttrInt64("keepdims", int(keeps)))
    return b.add(ir.Node("", node.op_type, node.inputs, attributes))[0]


def _axes(node: ir.Node, m: Match) -> tuple[int, ...] | None:
    """Return the reduced axes, counted from 0; None if they are unknown."""
    if node.op_type not in _POSITIONS:
        return opset.reduction_axes(node, m.constants)
    rank = len(m["x"].shape or ())
    axis = opset.attribute(node, "axis", m.opset)
    return (axis % rank,) if rank else None


fuse_reduce_keepdims = rule_pass(
    "fuse_reduce_keepdims",
    __doc__,
    [reshape_of_reduction],
    exactness=EXACT,
    before=("fuse_reduce_mean",),
)
