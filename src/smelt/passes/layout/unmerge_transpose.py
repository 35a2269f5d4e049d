"""Remove the Reshapes that merge dims before a Transpose and split them after it.

    before   Reshape(Transpose<perm=[0, 2, 1]>(Reshape(x: B,H,S,D to B*H,S,D)) to B,H,D,S)
    after    Transpose<perm=[0, 1, 3, 2]>(x)

    before   Reshape(Transpose<perm=[0, 2, 1]>(Reshape(x: B,G,R,S,D to B*H,S,D)) to B,H,D,S)
    after    Transpose<perm=[0, 1, 3, 2]>(Reshape(x to B,H,S,D))

    before   Reshape(Transpose<perm=[0, 2, 1]>(Reshape(x: 1,B,H,S,D to B*H,S,D)) to B,H,D,S)
    after    Transpose<perm=[0, 1, 3, 2]>(Squeeze(x))

    before   Reshape(Transpose<perm=[1, 0, 2]>(Reshape(x: S,B,H*D to S,B*H,D)) to B,H,S,D)
    after    Transpose<perm=[1, 2, 0, 3]>(Reshape(x to S,B,H,D))

    before   Reshape(Transpose<perm=[1, 0, 2]>(Reshape(x: B,H,S,D to B*H,S,D)) to S,B,H*D)
    after    Reshape(Transpose<perm=[2, 0, 1, 3]>(x) to S,B,H*D)

PyTorch's exporters write these forms for the keys of an attention and ``nn.MultiheadAttention``.

Needs    (1) in the first form, one merged group of neighbouring dims, and all other dims unchanged;
         (2) a merged size that is proved to be the product, or no size that may be 0; (3) a result
         split as before, or one group split into dims of which all but one are constant or keep
         their position in x; in the last form, a shape that copies no merged dim.
Keeps    (1) Reshapes with other readers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import Dim, is_positive, same_dim
from smelt.ir.symbolic_dims.element_counts import dim_product
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.layout.merge_consecutive_transposes import permutation

_moved = op("Transpose", op("Reshape", var("x"), rest=True, name="merged"), name="moved")


@rule(op("Reshape", _moved, rest=True))  # keeps 1
def transpose_of_merged(m: Match, b: Builder) -> Replacement:
    """Replace Reshape, Transpose, Reshape by a Transpose, after a Reshape if the split differs."""
    perm = permutation(m.node("moved"))
    before, merged = m["x"].shape, m.node("merged").outputs[0].shape
    result = m.root.outputs[0].shape
    if perm is None or before is None or merged is None or result is None:
        return Miss("the rank of x, of the Reshape or of the result is unknown")
    groups = merged_groups(before.dims, merged.dims)
    if groups is None:  # needs 1
        return _split_otherwise(m, b, perm)
    axes = [axis for index in perm for axis in groups[index]]
    moved = [before[axis] for axis in axes]
    if len(result) == len(moved) and all(map(same_dim, result, moved)):  # needs 3
        return b.op("Transpose", m["x"], perm=axes)
    split = _split_otherwise(m, b, perm)
    if not isinstance(split, Miss) or not _copies_alike(m, result.dims, moved):
        return split
    return b.like(m.root, b.op("Transpose", m["x"], perm=axes), m.root.inputs[1])


def _copies_alike(m: Match, result: Sequence[Dim], moved: Sequence[Dim]) -> bool:
    """True if the last Reshape makes ``result`` of a value with the dims ``moved``, too.

    A 0 in the target of a Reshape copies the dim of its input at that axis. So each dim that may be
    a copy must be equal in ``moved``. A dim is not a copy if the target has a number there, or if
    it differs from the dim of the old input.
    """
    array, before = m.array(m.root.inputs[1]), m.node("moved").outputs[0].shape
    if m.root.attributes.get_int("allowzero", 0):
        return True
    if before is None:
        return False
    for axis, dim in enumerate(result):
        is_number = array is not None and bool(array[axis])
        old_dim = before[axis] if axis < len(before) else 0
        is_no_copy = isinstance(dim, int) and isinstance(old_dim, int) and dim != old_dim
        is_unmoved = axis < len(moved) and same_dim(dim, moved[axis])
        if not (is_number or is_no_copy or is_unmoved):
            return False
    return True


def _split_otherwise(m: Match, b: Builder, perm: Sequence[int]) -> Replacement:
    """Return a Transpose of a Reshape that splits a merged group into the dims of the result, or a
    Miss.

    1. ``groups`` are the axes of the result that make each transposed dim; ``order`` has them in
       the order before the Transpose.
    2. x is reshaped to ``dims``, the dims of the result in that order; at most one is unknown.
    3. The Transpose moves whole groups: group ``i`` begins at axis ``starts[i]`` of the new x.
    """
    moved, result = m.node("moved").outputs[0].shape, m.root.outputs[0].shape
    groups = merged_groups(result.dims, moved.dims) if result is not None and moved else None
    if groups is None or result is None:  # needs 3
        return Miss("the dims are not split as they were merged")
    order = [group for _, group in sorted(zip(perm, groups, strict=True))]
    dims = [result[axis] for group in order for axis in group]
    sizes = [_size(dim, axis, m["x"]) for axis, dim in enumerate(dims)]
    known_dims = [dim for dim, size in zip(dims, sizes, strict=True) if size != -1]
    is_determined = -1 not in sizes or all(map(is_positive, known_dims))
    if sizes.count(-1) > 1:  # needs 3
        return Miss("more than one dim of the result is unknown")
    if 0 in dims or not is_determined:
        return Miss("a dim of the result may be 0")
    starts = np.cumsum([0, *(len(group) for group in order)])
    axes = [int(starts[index]) + i for index in perm for i in range(len(order[index]))]
    unit_axes = _unit_dims(m["x"].shape, dims)
    split = ("Squeeze", unit_axes) if unit_axes else ("Reshape", sizes)
    return b.op("Transpose", b.op(split[0], m["x"], b.const_i64(split[1])), perm=axes)


def _unit_dims(shape: ir.Shape | None, dims: Sequence[Dim]) -> list[int]:
    """Return the leading axes of 1 without which ``shape`` has ``dims``; [] if there are none.

    Passes that move Transposes know a Squeeze, but not a Reshape.
    """
    count = len(shape) - len(dims) if shape is not None else 0
    if shape is None or count < 1 or any(dim != 1 for dim in shape.dims[:count]):
        return []
    return list(range(count)) if all(map(same_dim, shape.dims[count:], dims)) else []


def _size(dim: Dim, axis: int, source: ir.Value) -> int:
    """Return the Reshape size of ``dim``: a number, else 0 if ``source`` has it at ``axis``, else
    -1."""
    if isinstance(dim, int):
        return dim
    before = source.shape.dims if source.shape is not None else ()
    return 0 if axis < len(before) and same_dim(before[axis], dim) else -1


def merged_groups(dims: Sequence[Dim], merged: Sequence[Dim]) -> list[list[int]] | None:
    """Return for each dim of ``merged`` the axes of ``dims`` that form it.

    Exactly one dim has several axes. It must be proved to be their product, or all other dims must
    be proved equal and no dim may be 0; else None.
    """
    count = len(dims) - len(merged) + 1
    if count < 2:
        return None
    first = 0
    while first < len(merged) - 1 and same_dim(dims[first], merged[first]):
        first += 1
    later_dims = range(first + 1, len(merged))
    if not all(same_dim(dims[axis + count - 1], merged[axis]) for axis in later_dims):
        return None
    product = dim_product(dims[first : first + count])
    if isinstance(product, int) and isinstance(merged[first], int) and product != merged[first]:
        return None
    if not (same_dim(merged[first], product) or all(map(is_positive, dims))):  # needs 2
        return None
    earlier_groups = [[axis] for axis in range(first)]
    return [
        *earlier_groups,
        list(range(first, first + count)),
        *([axis + count - 1] for axis in later_dims),
    ]


unmerge_transpose = rule_pass("unmerge_transpose", __doc__, [transpose_of_merged], exactness=EXACT)
