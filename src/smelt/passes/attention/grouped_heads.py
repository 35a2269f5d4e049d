"""The rule that drops copies of keys and values: query heads of one group share them."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import op, optional, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import Dim, same_dim
from smelt.ir.walk import Walk
from smelt.passes.layout.merge_consecutive_transposes import permutation

_HEADS_AND_ROWS = (0, 2, 1, 3)


@rule(op("Attention", var("q"), var("k"), var("v"), optional(var("bias"))), needs=("Expand",))
def grouped(m: Match, b: Builder) -> Replacement:
    """Replace repeated keys and values B,G*R,S,D by B,G,S,D (grouped-query attention).

    The heads were repeated by Expand from B,G,1,S,D. Source: GQA, Ainslie et al. 2023.
    """
    if "q_num_heads" in m.root.attributes or len(m.root.outputs) > 1:
        return None
    walk = m.walk()
    copies = [_copied(m[name], walk) for name in ("k", "v")]
    keys, values = copies
    if keys is None or values is None:
        return None
    if keys.groups != values.groups:  # fuse_attention needs 9
        return Miss("the heads of keys and values are not repeated equally often")
    refusal = m.replaces(walk)
    if refusal is not None:
        return refusal
    shared = [copy.uncopied(b) for copy in (keys, values)]
    inputs = [m["q"], *shared, *m.root.inputs[3:]]
    return b.add(ir.Node("", "Attention", inputs, m.root.attributes.values()))[0]


@dataclass(frozen=True)
class _Copied:
    """Repeated keys or values: ``source`` has a dim of 1 at ``axis``, along which it is expanded.

    The axis before has ``groups`` heads. ``transposed``: a Transpose to B,H,S,D follows.
    """

    source: ir.Value
    axis: int
    groups: int
    transposed: bool

    def uncopied(self, b: Builder) -> ir.Value:
        """Return the heads before they are copied, as B,G,S,D."""
        heads = b.op("Squeeze", self.source, b.const_i64([self.axis]))
        return b.op("Transpose", heads, perm=_HEADS_AND_ROWS) if self.transposed else heads


def _copied(value: ir.Value, walk: Walk) -> _Copied | None:
    """Return the heads that ``value`` repeats, B,H,S,D or a Transpose of B,S,H,D; None if it
    repeats none.
    """
    transpose = walk.up(value, "Transpose")
    if transpose is not None and permutation(transpose) != _HEADS_AND_ROWS:
        return None
    # With one group, the merging Reshape is a Squeeze, and the group dim may be the copied one.
    merging = walk.up(transpose.inputs[0] if transpose is not None else value, "Reshape", "Squeeze")
    merged = merging.outputs[0].shape if merging is not None else None
    expand = walk.up(merging.inputs[0], "Expand") if merging is not None else None
    source = expand.inputs[0] if expand is not None else None
    if expand is None or source is None or merged is None:
        return None
    axis = 2 if transpose is None else 3
    shape_before, shape_after = source.shape, expand.outputs[0].shape
    if (
        shape_before is None
        or shape_after is None
        or len(merged) != 4
        or not len(shape_before) == len(shape_after) == 5
    ):
        return None
    groups = shape_before[axis - 1]
    if not isinstance(groups, int) or shape_before[axis] != 1:
        return None
    copied_axes = {axis - 1, axis} if groups == 1 else {axis}
    if not all(same_dim(shape_before[i], shape_after[i]) for i in range(5) if i not in copied_axes):
        return None
    expanded_dims: list[Dim] = [*shape_after[: axis - 1], *shape_after[axis + 1 :]]
    merged_dims = [*merged[: axis - 1], *merged[axis:]]
    if not all(same_dim(dim, other) for dim, other in zip(expanded_dims, merged_dims, strict=True)):
        return None
    return _Copied(source, axis, groups, transpose is not None)
