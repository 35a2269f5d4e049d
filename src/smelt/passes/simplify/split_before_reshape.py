"""Move a Split before the Reshape that makes its axis, if Reshapes merge the parts again.

    before   x: B,S,3*H*D ─> Reshape(B,S,3,H,D) ─> Split(2) ─> Reshape(B,S,H*D) each ─> q, k, v
    after    x ─> Split(2) into H*D each ─> q, k, v

Most vision transformers of PyTorch cut queries, keys and values from one product in this way. A
part of another shape keeps one Reshape. Flatten, Squeeze and Unsqueeze count as Reshapes.

Needs    (1) a Reshape that splits one dim into constant sizes, and a Split of the first of these
         dims; (2) parts that only Reshapes read.
Keeps    (1) a Reshape with other readers, and parts that are outputs.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.opset import RESHAPES
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_dim
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.simplify.merge_consecutive_reshapes import constant_shape


@rule(op("Split", op("Reshape", var("x"), rest=True, name="apart"), rest=True))  # keeps 1
def split_of_reshape(m: Match, b: Builder) -> Replacement:
    """Split the unreshaped value and reshape each part."""
    source_shape, split_shape = m["x"].shape, m["apart"].shape
    parts = [part for part in m.root.outputs if part.shape is not None]
    if source_shape is None or split_shape is None or len(parts) < len(m.root.outputs):
        return None
    axis = int(opset.attribute(m.root, "axis", m.opset)) % len(split_shape)
    piece_size = _size_of_a_piece(source_shape, split_shape, axis)
    if piece_size is None:  # needs 1
        return Miss(
            "the Split is not along the first constant dim into which the Reshape splits a dim"
        )
    if not all(map(_is_for_reshapes, parts)):  # needs 2
        return Miss("a part has a reader other than a Reshape")
    sizes = [part.shape[axis] for part in parts if part.shape is not None]
    numbers = [size * piece_size for size in sizes if isinstance(size, int)]
    if len(numbers) < len(parts):
        return None
    split = ir.Node(
        "",
        "Split",
        [m["x"], b.const_i64(numbers)],
        [ir.AttrInt64("axis", axis)],
        num_outputs=len(parts),
    )
    new_parts = b.add(split)
    targets = [
        constant_shape(value.shape, part.shape)
        for value, part in zip(new_parts, parts, strict=True)
    ]
    if any(target is None for target in targets):
        return Miss("a part has a dim of size 0, or several dims that are unknown")
    return tuple(
        b.op("Reshape", value, b.const_i64(target or ()))
        for value, target in zip(new_parts, targets, strict=True)
    )


def _size_of_a_piece(source_shape: ir.Shape, split_shape: ir.Shape, axis: int) -> int | None:
    """Return the number of elements that a Split of size 1 along ``axis`` of ``split_shape`` takes.

    The Reshape from ``source_shape`` to ``split_shape`` splits ``axis`` into this dim and further
    ones. None if it changes other dims, too, or if sizes are unknown.
    """
    added = len(split_shape) - len(source_shape)
    if added < 1 or axis >= len(source_shape):
        return None
    split_dims = split_shape.dims[axis : axis + added + 1]
    numbers = [dim for dim in split_dims if isinstance(dim, int)]
    if len(numbers) < len(split_dims) or math.prod(numbers) != source_shape[axis]:
        return None
    other_dims = zip(
        (*source_shape.dims[:axis], *source_shape.dims[axis + 1 :]),
        (*split_shape.dims[:axis], *split_shape.dims[axis + added + 1 :]),
        strict=True,
    )
    return math.prod(numbers[1:]) if all(same_dim(x, y) for x, y in other_dims) else None


def _is_for_reshapes(part: ir.Value) -> bool:
    """True if only Reshapes read ``part`` and it is not an output."""
    uses = part.uses()
    readers = (use.node for use in uses)
    return not part.is_graph_output() and all(
        not node.domain and node.op_type in RESHAPES and node.inputs[0] is part for node in readers
    )


split_before_reshape = rule_pass(
    "split_before_reshape",
    __doc__,
    [split_of_reshape],
    exactness=EXACT,
    before=("merge_consecutive_reshapes",),
)
