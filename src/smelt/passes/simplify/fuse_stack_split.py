"""Drop a Concat whose parts a Split or Gather takes apart again.

    before   a, b ─> Unsqueeze(k) each ─> Concat(k) ─> Split(k) ─> Squeeze(k) each ─> u, v
    after    a, b are u, v

Also without the Unsqueezes, and for a Gather that picks one of stacked values.

Needs    (1) parts that are proved to have the sizes of the joined values.
Keeps    (1) the Concat for its other readers; (2) parts of other sizes, or along another axis;
         (3) a computed index.
"""

from __future__ import annotations

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_dim
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.simplify.fuse_squeeze_expand_dims import squeeze_and_unsqueeze
from smelt.passes.tensors.stack import concat_axis, stack_of

_joined = op("Concat", var("first"), rest=True, name="joined", shared=True)  # keeps 1


@rule(op("Split", _joined, rest=True), min_opset=1)
def split_of_concat(m: Match, b: Builder) -> Replacement:
    """Replace the parts of the Split by the values that the Concat joins."""
    concat = m.node("joined")
    axis, joined = concat_axis(concat), m["joined"]
    along = opset.attribute(m.root, "axis", m.opset)
    if axis is None or joined.shape is None or along % len(joined.shape) != axis:  # keeps 2
        return None
    values, parts = tuple(concat.inputs), m.root.outputs
    if len(values) != len(parts):
        return Miss("the Split has another number of parts than the Concat has operands")
    for value, part in zip(values, parts, strict=True):
        if value is None or value.shape is None or part.shape is None:
            return Miss("the shape of a part or of an operand is not known")
        if not same_dim(value.shape[axis], part.shape[axis]):  # needs 1
            return Miss("a part is not proved to have the size of its operand of the Concat")
    return values


@rule(op("Gather", op("Concat", var("first"), rest=True, name="stack", shared=True), var("index")))
def gather_of_stack(m: Match, b: Builder) -> Replacement:
    """Replace a Gather of one stacked value by that value."""
    stack, index = stack_of(m["stack"], m.constants, m.walk()), m.array("index")
    rank = len(m["stack"].shape) if m["stack"].shape is not None else 0
    if stack is None or m.root.attributes.get_int("axis", 0) % rank != stack.axis:
        return None
    if index is None or index.ndim:  # keeps 3
        return Miss("the index is not a constant scalar")
    count = len(stack.values)
    if not -count <= index < count:
        return Miss("the index is out of range")
    return stack.values[int(index)]


fuse_stack_split = rule_pass(
    "fuse_stack_split",
    __doc__,
    [split_of_concat, gather_of_stack, squeeze_and_unsqueeze],
    exactness=EXACT,
    source="Core ML MIL: common::fuse_stack_split",
)
